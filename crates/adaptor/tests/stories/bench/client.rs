use super::seat::End;
use super::{Bench, Client};
use mochila_engine::{
    AttachRequest, Connection as Engine, ConnectionConfig, Credentials, Delivery, Event, LinkId,
    SessionId, TransferEvent,
};
use mochila_wire::performative::{Attach, Role};
use mochila_wire::{AmqpError, DeliveryState, Encode, Map, Message, Now, Source, Target};
use std::collections::{HashMap, VecDeque};

/// A link of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    client: usize,
    link: LinkId,
}

/// A delivery that a client got.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Got {
    pub(crate) link: Link,
    pub(crate) session: SessionId,
    pub(crate) id: u32,
    pub(crate) format: u32,
    pub(crate) settled: bool,
    pub(crate) frames: u32,
    pub(crate) bytes: Vec<u8>,
}

/// What a client was told of a delivery that it sent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Told {
    pub(crate) token: u64,
    pub(crate) settled: bool,
    pub(crate) state: Option<DeliveryState>,
}

/// An engine that is a client.
pub(super) struct ClientEnd {
    engine: Engine,
    session: Option<SessionId>,
    inbox: Vec<u8>,
    got: VecDeque<Got>,
    partial: HashMap<LinkId, Got>,
    told: Vec<(LinkId, Told)>,
    confirmed: HashMap<LinkId, Attach>,
    detached: HashMap<LinkId, Option<AmqpError>>,
    /// Properties of flows, by link.
    properties: Vec<(LinkId, Map)>,
    closed: Option<Option<AmqpError>>,
    tokens: u64,
    index: usize,
}

impl Got {
    /// The message.
    pub(crate) fn message(&self) -> Message {
        Message::decode(&self.bytes).expect("a whole message")
    }

    /// Its body, if that is text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.message().body.content().expect("text or bytes")).unwrap()
    }
}

impl ClientEnd {
    pub(super) fn new(config: ConnectionConfig, credentials: Credentials, now: Now) -> ClientEnd {
        ClientEnd {
            engine: Engine::client(config, credentials, now),
            session: None,
            inbox: Vec::new(),
            got: VecDeque::new(),
            partial: HashMap::new(),
            told: Vec::new(),
            confirmed: HashMap::new(),
            detached: HashMap::new(),
            properties: Vec::new(),
            closed: None,
            tokens: 0,
            index: 0,
        }
    }

    pub(super) fn speak(&mut self, to_node: &mut Vec<u8>) {
        to_node.append(self.engine.output());
    }

    pub(super) fn hear(&mut self, now: Now, bytes: &[u8]) {
        self.inbox.extend_from_slice(bytes);
        let inbox = std::mem::take(&mut self.inbox);
        let mut used = 0;
        loop {
            let handled = self.engine.handle_bytes(now, &inbox[used..]);
            while let Some(event) = self.engine.poll_event() {
                self.handle_event(event, &inbox[used..]);
            }
            used += handled;
            if handled == 0 {
                break;
            }
        }
        self.inbox = inbox[used..].to_vec();
    }

    pub(super) fn handle_timeout(&mut self, now: Now) {
        self.engine.handle_timeout(now);
    }

    pub(super) fn next_timeout_ms(&self) -> Option<u64> {
        self.engine.next_timeout_ms()
    }

    fn handle_event(&mut self, event: Event, bytes: &[u8]) {
        match event {
            Event::Transfer(transfer) => self.take_in(&transfer, &bytes[transfer.payload()]),
            Event::Disposition { session, first, last, settled, state } => {
                let told = &mut self.told;
                self.engine.resolve_outgoing(
                    session,
                    first,
                    last,
                    settled,
                    &mut |link, token, _| {
                        told.push((link, Told { token, settled, state: state.clone() }));
                    },
                );
            }
            Event::AttachConfirmed { link, peer } => {
                self.confirmed.insert(link, *peer);
            }
            Event::Detached { link, error, .. } => {
                self.detached.insert(link, error.map(|error| *error));
            }
            Event::FlowProperties { link, properties } => {
                self.properties.push((link, *properties));
            }
            Event::Closed { error, .. } => self.closed = Some(error.map(|error| *error)),
            _ => {}
        }
    }

    fn take_in(&mut self, transfer: &TransferEvent, payload: &[u8]) {
        let link = Link { client: self.index, link: transfer.link };
        let got = self.partial.remove(&transfer.link);
        let mut got = got.unwrap_or_else(|| Got {
            link,
            session: transfer.session,
            id: transfer.delivery_id,
            format: transfer.message_format,
            settled: false,
            frames: 0,
            bytes: Vec::new(),
        });
        got.bytes.extend_from_slice(payload);
        got.settled |= transfer.settled;
        got.frames += 1;
        if transfer.aborted {
            return;
        }
        if transfer.more {
            self.partial.insert(transfer.link, got);
        } else {
            self.got.push_back(got);
        }
    }
}

