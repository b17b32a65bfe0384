//! Messages: encoded bytes that are shared and never changed, and what a queue knows about them.
//!
//! A publisher's visit brings a [`Batch`]: the bytes of its messages in [`Segment`]s, and one
//! descriptor for each. A consumer's visit takes them out as [`Taken`], by reference.

mod batch;
mod batch_builder;
mod content;
mod head;
mod meta;
mod name;
mod name_place;
mod name_table;
mod numbers;
mod origin;
mod overlay;
mod segment;
mod stamps;
mod taken;

pub use batch::Batch;
pub use batch_builder::BatchBuilder;
pub use content::{Content, LargeBody};
pub use meta::MessageMeta;
pub use origin::Origin;
pub use overlay::Overlay;
pub use segment::Segment;
pub use stamps::Added;
pub use taken::{Delivery, Front, Taken};

pub(crate) use batch::Incoming;
pub(crate) use batch_builder::cost_of_one;
pub(crate) use head::Head;
pub(crate) use name::{MessageNames, Named};
pub(crate) use name_table::MessageName;
pub(crate) use numbers::{Numbers, SEQUENCE};
pub(crate) use stamps::{INGRESS_TIMESTAMP, Stamps};
pub(crate) use taken::NO_OVERLAY;
