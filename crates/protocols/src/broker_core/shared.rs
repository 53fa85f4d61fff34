//! State that the shards of one server have in common.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One lock guards it.
#[derive(Debug)]
pub(crate) struct Shared<T>(Arc<Mutex<T>>);

impl<T> Shared<T> {
    pub(crate) fn new(own: T) -> Shared<T> {
        Shared(Arc::new(Mutex::new(own)))
    }

    /// A shard that panicked has been reported; the others continue with the existing state.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Shared<T> {
        Shared(Arc::clone(&self.0))
    }
}
