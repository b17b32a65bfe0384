use mochila_wire::frame::{self, FrameKind, Protocol};
use mochila_wire::performative::Open;
use mochila_wire::sasl::{Challenge, Code, Init, Mechanisms, Outcome, SaslFrame};
use mochila_wire::{AmqpError, Map, Symbol, condition};

use super::state::{Input, State};
use super::{Connection, MIN_MAX_FRAME_SIZE, OpenAnswer, Side};
use crate::fault::{Fault, Verdict, brief};
use crate::sasl::plain;
use crate::{Event, Mechanism};

/// How far the SASL dialogue has come (part 5, 5.3.2).
///
/// ```text
///  server: Start ──mechanisms sent──► Offered ──init──► [Challenged ──response──►] Judging
///  client: Start ──SASL header─────► Awaiting mechanisms ──init sent──► Awaiting outcome
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SaslStep {
    /// Nothing has been said.
    Start,
    /// Server: the mechanisms are offered, the client has to choose.
    Offered,
    /// Server: PLAIN was chosen without a response; the client has to send it.
    Challenged,
    /// Server: the application checks the credentials.
    Judging,
    /// Client: the server has to offer its mechanisms.
    AwaitingMechanisms,
    /// Client: the server has to judge.
    AwaitingOutcome,
}

impl SaslStep {
    pub(super) fn waits_for_verdict(self) -> bool {
        self == SaslStep::Judging
    }
}

impl Connection {
    /// The peer is who it says: answers [`Event::Credentials`]. Present the bytes that were left
    /// unread again.
    pub fn authenticated(&mut self, identity: String) {
        if self.state == State::Sasl && self.sasl.waits_for_verdict() {
            self.identity = Some(identity);
            self.write_outcome(Code::Ok);
            self.step(Input::Authenticated);
        }
    }

    /// The peer is not who it says: answers [`Event::Credentials`]. The connection is over.
    pub fn refuse_credentials(&mut self) {
        if self.state == State::Sasl && self.sasl.waits_for_verdict() {
            self.refuse("the credentials are wrong");
        }
    }

    /// Changes what our open offers and says about us, in place of what is configured; means
    /// something from [`Event::Opened`] until the next output.
    pub fn answer_open(&mut self, offered_capabilities: Vec<Symbol>, properties: Map) {
        if let OpenAnswer::Due(answer) = &mut self.open {
            *answer = Some(Box::new((offered_capabilities, properties)));
        }
    }

    /// What a client says first.
    pub(super) fn greet(&mut self) {
        let Side::Client(credentials) = &self.side else { return };
        if credentials.mechanism().is_some() {
            self.output.extend_from_slice(&frame::PROTOCOL_SASL);
        } else {
            self.state = State::Header;
            self.output.extend_from_slice(&frame::PROTOCOL_AMQP);
            self.open = OpenAnswer::Due(None);
            self.write_open_if_due();
        }
    }

    /// Reads a protocol header (part 2, 2.2); none if it has not arrived as a whole.
    pub(super) fn read_header(&mut self, rest: &[u8]) -> Option<usize> {
        let protocol = Protocol::parse(rest)?;
        match (self.state, protocol) {
            (State::Hello, Protocol::Sasl) if self.speaks_sasl() => {
                self.step(Input::SaslHeader);
                self.start_sasl();
            }
            (State::Hello, Protocol::Amqp) if self.accepts_plain_amqp() => self.start_amqp(),
            (State::Header, Protocol::Amqp) => self.start_amqp(),
            _ => {
                self.reject_header(protocol, rest);
                return Some(rest.len());
            }
        }
        Some(frame::PROTOCOL_AMQP.len())
    }

    pub(super) fn read_sasl_frame(&mut self, rest: &[u8]) -> Option<usize> {
        let header = match self.bound(rest) {
            Ok(header) => header?,
            Err(fault) => {
                self.fail(*fault);
                return Some(rest.len());
            }
        };
        let body = &rest[header.body_start()..header.size as usize];
        let verdict = match header.kind {
            FrameKind::Sasl => self.handle_sasl(body),
            FrameKind::Amqp => {
                Err(Fault::framing("an AMQP frame arrived before authentication was over"))
            }
        };
        if let Err(fault) = verdict {
            self.fail(*fault);
        }
        Some(header.size as usize)
    }

