//! How much memory messages may take.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Finds the memory that messages may take on this machine, unless the operator says so.
///
/// Inside a control group (a container, a systemd unit) the group's limit counts, not the machine's
/// memory: who believes the machine is killed. A quarter of it is left for everything that is not a
/// message. The files are read again at run time, because limits change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Memory of the machine.
    pub machine_bytes: u64,
    /// The tightest limit of the control groups that this process is in, if it is one.
    pub group_bytes: Option<u64>,
}

impl Memory {
    /// Asks the kernel; what it does not tell is guessed with care.
    pub fn read() -> Self {
        let guess = Self { machine_bytes: UNKNOWN_MACHINE_BYTES, group_bytes: None };
        Self::read_again().unwrap_or(guess)
    }

    /// Asks the kernel at run time.
    ///
    /// # Errors
    /// If it cannot be asked now, because no descriptor is left for example: that says nothing of the
    /// memory.
    pub fn read_again() -> io::Result<Self> {
        Self::from_files(&|path| std::fs::read_to_string(path))
    }

    /// What messages may take of it.
    pub fn for_messages_bytes(&self) -> u64 {
        self.group_bytes.map_or(self.machine_bytes / 2, |group| group / 4 * 3)
    }

    /// Reads what `read` finds under the paths of the proc and control-group file systems.
    fn from_files(read: &impl Fn(&Path) -> io::Result<String>) -> io::Result<Self> {
        let read = |path: &Path| present(read(path));
        let machine = read(Path::new("/proc/meminfo"))?.as_deref().and_then(machine_bytes);
        let machine_bytes = machine.unwrap_or(UNKNOWN_MACHINE_BYTES);
        let groups = read(Path::new("/proc/self/cgroup"))?.unwrap_or_default();
        let files = groups.lines().filter_map(Group::parse).flat_map(|group| group.limit_files());
        let limits: Vec<Option<String>> =
            files.map(|path| read(&path)).collect::<io::Result<_>>()?;
        let group_bytes = limits
            .iter()
            .flatten()
            .filter_map(|text| text.trim().parse::<u64>().ok())
            // Version 1 says "no limit" with a very large number.
            .filter(|limit| *limit < machine_bytes)
            .min();
        Ok(Self { machine_bytes, group_bytes })
    }
}

/// A control group that limits memory.
struct Group<'a> {
    root: &'static str,
    path: &'a str,
    limit_file: &'static str,
}

impl<'a> Group<'a> {
    /// Reads a line of `/proc/self/cgroup`: `0::/path` (version 2) or `9:memory:/path` (version 1).
    fn parse(line: &'a str) -> Option<Self> {
        let mut parts = line.splitn(3, ':');
        let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        if number == "0" && controllers.is_empty() {
            return Some(Self { root: "/sys/fs/cgroup", path, limit_file: "memory.max" });
        }
        controllers.split(',').any(|controller| controller == "memory").then_some(Self {
            root: "/sys/fs/cgroup/memory",
            path,
            limit_file: "memory.limit_in_bytes",
        })
    }

    /// The limits of the group and of all groups around it.
    ///
    /// In a container the path may be the one outside, which does not exist inside; the root does,
    /// and is the container's own group.
    fn limit_files(self) -> impl Iterator<Item = PathBuf> {
        let inner = Path::new(self.root).join(self.path.trim_start_matches('/'));
        let depth = Path::new(self.root).components().count();
        let groups: Vec<PathBuf> = inner
            .ancestors()
            .take_while(|group| group.components().count() >= depth)
            .map(|group| group.join(self.limit_file))
            .collect();
        groups.into_iter()
    }
}

