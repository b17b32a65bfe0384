//! Who gets the messages of which group.

use super::selection::Eligible;
use super::{ConsumerId, EXPIRED_AT_ONCE, Queue, TakeLimit};
use crate::message::Taken;
use crate::messages::{GroupState, Groups, Taker, Walk};
use mochila_wire::Now;

/// One group of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupReport {
    /// Its name; what is no text there is replaced.
    pub id: String,
    /// Messages of it in the queue.
    pub messages: u64,
    /// The consumer that owns it, as it holds messages of it.
    pub owner: Option<ConsumerId>,
    /// The connection of its owner, as it was named at subscription.
    pub connection: Option<u64>,
    /// Messages that its owner holds.
    pub acquired: u64,
}

impl Queue {
    /// Hands over messages of the consumer's groups and its share of the free ones; true if it got
    /// as many as it asked for.
    ///
    /// Of any group only the oldest message can be taken, so one that the consumer must not have
    /// holds up its group until another consumer has taken it.
    pub(super) fn acquire_grouped(
        &mut self,
        now: Now,
        id: ConsumerId,
        limit: TakeLimit,
        out: &mut Taken,
    ) -> bool {
        out.set_lost_groups(self.take_lost_groups(id));
        let wanted = u64::from(limit.messages);
        let called_for = self.distributor.answer_call(id);
        let free = self.distributor.share(id, self.messages.free().len());
        let taker =
            Taker { slot: id.slot, now_ms: now.mono_ms, bytes: limit.bytes, is_empty_handed: true };
        let takes_any = self.distributor.takes_any(id);
        let walk = Walk { taker, most: wanted, free, most_expired: EXPIRED_AT_ONCE, takes_any };
        let distributor = &mut self.distributor;
        let groups = self.messages.groups_mut();
        let mut gone = groups.map(Groups::lend_list).unwrap_or_default();
        let acquired = self.messages.acquire_grouped(
            walk,
            |positions, from| distributor.next(id, Eligible::some(positions), from),
            &mut gone,
            out,
        );
        gone.iter().for_each(|bits| self.distributor.took_bits(id, *bits));
        self.tell_handovers();
        let Some(consumer) = self.distributor.get_mut(id) else { return false };
        consumer.taken += acquired.messages;
        if consumer.options.settled {
            for bits in &gone {
                let dequeued = self.messages.accept_bits(*bits, id.slot);
                self.leave(dequeued);
            }
        } else {
            gone.iter().for_each(|bits| consumer.holding.took_bits(*bits, bits.len()));
        }
        if let Some(groups) = self.messages.groups_mut() {
            groups.return_list(gone);
        }
        self.expired(acquired.expired);
        self.counters.acquires += acquired.messages;
        self.distributor.renew_promises(&self.messages);
        if called_for.is_some() {
            self.distributor.recheck_selecting();
        }
        acquired.messages == wanted
    }

    /// Calls those who wait while there are messages of their groups.
    pub(super) fn call_owners(&mut self) {
        let Some(groups) = self.messages.groups_mut() else { return };
        while let Some(slot) = groups.next_called() {
            if let Some(owned) = groups.owned(slot) {
                self.distributor.call_owner(slot, owned, &mut self.wakeups);
            }
        }
    }

    /// A consumer has joined those who own groups; these are shared out again if that is wanted.
    pub(super) fn join_groups(&mut self, id: ConsumerId) {
        let Some(groups) = self.messages.groups_mut() else { return };
        let joined = groups.join();
        if self.settings.rebalances_groups {
            groups.share_out();
        }
        if let Some(consumer) = self.distributor.get_mut(id) {
            consumer.joined = joined;
            if consumer.options.wants_lost_groups {
                groups.note_handovers(true);
            }
        }
    }

    /// What is known of up to so many groups.
    pub(crate) fn groups(&self, most: usize) -> Vec<GroupReport> {
        let states = self.messages.groups().into_iter().flat_map(|groups| groups.states(most));
        let report = |state: GroupState| {
            let owner = state.owner.and_then(|slot| self.distributor.in_slot(slot));
            let consumer = owner.and_then(|owner| self.distributor.get(owner));
            GroupReport {
                id: String::from_utf8_lossy(&state.name).into_owned(),
                messages: state.messages,
                owner,
                connection: consumer.map(|consumer| consumer.options.owner),
                acquired: state.held,
            }
        };
        states.map(report).collect()
    }

    pub(crate) fn group_count(&self) -> usize {
        self.messages.groups().map_or(0, Groups::len)
    }
}
