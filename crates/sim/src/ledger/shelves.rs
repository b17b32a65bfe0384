//! What lies in queues, and what became of what lay there before.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::entry::Fate;
use super::{Ledger, QueueRules};
use crate::number::{MessageNo, SenderNo};
use crate::shelf::{Lying, Shelf};

/// How each queue was when somebody last looked.
#[derive(Debug, Default)]
pub(super) struct Shelves(BTreeMap<String, Shelf>);

/// What has happened to a queue between two looks.
struct Change<'a> {
    rules: QueueRules,
    before: &'a Shelf,
    after: &'a Shelf,
}

impl Ledger {
    /// Somebody looks at all messages of a queue that nobody holds.
    pub(crate) fn looks_at(&mut self, queue: &str, shelf: Shelf) {
        let rules = self.queues.get(queue).copied().unwrap_or_default();
        for lying in &shelf.messages {
            self.check_lying(queue, *lying);
        }
        if rules.is_steady() {
            self.check_places(queue, rules, &shelf);
            // The last message stays beside those that are held.
            let is_too_full = rules.drops && shelf.is_over && shelf.messages.len() > 1;
            assert!(!is_too_full, "ring {queue} has not dropped enough: {shelf:?}");
            if let Some(before) = self.shelves.0.get(queue) {
                self.check_change(queue, &Change { rules, before, after: &shelf });
            }
        }
        self.shelves.0.insert(queue.to_owned(), shelf);
    }

    /// Whether a queue has changed since somebody looked.
    pub(crate) fn is_stale(&self, queue: &str, numbers: &mochila_broker::Statistics) -> bool {
        self.shelves.0.get(queue).is_none_or(|shelf| shelf.numbers != *numbers)
    }

    /// A message may be in a queue.
    fn check_lying(&mut self, queue: &str, lying: Lying) {
        let no = lying.no;
        assert!(no.0 < self.entries.len(), "a message is in {queue} that nobody has sent");
        self.appears(no);
        let entry = &self.entries[no.0];
        assert_eq!(entry.queue, queue, "{no:?} is in the wrong queue");
        let may_be_there = !matches!(entry.fate, Fate::Sending | Fate::Aborted | Fate::Refused);
        assert!(may_be_there && !entry.done, "{no:?} must not be in {queue}: {entry:?}");
    }

    /// They are shown as they are taken, and those of one sender as he sent them, whoever has had
    /// them in between; of those with one key there is one.
    fn check_places(&self, queue: &str, rules: QueueRules, shelf: &Shelf) {
        let mut ranks: BTreeMap<(SenderNo, Option<u8>), (u64, MessageNo)> = BTreeMap::new();
        let mut keys = BTreeMap::new();
        let is_in_order = shelf.messages.is_sorted_by_key(|lying| self.place(rules, *lying));
        assert!(is_in_order, "{queue} is not in order: {shelf:?}");
        for Lying { no, .. } in shelf.messages.iter().copied() {
            let entry = &self.entries[no.0];
            let lane = (entry.sender, rules.level(entry.priority));
            let last = ranks.insert(lane, (entry.rank, no));
            if let Some((rank, before)) = last {
                assert!(rank < entry.rank, "{before:?} lies before {no:?} in {queue}: {shelf:?}");
            }
            let twin = keys.insert(entry.key, no).filter(|_| rules.replaces);
            assert_eq!(twin, None, "{no:?} of {queue} has the same key {:?}", entry.key);
        }
    }

    fn check_change(&self, queue: &str, change: &Change<'_>) {
        let Change { before, after, .. } = *change;
        for lying in &before.messages {
            let place = after.messages.iter().find(|now| now.no == lying.no);
            let position = place.map_or(lying.position, |now| now.position);
            assert_eq!(position, lying.position, "{:?} was put elsewhere in {queue}", lying.no);
        }
        let taken = after.numbers.acquires > before.numbers.acquires;
        let dropped = after.numbers.discards_ring > before.numbers.discards_ring;
        let replaced = after.numbers.discards_lvq > before.numbers.discards_lvq;
        match (taken, dropped, replaced) {
            (true, false, false) if !change.has_returned() => self.check_taken(queue, change),
            (false, true, false) => self.check_dropped(queue, change),
            (false, false, true) => self.check_replaced(queue, change),
            (false, false, false) => {
                let lost = self.gone(change).next().filter(|_| !change.is_purged());
                assert!(lost.is_none(), "{lost:?} of {queue} is gone: {change:?}");
            }
            // It was too much at once.
            _ => {}
        }
    }

