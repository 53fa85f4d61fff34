//! The door to sockets and time. Two implementations stand behind it: epoll on real sockets,
//! and a simulated world on virtual time. It is shaped as completions: bytes come in with the
//! event that announces them, so that other kernel interfaces fit without touching a caller.

mod datagrams;
pub mod descriptors;
pub mod epoll;
mod segmentation;
pub mod sim;
mod socket;
mod two_step_wait;
pub mod wake_fd;

use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use weigh_model::Nanos;
use weigh_model::connection::Frames;
use weigh_model::refusal::without_number;

/// Names a socket of one `Io` while it is open; numbers are used again after
/// [`Io::close`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(pub u32);

/// Errors of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
pub enum IoFault {
    /// No process listens there.
    #[error("connection refused: no process listens there")]
    Refused,
    /// The peer or the kernel reset the connection.
    #[error("connection reset by the peer")]
    Reset,
    /// The host cannot be reached, or does not answer.
    #[error("host unreachable or silent")]
    Unreachable,
    /// No descriptors left in this table.
    #[error("no file descriptors left")]
    Descriptors,
    /// No local port left towards this address.
    #[error("no local ports left")]
    Ports,
    /// The address to listen on is taken.
    #[error("the address is in use")]
    AddressInUse,
    /// Anything else, by its errno.
    #[error("{}", without_number(&std::io::Error::from_raw_os_error(*.0).to_string()))]
    Other(i32),
}

/// An event of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoEvent<'a> {
    /// A connection asked for with [`Io::connect`] stands.
    Connected(Token),
    /// A connection came in on a listening socket.
    Accepted {
        /// The new connection.
        connection: Token,
    },
    /// Bytes came in; they are gone after the call.
    Received(Token, &'a [u8]),
    /// After a short write: the socket takes bytes again.
    Writable(Token),
    /// The peer closed its side; no more bytes will come. The token stays open until
    /// [`Io::close`].
    Ended(Token),
    /// The connection failed, or could not be made. The token stays until [`Io::close`].
    Failed(Token, IoFault),
    /// Another thread woke this `Io` through its [`Waker`].
    Woken,
}

/// Ways to close a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// Sends what was written, then FIN.
    Graceful,
    /// Closes like `Graceful`, but first reads and discards what the peer still sends, until the
    /// peer ends too or two seconds have passed. A socket that is closed earlier answers such bytes
    /// with a reset.
    Answered,
    /// At once, by a reset; leaves no port in TIME_WAIT.
    Abort,
}

/// Sockets and the clock of one thread.
pub trait Io {
    /// Nanoseconds on the trial's one monotonic clock.
    fn now(&mut self) -> Nanos;

    /// Returns the instant at which the clock was at 0, for reading it within a turn; `None` if
    /// time is simulated and does not advance within a turn.
    fn epoch(&self) -> Option<Instant> {
        None
    }

    /// Starts to connect; [`IoEvent::Connected`] or [`IoEvent::Failed`] follows in a later
    /// turn. `from` chooses the local address.
    ///
    /// # Errors
    /// If no socket could be made: no descriptors, no local ports, no such local address.
    fn connect(&mut self, to: SocketAddr, from: Option<IpAddr>) -> Result<Token, IoFault>;

    /// Listens; port 0 takes a free one. Returns the address taken.
    ///
    /// # Errors
    /// [`IoFault::AddressInUse`] if the address is taken, and other faults if it is not of this
    /// machine or no descriptor is left.
    fn listen(&mut self, on: SocketAddr, backlog: u32) -> Result<SocketAddr, IoFault>;

    /// Hands bytes to a connected socket and returns how many it took. When that is fewer than
    /// all, [`IoEvent::Writable`] follows once it takes more.
    ///
    /// # Errors
    /// If the connection is broken. What has come in is still reported, then [`IoEvent::Ended`] or
    /// [`IoEvent::Failed`].
    fn write(&mut self, to: Token, bytes: &[u8]) -> Result<usize, IoFault>;

    /// Makes a socket for datagrams to and from one peer; [`IoEvent::Connected`] follows in a
    /// later turn. Each datagram that comes in is one [`IoEvent::Received`].
    ///
    /// # Errors
    /// As of [`Io::connect`].
    fn connect_datagrams(&mut self, to: SocketAddr, from: Option<IpAddr>)
    -> Result<Token, IoFault>;

    /// Receives datagrams of any peer; port 0 takes a free one. A peer is a connection with a token
    /// of its own from [`IoEvent::Accepted`] on, which is reported with its first datagram, until
    /// [`Io::close`]; one that has been silent for long is reported as ended. Returns the address
    /// taken.
    ///
    /// # Errors
    /// If the address cannot be had.
    fn listen_datagrams(&mut self, on: SocketAddr) -> Result<SocketAddr, IoFault>;

    /// Hands frames as datagrams to a socket or to a peer, those behind the first `taken` bytes,
    /// and returns how many bytes are taken then. When that is fewer than all,
    /// [`IoEvent::Writable`] follows.
    ///
    /// # Errors
    /// The error of the socket; no further event of it is reported.
    fn send(&mut self, to: Token, frames: Frames<'_>, taken: usize) -> Result<usize, IoFault>;

    /// Datagrams dropped so far because the receive queue of one of these sockets was full; those
    /// that the kernel had joined count once.
    fn dropped(&self) -> u64;

    /// Reads nothing more from a socket until [`Io::release`], so that its peer has to wait.
    /// Datagrams wait in the receive queue; the kernel drops and counts those that do not fit. A
    /// peer of a server socket cannot be held.
    fn hold(&mut self, which: Token);

    /// Reads again from a socket that was held.
    fn release(&mut self, which: Token);

    /// The own end of a connection; `None` where it has none, as on virtual time.
    fn local(&self, which: Token) -> Option<SocketAddr>;

    /// Sends FIN after what was written, and continues to read; nothing may be written afterwards.
    fn shutdown(&mut self, which: Token);

    /// Closes and frees the token.
    fn close(&mut self, which: Token, how: Close);

    /// Waits until something happens or `until` has come ([`Nanos::NEVER`]: for as long as it
    /// takes), then reports everything that is ready. It may also return early with nothing.
    /// Each report carries the time at which the kernel handed it over. Nothing is read again
    /// within one turn from a socket that has been drained.
    fn turn(&mut self, until: Nanos, on_event: &mut dyn FnMut(Nanos, IoEvent<'_>));

    /// Wakes this `Io` from other threads.
    fn waker(&self) -> Waker;

    /// All bytes written to and read from sockets so far.
    fn bytes(&self) -> (u64, u64);
}

/// Wakes an [`Io`] from another thread: its turn ends with [`IoEvent::Woken`]. Several calls may
/// become one event.
#[derive(Clone)]
pub struct Waker(pub std::sync::Arc<dyn Fn() + Send + Sync>);

impl Waker {
    /// Wakes the `Io`.
    pub fn wake(&self) {
        (self.0)();
    }
}
