use crate::LinkId;

/// The handles of one direction of a session, as a dense table (part 2, 2.6.2).
#[derive(Debug, Default)]
pub(crate) struct Handles {
    links: Vec<LinkId>,
}

impl Handles {
    #[inline]
    pub(crate) fn get(&self, handle: u32) -> Option<LinkId> {
        self.links.get(handle as usize).copied().filter(|link| !link.is_none())
    }

    /// Puts a link under a handle that the peer has chosen and that is known to be in bounds.
    pub(crate) fn set(&mut self, handle: u32, link: LinkId) {
        let index = handle as usize;
        if self.links.len() <= index {
            self.links.resize(index + 1, LinkId::NONE);
        }
        self.links[index] = link;
    }

    /// The lowest free handle, if `max` is not exceeded.
    pub(crate) fn free(&self, max: u32) -> Option<u32> {
        let free = self.links.iter().position(|link| link.is_none()).unwrap_or(self.links.len());
        u32::try_from(free).ok().filter(|free| *free <= max)
    }

    pub(crate) fn clear(&mut self, handle: u32) {
        if let Some(link) = self.links.get_mut(handle as usize) {
            *link = LinkId::NONE;
        }
        while self.links.last().is_some_and(|link| link.is_none()) {
            self.links.pop();
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = LinkId> {
        self.links.iter().copied().filter(|link| !link.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Key;

    fn link(index: u32) -> LinkId {
        LinkId(Key { index, generation: 1 })
    }

    #[test]
    fn the_lowest_free_handle_is_given_out_again() {
        let mut handles = Handles::default();
        for handle in 0..3 {
            assert_eq!(handles.free(2), Some(handle));
            handles.set(handle, link(handle));
        }
        assert_eq!(handles.free(2), None, "handle-max is reached");
        handles.clear(1);
        assert_eq!(handles.free(2), Some(1));
        assert_eq!((handles.get(1), handles.get(2)), (None, Some(link(2))));
    }
}
