//! The primitives that the concurrent parts are built on.
//!
//! `tests/model.rs` compiles those parts a second time against loom's versions of them, so nothing
//! else may be used there.

pub(crate) use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Locks a mutex, also one whose holder panicked.
///
/// What a panic may have left half done is the business of whoever caught it: the worker closes the
/// connection that it happened in.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
