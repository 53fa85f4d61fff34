//! State that the shards of one server have in common.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the shards of one server have in common.
#[derive(Debug)]
pub(crate) struct Common<T>(Arc<Mutex<T>>);

impl<T> Common<T> {
    pub(crate) fn new(own: T) -> Common<T> {
        Common(Arc::new(Mutex::new(own)))
    }

    /// A shard that panicked has been reported; the others continue with the existing state.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Clone for Common<T> {
    fn clone(&self) -> Common<T> {
        Common(Arc::clone(&self.0))
    }
}
