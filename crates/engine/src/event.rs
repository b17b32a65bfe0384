use std::ops::Range;

use mochila_wire::performative::{Attach, ReceiverSettleMode};
use mochila_wire::{AmqpError, DeliveryState, Map};

use crate::{LinkId, Mechanism, Secret, SessionId};

/// What happened on a connection, in the order in which it happened.
///
/// Ranges index into the bytes given to the `handle_bytes` call that made the event.
#[derive(Debug, PartialEq)]
pub enum Event {
    /// The peer wants to be authenticated (part 5, 5.3): answer with
    /// [`authenticated`](crate::Connection::authenticated) or
    /// [`refuse_credentials`](crate::Connection::refuse_credentials), now or later. Input is left
    /// unread until then. ANONYMOUS, where offered, is answered without asking.
    Credentials(Box<PeerCredentials>),
    /// The peer's open arrived. A server's own open goes out with the next output; until then
    /// [`answer_open`](crate::Connection::answer_open) may change what it says.
    Opened,
    /// A session began: the peer's, answered already, or ours, answered by the peer.
    Begun {
        /// The session.
        session: SessionId,
    },
    /// A session ended, and all its links with it: no [`Event::Detached`] follows for them.
    Ended {
        /// The session.
        session: SessionId,
        /// Why, if not on request.
        error: Option<Box<AmqpError>>,
    },
    /// The peer wants a link: answer or refuse it.
    Attached {
        /// The new link.
        link: LinkId,
        /// What the peer asks for.
        peer: Box<Attach>,
    },
    /// The peer answered our attach. If it refused, the terminus on its side is null and
    /// [`Event::Detached`] follows.
    AttachConfirmed {
        /// The link.
        link: LinkId,
        /// The peer's answer.
        peer: Box<Attach>,
    },
    /// Credit or drain changed on a link on which we send, or the receiver asks for our state.
    Credit {
        /// The link.
        link: LinkId,
    },
    /// The sender of a link on which we receive told its state: `available`, or the end of a
    /// drain.
    PeerFlow {
        /// The link.
        link: LinkId,
    },
    /// The peer said more of a link with a flow than its state (part 2, 2.7.4).
    FlowProperties {
        /// The link.
        link: LinkId,
        /// What it said.
        properties: Box<Map>,
    },
    /// The peer's incoming window, used up before, has room again.
    Window {
        /// The session.
        session: SessionId,
    },
    /// One transfer frame of a delivery to us.
    Transfer(TransferEvent),
    /// The receiver told the state of deliveries that we sent, all of them known to this session:
    /// visit them with [`resolve_outgoing`](crate::Connection::resolve_outgoing).
    Disposition {
        /// The session.
        session: SessionId,
        /// The first delivery of the range.
        first: u32,
        /// The last delivery of the range.
        last: u32,
        /// Whether the receiver has settled them.
        settled: bool,
        /// Their state; absent where the receiver says nothing and the default outcome applies.
        state: Option<DeliveryState>,
    },
    /// The sender settled deliveries to us. The range may reach back over deliveries that are
    /// settled long since: look at those of it that are held.
    IncomingSettled {
        /// The session.
        session: SessionId,
        /// The first delivery of the range.
        first: u32,
        /// The last delivery of the range.
        last: u32,
    },
    /// The link is gone: the peer detached it (we have answered), answered our detach, or broke a
    /// rule. It is the link's last event; [`link`](crate::Connection::link) still finds it until
    /// the next input.
    Detached {
        /// The link.
        link: LinkId,
        /// Whether the link is closed for good rather than suspended.
        closed: bool,
        /// Why, if not on request.
        error: Option<Box<AmqpError>>,
    },
    /// The connection is over, and everything on it. It is the last event.
    Closed {
        /// Why, if not on request.
        error: Option<Box<AmqpError>>,
        /// Whether the peer ended it.
        by_peer: bool,
    },
}

