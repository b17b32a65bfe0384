//! What a client does, and how it behaves.

use crate::selector::Selector;
use mochila_engine::pair::Random;

/// A client: its links, and its luck.
#[derive(Clone, Debug, Default)]
pub struct ClientPlan {
    pub(crate) senders: Vec<SenderPlan>,
    pub(crate) receivers: Vec<ReceiverPlan>,
    pub(crate) manager: Option<ManagerPlan>,
    pub(crate) controller: Option<ControllerPlan>,
    pub(crate) mishaps: Mishaps,
    /// The windows of its sessions, in frames; any if 0.
    pub(crate) window: u32,
}

/// A link that sends.
#[derive(Clone, Debug)]
pub struct SenderPlan {
    pub(crate) queues: Vec<String>,
    /// The address goes with each message, not with the link.
    pub(crate) anonymous: bool,
    pub(crate) messages: u32,
    pub(crate) sizes: &'static [usize],
    /// So many of a hundred are settled when they are sent.
    pub(crate) settled: u32,
    /// So many of a hundred are aborted.
    pub(crate) aborted: u32,
    /// So many of a hundred do not live for ever.
    pub(crate) mortal: u32,
    /// Each belongs to one of so many groups.
    pub(crate) groups: usize,
    /// Each is a value of one of so many keys.
    pub(crate) keys: usize,
    /// It sends whatever it has credit for at once.
    pub(crate) is_eager: bool,
}

/// A link that receives.
#[derive(Clone, Debug)]
pub struct ReceiverPlan {
    /// None for a queue of its own.
    pub(crate) queue: Option<String>,
    pub(crate) credit: CreditPlan,
    pub(crate) selector: Option<Selector>,
    pub(crate) browse: bool,
    /// Deliveries are settled when they are sent.
    pub(crate) settled: bool,
    /// It waits for the sender to settle (rcv-settle-mode second).
    pub(crate) second: bool,
    /// What is not settled when the link goes counts as failed.
    pub(crate) fails_by_default: bool,
    pub(crate) outcomes: Outcomes,
    /// So many of a hundred are not settled as long as the link is there.
    pub(crate) kept: u32,
    /// It wants to be the only one that takes.
    pub(crate) exclusive: bool,
}

/// How a receiver gives credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreditPlan {
    /// So much, topped up when half of it is used.
    Window(u32),
    /// One at a time.
    One,
    /// Any number up to this, raised and lowered.
    Fickle(u32),
    /// It asks for some and wants to know when there are no more, so many times.
    Drain(u32, u32),
}

/// How often a receiver says what, in relation to the others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcomes {
    pub(crate) accept: u32,
    pub(crate) reject: u32,
    pub(crate) release: u32,
    pub(crate) modify: u32,
    pub(crate) not_here: u32,
}

/// An operator.
#[derive(Clone, Debug)]
pub(crate) struct ManagerPlan {
    pub(crate) requests: u32,
    pub(crate) queues: Vec<String>,
    /// It closes connections, and does nothing else.
    pub(crate) closes_connections: bool,
}

/// A link that declares transactions, which all links of its client act in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ControllerPlan {
    pub(crate) transactions: u32,
    /// So many of a hundred are rolled back.
    pub(crate) rollbacks: u32,
    /// So many of a hundred may take too long.
    pub(crate) slow: u32,
}

/// What happens to a client, in so many of a thousand times that it does something.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mishaps {
    /// The connection is reset.
    pub reset: u32,
    /// The network falls silent.
    pub silence: u32,
    /// It does not read for a while.
    pub stall: u32,
    /// It closes the connection, and comes back.
    pub leave: u32,
    /// It detaches a link, and attaches it again.
    pub detach: u32,
    /// It ends a session, and begins another one.
    pub end: u32,
    /// It shows wrong credentials, when it connects.
    pub wrong_password: u32,
}

impl ClientPlan {
    /// A client without links.
    pub fn new() -> ClientPlan {
        ClientPlan::default()
    }

    /// Adds a sender.
    #[must_use]
    pub fn sends(mut self, plan: SenderPlan) -> ClientPlan {
        self.senders.push(plan);
        self
    }

    /// Adds a receiver.
    #[must_use]
    pub fn receives(mut self, plan: ReceiverPlan) -> ClientPlan {
        self.receivers.push(plan);
        self
    }

    /// Adds an operator that sends so many requests about queues.
    #[must_use]
    pub fn manages(mut self, requests: u32, queues: &[&str]) -> ClientPlan {
        let queues = queues.iter().map(|queue| (*queue).to_owned()).collect();
        self.manager = Some(ManagerPlan { requests, queues, closes_connections: false });
        self
    }

    /// Adds an operator that closes so many connections.
    #[must_use]
    pub fn closes(mut self, connections: u32) -> ClientPlan {
        let queues = vec![String::new()];
        self.manager =
            Some(ManagerPlan { requests: connections, queues, closes_connections: true });
        self
    }

    /// Its links act in so many transactions, one after the other; so many of a hundred are rolled
    /// back, and so many may take too long.
    #[must_use]
    pub fn transacts(mut self, transactions: u32, rollbacks: u32, slow: u32) -> ClientPlan {
        self.controller = Some(ControllerPlan { transactions, rollbacks, slow });
        self
    }

