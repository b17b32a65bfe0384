use mochila_wire::SequenceNo;

/// How many transfer frames the peer may still send to us (part 2, 2.5.6).
///
/// Bytes are taken off the socket at once, so that the window is renewed whenever half of it is
/// used; credit, not this window, holds producers back.
#[derive(Debug)]
pub(crate) struct IncomingWindow {
    /// How many frames have come.
    count: SequenceNo,
    /// The peer's number of the frame that we call 0.
    base: u32,
    left: u32,
    size: u32,
}

impl IncomingWindow {
    pub(crate) fn new(size: u32) -> IncomingWindow {
        let size = size.max(1);
        IncomingWindow { count: SequenceNo(0), base: 0, left: size, size }
    }

    /// The peer says which id its next transfer has.
    pub(crate) fn resume_at(&mut self, next_id: u32) {
        self.base = next_id.wrapping_sub(self.count.0);
    }

    /// Counts one transfer frame; false if the peer had no right to send it.
    #[inline]
    pub(crate) fn take(&mut self) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        self.count += 1;
        true
    }

    /// The next frame, by our own count, which the peer cannot set.
    pub(crate) fn next(&self) -> SequenceNo {
        self.count
    }

    /// The last frame that came, by our own count.
    #[inline]
    pub(crate) fn last(&self) -> SequenceNo {
        SequenceNo(self.count.0.wrapping_sub(1))
    }

    /// The first frame, by our own count, that the peer may only send when it has seen our next
    /// flow.
    pub(crate) fn edge(&self) -> SequenceNo {
        SequenceNo(self.count.0.wrapping_add(self.left))
    }

    #[inline]
    pub(crate) fn is_low(&self) -> bool {
        self.left <= self.size / 2
    }

    /// Opens the window fully again; the peer has to be told what is returned.
    pub(crate) fn renew(&mut self) -> u32 {
        self.left = self.size;
        self.size
    }

    /// The peer's number of its next frame.
    pub(crate) fn next_id(&self) -> u32 {
        self.base.wrapping_add(self.count.0)
    }

    pub(crate) fn size(&self) -> u32 {
        self.size
    }
}

/// How many transfer frames we may still send to the peer (part 2, 2.5.6).
#[derive(Debug)]
pub(crate) struct OutgoingWindow {
    next_id: SequenceNo,
    /// The last next-incoming-id of the peer's that made sense.
    seen_by_peer: SequenceNo,
    room: u32,
    was_exhausted: bool,
}

impl OutgoingWindow {
    pub(crate) fn new(initial_id: u32) -> OutgoingWindow {
        let next_id = SequenceNo(initial_id);
        OutgoingWindow { next_id, seen_by_peer: next_id, room: 0, was_exhausted: false }
    }

    #[inline]
    pub(crate) fn room(&self) -> u32 {
        self.room
    }

    pub(crate) fn next_id(&self) -> u32 {
        self.next_id.0
    }

    /// Counts one transfer frame.
    #[inline]
    pub(crate) fn take(&mut self) {
        debug_assert!(self.room > 0, "a transfer was sent into a closed window");
        self.next_id += 1;
        self.room = self.room.saturating_sub(1);
        self.was_exhausted |= self.room == 0;
    }

    /// The application wanted to send and could not.
    pub(crate) fn note_exhausted(&mut self) {
        self.was_exhausted = true;
    }

    /// The peer's begin: nothing of ours has reached it yet.
    pub(crate) fn open(&mut self, incoming_window: u32) -> bool {
        self.update(None, incoming_window)
    }

    /// Takes over the peer's view; true if the window was used up and has room again.
    ///
    /// A peer that sends its flow before it has seen our begin does not know our ids: it leaves
    /// next-incoming-id out, or guesses. What lies outside of what we have sent is no
    /// acknowledgement, so the last good one counts.
    pub(crate) fn update(&mut self, next_incoming_id: Option<u32>, incoming_window: u32) -> bool {
        if let Some(seen) = next_incoming_id.map(SequenceNo) {
            let in_flight = self.next_id.distance_from(self.seen_by_peer);
            if self.next_id.distance_from(seen) <= in_flight {
                self.seen_by_peer = seen;
            }
        }
        let in_flight = self.next_id.distance_from(self.seen_by_peer);
        self.room = incoming_window.saturating_sub(in_flight);
        if self.room > 0 && self.was_exhausted {
            self.was_exhausted = false;
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outgoing_window_counts_across_the_wrap_of_transfer_ids() {
        let mut window = OutgoingWindow::new(u32::MAX - 1);
        window.open(5);
        for _ in 0..4 {
            window.take();
        }
        assert_eq!((window.next_id(), window.room()), (2, 1));

        window.update(Some(u32::MAX), 5);
        assert_eq!(window.room(), 2, "the peer has not seen three of the four yet");
        window.update(Some(2), 5);
        assert_eq!(window.room(), 5);
    }

    #[test]
    fn a_flow_from_a_peer_that_has_not_seen_begin_opens_the_whole_window() {
        for guess in [None, Some(0), Some(17), Some(u32::MAX)] {
            let mut window = OutgoingWindow::new(4_294_967_292);
            window.update(guess, 2048);
            assert_eq!(window.room(), 2048, "guess {guess:?}");
        }
    }

    #[test]
    fn a_used_up_window_reports_once_that_it_has_room_again() {
        let mut window = OutgoingWindow::new(0);
        window.open(1);
        window.take();
        assert!(!window.update(Some(0), 1), "the transfer is still under way");
        assert!(window.update(Some(1), 1));
        assert!(!window.update(Some(1), 9));
    }

    #[test]
    fn the_incoming_window_is_renewed_for_ever() {
        let mut window = IncomingWindow::new(3);
        window.resume_at(u32::MAX);
        for _ in 0..100_000 {
            assert!(window.take());
            if window.is_low() {
                window.renew();
            }
        }
        assert_eq!(window.next_id(), u32::MAX.wrapping_add(100_000));
    }

    #[test]
    fn a_transfer_beyond_the_incoming_window_is_noticed() {
        let mut window = IncomingWindow::new(2);
        assert!(window.take() && window.take());
        assert!(!window.take());
    }
}
