//! Wakes a waiting thread from others, through an eventfd.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

use super::Poker;

/// The eventfd behind a [`Poker`]. It is made apart from its `Io`, so that it can be made before
/// threads get descriptor tables of their own: each table then holds it under the same number,
/// and a ring in one is heard in all (see [`super::descriptors::own_table`]).
///
/// Clones are one doorbell. The last clone closes the number in the table of the thread that
/// drops it; let the thread that made it keep one until the others have ended, and no table
/// leaks.
#[derive(Clone)]
pub struct Doorbell {
    inner: Arc<Inner>,
}

impl Doorbell {
    /// A new one, in the table of this thread.
    pub fn new() -> Result<Doorbell, Errno> {
        let descriptor = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Doorbell { inner: Arc::new(Inner { descriptor, rung: AtomicBool::new(false) }) })
    }

    /// A handle that rings it.
    pub fn poker(&self) -> Poker {
        let bell = self.clone();
        Poker(Arc::new(move || bell.ring()))
    }

    /// Wakes the `Io` that waits for it; rings that nobody has answered yet become one.
    pub fn ring(&self) {
        if !self.inner.rung.swap(true, Ordering::AcqRel) {
            // The counter cannot be full: it would take 2^64 rings. An interrupted write of an
            // eventfd has not happened, hence the loop.
            while rustix::io::write(&self.inner.descriptor, &1u64.to_ne_bytes()) == Err(Errno::INTR)
            {
            }
        }
    }

    /// Says that the ring was heard, so that the next one wakes again. The counter is never
    /// read: an edge-triggered epoll reports every write anew.
    pub(super) fn answer(&self) {
        self.inner.rung.swap(false, Ordering::AcqRel);
    }
}

impl AsFd for Doorbell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.descriptor.as_fd()
    }
}

struct Inner {
    descriptor: OwnedFd,
    rung: AtomicBool,
}
