//! The one table of queue arguments: what there is, under which names, and what it means.

use super::error::SettingsError;
use super::value::{Argued, ArgumentKind, describe};
use super::{LifetimePolicy, LimitPolicy, QueueSettings};
use mochila_wire::Value;

/// One argument of a queue.
#[derive(Debug)]
pub struct Argument {
    /// Its name in the Qpid tools and in the properties of nodes.
    pub name: &'static str,
    /// Its plain name, used in configuration files and by management.
    pub plain: &'static str,
    /// Other names under which it is understood.
    pub aliases: &'static [&'static str],
    /// What values it takes.
    pub kind: ArgumentKind,
    /// What it means, in a sentence.
    pub doc: &'static str,
    /// Puts it into settings; `None` takes it back, as if it had never been given.
    write: fn(&mut QueueSettings, Option<Argued>),
    read: fn(&QueueSettings) -> Option<Argued>,
}

/// The turn of one level of priority.
macro_rules! fairshare {
    ($level:literal, $name:literal, $plain:literal, $alias:literal) => {
        Argument {
            name: $name,
            plain: $plain,
            aliases: &[$alias],
            kind: ArgumentKind::Count,
            doc: concat!("As fairshare, for level ", $level, " alone; 0 is the lowest."),
            write: |settings, value| {
                settings.fairshare_of[$level] = value.map(Argued::small_number)
            },
            read: |settings| settings.fairshare_of[$level].map(|turn| Argued::Number(turn.into())),
        }
    };
}

