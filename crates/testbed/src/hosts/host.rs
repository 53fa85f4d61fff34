//! A host of a scene, and the ways to enter it.

use std::ffi::OsStr;
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt;
use std::process::Command;

use super::namespace::Namespace;

/// One party's host. It exists as long as the scene, a door to it, or a thread or process in it.
#[derive(Debug)]
pub struct Host {
    pub(super) name: String,
    pub(super) address: Ipv4Addr,
    pub(super) namespace: Namespace,
}

/// A way to enter a host, which can be passed on.
#[derive(Clone, Debug)]
pub struct Door(Namespace);

impl Host {
    /// Name of the interface on the link, equal in every host.
    pub const INTERFACE: &'static str = "weigh0";

    /// Its name in the scene.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its address for the other hosts.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Moves the calling thread into it. Sockets that the thread makes from now on are the
    /// host's. Sockets it already has stay where they are, and so do other threads.
    ///
    /// # Errors
    /// If the program no longer has the right to.
    pub fn enter(&self) -> io::Result<()> {
        self.namespace.enter()
    }

    /// Runs `work` in the host; the calling thread stays where it is.
    ///
    /// # Errors
    /// Those of `work`, and if a thread cannot be started.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        self.namespace.inside(work)
    }

    /// A command that will run in it. It is an ordinary child: the caller ends it, as
    /// [`crate::process::ManagedProcess`] does with a door in its `Start`.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        self.door().lead(&mut command);
        command
    }

    /// Returns a way to enter it.
    pub fn door(&self) -> Door {
        Door(self.namespace.clone())
    }
}

impl Door {
    /// Moves the calling thread into the host.
    ///
    /// # Errors
    /// As [`Host::enter`].
    pub fn enter(&self) -> io::Result<()> {
        self.0.enter()
    }

    /// Makes the command run in the host.
    #[expect(unsafe_code, reason = "there is no safe way to run code between fork and exec")]
    pub fn lead(&self, command: &mut Command) {
        let namespace = self.0.clone();
        // SAFETY: after the fork of a threaded program only async-signal-safe calls are allowed.
        // The closure makes one system call on a descriptor it owns; it allocates nothing and
        // takes no lock.
        unsafe { command.pre_exec(move || namespace.enter()) };
    }
}
