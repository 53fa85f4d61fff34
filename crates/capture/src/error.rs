//! Errors of the capture.

use std::io;
use std::path::PathBuf;

/// What went wrong, where, and the fix.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The interface does not exist.
    #[error("unknown interface {name:?} in this network namespace: {error}")]
    NoInterface {
        /// Its name.
        name: String,
        /// The kernel's error.
        error: io::Error,
    },
    /// Captures need a capability.
    #[error(
        "capturing packets is not permitted: run as root, give CAP_NET_RAW, or use a user and \
        network namespace of your own (`unshare --map-root-user --net`)"
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
        /// The failed call.
        call: &'static str,
        /// The kernel's error.
        error: io::Error,
    },
    /// The filter does not fit into the kernel's filter language.
    #[error("the filter has {count} {what}; at most {most} are allowed")]
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
        /// The cause.
        reason: String,
    },
    /// The kernel is too old, or its answer is damaged.
    #[error("the kernel's answer about sockets is not as documented in linux/tcp.h: {0}")]
    Unexpected(String),
    /// A thread of the probe panicked.
    #[error("the capture's thread panicked: this is a bug, please report it")]
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
