//! Wakes a waiting thread from others, through an eventfd.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

use super::Waker;

/// The eventfd behind a [`Waker`]. It is made apart from its `Io`, so that it can be made before
/// threads get descriptor tables of their own: each table then holds it under the same number,
/// and a wake-up through one table reaches the waiter in any (see
/// [`super::descriptors::own_table`]).
///
/// All clones share one eventfd. The last clone closes the number in the table of the thread that
/// drops it; let the thread that made it keep one until the others have ended, and no table
/// leaks.
#[derive(Clone)]
pub struct WakeFd {
    inner: Arc<Inner>,
}

impl WakeFd {
    /// Makes one in the table of this thread.
    ///
    /// # Errors
    /// `EMFILE` or `ENFILE` if no descriptor is left.
    pub fn new() -> Result<WakeFd, Errno> {
        let descriptor = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(WakeFd { inner: Arc::new(Inner { descriptor, is_set: AtomicBool::new(false) }) })
    }

    /// Returns a handle that other threads wake the `Io` with.
    pub fn waker(&self) -> Waker {
        let wake_fd = self.clone();
        Waker(Arc::new(move || wake_fd.wake()))
    }

    /// Wakes the `Io` that waits for it; calls before it has woken count as one.
    pub fn wake(&self) {
        if !self.inner.is_set.swap(true, Ordering::AcqRel) {
            // The counter cannot be full: it would take 2^64 writes. An interrupted write of an
            // eventfd has not happened, hence the loop.
            while rustix::io::write(&self.inner.descriptor, &1u64.to_ne_bytes()) == Err(Errno::INTR)
            {
            }
        }
    }

    /// Notes that the `Io` is awake, so that the next call wakes it again. The counter is never
    /// read: an edge-triggered epoll reports every write anew.
    pub(super) fn clear(&self) {
        self.inner.is_set.swap(false, Ordering::AcqRel);
    }
}

impl AsFd for WakeFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.descriptor.as_fd()
    }
}

struct Inner {
    descriptor: OwnedFd,
    is_set: AtomicBool,
}
