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
    /// With which transfer frame of the session the sender must have learned it. There is no such
    /// frame until the flow has been written that tells it.
    told_at: Option<SequenceNo>,
    /// Deliveries beyond the credit that were allowed once and are not under way any more.
    lapsed: u32,
}

/// By what right a delivery comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    /// Its sender has credit for it, or had when it sent it.
    Credit,
    /// Its sender had credit for it, and has been told that it has lost it.
    Lapsed,
}

impl ReceiverCredit {
    pub(crate) fn start(&mut self, initial_delivery_count: u32) {
        self.delivery_count = SequenceNo(initial_delivery_count);
        self.counted = true;
    }

    /// Sets the credit, when the session has come to this transfer frame; true if the sender has to
    /// be told.
    pub(crate) fn grant(&mut self, credit: u32, drain: bool, at: SequenceNo) -> bool {
        if credit == self.credit && drain == self.drain {
            return false;
        }
        self.lapse(at);
        let outstanding = self.outstanding();
        let spare = outstanding.saturating_sub(credit);
        if credit < self.credit {
            self.told_at = None;
        }
        let allowed = outstanding.saturating_add(self.lapsed);
        self.lapsed = allowed.saturating_sub(credit.saturating_add(spare));
        self.spare = spare;
        self.credit = credit;
        self.drain = drain;
        true
    }

    /// How many deliveries may still come at most.
    pub(crate) fn outstanding(&self) -> u32 {
        self.credit.saturating_add(self.spare)
    }

    /// The credit is being told in a flow; what comes with this transfer frame of the session, or a
    /// later one, cannot have been sent before the sender has seen it.
    pub(crate) fn told(&mut self, from: SequenceNo) {
        self.told_at.get_or_insert(from);
    }

    /// Counts a delivery that begins with this transfer frame of the session; none if the sender had
    /// no credit for it.
    #[inline]
    pub(crate) fn take(&mut self, at: SequenceNo) -> Option<Right> {
        let right = if self.credit > 0 {
            self.credit -= 1;
            Right::Credit
        } else {
            self.take_spare(at)?
        };
        self.delivery_count += 1;
        Some(right)
    }

    #[cold]
    fn take_spare(&mut self, at: SequenceNo) -> Option<Right> {
        self.lapse(at);
        let (left, right) = match self.spare {
            0 => (&mut self.lapsed, Right::Lapsed),
            _ => (&mut self.spare, Right::Credit),
        };
        *left = left.checked_sub(1)?;
        Some(right)
    }

    /// What was under way has come by now, or was never sent.
    fn lapse(&mut self, at: SequenceNo) {
        if self.told_at.is_some_and(|told_at| at.is_at_or_after(told_at)) {
            self.lapsed = self.lapsed.saturating_add(self.spare);
            self.spare = 0;
        }
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
            let from_spare = given_up.min(self.spare);
            self.spare -= from_spare;
            self.lapsed = self.lapsed.saturating_sub(given_up - from_spare);
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
        receiver.grant(5, false, FIRST);
        receiver.take(FIRST);
        receiver.grant(0, false, FIRST);
        let let_in = (0..10).filter(|_| receiver.take(FIRST).is_some()).count();
        assert_eq!(let_in, 4);
    }

    #[test]
    fn what_was_under_way_has_come_when_the_window_is_used_up_that_was_open_then() {
        let at = |number: u32| SequenceNo((u32::MAX - 1).wrapping_add(number));
        let mut receiver = ReceiverCredit::default();
        receiver.grant(5, false, at(0));
        receiver.told(at(8));
        receiver.grant(1, false, at(0));
        assert_eq!(receiver.take(at(1)), Some(Right::Credit), "it has this credit");
        assert_eq!(receiver.take(at(20)), Some(Right::Credit), "nobody has told the sender");
        receiver.told(at(30));
        receiver.told(at(50));
        assert_eq!(receiver.take(at(29)), Some(Right::Credit));
        assert_eq!(receiver.take(at(30)), Some(Right::Lapsed));
        receiver.grant(1, false, at(31));
        assert_eq!(receiver.take(at(32)), Some(Right::Credit));
        assert_eq!(receiver.take(at(33)), None, "it never had credit for a sixth");
    }

    /// Deliveries of one frame each, flows and frames under way, and a window of frames.
    #[test]
    fn b5_whatever_is_granted_and_sent_both_sides_agree_in_the_end() {
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let start = random.next_u32();
            let (mut sender, mut receiver) = (SenderCredit::new(start), ReceiverCredit::default());
            receiver.start(start);
            let mut flows = Vec::new();
            let size = 1 + random.below(30) as u32;
            let (mut came, mut sent) = (SequenceNo(start), SequenceNo(start));
            // Up to which frame the window is open, as it was told and as the sender knows.
            let (mut told_edge, mut known_edge) = (came, came);
            told_edge += size;
            known_edge += size;
            for _ in 0..300 {
                match random.below(6) {
                    0 => {
                        let drain = random.below(4) == 0;
                        if receiver.grant(random.below(20) as u32, drain, came) {
                            receiver.told(told_edge);
                            told_edge = came;
                            told_edge += size;
                            let link = Some((receiver.delivery_count.0, receiver.credit, drain));
                            flows.push((told_edge, link));
                        }
                    }
                    1 if !flows.is_empty() => {
                        let (edge, link) = flows.remove(0);
                        known_edge = edge;
                        if let Some((seen, credit, drain)) = link {
                            sender.update(Some(seen), credit, drain);
                        }
                    }
                    2 if sender.credit > 0 && known_edge.is_after(sent) => {
                        sender.take();
                        sent += 1;
                    }
                    3 if came != sent => {
                        let right = receiver.take(came);
                        assert_eq!(right, Some(Right::Credit), "seed {seed}: it was honest");
                        came += 1;
                    }
                    // A drain is answered after what was sent before it.
                    4 if came == sent && sender.drained() => {
                        receiver.update(Some(sender.delivery_count.0), None);
                    }
                    5 => {
                        told_edge = came;
                        told_edge += size;
                        flows.push((told_edge, None));
                    }
                    _ => {}
                }
            }
            while came != sent {
                assert_eq!(receiver.take(came), Some(Right::Credit), "seed {seed}");
                came += 1;
            }
            for (seen, credit, drain) in flows.into_iter().filter_map(|(_, link)| link) {
                sender.update(Some(seen), credit, drain);
            }
            assert_eq!(sender.delivery_count, receiver.delivery_count, "seed {seed}");
            assert_eq!(sender.credit, receiver.credit, "seed {seed}");
        }
    }

    const FIRST: SequenceNo = SequenceNo(0);
}