/// Every argument that a queue has.
pub static ARGUMENTS: &[Argument] = &[
    Argument {
        name: "durable",
        plain: "durable",
        aliases: &[],
        kind: ArgumentKind::Flag,
        doc: "Asks for a queue that survives a restart. There is none yet: it stays false, with a \
              warning in the log.",
        write: |settings, value| settings.durable = value.is_some_and(Argued::flag),
        read: |settings| Some(Argued::Flag(settings.durable)),
    },
    Argument {
        name: "exclusive",
        plain: "exclusive",
        aliases: &[],
        kind: ArgumentKind::Flag,
        doc: "Only the connection that consumes from the queue first may consume from it.",
        write: |settings, value| settings.exclusive = value.is_some_and(Argued::flag),
        read: |settings| Some(Argued::Flag(settings.exclusive)),
    },
    Argument {
        name: "auto-delete",
        plain: "auto-delete",
        aliases: &["auto_delete", "autodelete"],
        kind: ArgumentKind::Flag,
        doc: "The queue is deleted when nobody uses it any more, or as lifetime-policy says.",
        write: |settings, value| match (value.is_some_and(Argued::flag), settings.lifetime) {
            (true, None) => settings.lifetime = Some(LifetimePolicy::DeleteOnNoLinks),
            (true, Some(_)) => {}
            (false, _) => settings.lifetime = None,
        },
        read: |settings| Some(Argued::Flag(settings.lifetime.is_some())),
    },
    Argument {
        name: "lifetime-policy",
        plain: "lifetime-policy",
        aliases: &["qpid.lifetime-policy"],
        kind: ArgumentKind::Choice(LIFETIMES),
        doc: "When the queue is deleted by itself. delete-on-close: with the link that made it; \
              what no link has made stays. delete-on-no-links (or delete-if-unused): when its last \
              link is gone. delete-on-no-messages (or delete-if-empty): when there are no messages \
              and the link that made it is gone, or the last link after there have been messages. \
              delete-on-no-links-or-messages (or delete-if-unused-and-empty): when there are neither \
              links nor messages. manual: never.",
        write: |settings, value| {
            settings.lifetime = value.and_then(|value| lifetime(value.choice()))
        },
        read: |settings| settings.lifetime.map(|policy| Argued::Choice(lifetime_name(policy))),
    },
    Argument {
        name: "qpid.auto_delete_timeout",
        plain: "auto-delete-timeout",
        aliases: &[],
        kind: ArgumentKind::Seconds,
        doc: "How many seconds the queue lives on when its lifetime is over; implies auto-delete.",
        write: |settings, value| {
            let seconds = value.map_or(0, Argued::number);
            settings.auto_delete_delay_ms = seconds * 1_000;
            if seconds > 0 && settings.lifetime.is_none() {
                settings.lifetime = Some(LifetimePolicy::DeleteOnNoLinks);
            }
        },
        read: |settings| {
            let seconds = settings.auto_delete_delay_ms / 1_000;
            (seconds > 0).then_some(Argued::Number(seconds))
        },
    },
    Argument {
        name: "qpid.max_count",
        plain: "max-count",
        aliases: &["max-queue-count"],
        kind: ArgumentKind::Count,
        doc: "The most messages the queue holds, acquired ones included; 0 means no limit. A ring goes \
              beyond this and max-size, up to twice as much, while consumers hold messages.",
        write: |settings, value| settings.max_count = value.map(Argued::number),
        read: |settings| settings.max_count.map(Argued::Number),
    },
    Argument {
        name: "qpid.max_size",
        plain: "max-size",
        aliases: &["max-queue-size"],
        kind: ArgumentKind::Bytes,
        doc: "The most bytes of messages the queue holds, acquired ones included; 0 means no limit.",
        write: |settings, value| settings.max_bytes = value.map(Argued::number),
        read: |settings| settings.max_bytes.map(Argued::Number),
    },
    Argument {
        name: "qpid.policy_type",
        plain: "limit-policy",
        aliases: &["policy-type"],
        kind: ArgumentKind::Choice(LIMIT_POLICIES),
        doc: "At the limit messages are rejected, or their producers are held back, or the oldest \
              that nobody holds are dropped (ring; also when some come back), or the queue deletes \
              itself (not for a transaction: that fails).",
        write: |settings, value| {
            settings.limit_policy = value.map(Argued::choice).map(limit_policy).unwrap_or_default();
        },
        read: |settings| Some(Argued::Choice(settings.limit_policy.name())),
    },
    Argument {
        name: "qpid.flow_stop_count",
        plain: "flow-stop-count",
        aliases: &[],
        kind: ArgumentKind::Count,
        doc: "Above so many messages producers get no credit: 80 % of the limit, never if 0.",
        write: |settings, value| settings.flow_stop_count = value.map(Argued::number),
        read: |settings| settings.flow_stop_count.map(Argued::Number),
    },
    Argument {
        name: "qpid.flow_resume_count",
        plain: "flow-resume-count",
        aliases: &[],
        kind: ArgumentKind::Count,
        doc: "Below so many messages producers get credit again: 70 % of the limit.",
        write: |settings, value| settings.flow_resume_count = value.map(Argued::number),
        read: |settings| settings.flow_resume_count.map(Argued::Number),
    },
    Argument {
        name: "qpid.flow_stop_size",
        plain: "flow-stop-size",
        aliases: &[],
        kind: ArgumentKind::Bytes,
        doc: "Above so many bytes producers get no credit: 80 % of the limit, never if 0.",
        write: |settings, value| settings.flow_stop_bytes = value.map(Argued::number),
        read: |settings| settings.flow_stop_bytes.map(Argued::Number),
    },
    Argument {
        name: "qpid.flow_resume_size",
        plain: "flow-resume-size",
        aliases: &[],
        kind: ArgumentKind::Bytes,
        doc: "Below so many bytes producers get credit again: 70 % of the limit.",
        write: |settings, value| settings.flow_resume_bytes = value.map(Argued::number),
        read: |settings| settings.flow_resume_bytes.map(Argued::Number),
    },
    Argument {
        name: "qpid.alert_count",
        plain: "alert-count",
        aliases: &["qpid.alert_count_up", "alert-count-up"],
        kind: ArgumentKind::Count,
        doc: "Operators are told when there are so many messages: 80 % of the limit, never if 0.",
        write: |settings, value| settings.alert_count = value.map(Argued::number),
        read: |settings| settings.alert_count.map(Argued::Number),
    },
    Argument {
        name: "qpid.alert_count_down",
        plain: "alert-count-down",
        aliases: &[],
        kind: ArgumentKind::Count,
        doc: "Operators are told when there are no more than so many messages again: half as many.",
        write: |settings, value| settings.alert_count_down = value.map(Argued::number),
        read: |settings| settings.alert_count_down.map(Argued::Number),
    },
    Argument {
        name: "qpid.alert_size",
        plain: "alert-size",
        aliases: &["qpid.alert_size_up", "alert-size-up"],
        kind: ArgumentKind::Bytes,
        doc: "Operators are told when there are so many bytes: 80 % of the limit, never if 0.",
        write: |settings, value| settings.alert_bytes = value.map(Argued::number),
        read: |settings| settings.alert_bytes.map(Argued::Number),
    },
    Argument {
        name: "qpid.alert_size_down",
        plain: "alert-size-down",
        aliases: &[],
        kind: ArgumentKind::Bytes,
        doc: "Operators are told when there are no more than so many bytes again: half as many.",
        write: |settings, value| settings.alert_bytes_down = value.map(Argued::number),
        read: |settings| settings.alert_bytes_down.map(Argued::Number),
    },
    Argument {
        name: "qpid.alert_repeat_gap",
        plain: "alert-repeat-gap",
        aliases: &[],
        kind: ArgumentKind::Seconds,
        doc: "Operators are told of a queue that grows once in so long, 60 seconds; what is sooner is \
              told after it.",
        write: |settings, value| settings.alert_gap_seconds = value.map(Argued::number),
        read: |settings| settings.alert_gap_seconds.map(Argued::Number),
    },
    Argument {
        name: "qpid.max_delivery_count",
        plain: "max-delivery-count",
        aliases: &["delivery-limit"],
        kind: ArgumentKind::Count,
        doc: "A message that has been delivered so often in vain is removed; 0 means no limit. In vain \
              is a delivery that is modified with delivery-failed, was settled in a transaction \
              that is rolled back, or was held when its connection broke off; not one that is \
              released, or left by a link or connection that is closed.",
        write: |settings, value| settings.max_delivery_count = value.map(Argued::number),
        read: |settings| settings.max_delivery_count.map(Argued::Number),
    },
    Argument {
        name: "alternate-exchange",
        plain: "alternate-exchange",
        aliases: &["altExchange", "alternate_exchange"],
        kind: ArgumentKind::Text,
        doc: "The exchange that gets messages which were rejected, had to make room for others, or \
              were left when the queue was deleted.",
        write: |settings, value| settings.alternate_exchange = value.and_then(Argued::name),
        read: |settings| settings.alternate_exchange.clone().map(Argued::Name),
    },
    Argument {
        name: "qpid.dead_letter_expired",
        plain: "dead-letter-expired",
        aliases: &[],
        kind: ArgumentKind::Flag,
        doc: "Messages that expire go to the alternate exchange too.",
        write: |settings, value| settings.buries_expired = value.is_some_and(Argued::flag),
        read: |settings| settings.buries_expired.then_some(Argued::Flag(true)),
    },
    Argument {
        name: "qpid.queue_msg_sequence",
        plain: "sequence-key",
        aliases: &[],
        kind: ArgumentKind::Annotation,
        doc: "The annotation (uint) that each message gets with its number in the queue.",
        write: |settings, value| settings.sequence_key = value.and_then(Argued::name),
        read: |settings| settings.sequence_key.clone().map(Argued::Name),
    },
    Argument {
        name: "qpid.ingress_timestamp",
        plain: "ingress-timestamp",
        aliases: &["enable-timestamp"],
        kind: ArgumentKind::Flag,
        doc: "Messages get x-opt-ingress-timestamp: when they came, in nanoseconds (long).",
        write: |settings, value| settings.ingress_timestamp = value.map(Argued::flag),
        read: |settings| settings.ingress_timestamp.map(Argued::Flag),
    },
    Argument {
        name: "qpid.shared_msg_group",
        plain: "shared-msg-group",
        aliases: &["shared-groups"],
        kind: ArgumentKind::Flag,
        doc: "Messages are grouped, and those of one group are with one consumer at a time, in order. A \
              consumer whose selector does not match the oldest message of a free group gets no later \
              one of it before somebody else has taken that one. A message with group-sequence -1 \
              (as uint 4294967295) is the last of its group: the same name means another one then.",
        write: |settings, value| settings.shared_groups = value.is_some_and(Argued::flag),
        read: |settings| settings.shared_groups.then_some(Argued::Flag(true)),
    },
    Argument {
        name: "qpid.group_header_key",
        plain: "group-header-key",
        aliases: &["group_header_key"],
        kind: ArgumentKind::Text,
        doc: "The application property that names a message's group: the property group-id if \
              empty.",
        write: |settings, value| settings.group_header_key = value.and_then(Argued::name),
        read: |settings| settings.group_header_key.clone().map(Argued::Name),
    },
    Argument {
        name: "qpid.default-message-group",
        plain: "default-message-group",
        aliases: &["qpid.default_message_group"],
        kind: ArgumentKind::Text,
        doc: "The group of messages that name none: qpid.no-group unless given; if empty, they \
              are in no group.",
        write: |settings, value| settings.default_group = value.map(Argued::text),
        read: |settings| settings.default_group.clone().map(Argued::Name),
    },
    Argument {
        name: "qpid.group_rebalance",
        plain: "group-rebalance",
        aliases: &[],
        kind: ArgumentKind::Flag,
        doc: "When a consumer joins, the others finish what they hold of their groups, which are \
              then shared out again. Links that desire lost-groups hear which they have lost.",
        write: |settings, value| settings.rebalances_groups = value.is_some_and(Argued::flag),
        read: |settings| settings.rebalances_groups.then_some(Argued::Flag(true)),
    },
    Argument {
        name: "qpid.browse-only",
        plain: "browse-only",
        aliases: &["qpid.browse_only"],
        kind: ArgumentKind::Flag,
        doc: "Nobody takes messages out: consumers are shown them, as browsers are.",
        write: |settings, value| settings.browse_only = value.is_some_and(Argued::flag),
        read: |settings| settings.browse_only.then_some(Argued::Flag(true)),
    },
    Argument {
        name: "qpid.filter",
        plain: "filter",
        aliases: &[],
        kind: ArgumentKind::Text,
        doc: "A selector: messages that it does not match are accepted and do not enter the queue.",
        write: |settings, value| settings.filter = value.and_then(Argued::name),
        read: |settings| settings.filter.clone().map(Argued::Name),
    },
    Argument {
        name: "no-local",
        plain: "no-local",
        aliases: &["qpid.no-local", "no_local"],
        kind: ArgumentKind::Flag,
        doc: "Messages of the connection that the queue belongs to do not enter it; it belongs to \
              one if it is exclusive, or is consumed from exclusively.",
        write: |settings, value| settings.no_local = value.is_some_and(Argued::flag),
        read: |settings| settings.no_local.then_some(Argued::Flag(true)),
    },
    Argument {
        name: "qpid.last_value_queue_key",
        plain: "last-value-queue-key",
        aliases: &["lvq-key"],
        kind: ArgumentKind::Property,
        doc: "Of messages with the same value of this application property only the last one is \
              kept; those without it are alike. Values are compared as texts, as the Qpid broker \
              does it: 1 is '1', and an empty text counts as none.",
        write: |settings, value| settings.last_value_key = value.and_then(Argued::name),
        read: |settings| settings.last_value_key.clone().map(Argued::Name),
    },
    Argument {
        name: LAST_VALUE_QUEUE,
        plain: "last-value-queue",
        aliases: &["qpid.last_value_queue_no_browse"],
        kind: ArgumentKind::Flag,
        doc: "The same with the property qpid.LVQ_key, unless last-value-queue-key names another.",
        write: |settings, value| {
            if value.is_some_and(Argued::flag) {
                settings.last_value_key.get_or_insert_with(|| LVQ_KEY.into());
            } else {
                settings.last_value_key.take_if(|key| **key == *LVQ_KEY);
            }
        },
        read: |_| None,
    },
    Argument {
        name: "qpid.priorities",
        plain: "priorities",
        aliases: &["x-qpid-priorities"],
        kind: ArgumentKind::Number,
        doc: "Urgent messages are taken first: so many levels of priority, none if 0; messages have no more than 10.",
        write: |settings, value| {
            settings.priorities = value.map(Argued::number).filter(|levels| *levels > 0);
        },
        read: |settings| settings.priorities.map(Argued::Number),
    },
    Argument {
        name: "qpid.fairshare",
        plain: "fairshare",
        aliases: &["x-qpid-fairshare"],
        kind: ArgumentKind::Count,
        doc: "So many messages of one level are taken one after another while lower levels have \
              messages, any number if 0.",
        write: |settings, value| {
            settings.fairshare = value.map(Argued::small_number).filter(|turn| *turn > 0);
        },
        read: |settings| settings.fairshare.map(|turn| Argued::Number(turn.into())),
    },
    fairshare!(0, "qpid.fairshare-0", "fairshare-0", "x-qpid-fairshare-0"),
    fairshare!(1, "qpid.fairshare-1", "fairshare-1", "x-qpid-fairshare-1"),
    fairshare!(2, "qpid.fairshare-2", "fairshare-2", "x-qpid-fairshare-2"),
    fairshare!(3, "qpid.fairshare-3", "fairshare-3", "x-qpid-fairshare-3"),
    fairshare!(4, "qpid.fairshare-4", "fairshare-4", "x-qpid-fairshare-4"),
    fairshare!(5, "qpid.fairshare-5", "fairshare-5", "x-qpid-fairshare-5"),
    fairshare!(6, "qpid.fairshare-6", "fairshare-6", "x-qpid-fairshare-6"),
    fairshare!(7, "qpid.fairshare-7", "fairshare-7", "x-qpid-fairshare-7"),
    fairshare!(8, "qpid.fairshare-8", "fairshare-8", "x-qpid-fairshare-8"),
    fairshare!(9, "qpid.fairshare-9", "fairshare-9", "x-qpid-fairshare-9"),
];

