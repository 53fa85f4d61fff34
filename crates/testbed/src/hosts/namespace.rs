//! A network namespace without a name: it exists as long as its descriptor.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

/// A network namespace. It exists while a process or thread holds it.
#[derive(Clone, Debug)]
pub(super) struct Namespace {
    descriptor: Arc<OwnedFd>,
}

impl Namespace {
    /// Makes an empty namespace.
    pub(super) fn make() -> io::Result<Namespace> {
        let descriptor = in_thread(|| {
            unshare_network()?;
            File::open("/proc/thread-self/ns/net").map(OwnedFd::from)
        })?;
        Ok(Namespace { descriptor: Arc::new(descriptor) })
    }

    /// Moves the calling thread into it.
    pub(super) fn enter(&self) -> io::Result<()> {
        move_into_link_name_space(self.descriptor.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(io::Error::from)
    }

    /// Runs `work` in it, in a new thread, so that the caller stays where it is.
    pub(super) fn inside<T: Send>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send,
    ) -> io::Result<T> {
        in_thread(|| {
            self.enter()?;
            work()
        })
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

fn in_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, work)?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread inside panicked")))
    })
}

#[expect(unsafe_code, reason = "unshare is marked unsafe because of its flag FILES")]
fn unshare_network() -> io::Result<()> {
    // SAFETY: only the flag FILES is unsafe, and it is not set.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }.map_err(io::Error::from)
}
