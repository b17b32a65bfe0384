//! What is known of message groups: each is with one receiver at a time, and goes on in order.

use std::collections::{BTreeMap, BTreeSet};

use super::{Holder, Ledger, Taker};
use crate::client::Appetite;
use crate::letter;
use crate::number::{MessageNo, SenderNo};
use crate::shelf::{Lying, Shelf};

/// The place of the last new message of each queue, group and sender.
#[derive(Debug, Default)]
pub(super) struct Groups(BTreeMap<(String, u32, SenderNo), u64>);

impl Ledger {
    /// A message comes to a receiver: if it is of a group, nobody else has any of that, and it is
    /// newer than what came before.
    ///
    /// What is settled when it is sent leaves its group to others while it is under way.
    pub(super) fn check_group(&mut self, no: MessageNo, taker: &Taker<'_>, is_first: bool) {
        let receiver = taker.no;
        let entry = &self.entries[no.0];
        let is_grouped =
            self.queues.get(&entry.queue).is_some_and(|rules| rules.groups && !rules.forgets);
        let Some(group) = entry.group.filter(|_| is_grouped && !taker.settled) else { return };
        for (index, other) in self.entries.iter().enumerate() {
            let is_same = other.group == Some(group) && other.queue == entry.queue;
            let Some(holder) = other.holder.filter(|_| is_same) else { continue };
            assert!(
                holder.receiver == receiver || self.may_be_free(other),
                "{no:?} of group {group} came to {receiver:?} while another had {:?}: {other:?}",
                MessageNo(index)
            );
        }
        if is_first {
            let (rank, key) = (entry.rank, (entry.queue.clone(), group, entry.sender));
            let before = self.groups.0.insert(key, rank);
            assert!(before < Some(rank), "{no:?} of group {group}: {before:?} before {rank}");
        }
    }

    /// A message that a receiver could take of those that nobody holds, if there is one.
    ///
    /// Of a group that is the first, and that only if nobody else has the group.
    pub(crate) fn wanted<'a>(&self, shelf: &'a Shelf, appetite: &Appetite) -> Option<&'a Lying> {
        let groups = self.queues.get(&appetite.queue).is_some_and(|rules| rules.groups);
        let mut met = BTreeSet::new();
        shelf.messages.iter().find(|lying| {
            let entry = &self.entries[lying.no.0];
            let is_barred = groups
                && (!met.insert(entry.group)
                    || shelf.owned.contains(&letter::group_name(entry.group))
                        && !self.has_group(shelf, appetite, entry.group));
            !is_barred && appetite.wants(lying.no, entry.colour)
        })
    }

    /// Whether a receiver has a message of a group, and not only had it: on a connection that is gone
    /// without the broker's knowing, or until a transaction was rolled back.
    fn has_group(&self, shelf: &Shelf, appetite: &Appetite, group: Option<u32>) -> bool {
        let holder = Holder { receiver: appetite.receiver, connection: appetite.connection };
        self.entries.iter().enumerate().any(|(index, entry)| {
            entry.holder == Some(holder)
                && (entry.group == group && entry.queue == appetite.queue && !entry.done)
                && !shelf.has(MessageNo(index))
        })
    }
}
