//! Ends all waiting after a signal of the user, however long a server may take to start or to
//! report its counters.

use std::sync::atomic::{AtomicBool, Ordering};

/// Ends all waiting of this process, now and from now on.
pub fn end() {
    IS_OVER.store(true, Ordering::SeqCst);
}

/// True once waiting was ended.
pub fn is_over() -> bool {
    IS_OVER.load(Ordering::SeqCst)
}

static IS_OVER: AtomicBool = AtomicBool::new(false);