impl Argument {
    /// Whether the two are one and the same.
    pub(super) fn is(&self, other: &Argument) -> bool {
        self.name == other.name
    }

    /// The argument with this name, whichever of its names it is.
    pub fn named(name: &str) -> Option<&'static Argument> {
        ARGUMENTS.iter().find(|argument| {
            argument.name == name || argument.plain == name || argument.aliases.contains(&name)
        })
    }

    /// What a value says; `None` if it is null, which takes back what was said before.
    pub(super) fn parse(&self, value: &Value) -> Result<Option<Argued>, SettingsError> {
        match value {
            Value::Null => Ok(None),
            value => self.kind.parse(value).map(Some).ok_or_else(|| self.invalid(describe(value))),
        }
    }

    /// Puts a value into settings. The empty text takes back the name of a property or annotation
    /// that is there; where there is none it is one that no message can have.
    pub(super) fn put(
        &self,
        settings: &mut QueueSettings,
        value: Option<Argued>,
    ) -> Result<(), SettingsError> {
        let is_empty = value.as_ref().is_some_and(Argued::is_empty);
        if is_empty && self.kind.is_of_messages() && (self.read)(settings).is_none() {
            return Err(self.invalid("''".to_owned()));
        }
        (self.write)(settings, value);
        Ok(())
    }

    fn invalid(&self, found: String) -> SettingsError {
        SettingsError::InvalidValue { name: self.name, expected: self.kind.to_string(), found }
    }

    /// The value that settings have; `None` if it is left to the defaults.
    pub fn get(&self, settings: &QueueSettings) -> Option<Value> {
        (self.read)(settings).map(|argued| match argued {
            Argued::Number(number) => Value::Ulong(number),
            Argued::Flag(flag) => Value::Bool(flag),
            Argued::Choice(word) => Value::String(word.to_owned()),
            Argued::Name(name) => Value::String(name.into()),
        })
    }
}