/// What clients do.
impl Bench {
    pub(super) fn begin(&mut self, client: Client) {
        let end = self.end_mut(client.0);
        end.index = client.0;
        end.session = Some(end.engine.begin().expect("the connection is open"));
        self.run();
    }

    /// The client has ended its session and begins another one.
    pub(crate) fn begin_again(&mut self, client: Client) {
        self.begin(client);
    }

    /// The engine of a client, to do what there is no method for here.
    pub(crate) fn engine(&mut self, client: Client) -> &mut Engine {
        &mut self.end_mut(client.0).engine
    }

    /// The session of a client.
    pub(crate) fn session(&mut self, client: Client) -> SessionId {
        self.end_mut(client.0).session.expect("it was begun")
    }

    /// Attaches a link, and lets the node answer.
    pub(crate) fn attach(&mut self, client: Client, request: AttachRequest) -> Link {
        let session = self.session(client);
        let link = self.end_mut(client.0).engine.attach(session, request);
        self.run();
        Link { client: client.0, link: link.expect("the session takes a link") }
    }

    /// Attaches a link on which the client sends to an address.
    pub(crate) fn sender(&mut self, client: Client, address: &str) -> Link {
        let name = self.link_name(client, "to", address);
        let target = Target::at(address);
        self.attach(client, AttachRequest::sender(name, Source::default(), target.into()))
    }

    /// Attaches a link on which the client receives from an address, with credit.
    pub(crate) fn receiver(&mut self, client: Client, address: &str, credit: u32) -> Link {
        self.receiver_of(client, Source::at(address), credit)
    }

    /// Attaches a link on which the client receives from a source, with credit.
    pub(crate) fn receiver_of(&mut self, client: Client, source: Source, credit: u32) -> Link {
        let name = self.link_name(client, "from", source.address.as_deref().unwrap_or_default());
        let target = Target::default();
        let link = self.attach(client, AttachRequest::receiver(name, source, target.into()));
        self.grant(link, credit);
        link
    }

    /// Attaches a link with a name of its own on which the client receives, with credit unless it is
    /// refused.
    pub(crate) fn subscribe(&mut self, client: Client, name: &str, source: Source) -> Link {
        let request = AttachRequest::receiver(name, source, Target::default().into());
        let link = self.attach(client, request);
        if self.detached(link).is_none() {
            self.grant(link, 100);
        }
        link
    }

    fn link_name(&mut self, client: Client, way: &str, address: &str) -> String {
        let end = self.end_mut(client.0);
        end.tokens += 1;
        format!("{}-{way}-{address}-{}", client.0, end.tokens)
    }

    /// What the node answered to an attach.
    pub(crate) fn answer(&mut self, link: Link) -> Attach {
        let answer = self.end_mut(link.client).confirmed.get(&link.link);
        answer.cloned().expect("the attach was answered")
    }

    /// The address of the node's source, or target.
    pub(crate) fn address(&mut self, link: Link) -> String {
        let answer = self.answer(link);
        let address = match answer.role {
            Role::Sender => answer.source.and_then(|source| source.address),
            Role::Receiver => {
                answer.target.and_then(|target| target.target().and_then(|t| t.address.clone()))
            }
        };
        address.expect("an address")
    }

    /// How a link has ended: none if it has not, and with what error.
    pub(crate) fn detached(&mut self, link: Link) -> Option<Option<AmqpError>> {
        self.end_mut(link.client).detached.get(&link.link).cloned()
    }

    /// The error with which a link has ended.
    pub(crate) fn detach_error(&mut self, link: Link) -> AmqpError {
        self.detached(link).expect("the link has ended").expect("an error")
    }

    /// How a connection has ended: none if it has not, and with what error.
    pub(crate) fn closed(&mut self, client: Client) -> Option<Option<AmqpError>> {
        self.end_mut(client.0).closed.clone()
    }

    /// Sets the credit of a link.
    pub(crate) fn grant(&mut self, link: Link, credit: u32) {
        self.end_mut(link.client).engine.grant(link.link, credit);
        self.run();
    }

    /// The credit of a link, as the client sees it.
    pub(crate) fn credit(&mut self, link: Link) -> u32 {
        self.end_mut(link.client).engine.link(link.link).map_or(0, |link| link.credit())
    }

    /// Whether credit and the session's window let another delivery begin.
    pub(crate) fn may_begin(&mut self, link: Link) -> bool {
        let wire = self.end_mut(link.client).engine.outgoing(link.link);
        wire.is_some_and(|mut wire| wire.capacity() > 0)
    }

    /// Sends a message unsettled, and lets the node do what it does; returns its token.
    pub(crate) fn send(&mut self, link: Link, message: &Message) -> u64 {
        self.send_bytes(link, &message.to_bytes(), false)
    }

