//! Messages that come into their groups, and get their links.

use super::group::Behind;
use super::link::STRAY;
use super::{Groups, Link, Run, Seat};
use crate::message::{Batch, Named};
use crate::messages::entries::{BLOCK, Block, Entries, index_of};

/// What is noted of messages that come in, to be done when the batch is in.
#[derive(Debug, Default)]
pub(super) struct Linking {
    /// Neighbours that anybody may take.
    free: Option<Run>,
    /// Messages of other blocks that have a next one now, and how far away that is.
    followed: Vec<(u64, u32)>,
}

impl Groups {
    /// The messages of a batch are about to be enqueued.
    pub(crate) fn expect(&mut self, batch: &Batch) {
        self.directory.expect(batch);
    }

    /// A message has become the last entry of this block: it gets its link.
    #[inline]
    pub(crate) fn link(&mut self, batch: &Batch, named: Named, position: u64, block: &mut Block) {
        let Some(number) = self.directory.number(batch, named) else {
            block.push_link(Link::NONE);
            self.note_free(position);
            return;
        };
        if named.is_last {
            self.directory.close(number, named);
        }
        let mut link = Link::of(number);
        let group = self.directory.group_mut(number);
        match group.append(position) {
            Behind::Last(last, distance) => {
                link.previous = distance;
                match last / BLOCK == position / BLOCK {
                    true => block.link_mut(index_of(last)).next = distance,
                    false => self.linking.followed.push((last, distance)),
                }
            }
            Behind::Nothing => match group.seat(self.shared_out) {
                Some(Seat::Free(position)) => self.note_free(position),
                seat => self.reseat(None, seat),
            },
            Behind::Strays => {}
            Behind::TooFar => link.previous = STRAY,
        }
        block.push_link(link);
    }

    /// So many messages have got their links.
    pub(crate) fn linked(&mut self, entries: &mut Entries, messages: u64) {
        if let Some(free) = self.linking.free.take() {
            self.free.insert(free);
        }
        for (position, distance) in self.linking.followed.drain(..) {
            entries.link_mut(position).next = distance;
        }
        self.links += messages;
        self.charge();
    }

    /// Notes one that anybody may take. They are mostly neighbours, and go among the others together.
    #[inline]
    fn note_free(&mut self, position: u64) {
        match &mut self.linking.free {
            Some(run) if run.end() == position => run.len += 1,
            free => {
                if let Some(run) = free.replace(Run::new(position, 1)) {
                    self.free.insert(run);
                }
            }
        }
    }
}
