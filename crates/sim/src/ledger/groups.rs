//! What is known of message groups: each is with one receiver at a time, and goes on in order.

use std::collections::{BTreeMap, BTreeSet};

use super::Ledger;
use crate::number::{MessageNo, ReceiverNo, SenderNo};

/// The place of the last new message of each queue, group and sender.
#[derive(Debug, Default)]
pub(super) struct Groups(BTreeMap<(String, u32, SenderNo), u64>);

impl Ledger {
    /// A message comes to a receiver: if it is of a group, nobody else has any of that, and it is
    /// newer than what came before.
    pub(super) fn check_group(&mut self, no: MessageNo, receiver: ReceiverNo, is_first: bool) {
        let entry = &self.entries[no.0];
        let is_grouped = self.queues.get(&entry.queue).is_some_and(|rules| rules.groups);
        let Some(group) = entry.group.filter(|_| is_grouped) else { return };
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

    /// How many messages of a queue with groups are nothing for a receiver, as another has their
    /// group, or as the group has one that it does not want.
    pub(crate) fn of_others(
        &self,
        queue: &str,
        receiver: ReceiverNo,
        unwanted: &BTreeSet<MessageNo>,
    ) -> u64 {
        if !self.queues.get(queue).is_some_and(|rules| rules.groups) {
            return 0;
        }
        let of_queue = || {
            let entries = self.entries.iter().enumerate();
            entries.filter(|(_, entry)| entry.queue == queue && !entry.done)
        };
        let is_barred = |(index, entry): &(usize, &super::Entry)| {
            let has_other = entry.holder.is_some_and(|holder| holder.receiver != receiver);
            has_other || unwanted.contains(&MessageNo(*index))
        };
        let barred: BTreeSet<_> = of_queue().filter(is_barred).map(|(_, it)| it.group).collect();
        of_queue().filter(|(_, entry)| barred.contains(&entry.group)).count() as u64
    }
}
