//! Links between parties of a simulated world: what is asked of them.

use std::net::SocketAddr;

use weigh_model::Nanos;

use super::flows::Impairments;

/// The way to one listening address, shared by all connections to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// From one end to the other, either way.
    pub delay: Nanos,
    /// At most this is added to the delay, uniformly; bytes of one connection stay in order.
    pub jitter: Nanos,
    /// Bytes per second in each direction; `None` for no limit.
    pub bytes_per_s: Option<u64>,
    /// Bytes of one connection and direction that were written but not yet read at the other
    /// end; a write beyond falls short. For datagrams the receive queue: one beyond is dropped.
    pub buffer_bytes: usize,
    /// Deliver in pieces of random size, some of them in a later turn.
    pub in_pieces: bool,
    /// Impairments of datagrams.
    pub impairments: Impairments,
}

impl Default for Link {
    /// No delay, no limit but buffers of 256 KiB.
    fn default() -> Link {
        Link {
            delay: Nanos(0),
            jitter: Nanos(0),
            bytes_per_s: None,
            buffer_bytes: 256 * 1024,
            in_pieces: false,
            impairments: Impairments::default(),
        }
    }
}

/// Pauses of a party, as by SIGSTOP: it is not stepped, while the simulation continues and input
/// for it queues up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// The first moment of the first pause.
    pub from: Nanos,
    /// Duration of each pause.
    pub lasts: Nanos,
    /// From the start of one to the start of the next, longer than it lasts; `None`: only one.
    pub every: Option<Nanos>,
}

impl Pause {
    /// Returns the end of the pause that holds at `now`.
    pub(super) fn resumes(&self, now: Nanos) -> Option<Nanos> {
        if now < self.from {
            return None;
        }
        let into = match self.every {
            Some(every) => now.since(self.from).0 % every.0,
            None => now.since(self.from).0,
        };
        (into < self.lasts.0).then(|| now + Nanos(self.lasts.0 - into))
    }
}

/// Resets one connection in the middle of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The listening address.
    pub to: SocketAddr,
    /// Number of the connection among those that reached it, from 0.
    pub connection: u64,
    /// Count the bytes of the one that listens, not those of the one that connected.
    pub from_listener: bool,
    /// Number of bytes that still arrive; then both ends are reset.
    pub after_bytes: u64,
}
