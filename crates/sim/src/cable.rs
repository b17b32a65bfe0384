//! A connection as the network sees it.

use crate::pipe::Pipe;
use crate::weather::Weather;

/// Both directions between a client and the broker.
#[derive(Debug)]
pub(crate) struct Cable {
    /// From the client.
    pub(crate) up: Pipe,
    /// To the client.
    pub(crate) down: Pipe,
    silent: bool,
}

impl Cable {
    pub(crate) fn new(weather: Weather) -> Cable {
        Cable { up: Pipe::new(weather), down: Pipe::new(weather), silent: false }
    }

    /// Whether a piece arrives now, at either end.
    pub(crate) fn is_due(&self, now_ms: u64) -> bool {
        self.up.is_due(now_ms) || self.down.is_due(now_ms)
    }

    /// When the next piece arrives, at either end.
    pub(crate) fn next_arrival_ms(&self) -> Option<u64> {
        [&self.up, &self.down].into_iter().filter_map(Pipe::next_arrival_ms).min()
    }

    /// The connection is reset: both ends notice, and what was under way is lost.
    pub(crate) fn reset(&mut self) {
        self.up.lose();
        self.down.lose();
    }

    /// From now on neither end hears of the other, and neither is told.
    pub(crate) fn silence(&mut self) {
        self.silent = true;
        self.up.silence();
        self.down.silence();
    }

    /// Whether the ends do not hear of each other.
    pub(crate) fn is_silent(&self) -> bool {
        self.silent
    }

    /// The client closes its socket.
    pub(crate) fn close_client_end(&mut self) {
        self.up.hang_up();
        if !self.silent {
            self.down.lose();
        }
    }

    /// The broker closes its socket.
    pub(crate) fn close_broker_end(&mut self) {
        self.down.hang_up();
        if !self.silent {
            self.up.lose();
        }
    }
}
