//! The entities: one file, one table of attributes each.

pub(crate) mod binding;
pub(crate) mod connection;
pub(crate) mod event;
pub(crate) mod exchange;
pub(crate) mod link;
pub(crate) mod node;
pub(crate) mod queue;
pub(crate) mod session;
