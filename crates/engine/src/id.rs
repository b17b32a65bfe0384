use std::fmt;

/// Names one session of one connection; a stale id finds nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub(crate) Key);

/// Names one link of one connection; a stale id finds nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkId(pub(crate) Key);

/// A slot and the generation of what lives in it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl SessionId {
    /// The session's slot: small and dense, so that it can index a table of the application's.
    ///
    /// Slots are used again; compare the whole id where a stale one may turn up.
    pub const fn index(self) -> usize {
        self.0.index as usize
    }
}

impl LinkId {
    /// The link's slot: small and dense, so that it can index a table of the application's.
    ///
    /// Slots are used again; compare the whole id where a stale one may turn up.
    pub const fn index(self) -> usize {
        self.0.index as usize
    }

    /// Stands where no link is.
    pub(crate) const NONE: LinkId = LinkId(Key { index: u32::MAX, generation: 0 });

    pub(crate) const fn is_none(self) -> bool {
        self.0.index == u32::MAX
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "session {}.{}", self.0.index, self.0.generation)
    }
}

impl fmt::Debug for LinkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "link {}.{}", self.0.index, self.0.generation)
    }
}