fn lifetime(name: &str) -> Option<LifetimePolicy> {
    match name {
        "delete-on-close" => Some(LifetimePolicy::DeleteOnClose),
        "delete-on-no-links" | "delete-if-unused" => Some(LifetimePolicy::DeleteOnNoLinks),
        "delete-on-no-messages" | "delete-if-empty" => Some(LifetimePolicy::DeleteOnNoMessages),
        "delete-on-no-links-or-messages" | "delete-if-unused-and-empty" => {
            Some(LifetimePolicy::DeleteOnNoLinksOrMessages)
        }
        _ => None,
    }
}

pub(super) const fn lifetime_name(policy: LifetimePolicy) -> &'static str {
    match policy {
        LifetimePolicy::DeleteOnClose => "delete-on-close",
        LifetimePolicy::DeleteOnNoLinks => "delete-on-no-links",
        LifetimePolicy::DeleteOnNoMessages => "delete-on-no-messages",
        LifetimePolicy::DeleteOnNoLinksOrMessages => "delete-on-no-links-or-messages",
    }
}

/// A ring here never drops what somebody holds, which the older brokers call strict.
fn limit_policy(name: &str) -> LimitPolicy {
    let named = |policy: &LimitPolicy| policy.name() == name;
    let strict = || (name == RING_STRICT).then_some(LimitPolicy::Ring);
    LimitPolicy::ALL.into_iter().find(named).or_else(strict).unwrap_or_default()
}

const LIFETIMES: &[&str] = &[
    "manual",
    "delete-on-close",
    "delete-on-no-links",
    "delete-on-no-messages",
    "delete-on-no-links-or-messages",
    "delete-if-unused",
    "delete-if-empty",
    "delete-if-unused-and-empty",
];
const LIMIT_POLICIES: &[&str] = &["reject", "block", "ring", "self-destruct", RING_STRICT];
pub(super) const LAST_VALUE_QUEUE: &str = "qpid.last_value_queue";
/// The property that old clients set.
const LVQ_KEY: &str = "qpid.LVQ_key";
const RING_STRICT: &str = "ring-strict";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_means_two_arguments() {
        for argument in ARGUMENTS {
            assert!(argument.doc.ends_with('.'));
            let names = [argument.name, argument.plain];
            for name in names.iter().chain(argument.aliases) {
                assert!(std::ptr::eq(Argument::named(name).unwrap(), argument), "{name}");
            }
        }
    }
}