    /// Its sessions have windows of so many frames.
    #[must_use]
    pub fn window(mut self, frames: u32) -> ClientPlan {
        self.window = frames;
        self
    }

    /// What happens to it.
    #[must_use]
    pub fn suffers(mut self, mishaps: Mishaps) -> ClientPlan {
        self.mishaps = mishaps;
        self
    }
}

impl Mishaps {
    /// Whether messages can be under way when the connection, or a link, goes.
    pub(crate) fn lose_what_is_under_way(&self) -> bool {
        self.reset + self.silence + self.leave + self.detach + self.end > 0
    }
}

impl SenderPlan {
    /// So many messages to a queue.
    pub fn to(queue: &str, messages: u32) -> SenderPlan {
        SenderPlan {
            queues: vec![queue.to_owned()],
            anonymous: false,
            messages,
            sizes: &[0, 20, 300],
            settled: 0,
            aborted: 0,
            mortal: 0,
            groups: 0,
            keys: 0,
            is_eager: false,
        }
    }

    /// So many messages to any of several queues, over one link.
    pub fn to_any(queues: &[&str], messages: u32) -> SenderPlan {
        let queues = queues.iter().map(|queue| (*queue).to_owned()).collect();
        SenderPlan { queues, anonymous: true, ..SenderPlan::to("", messages) }
    }

    /// Of these sizes, in bytes of the body.
    #[must_use]
    pub fn sized(mut self, sizes: &'static [usize]) -> SenderPlan {
        self.sizes = sizes;
        self
    }

    /// So many of a hundred settled.
    #[must_use]
    pub fn settled(mut self, percent: u32) -> SenderPlan {
        self.settled = percent;
        self
    }

    /// So many of a hundred aborted.
    #[must_use]
    pub fn aborted(mut self, percent: u32) -> SenderPlan {
        self.aborted = percent;
        self
    }

    /// Each of one of so many message groups.
    #[must_use]
    pub fn grouped(mut self, groups: usize) -> SenderPlan {
        self.groups = groups;
        self
    }

    /// Each a value of one of so many keys.
    #[must_use]
    pub fn keyed(mut self, keys: usize) -> SenderPlan {
        self.keys = keys;
        self
    }

    /// As many at once as there is credit for.
    #[must_use]
    pub fn eager(mut self) -> SenderPlan {
        self.is_eager = true;
        self
    }

    /// So many of a hundred with a time to live.
    #[must_use]
    pub fn mortal(mut self, percent: u32) -> SenderPlan {
        self.mortal = percent;
        self
    }
}

impl ReceiverPlan {
    /// Whether it may leave a message to others and take a later one.
    pub(crate) fn is_choosy(&self) -> bool {
        self.selector.is_some() || self.outcomes.not_here > 0
    }

    /// A receiver that accepts what comes.
    pub fn from(queue: &str, credit: CreditPlan) -> ReceiverPlan {
        ReceiverPlan {
            queue: Some(queue.to_owned()),
            credit,
            selector: None,
            browse: false,
            settled: false,
            second: false,
            fails_by_default: false,
            outcomes: Outcomes { accept: 1, reject: 0, release: 0, modify: 0, not_here: 0 },
            kept: 0,
            exclusive: false,
        }
    }

    /// A receiver of a dynamic queue, which is its own.
    pub fn dynamic() -> ReceiverPlan {
        ReceiverPlan { queue: None, ..ReceiverPlan::from("", CreditPlan::Window(10)) }
    }

    /// It wants to be the only one that takes.
    #[must_use]
    pub fn exclusive(mut self) -> ReceiverPlan {
        self.exclusive = true;
        self
    }

    /// It selects.
    #[must_use]
    pub fn selecting(mut self, random: &mut Random) -> ReceiverPlan {
        self.selector = Some(Selector::any(random));
        self
    }

    /// It only looks.
    #[must_use]
    pub fn browsing(mut self) -> ReceiverPlan {
        self.browse = true;
        self
    }

    /// It gets messages settled.
    #[must_use]
    pub fn settled(mut self) -> ReceiverPlan {
        self.settled = true;
        self
    }

    /// It does not make up its mind: everything that a receiver can say.
    #[must_use]
    pub fn moody(mut self, random: &mut Random) -> ReceiverPlan {
        self.second = random.chance(40);
        self.fails_by_default = random.chance(30);
        self.kept = *random.pick(&[0, 5, 20]);
        self.outcomes = Outcomes {
            accept: 4,
            reject: random.between(0, 1) as u32,
            release: random.between(0, 3) as u32,
            modify: random.between(0, 2) as u32,
            not_here: random.between(0, 2) as u32,
        };
        self
    }

    /// It keeps so many of a hundred as long as it can.
    #[must_use]
    pub fn keeping(mut self, percent: u32) -> ReceiverPlan {
        self.kept = percent;
        self
    }
}

impl CreditPlan {
    /// Any of them.
    pub fn any(random: &mut Random) -> CreditPlan {
        match random.below(4) {
            0 => CreditPlan::One,
            1 => CreditPlan::Fickle(*random.pick(&[1, 5, 100])),
            2 => CreditPlan::Drain(*random.pick(&[1, 10, 1000]), 5),
            _ => CreditPlan::Window(*random.pick(&[2, 10, 100, 1000])),
        }
    }
}

/// How long transactions of all worlds may be open.
pub(crate) const TRANSACTION_TIMEOUT_MS: u64 = 1_000;
