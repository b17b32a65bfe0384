//! What a link of a client acts with.

use mochila_engine::pair::Random;
use mochila_engine::{Connection, LinkId, SessionId};
use mochila_wire::Now;

use crate::ledger::Ledger;
use crate::number::ConnectionNo;

/// A link's end at the client, and everything that it can reach.
pub(crate) struct Hand<'a> {
    pub(crate) now: Now,
    pub(crate) engine: &'a mut Connection,
    pub(crate) link: LinkId,
    pub(crate) session: SessionId,
    pub(crate) connection: ConnectionNo,
    pub(crate) random: &'a mut Random,
    pub(crate) ledger: &'a mut Ledger,
}

impl Hand<'_> {
    /// Some time from now, for those who think before they act.
    pub(crate) fn soon(&mut self) -> Option<u64> {
        let pause_ms = if self.random.chance(70) { 0 } else { self.random.between(1, 20) };
        Some(self.now.mono_ms + pause_ms)
    }
}