    /// Whoever takes something takes the first there is; of a group in any case.
    fn check_taken(&self, queue: &str, change: &Change<'_>) {
        let rules = change.rules;
        for (gone, left) in self.passed_over(change) {
            let (taken, other) = (&self.entries[gone.no.0], &self.entries[left.no.0]);
            let is_same_group = rules.groups && taken.group == other.group;
            assert!(
                !is_same_group,
                "{:?} of group {:?} was taken from {queue} before {:?}",
                gone.no, taken.group, left.no
            );
            assert!(
                !rules.is_taken_in_order(),
                "{:?} was taken from {queue} before {:?}: {change:?}",
                gone.no,
                left.no
            );
        }
    }

    /// What a ring drops is the oldest, of the lowest level.
    fn check_dropped(&self, queue: &str, change: &Change<'_>) {
        let level = |lying: Lying| change.rules.level(self.entries[lying.no.0].priority);
        let place = |lying: Lying| (level(lying), lying.position);
        let last = self.gone(change).map(place).max();
        let first = change.stayed().min_by_key(|lying| place(*lying));
        let (Some(last), Some(first)) = (last, first) else { return };
        assert!(
            last < place(first),
            "ring {queue} has dropped something and kept {:?}, which was to go before: {change:?}",
            first.no
        );
    }

    /// What is replaced is replaced by something newer with the same key.
    fn check_replaced(&self, queue: &str, change: &Change<'_>) {
        for gone in self.gone(change) {
            let key = self.entries[gone.no.0].key;
            let is_heir = |lying: &&Lying| self.entries[lying.no.0].key == key;
            let heir = change.after.messages.iter().find(is_heir);
            let is_newer = heir.is_some_and(|heir| heir.position > gone.position);
            // One whose time is up is not shown.
            let mut values = self.entries.iter().filter(|it| it.key == key && it.queue == queue);
            let may_be_over = heir.is_none() && values.any(|it| it.ttl_ms.is_some());
            assert!(
                is_newer || may_be_over,
                "{:?} of {queue} is gone, and {heir:?} in its place",
                gone.no
            );
        }
    }

    /// What lay there before and does not any more, although it has time.
    fn gone(&self, change: &Change<'_>) -> impl Iterator<Item = Lying> {
        let (before, after) = (&change.before.messages, change.after);
        let is_gone =
            |lying: &Lying| !after.has(lying.no) && self.entries[lying.no.0].ttl_ms.is_none();
        before.iter().copied().filter(is_gone)
    }

    /// What has gone, and what goes before it and has not.
    fn passed_over(&self, change: &Change<'_>) -> impl Iterator<Item = (Lying, Lying)> {
        let rules = change.rules;
        let place = move |lying: Lying| self.place(rules, lying);
        self.gone(change).flat_map(move |gone| {
            let left = change.stayed().filter(move |left| place(*left) < place(gone));
            left.map(move |left| (gone, left))
        })
    }

    /// Where a message stands in the order in which they are taken: the most urgent first.
    fn place(&self, rules: QueueRules, lying: Lying) -> (Reverse<Option<u8>>, u64) {
        (Reverse(rules.level(self.entries[lying.no.0].priority)), lying.position)
    }
}

impl Change<'_> {
    /// What lay there before and still does.
    fn stayed(&self) -> impl Iterator<Item = Lying> {
        self.before.messages.iter().copied().filter(|lying| self.after.has(lying.no))
    }

    /// Something has come back, however that is counted.
    fn has_returned(&self) -> bool {
        self.after.numbers.releases > self.before.numbers.releases
    }

    /// Somebody has thrown something away.
    fn is_purged(&self) -> bool {
        self.after.numbers.discards_purge > self.before.numbers.discards_purge
    }
}

impl std::fmt::Debug for Change<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "before {:?}, after {:?}", self.before, self.after)
    }
}

#[cfg(test)]
mod tests {
    use mochila_broker::QueueSettings;
    use mochila_broker::settings::LimitPolicy;
    use mochila_engine::pair::Random;

    use super::*;
    use crate::letter::Letter;
    use crate::number::ConnectionNo;

    /// Five messages of three senders in a queue, of which these priorities, groups and keys.
    fn five(settings: &QueueSettings) -> Ledger {
        let mut ledger = Ledger::default();
        ledger.open_account();
        ledger.rules("q").arrange(settings);
        for number in 0..5 {
            let (priority, group) = ([4, 4, 4, 9, 4][number], Some([1, 2, 1, 2, 1][number]));
            let letter = Letter { priority, group, key: group, ..Letter::default() };
            let sender = SenderNo(number / 2);
            let (no, _) = ledger.compose(sender, "q", &letter, &mut Random::new(1));
            ledger.sent(ConnectionNo(0), no, false);
            ledger.accepted(no);
        }
        ledger
    }

    fn shelf(numbers: &[usize], adjust: impl FnOnce(&mut Shelf)) -> Shelf {
        let lying = |no: &usize| Lying { no: MessageNo(*no), position: *no as u64, is_new: true };
        let mut shelf = Shelf { messages: numbers.iter().map(lying).collect(), ..Shelf::default() };
        adjust(&mut shelf);
        shelf
    }

