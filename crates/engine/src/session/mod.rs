//! One end of a session: two windows and a table of links (part 2, 2.5).

pub(crate) mod handles;
pub(crate) mod outcomes;
pub(crate) mod state;
pub(crate) mod unsettled;
pub(crate) mod window;

use mochila_wire::SequenceNo;

use handles::Handles;
use outcomes::Outcomes;
use state::State;
use unsettled::Unsettled;
use window::{IncomingWindow, OutgoingWindow};

/// One end of a session, ours.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) state: State,
    pub(crate) remote_channel: Option<u16>,
    pub(crate) incoming: IncomingWindow,
    pub(crate) outgoing: OutgoingWindow,
    pub(crate) deliveries: IncomingDeliveries,
    pub(crate) unsettled: Unsettled,
    pub(crate) outcomes: Outcomes,
    /// The peer's handles.
    pub(crate) remote_handles: Handles,
    /// Our handles.
    pub(crate) local_handles: Handles,
    pub(crate) peer_handle_max: u32,
    /// The peer has to hear of our windows.
    pub(crate) flow_due: bool,
    /// The session is on the list of those that have something to write.
    pub(crate) is_listed: bool,
}

impl Session {
    pub(crate) fn new(state: State, incoming_window: u32, initial_outgoing_id: u32) -> Session {
        Session {
            state,
            remote_channel: None,
            incoming: IncomingWindow::new(incoming_window),
            outgoing: OutgoingWindow::new(initial_outgoing_id),
            deliveries: IncomingDeliveries::default(),
            unsettled: Unsettled::new(initial_outgoing_id),
            outcomes: Outcomes::default(),
            remote_handles: Handles::default(),
            local_handles: Handles::default(),
            peer_handle_max: u32::MAX,
            flow_due: false,
            is_listed: false,
        }
    }
}

/// The ids of the deliveries that the peer has sent (part 2, 2.6.12).
///
/// Ids follow one another from any first one. Some clients number deliveries by the transfer
/// frames before them; so an id may run ahead by as many as there were frames, and not by more:
/// whoever keeps deliveries in a table by id must not be made to allocate.
#[derive(Debug, Default)]
pub(crate) struct IncomingDeliveries {
    last: Option<SequenceNo>,
    frames_since: u32,
    /// How far back the first one is.
    span: u32,
}

impl IncomingDeliveries {
    /// Counts a transfer frame that begins no delivery.
    #[inline]
    pub(crate) fn pass(&mut self) {
        self.frames_since = self.frames_since.saturating_add(1);
    }

    /// Begins a delivery; the error is the id that was expected.
    #[inline]
    pub(crate) fn start(&mut self, id: u32) -> Result<(), u32> {
        let id = SequenceNo(id);
        if let Some(last) = self.last {
            let step = id.distance_from(last);
            if step == 0 || step > self.frames_since.saturating_add(1) {
                return Err(last.next().0);
            }
            self.span = self.span.saturating_add(step);
        }
        self.last = Some(id);
        self.frames_since = 0;
        Ok(())
    }

    /// Whether a delivery is the newest one.
    pub(crate) fn is_last(&self, id: u32) -> bool {
        self.last == Some(SequenceNo(id))
    }

    /// Clamps a range of ids to those that were ever sent; none if none of them was.
    pub(crate) fn clamp(&self, first: u32, last: u32) -> Option<(u32, u32)> {
        let newest = self.last?;
        if SequenceNo(first).is_after(newest) {
            return None;
        }
        // Counted backwards from the newest, so that order does not depend on the wrap.
        let back = |id: u32| newest.distance_from(SequenceNo(id));
        let last = if SequenceNo(last).is_after(newest) { newest.0 } else { last };
        let span = self.span.min(i32::MAX as u32);
        let first = if back(first) > span { newest.0.wrapping_sub(span) } else { first };
        (back(last) <= back(first)).then_some((first, last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delivery_ids_may_start_anywhere_and_must_go_on_from_there() {
        let mut deliveries = IncomingDeliveries::default();
        assert_eq!(deliveries.start(u32::MAX), Ok(()));
        assert_eq!(deliveries.start(0), Ok(()));
        assert_eq!(deliveries.start(0), Err(1));
        assert_eq!(deliveries.start(2), Err(1));
        assert_eq!(deliveries.start(u32::MAX), Err(1));
        assert_eq!(deliveries.start(1), Ok(()));
    }

    #[test]
    fn ids_may_count_the_frames_between_them() {
        let mut deliveries = IncomingDeliveries::default();
        deliveries.start(0).unwrap();
        deliveries.pass();
        deliveries.pass();
        assert_eq!(deliveries.start(4), Err(1));
        assert_eq!(deliveries.start(3), Ok(()));
    }

    #[test]
    fn settled_ranges_are_clamped_to_what_was_sent() {
        let mut deliveries = IncomingDeliveries::default();
        assert_eq!(deliveries.clamp(0, 10), None);
        for id in 5..=8 {
            deliveries.start(id).unwrap();
        }
        assert_eq!(deliveries.clamp(0, 100), Some((5, 8)));
        assert_eq!(deliveries.clamp(6, 7), Some((6, 7)));
        assert_eq!(deliveries.clamp(9, 20), None);
        assert_eq!(deliveries.clamp(0, 4), None);
        assert_eq!(deliveries.clamp(7, 6), None);
    }
}
