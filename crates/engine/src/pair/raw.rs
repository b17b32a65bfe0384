use mochila_wire::frame::{self, FrameKind, Header};
use mochila_wire::performative::{Attach, Begin, Flow, Open, Role, Transfer};
use mochila_wire::sasl::SaslFrame;
use mochila_wire::{Encode, Now, Performative, Source, Target};

use super::Seen;
use super::seen::Inbox;
use crate::{AttachAnswer, Connection, ConnectionConfig, Event};

/// A server engine, and a peer of it whose frames a test writes by hand.
#[derive(Debug)]
pub struct RawPeer {
    /// The engine.
    pub engine: Connection,
    /// The virtual time.
    pub now: Now,
    inbox: Inbox,
    heard: Vec<u8>,
}

/// Something that the engine said.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// A protocol header.
    Header([u8; 8]),
    /// A SASL frame.
    Sasl(SaslFrame),
    /// A frame without body.
    Heartbeat,
    /// An AMQP frame.
    Frame {
        /// The channel.
        channel: u16,
        /// The performative and the payload.
        body: Vec<u8>,
    },
}

impl Said {
    /// The performative, if it is an AMQP frame.
    pub fn performative(&self) -> Option<Performative<'_>> {
        match self {
            Said::Frame { body, .. } => Performative::decode(body).ok().map(|decoded| decoded.0),
            _ => None,
        }
    }

    /// What it is, in a word: the name of the performative, or "header", "sasl", "heartbeat".
    pub fn name(&self) -> &'static str {
        match self {
            Said::Header(_) => "header",
            Said::Sasl(_) => "sasl",
            Said::Heartbeat => "heartbeat",
            Said::Frame { .. } => self.performative().map_or("unknown", |known| known.name()),
        }
    }

    /// Everything in the bytes that an engine wrote.
    ///
    /// # Panics
    /// If something in them is no frame.
    pub fn read_all(bytes: &[u8]) -> Vec<Said> {
        let mut said = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            if let Some(header) =
                rest.first_chunk::<8>().filter(|header| header.starts_with(b"AMQP"))
            {
                said.push(Said::Header(*header));
                rest = &rest[8..];
                continue;
            }
            let header = Header::parse(rest).ok().flatten().expect("the engine writes frames");
            let (frame, next) = rest.split_at(header.size as usize);
            let body = header.body(frame).expect("the engine writes whole frames");
            said.push(match header.kind {
                FrameKind::Sasl => {
                    Said::Sasl(SaslFrame::from_body(body).expect("the engine writes SASL frames"))
                }
                FrameKind::Amqp if body.is_empty() => Said::Heartbeat,
                FrameKind::Amqp => Said::Frame { channel: header.channel, body: body.to_vec() },
            });
            rest = next;
        }
        said
    }
}

impl RawPeer {
    /// A peer that has said nothing yet.
    pub fn new(config: ConnectionConfig) -> RawPeer {
        let now = Now::new(1_000_000, 1_700_000_000_000);
        RawPeer {
            engine: Connection::server(config, now),
            now,
            inbox: Inbox::default(),
            heard: Vec::new(),
        }
    }

    /// A peer that has opened the connection, without SASL.
    pub fn opened() -> RawPeer {
        RawPeer::opened_with(ConnectionConfig::new("server"))
    }

    /// A peer that has opened the connection, without SASL.
    pub fn opened_with(config: ConnectionConfig) -> RawPeer {
        let mut peer = RawPeer::new(config);
        peer.send_bytes(&frame::PROTOCOL_AMQP);
        peer.send(0, &Open::new("raw"));
        assert!(peer.engine.is_open(), "the handshake did not end");
        peer.heard();
        peer.events();
        peer
    }

    /// A peer that has begun a session on channel 0, with transfer ids from 0 and wide windows.
    pub fn begun() -> RawPeer {
        let mut peer = RawPeer::opened();
        peer.send(0, &Begin::new(0, 10_000, 10_000));
        peer.heard();
        peer.events();
        peer
    }

    /// A peer that has attached a link in session 0, granted as asked; `role` is the peer's.
    pub fn attached(role: Role) -> RawPeer {
        let mut peer = RawPeer::begun();
        peer.attach(0, "link", role);
        peer
    }

