//! Where messages go that are too large for memory.

use mochila_adaptor::{LargeFile, LargeFiles};
use mochila_broker::LargeBody;
use mochila_store::{SpillDirectory, SpillFile};
use std::io;
use std::sync::Arc;

/// Gives the adaptor files of the store.
pub(crate) struct Spill(pub(crate) SpillDirectory);

struct Arriving(SpillFile);

impl LargeFiles for Spill {
    fn create(&self) -> io::Result<Box<dyn LargeFile>> {
        Ok(Box::new(Arriving(self.0.create()?)))
    }
}

impl LargeFile for Arriving {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.append(bytes)
    }

    fn finish(self: Box<Self>) -> Arc<dyn LargeBody> {
        self.0.finish()
    }
}