    pub(super) fn handle_open(&mut self, open: Box<Open>) -> Verdict {
        if open.max_frame_size < MIN_MAX_FRAME_SIZE {
            return Err(Fault::connection(
                condition::INVALID_FIELD,
                format!(
                    "max-frame-size is {}, and everybody has to take {MIN_MAX_FRAME_SIZE}",
                    open.max_frame_size
                ),
            ));
        }
        if let Some(timeout @ 1..MIN_IDLE_TIMEOUT_MS) = open.idle_time_out {
            return Err(Fault::connection(
                condition::NOT_ALLOWED,
                format!("an idle time-out of {timeout} ms cannot be kept"),
            ));
        }
        self.step(Input::Open);
        self.incoming_limit = self.config.max_frame_size.max(MIN_MAX_FRAME_SIZE);
        let ours = self.config.max_outgoing_frame_size.max(MIN_MAX_FRAME_SIZE);
        self.frame_limit = open.max_frame_size.min(ours) as usize;
        self.timers.open(self.config.idle_timeout_ms, open.idle_time_out);
        self.peer = Some(open);
        if matches!(self.open, OpenAnswer::Waiting) {
            self.open = OpenAnswer::Due(None);
        }
        // The application may want to change our open before anything else is answered.
        self.is_paused = !matches!(self.open, OpenAnswer::Sent);
        self.events.push_back(Event::Opened);
        Ok(())
    }

    /// Sends our open, if it is its turn.
    pub(super) fn write_open_if_due(&mut self) {
        let OpenAnswer::Due(answer) = &mut self.open else { return };
        let config = self.config.clone();
        let (offered_capabilities, properties) = match answer.take() {
            Some(answer) => *answer,
            None => (config.offered_capabilities.clone(), config.properties.clone()),
        };
        self.open = OpenAnswer::Sent;
        let open = Open {
            container_id: config.container_id.clone(),
            hostname: config.hostname.clone(),
            max_frame_size: config.max_frame_size.max(MIN_MAX_FRAME_SIZE),
            channel_max: config.channel_max,
            idle_time_out: config.advertised_idle_timeout_ms(),
            outgoing_locales: Vec::new(),
            incoming_locales: Vec::new(),
            offered_capabilities,
            desired_capabilities: config.desired_capabilities.clone(),
            properties: (!properties.is_empty()).then_some(properties),
        };
        frame::write(&mut self.output, 0, &open);
    }

    fn speaks_sasl(&self) -> bool {
        match &self.side {
            Side::Server => !self.config.sasl_mechanisms.is_empty(),
            Side::Client(_) => true,
        }
    }

    fn accepts_plain_amqp(&self) -> bool {
        matches!(self.side, Side::Server) && !self.config.sasl_required
    }

    fn start_amqp(&mut self) {
        self.step(Input::AmqpHeader);
        if matches!(self.side, Side::Server) {
            self.output.extend_from_slice(&frame::PROTOCOL_AMQP);
        }
    }

    /// The peer speaks something else: it is told what we speak, and that is all.
    fn reject_header(&mut self, protocol: Protocol, bytes: &[u8]) {
        let text = match (&self.side, protocol) {
            (Side::Server, _) => {
                let sasl = self.state == State::Hello
                    && self.speaks_sasl()
                    && (self.config.sasl_required || wants_sasl(bytes));
                self.output.extend_from_slice(match sasl {
                    true => &frame::PROTOCOL_SASL,
                    false => &frame::PROTOCOL_AMQP,
                });
                match protocol {
                    Protocol::Amqp => "the peer wants to skip authentication".to_owned(),
                    Protocol::Sasl => "the peer wants to authenticate, which is not offered".into(),
                    Protocol::Tls => "the peer wants TLS inside AMQP, which is not offered".into(),
                    Protocol::Unsupported => not_amqp(bytes),
                }
            }
            (Side::Client(_), Protocol::Amqp) => "the server does not authenticate".to_owned(),
            (Side::Client(_), Protocol::Sasl) => "the server demands authentication".to_owned(),
            (Side::Client(_), Protocol::Tls) => "the server demands TLS".to_owned(),
            (Side::Client(_), Protocol::Unsupported) => not_amqp(bytes),
        };
        self.tell_closed(Some(AmqpError::new(condition::NOT_ALLOWED, text)), false);
        self.give_up();
    }

    fn start_sasl(&mut self) {
        match self.side {
            Side::Server => {
                self.output.extend_from_slice(&frame::PROTOCOL_SASL);
                let offered = self.config.sasl_mechanisms.iter();
                let offered = offered.map(|mechanism| mechanism.symbol()).collect();
                frame::write_sasl(
                    &mut self.output,
                    &Mechanisms { sasl_server_mechanisms: offered },
                );
                self.sasl = SaslStep::Offered;
            }
            Side::Client(_) => self.sasl = SaslStep::AwaitingMechanisms,
        }
    }

