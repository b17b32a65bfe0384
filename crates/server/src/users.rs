//! Who may connect.

use argon2::password_hash::rand_core::OsRng;
use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The users file: a line `name:hash` for each user, with the argon2id hash of the password.
///
/// The file may change at any time (`mochila user add`); every question looks whether it did.
#[derive(Debug)]
pub struct Users {
    path: PathBuf,
    loaded: Mutex<Loaded>,
}

/// A change to the users file that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum UsersError {
    /// The file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The name cannot be a user's.
    #[error(
        "`{0}` cannot be a user's name: it is empty, too long, or has a colon or line break in it"
    )]
    Name(String),
    /// The password cannot be used.
    #[error("an empty password would let everybody in")]
    EmptyPassword,
    /// There is no user of that name.
    #[error("there is no user `{0}`")]
    Unknown(String),
}

impl Users {
    /// Names the file, which need not exist: then there are no users.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), loaded: Mutex::default() }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether there are no users. A file that cannot be read may hold some.
    pub fn is_empty(&self) -> bool {
        self.load().is_ok_and(|loaded| loaded.hashes.is_empty())
    }

    /// The names of all users, sorted.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn names(&self) -> Result<Vec<String>, UsersError> {
        Ok(self.load()?.hashes.keys().cloned().collect())
    }

    /// Adds a user, or gives one a new password.
    ///
    /// # Errors
    /// If the name or password cannot be used, or the file cannot be written.
    pub fn add(&self, name: &str, password: &str) -> Result<(), UsersError> {
        if name.is_empty() || name.len() > MAX_NAME_BYTES || name.contains([':', '\n', '\r']) {
            return Err(UsersError::Name(name.into()));
        }
        if name.starts_with('#') || name.trim() != name {
            return Err(UsersError::Name(name.into()));
        }
        if password.is_empty() {
            return Err(UsersError::EmptyPassword);
        }
        let mut loaded = self.load()?;
        loaded.hashes.insert(name.into(), hash(password));
        self.save(&mut loaded)
    }

    /// Removes a user.
    ///
    /// # Errors
    /// If there is no such user, or the file cannot be written.
    pub fn remove(&self, name: &str) -> Result<(), UsersError> {
        let mut loaded = self.load()?;
        if loaded.hashes.remove(name).is_none() {
            return Err(UsersError::Unknown(name.into()));
        }
        self.save(&mut loaded)
    }

    /// Whether this is known to be the password of this user, because it was right before and the
    /// file has not changed since. Quick; `false` means nothing.
    pub fn recognises(&self, name: &str, password: &str) -> bool {
        self.load().is_ok_and(|loaded| {
            loaded.known_right.get(name) == Some(&loaded.fingerprint(name, password))
        })
    }

    /// Whether this is the password of this user.
    ///
    /// Takes tens of milliseconds by design, also for an unknown user, so no worker may call it. A
    /// password that was right is recognised quickly until the file changes: ten thousand clients
    /// that reconnect at once do not wait for each other.
    pub fn verify(&self, name: &str, password: &str) -> bool {
        let (hash, print) = match self.load() {
            Ok(loaded) => {
                let print = loaded.fingerprint(name, password);
                if loaded.known_right.get(name) == Some(&print) {
                    return true;
                }
                (loaded.hashes.get(name).cloned(), print)
            }
            Err(error) => {
                tracing::error!("users cannot be verified: {error}");
                (None, (0, 0))
            }
        };
        // The lock is not held while the password is hashed.
        let known = hash.is_some();
        let hash = hash.unwrap_or_else(|| NOBODY.into());
        let right = known & matches(&hash, password);
        if right && let Ok(mut loaded) = self.load() {
            loaded.known_right.insert(name.into(), print);
        }
        right
    }

    /// Reads the file again if it is not the one that was read last.
    fn load(&self) -> Result<MutexGuard<'_, Loaded>, UsersError> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = match fs::metadata(&self.path) {
            Ok(found) => Some((found.ino(), found.len(), found.mtime(), found.mtime_nsec())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(self.error(error)),
        };
        if loaded.stamp != stamp {
            let text = match stamp {
                Some(_) => fs::read_to_string(&self.path).map_err(|error| self.error(error))?,
                None => String::new(),
            };
            *loaded = Loaded { stamp, hashes: parse(&text), ..Loaded::default() };
        }
        Ok(loaded)
    }

    /// Puts a new file in the place of the old one, in one step.
    fn save(&self, loaded: &mut Loaded) -> Result<(), UsersError> {
        let mut text = String::new();
        for (name, hash) in &loaded.hashes {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{name}:{hash}");
        }
        // Whatever comes of it, the next question reads the file.
        loaded.stamp = Some((0, 0, 0, 0));
        let draft = self.path.with_extension(format!("new-{}", std::process::id()));
        let write = || {
            if let Some(directory) = self.path.parent() {
                fs::create_dir_all(directory)?;
            }
            let mut file: File = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&draft)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&draft, &self.path)
        };
        write().map_err(|error| {
            let _ = fs::remove_file(&draft);
            self.error(error)
        })
    }

    fn error(&self, error: io::Error) -> UsersError {
        UsersError::File { path: self.path.clone(), error }
    }
}

