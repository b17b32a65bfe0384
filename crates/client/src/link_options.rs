use mochila_wire::performative::{ReceiverSettleMode, SenderSettleMode};
use mochila_wire::{Map, Source, Symbol, Target};

use crate::link_binding::LinkBinding;
use crate::lost_groups::LostGroups;

/// What both kinds of link can choose (part 2, section 2.7.3).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkSettings {
    /// The link's name; made up if `None`. With its direction it identifies the link.
    pub name: Option<String>,
    /// When the sender settles.
    pub snd_settle_mode: SenderSettleMode,
    /// When the receiver settles.
    pub rcv_settle_mode: ReceiverSettleMode,
    /// The largest message that we take; 0 = any.
    pub max_message_size: u64,
    /// What we can do.
    pub offered_capabilities: Vec<Symbol>,
    /// What we would like the peer to do.
    pub desired_capabilities: Vec<Symbol>,
    /// Link properties.
    pub properties: Map,
}

/// How to send: where to, and how many messages may be under way.
#[derive(Clone, Debug, PartialEq)]
pub struct SenderOptions {
    /// Settings of the link.
    pub link: LinkSettings,
    /// Where messages go.
    pub target: Target,
    /// Where they come from, as far as the peer is concerned.
    pub source: Source,
    /// How many messages may wait for credit or for their outcome before sending waits too.
    pub capacity: usize,
}

/// How to receive: where from, and how much is fetched in advance.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceiverOptions {
    /// Settings of the link.
    pub link: LinkSettings,
    /// Where messages come from.
    pub source: Source,
    /// Where they go, as far as the peer is concerned.
    pub target: Target,
    /// How the sender gets credit.
    pub credit: CreditMode,
}

/// Who gives credit to the sender of a link on which we receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreditMode {
    /// The library: so many messages may wait in the receiver's buffer.
    Window(u32),
    /// The application, with [`Receiver::grant`](crate::Receiver::grant).
    Manual,
}

impl SenderOptions {
    /// Sends to the node of this name.
    pub fn to(address: impl Into<String>) -> Self {
        let target = Target { address: Some(address.into()), ..Target::default() };
        Self { target, ..Self::default() }
    }

    /// Sends to whatever each message's `to` property names (the anonymous terminus).
    pub fn anonymous() -> Self {
        Self::default()
    }

    /// Sends to a node that the peer makes for this link.
    pub fn dynamic() -> Self {
        Self { target: Target { dynamic: true, ..Target::default() }, ..Self::default() }
    }

    /// The same with so many messages under way.
    #[must_use]
    pub fn capacity(mut self, capacity: usize) -> Self {
        self.capacity = capacity;
        self
    }

    /// The same with every message settled when it is sent: at most once.
    #[must_use]
    pub fn settled(mut self) -> Self {
        self.link.snd_settle_mode = SenderSettleMode::Settled;
        self
    }

    /// The same under this link name.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.link.name = Some(name.into());
        self
    }

    /// The same with something bound as long as the link is there. A broker that does not know how
    /// answers without the property [`LinkBinding::PROPERTY`].
    #[must_use]
    pub fn bind(mut self, binding: LinkBinding) -> Self {
        binding.add_to(&mut self.link.properties);
        self
    }
}

impl Default for SenderOptions {
    fn default() -> Self {
        Self {
            link: LinkSettings::default(),
            target: Target::default(),
            source: Source::default(),
            capacity: 1_000,
        }
    }
}

impl ReceiverOptions {
    /// Receives from the node of this name.
    pub fn from(address: impl Into<String>) -> Self {
        let source = Source { address: Some(address.into()), ..Source::default() };
        Self { source, ..Self::default() }
    }

    /// Receives from a node that the peer makes for this link, under a name of the peer's choice.
    pub fn dynamic() -> Self {
        Self { source: Source { dynamic: true, ..Source::default() }, ..Self::default() }
    }

    /// The same with so many messages fetched in advance.
    #[must_use]
    pub fn window(mut self, messages: u32) -> Self {
        self.credit = CreditMode::Window(messages);
        self
    }

    /// The same with credit given by hand.
    #[must_use]
    pub fn manual_credit(mut self) -> Self {
        self.credit = CreditMode::Manual;
        self
    }

    /// The same under this link name.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.link.name = Some(name.into());
        self
    }

    /// The same, and the broker is asked to tell of message groups that go to others:
    /// [`Receiver::recv_any`](crate::Receiver::recv_any).
    #[must_use]
    pub fn lost_groups(mut self) -> Self {
        self.link.desired_capabilities.push(LostGroups::CAPABILITY);
        self
    }

    /// The same without taking the messages away from others (distribution mode copy).
    #[must_use]
    pub fn browse(mut self) -> Self {
        self.source.distribution_mode = Some(Symbol::from_static("copy"));
        self
    }

    /// The same with something bound as long as the link is there. A broker that does not know how
    /// answers without the property [`LinkBinding::PROPERTY`].
    #[must_use]
    pub fn bind(mut self, binding: LinkBinding) -> Self {
        binding.add_to(&mut self.link.properties);
        self
    }
}

impl Default for ReceiverOptions {
    fn default() -> Self {
        Self {
            link: LinkSettings::default(),
            source: Source::default(),
            target: Target::default(),
            credit: CreditMode::Window(100),
        }
    }
}

impl From<&str> for SenderOptions {
    fn from(address: &str) -> Self {
        Self::to(address)
    }
}

impl From<&str> for ReceiverOptions {
    fn from(address: &str) -> Self {
        Self::from(address)
    }
}
