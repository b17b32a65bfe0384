//! Who may connect.

mod mark;

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
use tracing::{info, warn};

pub use mark::UsersMark;

/// The users file: a line `name:hash` for each user, with the argon2id hash of the password; lines
/// that begin with `#` are comments.
///
/// The file may change at any time (`mochila user add`); every question looks whether it did. A file
/// that once was there and cannot be used any more (it is gone, was emptied, or has a line that says
/// nothing) changes nothing: the users that were read last stay the users.
#[derive(Debug)]
pub struct Users {
    path: PathBuf,
    mark: Option<UsersMark>,
    loaded: Mutex<Loaded>,
}

/// Whether there has to be a users file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// There may be none yet: then there are no users yet.
    Optional,
    /// Somebody has named the file, so it has to be there.
    Required,
}

/// A users file that cannot be used, or a change to it that cannot be made.
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
    /// That there are users cannot be remembered.
    #[error("{path}: {error}")]
    Mark {
        /// The file that would say so.
        path: String,
        /// What the system says.
        error: io::Error,
    },
    /// A line is neither a user nor a comment.
    #[error("{}:{line}: {message}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        message: &'static str,
    },
    /// The file was named, and is not there.
    #[error("{0}: there is no such file; `mochila user add NAME --users-file {0}` makes it")]
    Missing(String),
    /// The file had users, and has nothing in it any more.
    #[error("{}: the file is empty", .0.display())]
    Emptied(PathBuf),
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
        Self { path: path.into(), mark: None, loaded: Mutex::default() }
    }

    /// Remembers from now on, in another file, that there are users.
    #[must_use]
    pub fn remembered_by(self, mark: Option<UsersMark>) -> Self {
        Self { mark, ..self }
    }

    /// Reads the file as a broker does that starts: where there have been users, their file is
    /// missed.
    ///
    /// # Errors
    /// If the file cannot be read, has a line that says nothing, or is required and not there.
    pub fn open(self, presence: Presence) -> Result<Self, UsersError> {
        let is_there = self.read()?.has_appeared;
        if is_there {
            self.remember();
        } else if presence == Presence::Required {
            return Err(UsersError::Missing(self.path.display().to_string()));
        } else if let Some(mark) = self.mark.as_ref().filter(|mark| mark.is_there()) {
            self.miss(mark);
        }
        Ok(self)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether there has never been a users file, as far as anybody has looked.
    ///
    /// A file without users is something else: somebody has removed the last one.
    pub fn is_absent(&self) -> bool {
        !self.load().has_appeared
    }

    /// The names of all users, sorted.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn names(&self) -> Result<Vec<String>, UsersError> {
        Ok(self.read()?.hashes.keys().cloned().collect())
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
        let mut loaded = self.read()?;
        loaded.hashes.insert(name.into(), hash(password));
        self.save(&mut loaded)
    }

    /// Removes a user.
    ///
    /// # Errors
    /// If there is no such user, or the file cannot be written.
    pub fn remove(&self, name: &str) -> Result<(), UsersError> {
        let mut loaded = self.read()?;
        if loaded.hashes.remove(name).is_none() {
            return Err(UsersError::Unknown(name.into()));
        }
        self.save(&mut loaded)
    }

    /// Whether this is known to be the password of this user, because it was right before and the
    /// file has not changed since. Quick; `false` means nothing.
    pub fn recognises(&self, name: &str, password: &str) -> bool {
        let loaded = self.load();
        loaded.known_right.get(name) == Some(&loaded.fingerprint(name, password))
    }

    /// Whether this is the password of this user.
    ///
    /// Takes tens of milliseconds by design, also for an unknown user, so no worker may call it. A
    /// password that was right is recognised quickly until the file changes: ten thousand clients
    /// that reconnect at once do not wait for each other.
    pub fn verify(&self, name: &str, password: &str) -> bool {
        let (hash, print) = {
            let loaded = self.load();
            let print = loaded.fingerprint(name, password);
            if loaded.known_right.get(name) == Some(&print) {
                return true;
            }
            (loaded.hashes.get(name).cloned(), print)
        };
        // The lock is not held while the password is hashed.
        let known = hash.is_some();
        let verified = hash.as_deref().unwrap_or(NOBODY);
        let right = known & matches(verified, password);
        if right {
            let mut loaded = self.load();
            // The file may have changed in the meantime.
            if loaded.hashes.get(name) == hash.as_ref() {
                loaded.known_right.insert(name.into(), print);
            }
        }
        right
    }

    /// Treats the file, which is not there, as one that has gone while somebody looked.
    fn miss(&self, mark: &UsersMark) {
        warn!(
            users_file = %self.path.display(),
            "there have been users, and the users file is gone: nobody is let in until it is back or \
             there are new users (`mochila user add NAME`); to let clients on this machine in without \
             a name, remove {mark} and start the broker anew"
        );
        let mut loaded = self.lock();
        loaded.has_appeared = true;
        // It has just been said.
        loaded.complaint = self.refresh(&mut loaded).err().map(|error| error.to_string());
    }

    /// Remembers that there are users; a broker that cannot goes on.
    fn remember(&self) {
        if let Err(error) = self.leave_mark() {
            warn!("that there are users cannot be remembered: {error}");
        }
    }

    fn leave_mark(&self) -> Result<(), UsersError> {
        let Some(mark) = &self.mark else { return Ok(()) };
        mark.leave().map_err(|error| UsersError::Mark { path: mark.to_string(), error })
    }

    /// What is known of the file, after a look whether it has changed. Trouble is logged once.
    fn load(&self) -> MutexGuard<'_, Loaded> {
        let mut loaded = self.lock();
        let had_appeared = loaded.has_appeared;
        match self.refresh(&mut loaded) {
            Ok(()) => {
                if loaded.complaint.take().is_some() {
                    info!(users_file = %self.path.display(), "the users file can be used again");
                } else if loaded.has_appeared && !had_appeared && loaded.is_watched {
                    info!(users_file = %self.path.display(), "clients have to authenticate from now on");
                }
            }
            Err(error) => {
                let complaint = error.to_string();
                if loaded.complaint.as_ref() != Some(&complaint) {
                    warn!("the users stay as they were last read: {complaint}");
                    loaded.complaint = Some(complaint);
                }
            }
        }
        if loaded.has_appeared && !had_appeared {
            self.remember();
        }
        loaded.is_watched = true;
        loaded
    }

    /// What is in the file now.
    fn read(&self) -> Result<MutexGuard<'_, Loaded>, UsersError> {
        let mut loaded = self.lock();
        self.refresh(&mut loaded)?;
        loaded.is_watched = true;
        Ok(loaded)
    }

    fn lock(&self) -> MutexGuard<'_, Loaded> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the file again if it is not the one that was read last. If it cannot be used, everything
    /// that is known stays, so that nobody is let in who was not before.
    fn refresh(&self, loaded: &mut Loaded) -> Result<(), UsersError> {
        let stamp = match fs::metadata(&self.path) {
            Ok(found) => (found.ino(), found.len(), found.mtime(), found.mtime_nsec()),
            Err(error) if is_absence(&error) && !loaded.has_appeared => return Ok(()),
            Err(error) => return Err(loaded.keep(self.error(error))),
        };
        if loaded.stamp == Some(stamp) {
            return Ok(());
        }
        let text =
            fs::read_to_string(&self.path).map_err(|error| loaded.keep(self.error(error)))?;
        if text.trim().is_empty() && !loaded.hashes.is_empty() {
            // Nobody removes users like this: `mochila user del` leaves a comment.
            return Err(loaded.keep(UsersError::Emptied(self.path.clone())));
        }
        let hashes = parse(&text).map_err(|(line, message)| {
            loaded.keep(UsersError::Line { path: self.path.clone(), line, message })
        })?;
        *loaded = Loaded {
            stamp: Some(stamp),
            hashes,
            has_appeared: true,
            complaint: loaded.complaint.take(),
            is_watched: loaded.is_watched,
            ..Loaded::default()
        };
        Ok(())
    }

    /// Puts a new file in the place of the old one, in one step.
    fn save(&self, loaded: &mut Loaded) -> Result<(), UsersError> {
        self.leave_mark()?;
        let mut text = String::new();
        if loaded.hashes.is_empty() {
            text.push_str(NO_USERS);
        }
        for (name, hash) in &loaded.hashes {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{name}:{hash}");
        }
        // Whatever comes of it, the next question reads the file.
        loaded.stamp = None;
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
    /// Inode, size and time of change of the file that was read; `None` if it is to be read.
    stamp: Option<(u64, u64, i64, i64)>,
    hashes: BTreeMap<String, String>,
    /// Something has been found under the file's name: from then on there are users, or trouble.
    has_appeared: bool,
    /// The trouble that was logged last, until it is over.
    complaint: Option<String>,
    /// Somebody has looked before, so that a change is one.
    is_watched: bool,
    /// Fingerprints of passwords that were right, under keys that exist in this process only.
    known_right: HashMap<String, (u64, u64)>,
    keys: (RandomState, RandomState),
}

