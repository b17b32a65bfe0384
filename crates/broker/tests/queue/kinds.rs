//! Kinds of queues, and what may happen to them.

use mochila_broker::QueueSettings;
use mochila_broker::settings::LimitPolicy;
use proptest::prelude::*;

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Send { messages: Vec<Sent> },
    Subscribe { browse: bool, settled: bool },
    Unsubscribe { consumer: usize, failed: bool },
    Take { consumer: usize, most: u32, bytes: usize },
    Idle { consumer: usize },
    Settle { consumer: usize, which: Vec<usize>, outcome: u8 },
    Purge { most: u64 },
    Pass { ms: u64 },
}

#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) padding: u16,
    pub(crate) ttl_ms: Option<u32>,
    pub(crate) priority: Option<u8>,
    /// The key; none at all if it is 0.
    pub(crate) key: u8,
}

pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let priority = prop::option::weighted(0.8, 0u8..12);
    let sent = (0u16..200, prop::option::weighted(0.2, 1u32..500), priority, 0u8..8);
    let sent =
        sent.prop_map(|(padding, ttl_ms, priority, key)| Sent { padding, ttl_ms, priority, key });
    let pick = 0usize..100;
    let step = prop_oneof![
        5 => prop::collection::vec(sent, 1..40).prop_map(|messages| Step::Send { messages }),
        1 => (prop::bool::weighted(0.3), prop::bool::weighted(0.2))
            .prop_map(|(browse, settled)| Step::Subscribe { browse, settled }),
        1 => (pick.clone(), any::<bool>())
            .prop_map(|(consumer, failed)| Step::Unsubscribe { consumer, failed }),
        8 => (pick.clone(), 0u32..40, prop_oneof![3 => Just(usize::MAX), 1 => 0usize..1_000])
            .prop_map(|(consumer, most, bytes)| Step::Take { consumer, most, bytes }),
        1 => pick.clone().prop_map(|consumer| Step::Idle { consumer }),
        8 => (pick.clone(), prop::collection::vec(pick, 1..30), 0u8..6)
            .prop_map(|(consumer, which, outcome)| Step::Settle { consumer, which, outcome }),
        1 => (1u64..30).prop_map(|most| Step::Purge { most }),
        1 => (1u64..200).prop_map(|ms| Step::Pass { ms }),
    ];
    prop::collection::vec(step, 1..150)
}

/// Most messages and most bytes of a ring; 0 where there is no limit.
pub(crate) type Ring = (u64, u64);

#[derive(Clone, Debug, Default)]
pub(crate) struct Kind {
    pub(crate) ring: Option<Ring>,
    /// How many levels, and the turn of each.
    pub(crate) priorities: Option<(u64, [u32; 10])>,
    pub(crate) keeps_last_values: bool,
    /// Most messages and most bytes of a queue that rejects what is too much.
    pub(crate) limits: Option<(u64, u64)>,
    /// Nobody takes messages.
    pub(crate) is_browsed: bool,
}

impl Kind {
    pub(crate) fn settings(&self) -> QueueSettings {
        let (max_count, max_bytes) = self.ring.or(self.limits).unwrap_or((0, 0));
        QueueSettings {
            max_count: Some(max_count),
            max_bytes: Some(max_bytes),
            limit_policy: match self.ring {
                Some(_) => LimitPolicy::Ring,
                None => LimitPolicy::Reject,
            },
            flow_stop_count: Some(0),
            browse_only: self.is_browsed,
            last_value_key: self.keeps_last_values.then(|| "key".into()),
            priorities: self.priorities.map(|(levels, _)| levels),
            fairshare_of: self.turns().map(|turn| Some(turn).filter(|turn| *turn > 0)),
            ..QueueSettings::default()
        }
    }

    pub(crate) fn turns(&self) -> [u32; 10] {
        self.priorities.map(|(_, turns)| turns).unwrap_or_default()
    }

    /// The level of a priority, as the older brokers describe it.
    pub(crate) fn level(&self, priority: u8) -> usize {
        let Some((levels, _)) = self.priorities else { return 0 };
        let first = 5 - 5.min(levels.div_ceil(2));
        u64::from(priority).saturating_sub(first).min(levels - 1).min(9) as usize
    }
}

pub(crate) fn priorities() -> impl Strategy<Value = Option<(u64, [u32; 10])>> {
    let turn = prop_oneof![2 => Just(0u32), 3 => 1u32..6];
    let turns = prop_oneof![2 => Just([0; 10]), 1 => prop::array::uniform10(turn)];
    (1u64..=10, turns).prop_map(|(levels, mut turns)| {
        turns[levels as usize..].fill(0);
        Some((levels, turns))
    })
}

pub(crate) fn rings() -> impl Strategy<Value = Option<Ring>> {
    let count = prop_oneof![Just(0), 1u64..40];
    let bytes = prop_oneof![Just(0), 100u64..4_000];
    let limited = (count, bytes).prop_filter("a ring has limits", |ring| *ring != (0, 0));
    limited.prop_map(Some)
}
