//! A whole broker with its clients in one thread and in virtual time, from a seed.
//!
//! A [`World`] holds the broker's machines (queues, connections, management), a network that tears,
//! delays, stalls, resets and falls silent, several virtual workers whose visits interleave wherever
//! those of threads could, and clients built on the client side of the engine. Everything that is
//! left to chance comes from one seed: the same seed gives the same run.
//!
//! While it runs, the clients keep a common ledger of all messages, and the world looks at the
//! broker from outside. Whatever breaks a promise is a panic:
//!
//! * what was accepted is delivered at least once, or has expired or been purged and was counted;
//! * no two consumers hold a message at once, and none is given out again after it was dequeued;
//! * consumers see the new messages of one sender in order, those that select only what they select;
//! * what comes back lies in its place; whoever takes something takes the first there is, unless he
//!   chooses, the most urgent first, and of a message group always the oldest;
//! * a ring drops the oldest that nobody holds, of the lowest level, and no more than it has to; of
//!   each key the last value is there, and it is the only one;
//! * of a transaction all is done or nothing: none of it is seen before it is committed, nothing of
//!   what was rolled back ever, and what was taken in one that was comes again. How it ended is
//!   known of each as soon as anybody can know it, whether its client was told or not;
//! * nobody gets more than he has credit for (the engines at both ends watch over that);
//! * the memory in use is never above the limit, and nothing is left of it at the end; who respects
//!   his credit is not refused for want of memory, and gets more when there is some again;
//! * when nothing more happens, no consumer waits while a message that it may take is available, no
//!   producer waits while there is room, and nothing is half done: no drain, attach, settlement,
//!   request or message;
//! * at the end there are no connections, links, consumers, queues of links, or files left.
//!
//! [`stories`] are what happens. `SIM_SEED` plays one seed again, `SIM_TRACE=1` says step by step
//! what happens.

mod cable;
mod client;
mod disk;
pub mod fuzz;
mod hall;
mod ledger;
mod letter;
mod number;
mod peer;
mod pipe;
mod selector;
mod shelf;
pub mod stories;
mod story;
mod switchboard;
mod weather;
mod worker;
mod world;

pub use client::{ClientPlan, CreditPlan, Mishaps, ReceiverPlan, SenderPlan};
pub use hall::Hall;
pub use ledger::Tally;
pub(crate) use letter::KEY;
pub use story::{Story, play, play_seed};
pub use world::{World, WorldPlan};
