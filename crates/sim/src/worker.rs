//! A virtual thread of the broker.

use mochila_adaptor::Scratch;
use mochila_engine::pair::Random;
use mochila_wire::Now;

use crate::cable::Cable;
use crate::number::ConnectionNo;
use crate::peer::{Ending, Peer, Visit};
use crate::switchboard::Switchboard;

/// One of the broker's workers: in the middle of a visit, or free.
#[derive(Default)]
pub(crate) struct Worker {
    scratch: Scratch,
    visit: Option<(ConnectionNo, Visit)>,
}

/// What a worker works with.
pub(crate) struct Workplace<'a> {
    pub(crate) now: Now,
    pub(crate) board: &'a Switchboard,
    pub(crate) peers: &'a mut [Option<Peer>],
    pub(crate) cables: &'a mut [Cable],
    pub(crate) random: &'a mut Random,
}

/// What a worker has done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    pub(crate) no: ConnectionNo,
    pub(crate) ending: Option<Ending>,
}

impl Worker {
    /// Whether it is in the middle of a visit.
    pub(crate) fn is_busy(&self) -> bool {
        self.visit.is_some()
    }

    /// Does one stage of a visit, beginning one if it is free.
    pub(crate) fn step(&mut self, place: &mut Workplace<'_>) -> Option<Done> {
        if self.visit.is_none() {
            let no = place.board.take(place.random)?;
            self.visit = Some((no, Visit::new(place.board.news(no))));
        }
        let (no, visit) = self.visit.as_mut()?;
        let no = *no;
        let Some(peer) = &mut place.peers[no.0] else {
            // Whatever is posted to a connection that is gone is of no use.
            self.visit = None;
            place.board.give_up(no, false);
            return None;
        };
        let cable = &mut place.cables[no.0];
        let ending = peer.step(place.now, visit, cable, &mut self.scratch, place.random);
        if let Some(ending) = ending {
            self.visit = None;
            place.board.give_up(no, ending == Ending::Again);
        }
        Some(Done { no, ending })
    }
}
