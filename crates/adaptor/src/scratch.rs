use mochila_broker::{Added, Front, Taken, Wakeups};

use crate::arrival::Arrivals;
use crate::settlement::Settlements;

/// What a visit to a connection needs while it lasts; a worker owns one and lends it to each visit.
#[derive(Default)]
pub struct Scratch {
    /// Whom to wake when the visit is over.
    pub(crate) wakeups: Wakeups,
    pub(crate) arrivals: Arrivals,
    pub(crate) settlements: Settlements,
    pub(crate) taken: Taken,
    /// What goes out in front of a message that goes out changed.
    pub(crate) front: Front,
    /// Annotations that go out with a message and did not come with it.
    pub(crate) added: Added,
    /// A piece of a large message.
    pub(crate) piece: Vec<u8>,
    /// Positions of messages that were sent settled.
    pub(crate) positions: Vec<u64>,
}

impl Scratch {
    /// An empty one.
    pub fn new() -> Scratch {
        Scratch::default()
    }
}
