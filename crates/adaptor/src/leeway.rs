//! Senders without credit whose own transaction, or others', keep the room that they wait for.

use std::sync::Arc;

use mochila_broker::{Leeway, PATIENCE_MS, SharedQueue, Wait, Waiter, Waiting, Want};
use mochila_engine::{self as engine, LinkId};
use mochila_wire::Now;

use crate::Scratch;
use crate::connection::Connection;
use crate::links::{End, Slot};
use crate::transactions::TransactionId;

/// A sender waits for room that others' transactions keep, at one queue or several.
pub(crate) struct Standoff {
    since_ms: u64,
    /// When to look again whether they wait for it, too.
    pub(crate) next_look_ms: u64,
    /// Tell others of it.
    _waits: Vec<Waiting>,
}

impl Connection {
    /// How much credit a sender has that gets none, where the connection's own transactions keep the
    /// room that it waits for, or others' do.
    #[cold]
    pub(crate) fn leeway(&mut self, now: Now, id: LinkId, want: &Want) -> u32 {
        let leeways = self.leeways(id, want);
        let is_standoff = self.look_for_standoff(now, id, &leeways);
        let credits = leeways.iter().map(|(_, leeway)| match leeway {
            Leeway::Wait => 0,
            Leeway::Credit(credit) => *credit,
            Leeway::Rivals if !is_standoff => 0,
            Leeway::Rivals | Leeway::Limit => 1,
        });
        let least = credits.min().unwrap_or(0).min(want.credit);
        let Some(incoming) = self.links.incoming(id) else { return 0 };
        let is_at_limit = leeways.iter().any(|(_, leeway)| leeway.is_at_limit());
        incoming.credit.is_at_limit = least > 0 && is_at_limit;
        least
    }

    /// Lets others know whose room a sender waits for; true if it waits for those who wait for it.
    fn look_for_standoff(
        &mut self,
        now: Now,
        id: LinkId,
        leeways: &[(Arc<SharedQueue>, Leeway)],
    ) -> bool {
        let Some(session) = self.engine.link(id).map(engine::Link::session) else { return false };
        let Some(incoming) = self.links.incoming(id) else { return false };
        let since_ms = incoming.credit.standoff.take().map_or(now.mono_ms, |it| it.since_ms);
        let mut rivals = leeways.iter().filter(|(_, leeway)| *leeway == Leeway::Rivals).peekable();
        if rivals.peek().is_none() {
            return false;
        }
        let waiter = Waiter { connection: self.record.id, session: session.index() as u32 };
        let kept = self.transactions.kept(session);
        let waits: Vec<Waiting> = rivals
            .map(|(queue, _)| {
                let (queue, kept) = (Arc::clone(queue), Arc::clone(&kept));
                self.node.broker.wait_for_room(Wait { waiter, queue, kept, since_ms })
            })
            .collect();
        if waits.iter().any(|wait| wait.is_standoff(now)) {
            return true;
        }
        let first_look_ms = since_ms + PATIENCE_MS;
        let next_look_ms =
            if first_look_ms > now.mono_ms { first_look_ms } else { now.mono_ms + PATIENCE_MS };
        let Some(incoming) = self.links.incoming(id) else { return false };
        incoming.credit.standoff = Some(Standoff { since_ms, next_look_ms, _waits: waits });
        self.hold(id);
        false
    }

    /// Whether a message that comes in this transaction, or in none, is not to be taken beyond the
    /// limit.
    ///
    /// Credit at the limit was for the transaction which fills the queue. Another one that is begun
    /// with it is not to blame, nor is this one if there is room to come by now.
    #[inline]
    pub(crate) fn is_beyond_limit(
        &mut self,
        id: LinkId,
        transaction: Option<TransactionId>,
    ) -> bool {
        let Some(incoming) = self.links.incoming(id) else { return true };
        let credit = &mut incoming.credit;
        credit.is_plain = transaction.is_none();
        credit.is_at_limit && self.is_still_at_limit(id, transaction)
    }

    #[cold]
    fn is_still_at_limit(&mut self, id: LinkId, transaction: Option<TransactionId>) -> bool {
        transaction.is_none_or(|id| self.transactions.has_brought(id))
            && self.leeways(id, &Want::credit(1)).iter().any(|(_, leeway)| leeway.is_at_limit())
    }

    /// Lets senders go on that have no credit, if a transaction has failed just now: what they still
    /// send in it is told so, and does not wait for room.
    #[inline(never)]
    pub(crate) fn let_failed_go_on(&mut self, now: Now, scratch: &mut Scratch) {
        if !self.transactions.have_failed() {
            return;
        }
        let is_incoming = |slot: &&Slot| matches!(slot.end, End::Incoming(_));
        let senders: Vec<LinkId> =
            self.links.iter().filter(is_incoming).map(|slot| slot.id).collect();
        for id in senders {
            if self.engine.link(id).is_some_and(|link| link.credit() == 0) {
                self.grant_credit(now, id, scratch);
            }
        }
    }

    /// What becomes of a sender that gets no credit, at each queue that gives it none.
    fn leeways(&mut self, id: LinkId, want: &Want) -> Vec<(Arc<SharedQueue>, Leeway)> {
        let Some(session) = self.engine.link(id).map(engine::Link::session) else {
            return Vec::new();
        };
        let Some(incoming) = self.links.incoming(id) else { return Vec::new() };
        let kept = self.transactions.kept(session);
        let is_in_vain = !incoming.credit.is_plain && self.transactions.are_in_vain(session);
        let leeway = |queue: Arc<SharedQueue>| {
            let own = kept.iter().filter(|(other, _)| Arc::ptr_eq(other, &queue));
            let own = own.map(|(_, messages)| messages).sum();
            let leeway = match kept.is_empty() {
                _ if is_in_vain => Leeway::Limit,
                true => Leeway::Wait,
                false => queue.leeway(want, own),
            };
            (queue, leeway)
        };
        incoming.destination.holders().into_iter().map(leeway).collect()
    }
}
