//! Messages that pass through a file because they are too large for memory.

use mochila_broker::LargeBody;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where spill files are made, and what they take there.
#[derive(Debug)]
pub struct SpillDirectory {
    path: PathBuf,
    usage: Arc<Usage>,
}

/// A message that is arriving.
///
/// The file has no name: it is unlinked as soon as it exists, so the system frees it with its last
/// user, also after a crash. Dropping it gives up the message.
#[derive(Debug)]
pub struct SpillFile {
    spilled: Spilled,
}

/// A message that has arrived, or as much of it as there will be.
#[derive(Debug)]
pub struct Spilled {
    file: File,
    len: u64,
    usage: Arc<Usage>,
}

/// Bytes and files that exist, of all messages of one directory.
// Relaxed: the counters guard no other memory; only their values matter.
#[derive(Debug, Default)]
struct Usage {
    bytes: AtomicU64,
    files: AtomicU64,
}

impl SpillDirectory {
    /// Uses a directory.
    ///
    /// # Errors
    /// If there is none, or no file can be made in it.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let directory = Self { path: path.into(), usage: Arc::default() };
        directory.create().map(drop)?;
        Ok(directory)
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes an empty file for a message.
    ///
    /// # Errors
    /// If the system has no descriptor left or refuses.
    pub fn create(&self) -> io::Result<SpillFile> {
        let file = tempfile::tempfile_in(&self.path)?;
        self.usage.files.fetch_add(1, Ordering::Relaxed);
        Ok(SpillFile { spilled: Spilled { file, len: 0, usage: Arc::clone(&self.usage) } })
    }

    /// What all messages take at the moment, in bytes.
    pub fn used_bytes(&self) -> u64 {
        self.usage.bytes.load(Ordering::Relaxed)
    }

    /// How many messages there are at the moment.
    pub fn files(&self) -> u64 {
        self.usage.files.load(Ordering::Relaxed)
    }
}

impl SpillFile {
    /// Adds what has arrived.
    ///
    /// # Errors
    /// If the disk is full or fails; then nothing of `bytes` counts, and the message can be given up.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Spilled { file, len, usage } = &mut self.spilled;
        file.write_all_at(bytes, *len)?;
        *len += bytes.len() as u64;
        usage.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Bytes that have arrived.
    pub fn len(&self) -> u64 {
        self.spilled.len
    }

    /// Whether nothing has arrived yet.
    pub fn is_empty(&self) -> bool {
        self.spilled.len == 0
    }

    /// Ends the message: it is all there.
    pub fn finish(self) -> Arc<Spilled> {
        Arc::new(self.spilled)
    }
}

impl LargeBody for Spilled {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.file.read_at(buffer, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }
}

impl Drop for Spilled {
    fn drop(&mut self) {
        self.usage.bytes.fetch_sub(self.len, Ordering::Relaxed);
        self.usage.files.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tempfile::TempDir;

    fn directory() -> (TempDir, SpillDirectory) {
        let home = TempDir::new().unwrap();
        let directory = SpillDirectory::open(home.path()).unwrap();
        (home, directory)
    }

    fn read_all(message: &dyn LargeBody) -> Vec<u8> {
        let (mut all, mut piece) = (Vec::new(), [0; 1000]);
        loop {
            match message.read_at(all.len() as u64, &mut piece).unwrap() {
                0 => return all,
                read => all.extend_from_slice(&piece[..read]),
            }
        }
    }

    #[test]
    fn what_arrived_in_pieces_can_be_read_from_anywhere() {
        let (_home, directory) = directory();
        let mut arriving = directory.create().unwrap();
        let bytes: Vec<u8> = (0..100_000_u32).map(|n| (n % 251) as u8).collect();
        bytes.chunks(777).for_each(|piece| arriving.append(piece).unwrap());
        assert_eq!(arriving.len(), 100_000);

        let message = arriving.finish();
        assert_eq!(LargeBody::len(&*message), 100_000);
        assert_eq!(read_all(&*message), bytes);
        let mut middle = [0; 10];
        assert_eq!(message.read_at(50_000, &mut middle).unwrap(), 10);
        assert_eq!(middle, bytes[50_000..50_010]);
        assert_eq!(message.read_at(100_000, &mut middle).unwrap(), 0);
    }

    #[test]
    fn a_file_has_no_name_and_is_gone_with_its_last_user() {
        let (_home, directory) = directory();
        let mut arriving = directory.create().unwrap();
        arriving.append(&[7; 4096]).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        assert_eq!((directory.files(), directory.used_bytes()), (1, 4096));

        let message = arriving.finish();
        let other = Arc::clone(&message);
        drop(message);
        assert_eq!(directory.files(), 1);
        drop(other);
        assert_eq!((directory.files(), directory.used_bytes()), (0, 0));
    }

    #[test]
    fn a_message_that_is_given_up_half_way_leaves_nothing() {
        let (_home, directory) = directory();
        let mut arriving = directory.create().unwrap();
        arriving.append(b"half of it").unwrap();
        drop(arriving);
        assert_eq!((directory.files(), directory.used_bytes()), (0, 0));
    }

    #[test]
    fn several_readers_read_one_message_at_the_same_time() {
        let (_home, directory) = directory();
        let mut arriving = directory.create().unwrap();
        let bytes: Vec<u8> = (0..1 << 20).map(|n: u32| (n >> 3) as u8).collect();
        arriving.append(&bytes).unwrap();
        let message = arriving.finish();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert!(read_all(&*message) == bytes));
            }
        });
    }

    #[test]
    fn a_directory_that_cannot_be_used_is_noticed_at_once_and_none_is_made() {
        let home = TempDir::new().unwrap();
        assert!(SpillDirectory::open(home.path().join("nowhere")).is_err());
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
        fs::write(home.path().join("file"), b"").unwrap();
        assert!(SpillDirectory::open(home.path().join("file/spill")).is_err());
    }
}
