//! What can keep the probe from working.

use std::io;
use std::path::PathBuf;

/// What went wrong, where, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The interface is not there.
    #[error("there is no interface {name:?} in this network namespace: {error}")]
    NoInterface {
        /// Its name.
        name: String,
        /// What the kernel said.
        error: io::Error,
    },
    /// Captures need a capability.
    #[error(
        "capturing packets is not permitted: it takes CAP_NET_RAW, which root has, and every user \
         in a user and network namespace of their own (`unshare --map-root-user --net`)"
    )]
    NotPermitted,
    /// The interface's link header is not known.
    #[error("interface {name:?} has link headers of an unknown kind (ARPHRD {kind})")]
    UnknownLink {
        /// The interface.
        name: String,
        /// Its hardware type, from linux/if_arp.h.
        kind: u16,
    },
    /// A call to the kernel failed.
    #[error("{call} failed: {error}")]
    Call {
        /// Which.
        call: &'static str,
        /// What the kernel said.
        error: io::Error,
    },
    /// The filter does not fit into the kernel's filter language.
    #[error("the filter has {count} {what}, at most {most} are possible")]
    FilterTooLong {
        /// Ports or addresses.
        what: &'static str,
        /// How many there are.
        count: usize,
        /// How many there may be.
        most: usize,
    },
    /// A capture file could not be read or written.
    #[error("{path}: {reason}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The kernel is too old, or its answer is damaged.
    #[error("the kernel's answer about sockets does not look as in linux/tcp.h: {0}")]
    Unexpected(String),
    /// A thread of the probe panicked.
    #[error("the probe's thread ended with a panic; this is a fault of the probe")]
    Panicked,
}

impl WireError {
    /// The error that the last call has left in `errno`.
    pub(crate) fn last(call: &'static str) -> WireError {
        WireError::of(call, io::Error::last_os_error())
    }

    pub(crate) fn of(call: &'static str, error: impl Into<io::Error>) -> WireError {
        let error = error.into();
        match error.kind() {
            io::ErrorKind::PermissionDenied if call.contains("AF_PACKET") => {
                WireError::NotPermitted
            }
            _ => WireError::Call { call, error },
        }
    }
}
