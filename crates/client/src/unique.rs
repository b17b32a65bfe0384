//! Names that nobody else makes up.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// A text that differs between processes, from the randomness that hash maps are seeded with.
pub(crate) fn suffix() -> &'static str {
    static SUFFIX: OnceLock<String> = OnceLock::new();
    SUFFIX.get_or_init(|| {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u32(std::process::id());
        format!("{:016x}", hasher.finish())
    })
}

/// A container id for a connection that was given none; every connection has its own.
pub(crate) fn container_id() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    // Relaxed: the numbers only have to differ.
    format!("mochila-client-{}-{}", suffix(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A name that begins with `prefix` and that nobody else makes up, for links.
pub fn unique_name(prefix: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    // Relaxed: the numbers only have to differ.
    format!("{prefix}_{}_{}", suffix(), NEXT.fetch_add(1, Ordering::Relaxed))
}
