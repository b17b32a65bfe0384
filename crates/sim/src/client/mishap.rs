//! What goes wrong with a client.

use mochila_engine::pair::Random;

use super::Mishaps;

/// Something that goes wrong now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mishap {
    Reset,
    Silence,
    Stall,
    Leave,
    Detach,
    End,
}

impl Mishaps {
    /// What goes wrong this time, if anything does.
    pub(super) fn next(&self, random: &mut Random) -> Option<Mishap> {
        let mut at = random.below(1000) as u32;
        let chances = [
            (self.reset, Mishap::Reset),
            (self.silence, Mishap::Silence),
            (self.stall, Mishap::Stall),
            (self.leave, Mishap::Leave),
            (self.detach, Mishap::Detach),
            (self.end, Mishap::End),
        ];
        for (chance, mishap) in chances {
            if at < chance {
                return Some(mishap);
            }
            at -= chance;
        }
        None
    }
}