#[derive(Debug, Default)]
struct Loaded {
    /// Inode, size and time of change of the file that was read; `None` if there was none.
    stamp: Option<(u64, u64, i64, i64)>,
    hashes: BTreeMap<String, String>,
    /// Fingerprints of passwords that were right, under keys that exist in this process only.
    known_right: HashMap<String, (u64, u64)>,
    keys: (RandomState, RandomState),
}

impl Loaded {
    fn fingerprint(&self, name: &str, password: &str) -> (u64, u64) {
        let both = (name, password);
        (self.keys.0.hash_one(both), self.keys.1.hash_one(both))
    }
}

fn parse(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let users = lines.filter_map(|line| line.split_once(':'));
    users.map(|(name, hash)| (name.trim().into(), hash.trim().into())).collect()
}

fn argon2() -> Argon2<'static> {
    let params = Params::new(MEMORY_KIB, PASSES, LANES, None).expect("the constants are in range");
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

fn hash(password: &str) -> String {
    let salt = SaltString::generate(&mut OsRng);
    let hash = argon2().hash_password(password.as_bytes(), &salt);
    hash.expect("a fresh salt and sane parameters can be hashed with").to_string()
}

/// Whether a password has a hash; the parameters are those of the hash.
fn matches(hash: &str, password: &str) -> bool {
    PasswordHash::new(hash)
        .is_ok_and(|hash| argon2().verify_password(password.as_bytes(), &hash).is_ok())
}

/// The recommendation of OWASP for argon2id: 19 MiB, 2 passes, 1 lane.
const MEMORY_KIB: u32 = 19_456;
const PASSES: u32 = 2;
const LANES: u32 = 1;

const MAX_NAME_BYTES: usize = 255;

/// A hash that no password has; it makes a question about an unknown user take as long as any.
const NOBODY: &str = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA\
                      $AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

#[cfg(test)]
mod tests {
    use super::*;

    /// A users file in a directory of its own, which is removed with it.
    struct Bench {
        directory: PathBuf,
    }

    impl Bench {
        fn new(name: &str) -> Self {
            let directory =
                std::env::temp_dir().join(format!("mochila-users-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&directory);
            Self { directory }
        }

        fn users(&self) -> Users {
            Users::new(self.directory.join("users"))
        }
    }

    impl Drop for Bench {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.directory);
        }
    }

    #[test]
    fn a_user_that_was_added_is_known_to_every_process_that_reads_the_file() {
        let bench = Bench::new("added");
        let (broker, tool) = (bench.users(), bench.users());
        assert!(broker.is_empty());
        assert!(!broker.verify("guest", "guest"));

        tool.add("guest", "s3cret").unwrap();
        assert!(!broker.is_empty());
        assert!(broker.verify("guest", "s3cret"));
        assert!(broker.verify("guest", "s3cret"), "also when it is recognised");
        assert!(!broker.verify("guest", "wrong"));
        assert!(!broker.verify("nobody", "s3cret"));
        assert_eq!(broker.names().unwrap(), ["guest"]);
    }

    #[test]
    fn a_password_that_was_changed_or_removed_no_longer_opens() {
        let bench = Bench::new("changed");
        let (broker, tool) = (bench.users(), bench.users());
        tool.add("a", "old").unwrap();
        assert!(broker.verify("a", "old"));
        tool.add("a", "new").unwrap();
        assert!(!broker.verify("a", "old"));
        assert!(broker.verify("a", "new"));
        tool.remove("a").unwrap();
        assert!(!broker.verify("a", "new"));
        assert!(matches!(tool.remove("a"), Err(UsersError::Unknown(_))));
    }

    #[test]
    fn the_file_holds_no_password_and_is_readable_by_its_owner_only() {
        let bench = Bench::new("mode");
        let users = bench.users();
        users.add("a", "visible?").unwrap();
        let text = fs::read_to_string(users.path()).unwrap();
        assert!(text.starts_with("a:$argon2id$v=19$m=19456,t=2,p=1$"), "{text}");
        assert!(!text.contains("visible?"));
        assert_eq!(fs::metadata(users.path()).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn names_that_would_break_the_file_and_empty_passwords_are_refused() {
        let bench = Bench::new("names");
        let users = bench.users();
        for name in ["", "a:b", "a\nb", "#a", " a", &"x".repeat(256)] {
            assert!(matches!(users.add(name, "p"), Err(UsersError::Name(_))), "{name:?}");
        }
        assert!(matches!(users.add("a", ""), Err(UsersError::EmptyPassword)));
    }

    #[test]
    fn a_file_that_cannot_be_read_lets_nobody_in() {
        let bench = Bench::new("unreadable");
        let users = bench.users();
        fs::create_dir_all(users.path()).unwrap();
        assert!(!users.is_empty(), "there may be users, so nobody is let in without a password");
        assert!(!users.verify("a", "b"));
    }

    #[test]
    fn broken_lines_and_comments_are_no_users() {
        let users = parse("# comment:x\n\nnonsense\na : $argon2id$...\n");
        assert_eq!(users.into_iter().collect::<Vec<_>>(), [("a".into(), "$argon2id$...".into())]);
        assert!(!matches("$argon2id$...", "p"));
    }
}
