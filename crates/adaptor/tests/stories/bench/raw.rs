use super::seat::End;
use super::{Bench, Heard, Raw};
use mochila_engine::pair::Said;
use mochila_wire::frame::{self, FrameKind};
use mochila_wire::performative::{Attach, Begin, Disposition, Flow, Open, Role, Transfer};
use mochila_wire::{DeliveryState, Encode, Source, Target};

/// What a peer says that speaks raw frames.
impl Bench {
    /// Somebody has opened a connection without SASL.
    pub(crate) fn raw_opened(&mut self) -> Raw {
        let name = format!("raw-{}", self.seats.len());
        self.raw_open(Open::new(name))
    }

    /// Somebody has opened a connection like this.
    pub(crate) fn raw_open(&mut self, open: Open) -> Raw {
        let raw = self.raw();
        self.say_bytes(raw, &frame::PROTOCOL_AMQP);
        self.say(raw, 0, &open);
        raw
    }

    /// Somebody has begun a session on channel 0, with transfer ids from 0 and wide windows.
    pub(crate) fn raw_begun(&mut self) -> Raw {
        let raw = self.raw_opened();
        self.say(raw, 0, &Begin::new(0, 100_000, 100_000));
        self.hear(raw);
        raw
    }

    /// Somebody has attached a link with handle 0 on which it receives, and given credit.
    pub(crate) fn raw_receiver(&mut self, address: &str, credit: u32) -> Raw {
        let raw = self.raw_begun();
        self.say(raw, 0, &receiving(0, address));
        self.hear(raw);
        if credit > 0 {
            self.say(raw, 0, &credit_of(0, 0, credit));
        }
        raw
    }

    /// Somebody has attached a link with handle 0 on which it sends.
    pub(crate) fn raw_sender(&mut self, address: &str) -> Raw {
        let raw = self.raw_begun();
        self.say(raw, 0, &sending(0, address));
        self.hear(raw);
        raw
    }

    /// Sends an AMQP frame, and lets everybody do what they do about it.
    pub(crate) fn say(&mut self, raw: Raw, channel: u16, performative: &impl Encode) {
        self.say_with(raw, channel, performative, b"");
    }

    /// Sends an AMQP frame with a payload.
    pub(crate) fn say_with(
        &mut self,
        raw: Raw,
        channel: u16,
        performative: &impl Encode,
        payload: &[u8],
    ) {
        let bytes = framed(channel, performative, payload);
        self.say_bytes(raw, &bytes);
    }

    /// Sends bytes.
    pub(crate) fn say_bytes(&mut self, raw: Raw, bytes: &[u8]) {
        self.seats[raw.0].to_node.extend_from_slice(bytes);
        self.run();
    }

    /// What the node has said to a peer since the last time.
    pub(crate) fn hear(&mut self, raw: Raw) -> Heard {
        match &mut self.seats[raw.0].end {
            End::Raw(heard) => Heard(Said::read_all(&std::mem::take(heard))),
            End::Client(_) => panic!("a client hears for itself"),
        }
    }

    /// Says something and listens.
    pub(crate) fn ask(&mut self, raw: Raw, performative: &impl Encode) -> Heard {
        self.hear(raw);
        self.say(raw, 0, performative);
        self.hear(raw)
    }

    /// Whether the node has nothing more to do with a peer.
    pub(crate) fn is_closed(&self, raw: Raw) -> bool {
        self.seats[raw.0].connection.is_closed()
    }

    /// The peer reads nothing from now on, or reads again.
    pub(crate) fn stall(&mut self, raw: Raw, is_stalled: bool) {
        self.seats[raw.0].is_stalled = is_stalled;
        self.run();
    }

    /// How much output waits for a peer that does not read, in bytes.
    pub(crate) fn waiting_output(&mut self, raw: Raw) -> usize {
        self.seats[raw.0].connection.output().len()
    }

    /// The peer hangs up.
    pub(crate) fn cut(&mut self, raw: Raw) {
        self.cut_seat(raw.0);
        self.run();
    }
}

/// A frame.
pub(crate) fn framed(channel: u16, performative: &impl Encode, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let start = frame::start(&mut bytes, FrameKind::Amqp, channel);
    performative.encode(&mut bytes);
    bytes.extend_from_slice(payload);
    frame::finish(&mut bytes, start);
    bytes
}

/// An attach of a peer that receives from an address.
pub(crate) fn receiving(handle: u32, address: &str) -> Attach {
    let mut attach = Attach::new(format!("receiver-{handle}-{address}"), handle, Role::Receiver);
    attach.source = Some(Source::at(address));
    attach.target = Some(Target::default().into());
    attach
}

/// An attach of a peer that sends to an address.
pub(crate) fn sending(handle: u32, address: &str) -> Attach {
    let mut attach = Attach::new(format!("sender-{handle}-{address}"), handle, Role::Sender);
    attach.source = Some(Source::default());
    attach.target = Some(Target::at(address).into());
    attach.initial_delivery_count = Some(0);
    attach
}

/// A flow that gives a link credit, from a receiver that has seen `seen` deliveries in all.
pub(crate) fn credit_of(handle: u32, seen: u32, credit: u32) -> Flow {
    Flow {
        next_incoming_id: Some(seen),
        incoming_window: 100_000,
        next_outgoing_id: 0,
        outgoing_window: 100_000,
        handle: Some(handle),
        delivery_count: Some(seen),
        link_credit: Some(credit),
        ..Flow::default()
    }
}

/// A transfer that is a whole unsettled delivery.
pub(crate) fn whole(handle: u32, id: u32) -> Transfer<'static> {
    Transfer {
        handle,
        delivery_id: Some(id),
        delivery_tag: Some(b"tag"),
        message_format: Some(0),
        ..Transfer::default()
    }
}

/// A frame of a delivery on handle 0, the first one if it has an id, that is not the last one.
pub(crate) fn more(id: Option<u32>) -> Transfer<'static> {
    match id {
        Some(id) => Transfer { more: true, ..whole(0, id) },
        None => Transfer { handle: 0, more: true, ..Transfer::default() },
    }
}

/// The last frame of a delivery on handle 0.
pub(crate) fn last() -> Transfer<'static> {
    Transfer { handle: 0, ..Transfer::default() }
}

/// A receiver's disposition that settles.
pub(crate) fn settled(first: u32, last: u32, state: DeliveryState) -> Disposition {
    Disposition {
        role: Role::Receiver,
        first,
        last: Some(last),
        settled: true,
        state: Some(state),
        batchable: false,
    }
}
