use mochila_wire::SequenceNo;

/// Link credit as the sender of a link sees it (part 2, 2.6.7).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SenderCredit {
    pub(crate) delivery_count: SequenceNo,
    pub(crate) credit: u32,
    pub(crate) available: u32,
    pub(crate) drain: bool,
    /// The receiver asked for a drain and waits for our flow.
    pub(crate) drain_unanswered: bool,
    initial: SequenceNo,
}

impl SenderCredit {
    pub(crate) fn new(initial_delivery_count: u32) -> SenderCredit {
        let initial = SequenceNo(initial_delivery_count);
        SenderCredit { delivery_count: initial, initial, ..SenderCredit::default() }
    }

    /// Starts the count anew; credit that came before our attach went out still counts.
    pub(crate) fn start(&mut self, initial_delivery_count: u32) {
        self.initial = SequenceNo(initial_delivery_count);
        self.delivery_count = self.initial;
    }

    /// Takes over the receiver's flow; true if there is something to do for the application.
    pub(crate) fn update(&mut self, seen: Option<u32>, link_credit: u32, drain: bool) -> bool {
        // A receiver that has not seen our attach does not know our count yet.
        let seen = seen.map_or(self.initial, SequenceNo);
        let in_flight = match self.delivery_count.is_at_or_after(seen) {
            true => self.delivery_count.distance_from(seen),
            false => 0,
        };
        let credit = link_credit.saturating_sub(in_flight);
        let changed = credit != self.credit || drain || drain != self.drain;
        self.credit = credit;
        self.drain = drain;
        self.drain_unanswered = drain;
        changed
    }

    /// Uses one credit for one delivery.
    #[inline]
    pub(crate) fn take(&mut self) {
        debug_assert!(self.credit > 0, "a delivery was sent without credit");
        self.credit = self.credit.saturating_sub(1);
        self.delivery_count += 1;
    }

    /// Gives the rest of the credit up, if the receiver asked for it; true if it has to be told.
    pub(crate) fn drained(&mut self) -> bool {
        if !self.drain_unanswered {
            return false;
        }
        self.delivery_count += self.credit;
        self.credit = 0;
        self.drain_unanswered = false;
        true
    }
}

/// Link credit as the receiver of a link sees it (part 2, 2.6.7).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReceiverCredit {
    pub(crate) delivery_count: SequenceNo,
    /// Whether the sender has told its delivery count yet.
    pub(crate) counted: bool,
    pub(crate) credit: u32,
    pub(crate) available: u32,
    pub(crate) drain: bool,
    /// Deliveries beyond the credit that may be under way, because they were sent before the
    /// sender learned that its credit was lowered.
    spare: u32,
}

impl ReceiverCredit {
    pub(crate) fn start(&mut self, initial_delivery_count: u32) {
        self.delivery_count = SequenceNo(initial_delivery_count);
        self.counted = true;
    }

    /// Sets the credit; true if the sender has to be told.
    pub(crate) fn grant(&mut self, credit: u32, drain: bool) -> bool {
        if credit == self.credit && drain == self.drain {
            return false;
        }
        let outstanding = self.credit.saturating_add(self.spare);
        self.spare = outstanding.saturating_sub(credit);
        self.credit = credit;
        self.drain = drain;
        true
    }

    /// Counts a delivery; false if the sender had no credit for it.
    #[inline]
    pub(crate) fn take(&mut self) -> bool {
        if self.credit > 0 {
            self.credit -= 1;
        } else if self.spare > 0 {
            self.spare -= 1;
        } else {
            return false;
        }
        self.delivery_count += 1;
        true
    }

    /// Takes over the sender's flow: it may have given credit up.
    pub(crate) fn update(&mut self, delivery_count: Option<u32>, available: Option<u32>) {
        if let Some(available) = available {
            self.available = available;
        }
        if let Some(count) = delivery_count.map(SequenceNo)
            && count.is_after(self.delivery_count)
        {
            let mut given_up = count.distance_from(self.delivery_count);
            let from_credit = given_up.min(self.credit);
            self.credit -= from_credit;
            given_up -= from_credit;
            self.spare = self.spare.saturating_sub(given_up);
            self.delivery_count = count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::Random;

    #[test]
    fn credit_is_counted_from_what_the_receiver_has_seen() {
        let mut sender = SenderCredit::new(u32::MAX);
        sender.update(None, 10, false);
        assert_eq!(sender.credit, 10);
        for _ in 0..4 {
            sender.take();
        }
        sender.update(Some(0), 10, false);
        assert_eq!((sender.delivery_count.0, sender.credit), (3, 7), "three are in flight");
    }

    #[test]
    fn credit_may_be_the_largest_number() {
        let mut sender = SenderCredit::new(0);
        sender.update(Some(0), u32::MAX, false);
        sender.take();
        sender.update(Some(0), u32::MAX, false);
        assert_eq!(sender.credit, u32::MAX - 1);
    }

    #[test]
    fn draining_gives_all_credit_up_once() {
        let mut sender = SenderCredit::new(5);
        assert!(sender.update(Some(5), 3, true));
        assert!(sender.drained());
        assert_eq!((sender.delivery_count.0, sender.credit), (8, 0));
        assert!(!sender.drained());
        assert!(sender.update(Some(8), 0, true), "a drain without credit wants its answer too");
    }

    #[test]
    fn lowered_credit_lets_in_what_was_under_way_and_nothing_more() {
        let mut receiver = ReceiverCredit::default();
        receiver.grant(5, false);
        receiver.take();
        receiver.grant(0, false);
        let let_in = (0..10).filter(|_| receiver.take()).count();
        assert_eq!(let_in, 4);
    }

    #[test]
    fn whatever_is_granted_and_sent_both_sides_agree_in_the_end() {
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let start = random.next_u32();
            let (mut sender, mut receiver) = (SenderCredit::new(start), ReceiverCredit::default());
            receiver.start(start);
            let mut flows = Vec::new();
            let mut under_way = 0;
            for _ in 0..200 {
                match random.below(5) {
                    0 => {
                        let drain = random.below(4) == 0;
                        if receiver.grant(random.below(20) as u32, drain) {
                            flows.push((receiver.delivery_count.0, receiver.credit, drain));
                        }
                    }
                    1 if !flows.is_empty() => {
                        let (seen, credit, drain) = flows.remove(0);
                        sender.update(Some(seen), credit, drain);
                    }
                    2 if sender.credit > 0 => {
                        sender.take();
                        under_way += 1;
                    }
                    3 if under_way > 0 => {
                        assert!(receiver.take(), "seed {seed}: an honest sender was refused");
                        under_way -= 1;
                    }
                    // A drain is answered after what was sent before it.
                    4 if under_way == 0 && sender.drained() => {
                        receiver.update(Some(sender.delivery_count.0), None);
                    }
                    _ => {}
                }
            }
            for _ in 0..under_way {
                assert!(receiver.take(), "seed {seed}");
            }
            for (seen, credit, drain) in flows {
                sender.update(Some(seen), credit, drain);
            }
            assert_eq!(sender.delivery_count, receiver.delivery_count, "seed {seed}");
            assert_eq!(sender.credit, receiver.credit, "seed {seed}");
        }
    }
}
