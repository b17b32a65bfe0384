//! How many connections the system allows.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the limit of open descriptors to what the system allows: each connection takes one, and
/// the usual limit of 1024 is for programs that use select.
pub(super) fn raise_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return;
    }
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!("the limit of open descriptors cannot be raised: {error}");
    }
}