    /// Sends an encoded message, and lets the node do what it does; returns its token.
    pub(crate) fn send_bytes(&mut self, link: Link, bytes: &[u8], settled: bool) -> u64 {
        self.deliver(link, &Delivery { settled, ..Delivery::default() }, bytes)
    }

    /// Sends a delivery of any size, and lets the node do what it does; returns its token.
    pub(crate) fn deliver(&mut self, link: Link, delivery: &Delivery<'_>, bytes: &[u8]) -> u64 {
        let token = self.post(link, delivery, bytes);
        self.run();
        token
    }

    /// Sends a delivery of any size; only if it takes more than the session window allows does
    /// anybody else move.
    pub(crate) fn post(&mut self, link: Link, delivery: &Delivery<'_>, bytes: &[u8]) -> u64 {
        let end = self.end_mut(link.client);
        end.tokens += 1;
        let token = end.tokens;
        let delivery = Delivery { token, ..*delivery };
        let mut wire = end.engine.outgoing(link.link).expect("the link is attached");
        if wire.fits(bytes.len()) {
            wire.deliver(&delivery, &[bytes]);
            return token;
        }
        assert!(wire.capacity() > 0, "there is no credit");
        let mut sent = wire.start_large(&delivery, bytes).taken;
        loop {
            let end = self.end_mut(link.client);
            let mut wire = end.engine.outgoing(link.link).expect("the link is attached");
            let progress = wire.continue_large(&bytes[sent..], true);
            sent += progress.taken;
            if progress.done {
                return token;
            }
            assert!(self.run_once(), "the session window stays closed");
        }
    }

    /// What the client was told of the deliveries of a link since the last time.
    pub(crate) fn told(&mut self, link: Link) -> Vec<Told> {
        let told = &mut self.end_mut(link.client).told;
        told.extract_if(.., |(of, _)| *of == link.link).map(|(_, told)| told).collect()
    }

    /// The states that the client was told of the deliveries of a link since the last time.
    pub(crate) fn states(&mut self, link: Link) -> Vec<DeliveryState> {
        self.told(link).into_iter().map(|told| told.state.expect("a state")).collect()
    }

    /// What has arrived on a link since the last time.
    pub(crate) fn got(&mut self, link: Link) -> Vec<Got> {
        let got = std::mem::take(&mut self.end_mut(link.client).got);
        let (own, others): (Vec<_>, VecDeque<_>) =
            got.into_iter().fold(<_>::default(), |(mut own, mut others), got| {
                match got.link == link {
                    true => own.push(got),
                    false => others.push_back(got),
                }
                (own, others)
            });
        self.end_mut(link.client).got = others;
        own
    }

    /// The texts that have arrived on a link since the last time.
    /// What flows have said about a link since the last time.
    pub(crate) fn flow_properties(&mut self, link: Link) -> Vec<Map> {
        self.run();
        let properties = &mut self.end_mut(link.client).properties;
        properties.extract_if(.., |(id, _)| *id == link.link).map(|(_, map)| map).collect()
    }

    pub(crate) fn texts(&mut self, link: Link) -> Vec<String> {
        self.got(link).iter().map(Got::text).collect()
    }

    /// Says what became of a delivery, and settles it.
    pub(crate) fn settle(&mut self, got: &Got, state: DeliveryState) {
        self.conclude(got, state, true);
    }

    /// Says what became of a delivery.
    pub(crate) fn conclude(&mut self, got: &Got, state: DeliveryState, settled: bool) {
        let engine = &mut self.end_mut(got.link.client).engine;
        engine.settle_incoming(got.session, got.id, got.id, state, settled);
        self.run();
    }

    /// Accepts all deliveries.
    pub(crate) fn accept(&mut self, got: &[Got]) {
        for got in got {
            self.settle(got, DeliveryState::Accepted);
        }
    }

    /// Ends a link for good.
    pub(crate) fn close_link(&mut self, link: Link) {
        self.end_mut(link.client).engine.detach(link.link, true, None);
        self.run();
    }

    /// The client is killed.
    pub(crate) fn kill(&mut self, client: Client) {
        self.cut_seat(client.0);
        self.run();
    }

    /// The client is killed; what it has written reaches the node before.
    pub(crate) fn kill_after_writing(&mut self, client: Client) {
        let seat = &mut self.seats[client.0];
        seat.is_stalled = true;
        self.run();
        self.kill(client);
    }

    /// The client closes its connection.
    pub(crate) fn close(&mut self, client: Client) {
        self.end_mut(client.0).engine.close(None);
        self.run();
    }

    /// The engine's view of a link.
    pub(crate) fn link_id(&self, link: Link) -> LinkId {
        link.link
    }

    fn end_mut(&mut self, index: usize) -> &mut ClientEnd {
        match &mut self.seats[index].end {
            End::Client(client) => client,
            End::Raw(_) => panic!("a raw peer does nothing by itself"),
        }
    }
}
