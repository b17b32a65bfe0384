//! What a queue is like: its limits, its lifetime, and the arguments that say so.

mod argument;
mod arguments;
mod arrangement;
mod error;
mod in_force;
mod limits;
mod naming;
mod passed_over;
mod priorities;
mod screen;
mod subscribed;
mod terms;
mod value;

pub use argument::{ARGUMENTS, Argument};
pub use error::SettingsError;
pub use limits::{Defaults, Limits};
pub use subscribed::Subscribed;
pub use value::ArgumentKind;
pub(crate) use value::flag;

pub(crate) use arrangement::Arrangement;
pub(crate) use in_force::USUAL_ALERT_GAP_SECONDS;
pub(crate) use naming::{NameSource, Naming};
pub(crate) use passed_over::is_passed_over;
pub(crate) use priorities::{PRIORITIES, Priorities, Turns};
pub(crate) use screen::Screen;
pub(crate) use terms::Terms;

pub use mochila_wire::terminus::LifetimePolicy;

use std::sync::Arc;

/// What is asked of a queue when it is made. What is `None` follows the node's [`Defaults`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueSettings {
    /// It is to survive a restart, and its durable messages with it. No queue does so yet: a queue
    /// that is there says false.
    pub durable: bool,
    /// Only the connection that uses it first may consume from it.
    pub exclusive: bool,
    /// When it is deleted by itself; `None` means never.
    pub lifetime: Option<LifetimePolicy>,
    /// How long it lives on when its lifetime is over, in case somebody comes back.
    pub auto_delete_delay_ms: u64,
    /// At most so many messages, acquired ones included; 0 means no limit.
    pub max_count: Option<u64>,
    /// At most so many bytes of encoded messages, acquired ones included; 0 means no limit.
    pub max_bytes: Option<u64>,
    /// What happens at the limit.
    pub limit_policy: LimitPolicy,
    /// Above so many messages producers get no credit; 0 means never.
    pub flow_stop_count: Option<u64>,
    /// Below so many messages they get credit again.
    pub flow_resume_count: Option<u64>,
    /// Above so many bytes producers get no credit; 0 means never.
    pub flow_stop_bytes: Option<u64>,
    /// Below so many bytes they get credit again.
    pub flow_resume_bytes: Option<u64>,
    /// Operators are told when there are so many messages; 0 means never.
    pub alert_count: Option<u64>,
    /// They are told again when there are no more than so many.
    pub alert_count_down: Option<u64>,
    /// Operators are told when there are so many bytes; 0 means never.
    pub alert_bytes: Option<u64>,
    /// They are told again when there are no more than so many.
    pub alert_bytes_down: Option<u64>,
    /// They are not told of the same again for so long.
    pub alert_gap_seconds: Option<u64>,
    /// A message that has been delivered so often in vain is not delivered again; 0 means that
    /// there is no such limit.
    pub max_delivery_count: Option<u64>,
    /// The annotation that gets each message's number in the queue; none if it is not there or
    /// empty.
    pub sequence_key: Option<Box<str>>,
    /// Whether each message gets an annotation that says when it came.
    pub ingress_timestamp: Option<bool>,
    /// Messages of one group are with one consumer at a time.
    pub shared_groups: bool,
    /// The application property that names a message's group; `group-id` if `None` or empty.
    pub group_header_key: Option<Box<str>>,
    /// The group of messages that name none, `qpid.no-group` if `None`; if it is empty, they are
    /// in no group.
    pub default_group: Option<Box<str>>,
    /// Groups are shared out again when a consumer joins.
    pub rebalances_groups: bool,
    /// Nobody takes messages: whoever consumes is shown them.
    pub browse_only: bool,
    /// Messages that this selector does not match are not let in.
    pub filter: Option<Box<str>>,
    /// Messages that come over the connection which the queue belongs to are not let in.
    pub no_local: bool,
    /// It is the queue of this subscription, and lets in only what the filters of that match.
    pub subscribed: Option<Arc<Subscribed>>,
    /// The exchange that gets dead letters: messages that were rejected, had to make room, or were
    /// left when the queue was deleted.
    pub alternate_exchange: Option<Box<str>>,
    /// Messages that have expired are dead letters too.
    pub buries_expired: bool,
    /// Of messages with the same value of this application property only the last one is kept.
    pub last_value_key: Option<Box<str>>,
    /// Urgent messages are taken first; how many levels of urgency there are.
    pub priorities: Option<u64>,
    /// So many messages of one level are taken one after another; then lower levels get their turn.
    pub fairshare: Option<u32>,
    /// The same for each level, the lowest first, where it differs.
    pub fairshare_of: [Option<u32>; 10],
}

impl QueueSettings {
    /// Whether the queue may be gone without anybody having deleted it.
    pub(crate) fn may_delete_itself(&self) -> bool {
        self.lifetime.is_some() || self.limit_policy == LimitPolicy::SelfDestruct
    }

    /// With so many deliveries in vain a message is not delivered again.
    pub(crate) fn most_deliveries(&self) -> u32 {
        let most = self.max_delivery_count.filter(|most| *most > 0);
        most.map_or(u32::MAX, |most| u32::try_from(most).unwrap_or(u32::MAX))
    }

    /// Whether messages stand to each other otherwise than as they came.
    pub fn arranges(&self) -> bool {
        self.shared_groups || self.last_value_key.is_some() || self.priorities.is_some()
    }

    /// These settings with messages arranged as others ask for.
    pub(crate) fn arranged_like(&self, other: &QueueSettings) -> QueueSettings {
        QueueSettings {
            shared_groups: other.shared_groups,
            group_header_key: other.group_header_key.clone(),
            default_group: other.default_group.clone(),
            rebalances_groups: other.rebalances_groups,
            last_value_key: other.last_value_key.clone(),
            priorities: other.priorities,
            fairshare: other.fairshare,
            fairshare_of: other.fairshare_of,
            ..self.clone()
        }
    }
}

/// What happens to a message that would exceed a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LimitPolicy {
    /// It is rejected.
    #[default]
    Reject,
    /// It is let in, and producers get no further credit.
    Block,
    /// It is let in, and the oldest messages that nobody holds are dropped for it.
    Ring,
    /// It is refused, and the queue deletes itself.
    SelfDestruct,
}

impl LimitPolicy {
    /// All of them, in the order in which they are told.
    pub const ALL: [LimitPolicy; 4] =
        [LimitPolicy::Reject, LimitPolicy::Block, LimitPolicy::Ring, LimitPolicy::SelfDestruct];

    /// As it is written in arguments.
    pub const fn name(self) -> &'static str {
        match self {
            LimitPolicy::Reject => "reject",
            LimitPolicy::Block => "block",
            LimitPolicy::Ring => "ring",
            LimitPolicy::SelfDestruct => "self-destruct",
        }
    }

    /// Whether producers are held back before the limit is reached. Where messages are dropped, or
    /// the queue is, that is what its users have chosen instead.
    pub(crate) const fn holds_back(self) -> bool {
        matches!(self, LimitPolicy::Reject | LimitPolicy::Block)
    }
}
