//! Place of a socket in an `EpollIo`, and the meaning of its state.

use std::os::fd::OwnedFd;

/// One socket. The generation distinguishes its events from those of an earlier socket in this
/// place.
pub(super) struct Slot {
    pub(super) socket: Option<OwnedFd>,
    pub(super) generation: u16,
    pub(super) state: u16,
}

impl Slot {
    /// A place without a socket.
    pub(super) const FREE: Slot = Slot { socket: None, generation: 0, state: 0 };

    /// Frees the place: what comes for its socket from here on is stale.
    pub(super) fn free(&mut self) {
        self.state = 0;
        self.generation = self.generation.wrapping_add(1);
    }
}

const _: () = assert!(size_of::<Slot>() == 8);

/// A connect is under way.
pub(super) const CONNECTING: u16 = 1;
/// Accepts; does not read.
pub(super) const LISTENER: u16 = 2;
/// A write fell short, and the next room is to be reported.
pub(super) const BLOCKED: u16 = 4;
/// It stands in the list of those to read again.
pub(super) const AGAIN: u16 = 8;
/// The peer's end or an error was announced: read until it shows, short reads or not.
pub(super) const GONE: u16 = 16;
/// The end was reported.
pub(super) const ENDED: u16 = 32;
/// A failure was reported; nothing more is.
pub(super) const FAILED: u16 = 64;
/// Out of descriptors; accepts nothing for a while.
pub(super) const PAUSED: u16 = 128;
/// Closed by its user, and read to its end; see [`Close::Answered`].
pub(super) const LEAVING: u16 = 256;
/// Nothing is read until it is released.
pub(super) const HELD: u16 = 512;
/// It moves datagrams.
pub(super) const DATAGRAM: u16 = 1024;
/// A datagram socket with any number of peers.
pub(super) const SERVES: u16 = 2048;
/// A peer of such a socket; it has none of its own.
pub(super) const PEER: u16 = 4096;
/// The kernel cuts what it sends into datagrams.
pub(super) const CUT: u16 = 8192;
