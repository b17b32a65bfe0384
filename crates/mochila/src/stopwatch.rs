//! Time as the tools stamp it into messages: nanoseconds since the Unix epoch.

use std::time::SystemTime;

/// Now, in nanoseconds since the Unix epoch.
#[inline]
pub(crate) fn now_ns() -> i64 {
    // A system clock before 1970 or after 2262 is as good as none.
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