impl Loaded {
    /// Keeps everything as it is because of an error, except that the file is read again next time.
    fn keep(&mut self, error: UsersError) -> UsersError {
        self.has_appeared = true;
        self.stamp = None;
        error
    }

    fn fingerprint(&self, name: &str, password: &str) -> (u64, u64) {
        let both = (name, password);
        (self.keys.0.hash_one(both), self.keys.1.hash_one(both))
    }
}

/// Whether there is nothing under a file's name.
fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The users and their hashes, or the number of the first wrong line and what is wrong with it.
fn parse(text: &str) -> Result<BTreeMap<String, String>, (usize, &'static str)> {
    let mut hashes = BTreeMap::new();
    for (number, line) in text.lines().map(str::trim).enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let fault = |message| (number + 1, message);
        let (name, hash) = line.split_once(':').ok_or(fault("is not `name:hash`"))?;
        let (name, hash) = (name.trim(), hash.trim());
        if name.is_empty() {
            return Err(fault("has no name"));
        }
        if !is_argon2(hash) {
            return Err(fault("has no argon2 hash behind the name"));
        }
        if hashes.insert(name.into(), hash.into()).is_some() {
            return Err(fault("has a name that an earlier line has"));
        }
    }
    Ok(hashes)
}

fn is_argon2(hash: &str) -> bool {
    PasswordHash::new(hash)
        .is_ok_and(|hash| hash.algorithm.as_str().starts_with("argon2") && hash.hash.is_some())
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

/// What the file holds when the last user was removed.
const NO_USERS: &str = "# There are no users: nobody is let in.\n";

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
        assert!(broker.is_absent());
        assert!(!broker.verify("guest", "guest"));

        tool.add("guest", "s3cret").unwrap();
        assert!(!broker.is_absent());
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
        assert!(!users.is_absent(), "there may be users, so nobody is let in without a password");
        assert!(!users.verify("a", "b"));
    }

    #[test]
    fn a_file_that_vanishes_is_emptied_or_damaged_leaves_the_users_as_they_were() {
        let bench = Bench::new("damaged");
        let users = bench.users();
        users.add("a", "b").unwrap();
        assert!(users.verify("a", "b"));
        let good = fs::read_to_string(users.path()).unwrap();
        for damage in [None, Some(""), Some("\n"), Some("not a users file\n"), Some("x:y\n")] {
            match damage {
                None => fs::remove_file(users.path()).unwrap(),
                Some(text) => fs::write(users.path(), text).unwrap(),
            }
            assert!(!users.is_absent(), "{damage:?}");
            assert!(users.verify("a", "b"), "{damage:?}");
            assert!(!users.verify("x", "y"), "{damage:?}");
            assert!(users.lock().complaint.is_some(), "{damage:?}");
        }
        fs::write(users.path(), good.replace("a:", "c:")).unwrap();
        assert!(users.verify("c", "b") && !users.verify("a", "b"));
        assert_eq!(users.lock().complaint, None);
    }

    #[test]
    fn a_file_whose_last_user_was_removed_lets_nobody_in() {
        let bench = Bench::new("last");
        let (broker, tool) = (bench.users(), bench.users());
        tool.add("a", "b").unwrap();
        assert!(broker.verify("a", "b"));
        tool.remove("a").unwrap();
        assert!(!broker.verify("a", "b"));
        assert!(!broker.is_absent());
        let restarted = Users::new(broker.path()).open(Presence::Optional).unwrap();
        assert!(!restarted.is_absent() && !restarted.verify("a", "b"));
    }

    #[test]
    fn a_file_without_a_byte_is_a_file() {
        let bench = Bench::new("empty");
        let users = bench.users();
        fs::create_dir_all(&bench.directory).unwrap();
        fs::write(users.path(), "").unwrap();
        assert!(!users.open(Presence::Required).unwrap().is_absent());
    }

    #[test]
    fn a_file_that_is_required_and_missing_is_an_error_that_names_it() {
        let bench = Bench::new("missing");
        let path = bench.users().path;
        assert!(Users::new(&path).open(Presence::Optional).unwrap().is_absent());
        let error = Users::new(&path).open(Presence::Required).unwrap_err().to_string();
        assert!(error.contains(path.to_str().unwrap()), "{error}");
    }

    #[test]
    fn a_wrong_line_is_an_error_that_names_file_and_line_and_no_change_hides_it() {
        let bench = Bench::new("line");
        let users = bench.users();
        users.add("a", "b").unwrap();
        let text = fs::read_to_string(users.path()).unwrap() + "nonsense\n";
        fs::write(users.path(), &text).unwrap();
        let error = bench.users().open(Presence::Optional).unwrap_err().to_string();
        assert!(error.ends_with("users:2: is not `name:hash`"), "{error}");
        assert!(matches!(bench.users().add("c", "d"), Err(UsersError::Line { line: 2, .. })));
        assert_eq!(fs::read_to_string(users.path()).unwrap(), text);
    }

    #[test]
    fn comments_and_empty_lines_are_no_users_and_broken_ones_have_a_number() {
        let users = parse(&format!("# comment:x\n\na : {NOBODY}\n")).unwrap();
        assert_eq!(users.into_iter().collect::<Vec<_>>(), [("a".into(), NOBODY.into())]);
        assert_eq!(parse("# x\na:$argon2id$...\n").unwrap_err().0, 2);
        assert_eq!(parse(&format!(":{NOBODY}")).unwrap_err().0, 1);
        assert_eq!(parse(&format!("a:{NOBODY}\na:{NOBODY}")).unwrap_err().0, 2);
        assert_eq!(parse("a:$2b$12$abc").unwrap_err().0, 1);
    }
}
