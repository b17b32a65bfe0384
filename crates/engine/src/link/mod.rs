//! One end of a link: a named one-way road between two nodes (part 2, 2.6).

mod attach;
mod credit;
mod outgoing;
pub(crate) mod state;

use std::sync::Arc;

use mochila_wire::performative::{Attach, ReceiverSettleMode, Role, SenderSettleMode};
use mochila_wire::{Source, TargetArchetype};

pub use attach::{AttachAnswer, AttachRequest};
pub(crate) use credit::{ReceiverCredit, Right, SenderCredit};
pub use outgoing::{Delivery, Outgoing, Progress};

use crate::SessionId;
use state::State;

/// One end of a link, ours.
#[derive(Debug)]
pub struct Link {
    pub(crate) state: State,
    pub(crate) end: End,
    pub(crate) session: SessionId,
    pub(crate) local_handle: u32,
    pub(crate) remote_handle: Option<u32>,
    pub(crate) flow_due: bool,
    pub(crate) echo_due: bool,
    pub(crate) name: Arc<str>,
    pub(crate) snd_settle_mode: SenderSettleMode,
    pub(crate) rcv_settle_mode: ReceiverSettleMode,
    /// What we accept; 0 for anything.
    pub(crate) max_message_size: u64,
    /// What the peer accepts; 0 for anything.
    pub(crate) peer_max_message_size: u64,
    pub(crate) source: Option<Box<Source>>,
    pub(crate) target: Option<Box<TargetArchetype>>,
}

/// Which end of a link we are.
#[derive(Debug)]
pub(crate) enum End {
    Sender(Sender),
    Receiver(Receiver),
}

/// The sending end.
#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) credit: SenderCredit,
    /// Deliveries of this link that are not settled.
    pub(crate) unsettled: u32,
    /// The delivery whose frames are being sent.
    pub(crate) open: Option<OpenDelivery>,
}

/// A delivery that we have begun to send and not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenDelivery {
    pub(crate) token: u64,
    pub(crate) delivery_id: u32,
    pub(crate) settled: bool,
}

/// The receiving end.
#[derive(Debug, Default)]
pub(crate) struct Receiver {
    pub(crate) credit: ReceiverCredit,
    /// The delivery of which more frames are to come.
    pub(crate) partial: Option<Partial>,
}

/// A delivery that has begun to arrive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Partial {
    pub(crate) delivery_id: u32,
    pub(crate) message_format: u32,
    pub(crate) settled: bool,
    pub(crate) resume: bool,
    pub(crate) without_credit: bool,
    pub(crate) bytes: u64,
}

impl End {
    pub(crate) fn sender(initial_delivery_count: u32) -> End {
        End::Sender(Sender {
            credit: SenderCredit::new(initial_delivery_count),
            unsettled: 0,
            open: None,
        })
    }

    pub(crate) fn receiver() -> End {
        End::Receiver(Receiver::default())
    }
}

impl Link {
    /// The link as the peer's attach describes it.
    pub(crate) fn asked(session: SessionId, local_handle: u32, peer: &Attach) -> Link {
        let mut link = Link {
            state: State::Asked,
            end: match peer.role {
                Role::Receiver => End::sender(0),
                Role::Sender => End::receiver(),
            },
            session,
            local_handle,
            remote_handle: Some(peer.handle),
            flow_due: false,
            echo_due: false,
            name: Arc::from(peer.name.as_str()),
            snd_settle_mode: peer.snd_settle_mode,
            rcv_settle_mode: peer.rcv_settle_mode,
            max_message_size: 0,
            peer_max_message_size: peer.max_message_size.unwrap_or(0),
            source: peer.source.clone().map(Box::new),
            target: peer.target.clone().map(Box::new),
        };
        link.start_counting(peer);
        link
    }

    /// The link as we ask for it.
    pub(crate) fn asking(session: SessionId, local_handle: u32, request: &AttachRequest) -> Link {
        Link {
            state: State::Asking,
            end: match request.role {
                Role::Sender => End::sender(request.initial_delivery_count),
                Role::Receiver => End::receiver(),
            },
            session,
            local_handle,
            remote_handle: None,
            flow_due: false,
            echo_due: false,
            name: Arc::from(request.name.as_str()),
            snd_settle_mode: request.snd_settle_mode,
            rcv_settle_mode: request.rcv_settle_mode,
            max_message_size: request.max_message_size,
            peer_max_message_size: 0,
            source: request.source.clone().map(Box::new),
            target: request.target.clone().map(Box::new),
        }
    }

