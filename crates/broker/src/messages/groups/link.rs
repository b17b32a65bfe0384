//! The place of one message in its group.

/// In which group a message is, and its neighbours there.
///
/// Neighbours are named by how many positions away they are, so a link takes 12 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    /// The number of the group, or `UNGROUPED`.
    pub(crate) group: u32,
    /// The distance to the one before; meaningless for the first. `STRAY` if the message is not
    /// in the chain.
    pub(crate) previous: u32,
    /// The distance to the next one; meaningless for the last.
    pub(crate) next: u32,
}

impl Link {
    pub(crate) const NONE: Link = Link::of(UNGROUPED);

    /// The message is in no group.
    pub(crate) fn is_none(&self) -> bool {
        self.group == UNGROUPED
    }

    pub(crate) const fn of(group: u32) -> Link {
        Link { group, previous: 0, next: 0 }
    }
}

/// The group of a message that is in none.
pub(crate) const UNGROUPED: u32 = u32::MAX;
/// In place of a distance: the message is one of the strays of its group.
pub(crate) const STRAY: u32 = u32::MAX;

const _: () = assert!(size_of::<Link>() == 12);
