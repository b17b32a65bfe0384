//! What a process has used so far, as the kernel counts it.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Processor time and memory of one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Usage {
    /// Time on a processor, in user and kernel mode, of all threads.
    pub(crate) cpu_ns: u64,
    /// Memory in use.
    pub(crate) rss_bytes: u64,
    /// The most memory that ever was in use.
    pub(crate) peak_rss_bytes: u64,
}

impl Usage {
    /// What the process with this id has used; nothing if it is gone.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        Self::read(&Path::new("/proc").join(pid.to_string()))
    }

    /// What this process has used.
    pub(crate) fn own() -> Self {
        Self::read(Path::new("/proc/self")).unwrap_or_default()
    }

    fn read(process: &Path) -> Option<Self> {
        // Per thread the time is in nanoseconds; /proc/PID/stat has it in hundredths of a second.
        let mut cpu_ns = 0;
        for thread in fs::read_dir(process.join("task")).ok()?.flatten() {
            let times = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
            cpu_ns += times.split(' ').next().and_then(|ns| ns.parse::<u64>().ok()).unwrap_or(0);
        }
        let status = fs::read_to_string(process.join("status")).ok()?;
        if cpu_ns == 0 {
            cpu_ns = ticks_ns(&fs::read_to_string(process.join("stat")).ok()?)?;
        }
        Some(Self {
            cpu_ns,
            rss_bytes: kib(&status, "VmRSS:") * 1024,
            peak_rss_bytes: kib(&status, "VmHWM:") * 1024,
        })
    }
}

/// The time in `/proc/PID/stat`, for kernels that do not count nanoseconds.
fn ticks_ns(stat: &str) -> Option<u64> {
    // The name before the last parenthesis may hold anything.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok());
    Some((ticks(11)? + ticks(12)?) * 10_000_000)
}

fn kib(status: &str, key: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_can_see_what_it_uses() {
        let usage = Usage::own();
        assert!(usage.rss_bytes > 0 && usage.peak_rss_bytes >= usage.rss_bytes / 2);
        assert!(Usage::of(std::process::id()).is_some());
        assert_eq!(Usage::of(u32::MAX), None);
    }

    #[test]
    fn a_process_may_have_any_name() {
        let stat = "1 (a) b) S 0 0 0 0 0 0 0 0 0 0 7 5 0 0";
        assert_eq!(ticks_ns(stat), Some(120_000_000));
    }
}
