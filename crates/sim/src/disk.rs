//! Where large messages are kept.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use mochila_adaptor::{LargeFile, LargeFiles};
use mochila_broker::LargeBody;
use mochila_engine::pair::Random;

/// Files that are not there: memory that knows how many of them are left.
#[derive(Debug)]
pub(crate) struct Disk {
    files: Arc<AtomicUsize>,
    /// So many of a hundred operations fail.
    failures: u32,
    random: Arc<Mutex<Random>>,
}

impl Disk {
    pub(crate) fn new(seed: u64, failures: u32) -> Arc<Disk> {
        let random = Arc::new(Mutex::new(Random::new(seed)));
        Arc::new(Disk { files: Arc::default(), failures, random })
    }

    /// How many files there are.
    pub(crate) fn files(&self) -> usize {
        self.files.load(Ordering::Relaxed)
    }

    fn fails(&self) -> bool {
        self.failures > 0 && lock(&self.random).chance(self.failures)
    }
}

impl LargeFiles for Disk {
    fn create(&self) -> io::Result<Box<dyn LargeFile>> {
        if self.fails() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.files.fetch_add(1, Ordering::Relaxed);
        let place = Place(Arc::clone(&self.files));
        let failures = (Arc::clone(&self.random), self.failures);
        Ok(Box::new(File { bytes: Vec::new(), failures, _place: place }))
    }
}

/// The place of one file, given up with it.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

struct File {
    bytes: Vec<u8>,
    failures: (Arc<Mutex<Random>>, u32),
    _place: Place,
}

impl LargeFile for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (random, failures) = &self.failures;
        if *failures > 0 && lock(random).chance(*failures) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Arc<dyn LargeBody> {
        Arc::new(*self)
    }
}

impl LargeBody for File {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = &self.bytes[(offset as usize).min(self.bytes.len())..];
        let read = rest.len().min(buffer.len());
        buffer[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }
}

fn lock(random: &Mutex<Random>) -> std::sync::MutexGuard<'_, Random> {
    random.lock().unwrap_or_else(PoisonError::into_inner)
}
