//! Messages that consumers take from their groups.

use super::link::UNGROUPED;
use super::{Groups, Handover, Link};
use crate::messages::Bits;

/// Among which messages one stands that a consumer may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Among {
    /// Those that anybody may take.
    Free,
    /// Those of the consumer's own groups.
    Own,
}

impl Groups {
    /// Whether a consumer may take an available message: it must be the oldest of its group, or in
    /// none. Of free ones it takes none unless it `may_begin`.
    #[inline]
    pub(crate) fn reach(
        &self,
        (position, link): (u64, Link),
        slot: u32,
        may_begin: bool,
    ) -> Option<Among> {
        if link.group == UNGROUPED {
            return may_begin.then_some(Among::Free);
        }
        let group = self.directory.group(link.group);
        let among = match group.owner() {
            None if may_begin => Among::Free,
            Some(owner) if owner == slot && group.is_shared_out_since(self.shared_out) => {
                Among::Own
            }
            _ => return None,
        };
        (group.oldest() == Some(position)).then_some(among)
    }

    /// A consumer acquires a message within its [reach](Groups::reach).
    ///
    /// The next one of its group is in no set until the consumer has [walked](Groups::walked) on:
    /// mostly it takes that too. One that was free stands among the free ones until then.
    #[inline]
    pub(crate) fn acquire(&mut self, position: u64, link: Link, slot: u32, among: Among) {
        if link.group == UNGROUPED {
            return;
        }
        let group = self.directory.group_mut(link.group);
        group.remove_oldest(position, link.next);
        let before = group.hold(slot, self.joined);
        let starts = match among {
            Among::Free => true,
            // If it does not stand there, others of its group have been taken on this walk.
            Among::Own => {
                let owned = self.owned.get_mut(slot as usize);
                let owned = owned.filter(|owned| owned.len() > 0 && owned.contains(position));
                owned.map(|owned| owned.remove_one(position)).is_some()
            }
        };
        if starts && group.oldest().is_some() {
            self.walked.push(link.group);
        }
        if let Some((former, age)) = before
            && self.notes_handovers
        {
            let name = group.name.clone();
            self.handovers.push(Handover { former, age, name });
        }
    }

    /// A consumer has taken what it could of a block, among that these free ones.
    pub(crate) fn walked(&mut self, free: Bits) {
        self.free.remove_bits(free);
        while let Some(number) = self.walked.pop() {
            let seat = self.seat(number);
            self.reseat(None, seat);
        }
    }
}