    fn handle_sasl(&mut self, body: &[u8]) -> Verdict {
        let decoded = SaslFrame::from_body(body);
        match (self.sasl, decoded) {
            (SaslStep::Offered, Ok(SaslFrame::Init(init))) => self.handle_init(init),
            (SaslStep::Challenged, Ok(SaslFrame::Response(response))) => {
                self.judge_plain(&response.response);
            }
            // What cannot be understood is no proof of anything (part 5, 5.3.3.6).
            (SaslStep::Offered | SaslStep::Challenged, decoded) => {
                self.refuse(match decoded {
                    Ok(_) => "a SASL frame arrived out of turn",
                    Err(_) => "a SASL frame could not be decoded",
                });
            }
            (SaslStep::AwaitingMechanisms, Ok(SaslFrame::Mechanisms(mechanisms))) => {
                self.choose(&mechanisms.sasl_server_mechanisms);
            }
            (SaslStep::AwaitingOutcome, Ok(SaslFrame::Outcome(outcome))) => {
                self.handle_outcome(outcome.code);
            }
            (_, Ok(_)) => {
                return Err(Fault::connection(
                    condition::ILLEGAL_STATE,
                    "a SASL frame arrived out of turn",
                ));
            }
            (_, Err(error)) => return Err(error.into()),
        }
        Ok(())
    }

    /// The client chose a mechanism; it must be one that was offered.
    fn handle_init(&mut self, init: Init) {
        let chosen = Mechanism::from_name(init.mechanism.as_str());
        match chosen.filter(|chosen| self.config.sasl_mechanisms.contains(chosen)) {
            Some(Mechanism::Anonymous) => {
                self.sasl = SaslStep::Judging;
                self.authenticated(String::from("anonymous"));
            }
            Some(Mechanism::Plain) => match init.initial_response {
                Some(response) => self.judge_plain(&response),
                None => {
                    self.sasl = SaslStep::Challenged;
                    frame::write_sasl(&mut self.output, &Challenge { challenge: Vec::new() });
                }
            },
            None => {
                // Goes to a log, and may hold line breaks.
                let name = brief(init.mechanism.as_str()).escape_debug();
                self.refuse(format!("mechanism {name} is not offered"));
            }
        }
    }

    fn judge_plain(&mut self, response: &[u8]) {
        match plain::decode(response) {
            Some(credentials) => {
                self.sasl = SaslStep::Judging;
                self.events.push_back(Event::Credentials(Box::new(credentials)));
            }
            None => self.refuse("the PLAIN response is malformed"),
        }
    }

    fn refuse(&mut self, why: impl Into<String>) {
        self.write_outcome(Code::Auth);
        let error = AmqpError::new(condition::UNAUTHORIZED_ACCESS, why);
        self.tell_closed(Some(error), false);
        self.give_up();
    }

    fn write_outcome(&mut self, code: Code) {
        frame::write_sasl(&mut self.output, &Outcome { code, additional_data: None });
    }

    /// The server made its offer; the client's mechanism has to be in it.
    fn choose(&mut self, offered: &[Symbol]) {
        let Side::Client(credentials) = &self.side else { return };
        let Some(mechanism) = credentials.mechanism() else { return };
        if offered.iter().any(|name| name == mechanism.name()) {
            let init = Init {
                mechanism: mechanism.symbol(),
                initial_response: Some(credentials.initial_response()),
                hostname: self.config.hostname.clone(),
            };
            frame::write_sasl(&mut self.output, &init);
            self.sasl = SaslStep::AwaitingOutcome;
            return;
        }
        let names: Vec<&str> = offered.iter().take(8).map(|name| brief(name.as_str())).collect();
        let error = AmqpError::new(
            condition::UNAUTHORIZED_ACCESS,
            format!("the server does not offer {mechanism} but [{}]", names.join(", ")),
        );
        self.tell_closed(Some(error), false);
        self.give_up();
    }

    fn handle_outcome(&mut self, code: Code) {
        if code == Code::Ok {
            self.step(Input::Authenticated);
            self.output.extend_from_slice(&frame::PROTOCOL_AMQP);
            self.open = OpenAnswer::Due(None);
            self.write_open_if_due();
            return;
        }
        let text = match code {
            Code::Auth => "the server refused the credentials",
            _ => "the server could not check the credentials",
        };
        self.tell_closed(Some(AmqpError::new(condition::UNAUTHORIZED_ACCESS, text)), true);
        self.give_up();
    }
}

/// Whether a header that is not quite right asks for SASL.
fn wants_sasl(bytes: &[u8]) -> bool {
    bytes.starts_with(&frame::PROTOCOL_SASL[..5])
}

fn not_amqp(bytes: &[u8]) -> String {
    format!(
        "the peer does not speak AMQP 1.0, but \"{}\"",
        bytes[..bytes.len().min(8)].escape_ascii()
    )
}

/// Whoever wants signs of life more often asks too much.
const MIN_IDLE_TIMEOUT_MS: u32 = 20;