    /// Takes over what the peer's answer to our attach says.
    pub(crate) fn confirm(&mut self, peer: &Attach) {
        self.remote_handle = Some(peer.handle);
        self.snd_settle_mode = peer.snd_settle_mode;
        self.rcv_settle_mode = peer.rcv_settle_mode;
        self.peer_max_message_size = peer.max_message_size.unwrap_or(0);
        self.source = peer.source.clone().map(Box::new);
        self.target = peer.target.clone().map(Box::new);
        self.start_counting(peer);
    }

    fn start_counting(&mut self, peer: &Attach) {
        if let End::Receiver(receiver) = &mut self.end {
            receiver.credit.start(peer.initial_delivery_count.unwrap_or(0));
        }
    }

    /// The name, which with the role is the link's identity between two containers.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Our role: whether we send or receive.
    pub fn role(&self) -> Role {
        match self.end {
            End::Sender(_) => Role::Sender,
            End::Receiver(_) => Role::Receiver,
        }
    }

    /// The session that the link is attached in.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// Whether both sides have attached and neither has detached.
    pub fn is_attached(&self) -> bool {
        self.state.is_attached()
    }

    /// How many deliveries the sender may still send.
    pub fn credit(&self) -> u32 {
        match &self.end {
            End::Sender(sender) => sender.credit.credit,
            End::Receiver(receiver) => receiver.credit.credit,
        }
    }

    /// How many deliveries may still come: what there is credit for, and what was sent before a
    /// sender learned that it has less; on a sending end, what it has credit for.
    pub fn outstanding(&self) -> u32 {
        match &self.end {
            End::Sender(sender) => sender.credit.credit,
            End::Receiver(receiver) => receiver.credit.outstanding(),
        }
    }

    /// How many messages wait at the sender, as far as it has said.
    pub fn available(&self) -> u32 {
        match &self.end {
            End::Sender(sender) => sender.credit.available,
            End::Receiver(receiver) => receiver.credit.available,
        }
    }

    /// Whether the receiver wants all credit used or given up.
    pub fn drain(&self) -> bool {
        match &self.end {
            End::Sender(sender) => sender.credit.drain,
            End::Receiver(receiver) => receiver.credit.drain,
        }
    }

    /// Whether a drain was asked for and not answered yet.
    pub fn is_draining(&self) -> bool {
        match &self.end {
            End::Sender(sender) => sender.credit.drain_unanswered,
            End::Receiver(receiver) => receiver.credit.drain && receiver.credit.credit > 0,
        }
    }

    /// Whether the next output tells the peer our state of the link, because it has asked for that
    /// or something changed.
    pub fn is_flow_due(&self) -> bool {
        self.flow_due
    }

    /// The deliveries counted so far, from the sender's initial delivery count on.
    pub fn delivery_count(&self) -> u32 {
        match &self.end {
            End::Sender(sender) => sender.credit.delivery_count.0,
            End::Receiver(receiver) => receiver.credit.delivery_count.0,
        }
    }

    /// How many deliveries that we sent are not settled; 0 on a receiving end, whose application
    /// keeps that account.
    pub fn unsettled(&self) -> u32 {
        match &self.end {
            End::Sender(sender) => sender.unsettled,
            End::Receiver(_) => 0,
        }
    }

    /// The token of a large delivery that is being sent.
    pub fn sending(&self) -> Option<u64> {
        match &self.end {
            End::Sender(sender) => sender.open.map(|open| open.token),
            End::Receiver(_) => None,
        }
    }

    /// The delivery of which more frames are to come.
    pub fn receiving(&self) -> Option<u32> {
        match &self.end {
            End::Sender(_) => None,
            End::Receiver(receiver) => receiver.partial.map(|partial| partial.delivery_id),
        }
    }

    /// How the sender settles.
    pub fn snd_settle_mode(&self) -> SenderSettleMode {
        self.snd_settle_mode
    }

    /// How the receiver settles.
    pub fn rcv_settle_mode(&self) -> ReceiverSettleMode {
        self.rcv_settle_mode
    }

    /// The largest message that the peer accepts, if it has a limit.
    pub fn peer_max_message_size(&self) -> Option<u64> {
        (self.peer_max_message_size > 0).then_some(self.peer_max_message_size)
    }

    /// Where the messages come from.
    pub fn source(&self) -> Option<&Source> {
        self.source.as_deref()
    }

    /// Where the messages go.
    pub fn target(&self) -> Option<&TargetArchetype> {
        self.target.as_deref()
    }
}