    fn see(settings: &QueueSettings, before: &[usize], after: Shelf) {
        let mut ledger = five(settings);
        ledger.looks_at("q", shelf(before, |_| {}));
        ledger.looks_at("q", after);
    }

    fn ring() -> QueueSettings {
        QueueSettings { limit_policy: LimitPolicy::Ring, ..QueueSettings::default() }
    }

    fn groups() -> QueueSettings {
        QueueSettings { shared_groups: true, ..QueueSettings::default() }
    }

    fn levels() -> QueueSettings {
        QueueSettings { priorities: Some(10), ..QueueSettings::default() }
    }

    fn values() -> QueueSettings {
        QueueSettings { last_value_key: Some("key".into()), ..QueueSettings::default() }
    }

    #[test]
    fn a_ring_may_drop_the_oldest() {
        see(&ring(), &[0, 1, 2], shelf(&[2, 4], |it| it.numbers.discards_ring = 2));
    }

    #[test]
    #[should_panic(expected = "has dropped something and kept message 1")]
    fn a_ring_must_not_drop_what_is_not_the_oldest() {
        see(&ring(), &[0, 1, 2], shelf(&[1, 4], |it| it.numbers.discards_ring = 2));
    }

    #[test]
    #[should_panic(expected = "has dropped something and kept message 4")]
    fn a_ring_with_levels_must_drop_the_least_urgent() {
        let settings = QueueSettings { priorities: Some(10), ..ring() };
        see(&settings, &[3, 4], shelf(&[4], |it| it.numbers.discards_ring = 1));
    }

    #[test]
    #[should_panic(expected = "has not dropped enough")]
    fn a_ring_must_not_grow() {
        see(&ring(), &[0, 1], shelf(&[0, 1, 2], |it| it.is_over = true));
    }

    #[test]
    #[should_panic(expected = "has not dropped enough")]
    fn a_ring_must_not_grow_by_what_comes_back() {
        let returned = |it: &mut Shelf| {
            it.is_over = true;
            it.numbers.releases = 1;
        };
        see(&ring(), &[1, 2], shelf(&[0, 1, 2], returned));
    }

    #[test]
    fn the_last_message_of_a_ring_may_stay_beside_those_that_are_held() {
        see(
            &ring(),
            &[0],
            shelf(&[1], |it| {
                it.is_over = true;
                it.numbers.discards_ring = 1;
            }),
        );
    }

    #[test]
    #[should_panic(expected = "of q is gone")]
    fn nothing_goes_without_being_counted() {
        see(&ring(), &[0, 1], shelf(&[1], |_| {}));
    }

    #[test]
    fn groups_may_overtake_each_other() {
        see(&groups(), &[0, 1, 2], shelf(&[0, 2], |it| it.numbers.acquires = 1));
    }

    #[test]
    #[should_panic(expected = "message 2 of group Some(1) was taken from q before message 0")]
    fn within_a_group_nothing_is_overtaken() {
        see(&groups(), &[0, 1, 2], shelf(&[0, 1], |it| it.numbers.acquires = 1));
    }

    #[test]
    #[should_panic(expected = "message 4 was taken from q before message 3")]
    fn who_takes_takes_the_most_urgent() {
        see(&levels(), &[3, 4], shelf(&[3], |it| it.numbers.acquires = 1));
    }

    #[test]
    #[should_panic(expected = "message 1 lies before message 0")]
    fn what_comes_back_lies_in_its_place() {
        see(&groups(), &[1], shelf(&[1, 0], |it| it.messages[1].position = 7));
    }

    #[test]
    #[should_panic(expected = "q is not in order")]
    fn who_looks_is_shown_the_most_urgent_first() {
        see(&levels(), &[3], shelf(&[4, 3], |_| {}));
    }

    #[test]
    #[should_panic(expected = "was put elsewhere")]
    fn nothing_changes_its_place() {
        see(&groups(), &[1], shelf(&[1], |it| it.messages[0].position = 7));
    }

    #[test]
    fn a_value_is_replaced_by_a_newer_one() {
        see(&values(), &[0, 1], shelf(&[1, 2], |it| it.numbers.discards_lvq = 1));
    }

    #[test]
    #[should_panic(expected = "message 0 of q is gone, and None in its place")]
    fn a_value_is_not_replaced_by_nothing() {
        see(&values(), &[0, 1], shelf(&[1], |it| it.numbers.discards_lvq = 1));
    }

    #[test]
    #[should_panic(expected = "has the same key")]
    fn there_is_one_value_of_each_key() {
        see(&values(), &[0], shelf(&[0, 2], |_| {}));
    }

    #[test]
    #[should_panic(expected = "the last value of Some(1) was lost")]
    fn the_last_value_is_not_lost() {
        let mut ledger = five(&values());
        for no in [1, 3] {
            ledger.entries[no].done = true;
        }
        ledger.check_last_values("q");
    }
}
