use mochila_wire::{DeliveryState, SequenceNo};

/// Outcomes of deliveries to us that the peer has not been told yet.
///
/// Neighbours with the same outcome become one range, so that a batch of messages costs one
/// disposition frame (part 2, 2.6.8).
#[derive(Debug, Default)]
pub(crate) struct Outcomes {
    runs: Vec<Run>,
}

/// Deliveries that follow one another and share their fate.
#[derive(Debug, PartialEq)]
pub(crate) struct Run {
    pub(crate) first: u32,
    pub(crate) last: u32,
    pub(crate) settled: bool,
    pub(crate) state: DeliveryState,
}

impl Outcomes {
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Whether there are so many ranges that they should be written now.
    pub(crate) fn is_full(&self) -> bool {
        self.runs.len() >= MAX_RUNS
    }

    #[inline]
    pub(crate) fn add(&mut self, run: Run) {
        if let Some(end) = self.runs.last_mut()
            && end.joins(&run)
        {
            end.last = run.last;
            return;
        }
        self.runs.push(run);
    }

    /// Takes the ranges, the fewest that say it all.
    pub(crate) fn take(&mut self) -> std::vec::Drain<'_, Run> {
        if self.runs.len() > 1 {
            self.merge();
        }
        self.runs.drain(..)
    }

    /// Returns memory that a burst has left behind.
    pub(crate) fn shrink(&mut self) {
        self.runs.shrink_to(4);
    }

    fn merge(&mut self) {
        // Only settled deliveries have one outcome each; unsettled ones may be told twice, and
        // then the order matters.
        if !self.runs.iter().all(|run| run.settled) {
            return;
        }
        let origin = SequenceNo(self.runs[0].first) + HALF;
        self.runs.sort_by_key(|run| SequenceNo(run.first).distance_from(origin));
        self.runs.dedup_by(|next, run| {
            let joins = run.joins(next);
            if joins {
                run.last = next.last;
            }
            joins
        });
    }
}

impl Run {
    fn joins(&self, next: &Run) -> bool {
        self.last.wrapping_add(1) == next.first
            && self.settled == next.settled
            && self.state == next.state
    }
}

const HALF: u32 = 1 << 31;
const MAX_RUNS: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(first: u32, last: u32) -> Run {
        Run { first, last, settled: true, state: DeliveryState::Accepted }
    }

    fn taken(runs: impl IntoIterator<Item = Run>) -> Vec<Run> {
        let mut outcomes = Outcomes::default();
        runs.into_iter().for_each(|run| outcomes.add(run));
        outcomes.take().collect()
    }

    #[test]
    fn neighbours_become_one_range_across_the_wrap() {
        assert_eq!(
            taken([accepted(u32::MAX - 1, u32::MAX), accepted(0, 0), accepted(1, 7)]),
            [accepted(u32::MAX - 1, 7)]
        );
    }

    #[test]
    fn outcomes_given_out_of_order_still_become_one_range() {
        assert_eq!(
            taken([accepted(2, 2), accepted(u32::MAX, 0), accepted(3, 9), accepted(1, 1)]),
            [accepted(u32::MAX, 9)]
        );
    }

    #[test]
    fn different_outcomes_stay_apart() {
        let released = Run { first: 1, last: 1, settled: true, state: DeliveryState::Released };
        let runs = taken([accepted(0, 0), released, accepted(2, 2)]);
        assert_eq!(runs.len(), 3);
    }

    #[test]
    fn an_unsettled_outcome_is_told_before_its_settlement() {
        let told = |settled| Run { first: 5, last: 5, settled, state: DeliveryState::Accepted };
        let before = Run { first: 4, ..told(false) };
        let runs = taken([told(false), before, told(true)]);
        assert_eq!(runs.iter().map(|run| run.settled).collect::<Vec<_>>(), [false, false, true]);
    }
}
