use mochila_wire::performative::{Attach, ReceiverSettleMode, Role, SenderSettleMode};
use mochila_wire::{Map, Source, Symbol, TargetArchetype};

/// A link that we want to have (part 2, 2.7.3).
#[derive(Clone, Debug)]
pub struct AttachRequest {
    /// The name; with the role it is the link's identity between the two containers.
    pub name: String,
    /// Our role.
    pub role: Role,
    /// How the sender settles.
    pub snd_settle_mode: SenderSettleMode,
    /// How the receiver settles.
    pub rcv_settle_mode: ReceiverSettleMode,
    /// Where the messages come from.
    pub source: Option<Source>,
    /// Where the messages go.
    pub target: Option<TargetArchetype>,
    /// Deliveries from before the link was suspended, by delivery tag.
    pub unsettled: Option<Map>,
    /// Whether `unsettled` holds only some of them, because a frame has no room for all.
    pub incomplete_unsettled: bool,
    /// Where our delivery count starts; means something for a sender.
    pub initial_delivery_count: u32,
    /// The largest message that we accept; 0 for anything.
    pub max_message_size: u64,
    /// What we offer.
    pub offered_capabilities: Vec<Symbol>,
    /// What we would like.
    pub desired_capabilities: Vec<Symbol>,
    /// Anything else.
    pub properties: Option<Map>,
}

impl AttachRequest {
    /// A link on which we send to a target.
    pub fn sender(name: impl Into<String>, source: Source, target: TargetArchetype) -> Self {
        AttachRequest::new(name.into(), Role::Sender, source, target)
    }

    /// A link on which we receive from a source.
    pub fn receiver(name: impl Into<String>, source: Source, target: TargetArchetype) -> Self {
        AttachRequest::new(name.into(), Role::Receiver, source, target)
    }

    fn new(name: String, role: Role, source: Source, target: TargetArchetype) -> AttachRequest {
        AttachRequest {
            name,
            role,
            snd_settle_mode: SenderSettleMode::Mixed,
            rcv_settle_mode: ReceiverSettleMode::First,
            source: Some(source),
            target: Some(target),
            unsettled: None,
            incomplete_unsettled: false,
            initial_delivery_count: 0,
            max_message_size: 0,
            offered_capabilities: Vec::new(),
            desired_capabilities: Vec::new(),
            properties: None,
        }
    }
}

/// Our answer to a link that the peer wants (part 2, 2.6.3).
#[derive(Clone, Debug)]
pub struct AttachAnswer {
    /// How the sender settles.
    pub snd_settle_mode: SenderSettleMode,
    /// How the receiver settles.
    pub rcv_settle_mode: ReceiverSettleMode,
    /// The source that is really there; where we send, its address is the one in force.
    pub source: Option<Source>,
    /// The target that is really there; where we receive, its address is the one in force.
    pub target: Option<TargetArchetype>,
    /// Deliveries from before the link was suspended, by delivery tag.
    pub unsettled: Option<Map>,
    /// Whether `unsettled` holds only some of them, because a frame has no room for all.
    pub incomplete_unsettled: bool,
    /// Where our delivery count starts; means something for a sender.
    pub initial_delivery_count: u32,
    /// The largest message that we accept; 0 for anything.
    pub max_message_size: u64,
    /// What we offer.
    pub offered_capabilities: Vec<Symbol>,
    /// What we would like.
    pub desired_capabilities: Vec<Symbol>,
    /// Anything else.
    pub properties: Option<Map>,
}

impl AttachAnswer {
    /// An answer that grants what the peer asked for; the application changes what it has to.
    pub fn echo(peer: &Attach) -> AttachAnswer {
        AttachAnswer {
            snd_settle_mode: peer.snd_settle_mode,
            rcv_settle_mode: peer.rcv_settle_mode,
            source: peer.source.clone(),
            target: peer.target.clone(),
            unsettled: None,
            incomplete_unsettled: false,
            initial_delivery_count: 0,
            max_message_size: 0,
            offered_capabilities: Vec::new(),
            desired_capabilities: Vec::new(),
            properties: None,
        }
    }
}
