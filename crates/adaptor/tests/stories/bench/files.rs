use mochila_adaptor::{LargeFile, LargeFiles};
use mochila_broker::LargeBody;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Files that are memory, and that can break.
#[derive(Default)]
pub(crate) struct MemoryFiles {
    count: Arc<AtomicUsize>,
    written: Arc<AtomicUsize>,
    is_full: AtomicBool,
    is_lost: Arc<AtomicBool>,
}

impl MemoryFiles {
    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// How many bytes have been written to all there ever were.
    pub(crate) fn written(&self) -> usize {
        self.written.load(Ordering::Relaxed)
    }

    /// There is no room for another one.
    pub(crate) fn fill_up(&self) {
        self.is_full.store(true, Ordering::Relaxed);
    }

    /// None can be read any more.
    pub(crate) fn lose(&self) {
        self.is_lost.store(true, Ordering::Relaxed);
    }
}

impl LargeFiles for MemoryFiles {
    fn create(&self) -> io::Result<Box<dyn LargeFile>> {
        if self.is_full.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        let count = Counted(Arc::clone(&self.count));
        Ok(Box::new(File {
            bytes: Vec::new(),
            written: Arc::clone(&self.written),
            is_lost: Arc::clone(&self.is_lost),
            _count: count,
        }))
    }
}

struct File {
    bytes: Vec<u8>,
    written: Arc<AtomicUsize>,
    is_lost: Arc<AtomicBool>,
    _count: Counted,
}

struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl LargeFile for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes.extend_from_slice(bytes);
        self.written.fetch_add(bytes.len(), Ordering::Relaxed);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Arc<dyn LargeBody> {
        Arc::from(self as Box<dyn LargeBody>)
    }
}

impl LargeBody for File {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_lost.load(Ordering::Relaxed) {
            return Err(io::Error::other("the disk is gone"));
        }
        let rest = &self.bytes[offset as usize..];
        // Short reads happen.
        let len = rest.len().min(buffer.len()).min(10_000);
        buffer[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }
}
