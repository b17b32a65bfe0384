//! The primitives that the shared parts are built on.
//!
//! `tests/model.rs` compiles those parts a second time against loom's versions of them, so nothing
//! else may be used there.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
pub(crate) use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
pub(crate) use std::sync::{RwLockReadGuard, RwLockWriteGuard};

/// Locks a mutex, also one whose holder panicked.
///
/// What a panic may have left half done is the business of whoever caught it; the others must be
/// able to go on.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks for reading, as [`lock`].
pub(crate) fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

/// Locks for writing, as [`lock`].
pub(crate) fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