    /// Attaches a link in the session on channel 0, granted as asked; `role` is the peer's.
    ///
    /// # Panics
    /// If it cannot be; events before it are lost.
    pub fn attach(&mut self, handle: u32, name: &str, role: Role) -> crate::LinkId {
        self.send(0, &RawPeer::attach_frame(handle, name, role));
        let asked = self.events().into_iter().find_map(|seen| match seen.event {
            Event::Attached { link, peer } => Some((link, peer)),
            _ => None,
        });
        let (link, attach) = asked.expect("the engine asks for an answer");
        self.engine.answer_attach(link, AttachAnswer::echo(&attach));
        self.heard();
        link
    }

    /// An attach frame with both termini; `role` is the peer's.
    pub fn attach_frame(handle: u32, name: &str, role: Role) -> Attach {
        let mut attach = Attach::new(name, handle, role);
        attach.source = Some(Source::at(name));
        attach.target = Some(Target::at(name).into());
        attach.initial_delivery_count = (role == Role::Sender).then_some(0);
        attach
    }

    /// A flow that gives credit for handle 0, from a receiver that has seen nothing yet.
    pub fn credit_frame(credit: u32) -> Flow {
        Flow {
            next_incoming_id: Some(0),
            incoming_window: 10_000,
            outgoing_window: 10_000,
            handle: Some(0),
            delivery_count: Some(0),
            link_credit: Some(credit),
            ..Flow::default()
        }
    }

    /// A transfer on handle 0 that is a whole delivery.
    pub fn transfer_frame(delivery_id: u32) -> Transfer<'static> {
        Transfer {
            delivery_id: Some(delivery_id),
            delivery_tag: Some(b"tag"),
            message_format: Some(0),
            ..Transfer::default()
        }
    }

    /// Sends bytes.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.inbox.bytes.extend_from_slice(bytes);
        self.resume();
    }

    /// Presents what the engine left unread again.
    pub fn resume(&mut self) {
        self.inbox.deliver(&mut self.engine, self.now, usize::MAX);
    }

    /// Sends an AMQP frame.
    pub fn send(&mut self, channel: u16, performative: &impl Encode) {
        self.send_with(channel, performative, b"");
    }

    /// Sends an AMQP frame with a payload.
    pub fn send_with(&mut self, channel: u16, performative: &impl Encode, payload: &[u8]) {
        let mut bytes = Vec::new();
        let start = frame::start(&mut bytes, FrameKind::Amqp, channel);
        performative.encode(&mut bytes);
        bytes.extend_from_slice(payload);
        frame::finish(&mut bytes, start);
        self.send_bytes(&bytes);
    }

    /// Sends a SASL frame.
    pub fn send_sasl(&mut self, body: &impl Encode) {
        let mut bytes = Vec::new();
        frame::write_sasl(&mut bytes, body);
        self.send_bytes(&bytes);
    }

    /// Lets time pass, and has the engine meet its deadlines.
    pub fn advance(&mut self, ms: u64) {
        let end = self.now.mono_ms + ms;
        while let Some(next) = self.engine.next_timeout_ms().filter(|next| *next <= end) {
            self.now = self.now.after(next.saturating_sub(self.now.mono_ms));
            self.engine.handle_timeout(self.now);
            self.heard.append(self.engine.output());
        }
        self.now = self.now.after(end - self.now.mono_ms);
    }

    /// What has happened at the engine since the last time.
    pub fn events(&mut self) -> Vec<Seen> {
        self.inbox.take_events(&mut self.engine, 0);
        self.inbox.seen.drain(..).collect()
    }

    /// What the engine has said since the last time.
    ///
    /// # Panics
    /// If it said something that is no frame.
    pub fn heard(&mut self) -> Vec<Said> {
        self.heard.append(self.engine.output());
        let bytes = std::mem::take(&mut self.heard);
        Said::read_all(&bytes)
    }

    /// The names of what the engine has said since the last time.
    pub fn heard_names(&mut self) -> Vec<&'static str> {
        self.heard().iter().map(Said::name).collect()
    }
}