/// What a file holds, if there is one that may be read.
fn present(text: io::Result<String>) -> io::Result<Option<String>> {
    use ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    match text {
        Ok(text) => Ok(Some(text)),
        Err(error) if matches!(error.kind(), NotFound | NotADirectory | PermissionDenied) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The memory of the machine, from the text of `/proc/meminfo`.
fn machine_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// What a machine is taken to have that does not tell.
const UNKNOWN_MACHINE_BYTES: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    const GIB: u64 = 1 << 30;

    fn memory(files: &[(&str, &str)]) -> Memory {
        let files: HashMap<PathBuf, String> =
            files.iter().map(|(path, text)| (PathBuf::from(path), (*text).to_string())).collect();
        let read = |path: &Path| files.get(path).cloned().ok_or(ErrorKind::NotFound.into());
        Memory::from_files(&read).unwrap()
    }

    const EIGHT_GIB: (&str, &str) =
        ("/proc/meminfo", "MemTotal:        8388608 kB\nMemFree:  1 kB\n");

    #[test]
    fn without_a_control_group_messages_may_take_half_of_the_machine() {
        let memory = memory(&[EIGHT_GIB, ("/proc/self/cgroup", "0::/\n")]);
        assert_eq!(memory, Memory { machine_bytes: 8 * GIB, group_bytes: None });
        assert_eq!(memory.for_messages_bytes(), 4 * GIB);
    }

    #[test]
    fn a_version_2_group_counts_whatever_the_machine_has() {
        let memory = memory(&[
            EIGHT_GIB,
            ("/proc/self/cgroup", "0::/system.slice/mochila.service\n"),
            ("/sys/fs/cgroup/system.slice/mochila.service/memory.max", "268435456\n"),
            ("/sys/fs/cgroup/system.slice/memory.max", "max\n"),
        ]);
        assert_eq!(memory.group_bytes, Some(256 << 20));
        assert_eq!(memory.for_messages_bytes(), 192 << 20);
    }

    #[test]
    fn the_tightest_of_the_groups_around_it_counts() {
        let memory = memory(&[
            EIGHT_GIB,
            ("/proc/self/cgroup", "0::/outer/inner\n"),
            ("/sys/fs/cgroup/outer/inner/memory.max", "4294967296\n"),
            ("/sys/fs/cgroup/outer/memory.max", "1073741824\n"),
        ]);
        assert_eq!(memory.group_bytes, Some(GIB));
    }

    #[test]
    fn a_container_that_is_told_the_path_outside_finds_its_limit_at_the_root() {
        let memory = memory(&[
            EIGHT_GIB,
            ("/proc/self/cgroup", "0::/kubepods/pod1/c1\n"),
            ("/sys/fs/cgroup/memory.max", "536870912\n"),
        ]);
        assert_eq!(memory.group_bytes, Some(512 << 20));
    }

    #[test]
    fn a_version_1_group_counts_and_its_way_of_saying_none_is_understood() {
        let groups = ("/proc/self/cgroup", "12:cpu,cpuacct:/a\n9:memory:/a\n1:name=systemd:/a\n");
        let limited = memory(&[
            EIGHT_GIB,
            groups,
            ("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "2147483648\n"),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ]);
        assert_eq!(limited.for_messages_bytes(), 2 * GIB / 4 * 3);

        let unlimited = memory(&[
            EIGHT_GIB,
            groups,
            ("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n"),
        ]);
        assert_eq!(unlimited.for_messages_bytes(), 4 * GIB);
    }

    #[test]
    fn a_machine_that_tells_nothing_gets_a_careful_guess() {
        assert_eq!(memory(&[]).for_messages_bytes(), UNKNOWN_MACHINE_BYTES / 2);
    }

    #[test]
    fn a_kernel_that_cannot_be_asked_has_not_less_memory() {
        let descriptors = |_: &Path| Err(io::Error::from_raw_os_error(24));
        assert!(Memory::from_files(&descriptors).is_err());
        let group = Path::new("/sys/fs/cgroup/memory.max");
        let later = |path: &Path| match path == group {
            true => Err(io::Error::from_raw_os_error(24)),
            false if path == Path::new("/proc/self/cgroup") => Ok("0::/\n".into()),
            false => Ok("MemTotal: 8388608 kB\n".into()),
        };
        assert!(Memory::from_files(&later).is_err(), "half of what it says is not what it says");
    }

    #[test]
    fn this_machine_tells() {
        assert!(Memory::read().for_messages_bytes() > 16 << 20);
    }
}