/// What a peer says to prove who it is. Its debug output does not show the password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerCredentials {
    /// The mechanism that carried the credentials.
    pub mechanism: Mechanism,
    /// The identity to act as; empty for the user's own.
    pub authzid: String,
    /// The user.
    pub authcid: String,
    /// The password.
    pub password: Secret,
}

/// One transfer frame: a whole delivery (`start` and not `more`) or a piece of one.
#[derive(Debug, PartialEq)]
pub struct TransferEvent {
    /// The link.
    pub link: LinkId,
    /// Its session, in which the delivery id counts.
    pub session: SessionId,
    /// The delivery, also for frames that do not repeat it. Ids of a session follow one another,
    /// but may leave gaps.
    pub delivery_id: u32,
    /// The format of the message; 0 is the AMQP message of part 3.
    pub message_format: u32,
    /// Where the payload of this frame starts.
    pub payload_start: u32,
    /// Where the payload of this frame ends.
    pub payload_end: u32,
    pub(crate) places: Places,
    /// Whether this is the delivery's first frame.
    pub start: bool,
    /// Whether more frames follow.
    pub more: bool,
    /// Whether the sender gave the delivery up: forget it, it counts as settled.
    pub aborted: bool,
    /// Whether the delivery is settled by its sender (on this or an earlier frame).
    pub settled: bool,
    /// Whether the sender had been told, before it began, that the credit for it was taken back. It
    /// may come all the same: some clients use credit up when a message is handed to them.
    pub without_credit: bool,
    /// Whether the delivery resumes one from before a suspended link was attached again.
    pub resume: bool,
    /// How this delivery is to be settled, where it differs from the link's mode.
    pub rcv_settle_mode: Option<ReceiverSettleMode>,
    /// The delivery's state as the sender sees it, unless that is only that it is in a
    /// [transaction](TransferEvent::txn_id).
    pub state: Option<Box<DeliveryState>>,
}

/// Where the tag and the id of the transaction are that a transfer names; empty where it names none.
///
/// In one number, since events are moved several times: where the frame's body starts, and how far
/// behind that and how long each of them is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Places(u64);

impl Places {
    /// Of a body that starts at `start`, with the places of both in it.
    #[inline]
    pub(crate) fn new(start: usize, tag: Range<u8>, txn_id: Range<u8>) -> Places {
        let [a, b, c, d] = (start as u32).to_le_bytes();
        Places(u64::from_le_bytes([a, b, c, d, tag.start, tag.end, txn_id.start, txn_id.end]))
    }

    fn tag(self) -> Range<usize> {
        let [.., start, end, _, _] = self.0.to_le_bytes();
        self.within(start, end)
    }

    #[inline]
    fn txn_id(self) -> Range<usize> {
        let [.., start, end] = self.0.to_le_bytes();
        self.within(start, end)
    }

    #[inline]
    fn within(self, start: u8, end: u8) -> Range<usize> {
        let body = self.0 as u32 as usize;
        body + usize::from(start)..body + usize::from(end)
    }
}

impl TransferEvent {
    /// Where in the handled bytes the payload of this frame is.
    pub fn payload(&self) -> Range<usize> {
        self.payload_start as usize..self.payload_end as usize
    }

    /// Where in the handled bytes the delivery tag is; empty on frames that do not repeat it.
    pub fn tag(&self) -> Range<usize> {
        self.places.tag()
    }

    /// The id of the transaction that the delivery is in, if this frame says that it is in one; it is
    /// in the handled bytes.
    #[inline]
    pub fn txn_id<'a>(&'a self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let place = self.places.txn_id();
        if !place.is_empty() {
            return Some(&bytes[place]);
        }
        match self.state.as_deref() {
            Some(DeliveryState::Transactional { txn_id, .. }) => Some(txn_id),
            _ => None,
        }
    }

    /// Whether the delivery begins and ends in this frame.
    pub fn is_whole(&self) -> bool {
        self.start && !self.more && !self.aborted
    }
}

const _: () = assert!(size_of::<Event>() <= 64, "an event has to stay within one cache line");
