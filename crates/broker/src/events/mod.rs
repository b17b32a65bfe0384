//! What has happened on a node, for its operators.
//!
//! Whoever does something that operators may want to know of raises an [`Event`]: that costs a place
//! in a list, also under a queue's lock. The worker that is about to rest tells what has been
//! raised: each event gets its number and time, one line in the log, a place among the recent ones,
//! and goes as a message to each queue that listens.

mod event;
mod feed;

pub use event::{Event, EventKind, Severity};
pub use feed::{Feed, ToldEvent};
