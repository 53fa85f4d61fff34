//! What a layer over datagrams is to the ends that it is put around.

use std::sync::Arc;

use weigh_model::Nanos;
use weigh_model::connection::{Fault, Outbox};

/// One end of one session: datagrams in; datagrams, and input of the protocol inside, out.
pub(in crate::layer) trait DatagramSession: Sized {
    /// Reason for which a session ended.
    type Wrong;

    /// True if the layer itself can let the peer wait, and sends bytes when it may. Otherwise the
    /// socket is held.
    const HOLDS: bool = false;

    /// True if the layer learns the round trip from its handshake.
    const TIMES_ITS_HANDSHAKE: bool = false;

    /// Takes a datagram; what it held for the protocol inside is appended to `plain`, one frame for
    /// each call of it, and datagrams for the peer to `wire`. True if the handshake was finished by
    /// it.
    fn feed(
        &mut self,
        datagram: &[u8],
        now: Nanos,
        plain: &mut Outbox,
        wire: &mut Outbox,
    ) -> Result<bool, Self::Wrong>;

    /// Begins the handshake, or does what [`DatagramSession::next_wake`] announced.
    fn wake(
        &mut self,
        now: Nanos,
        plain: &mut Outbox,
        wire: &mut Outbox,
    ) -> Result<bool, Self::Wrong>;

    /// Sends a frame of the protocol inside; nothing before the session stands.
    fn say(&mut self, plain: &[u8], now: Nanos, wire: &mut Outbox) -> Result<(), Self::Wrong>;

    /// Ends the session, once; one whose handshake is not complete has nothing to end.
    fn goodbye(&mut self, now: Nanos, wire: &mut Outbox);

    /// True after [`DatagramSession::goodbye`] while what was said before may not have arrived: it
    /// is woken and fed as before.
    fn is_parting(&self) -> bool {
        false
    }

    /// True while the protocol inside should not say more: what it said before waits for the peer.
    fn is_full(&self) -> bool {
        false
    }

    /// True once the protocol inside may speak.
    fn stands(&self) -> bool;

    /// How the session of the other end calls its end: `it closed the DTLS session`; `None` as long
    /// as it has not.
    fn peer_closed(&self) -> Option<String>;

    /// When it is to be woken; 0 for as soon as the loop has done what is at hand.
    fn next_wake(&self) -> Option<Nanos>;

    /// Keeps bytes that the protocol inside left over: they come again with the next input. Of
    /// datagrams they are lost.
    fn left_over(&mut self, _rest: &[u8]) {}

    /// Passes no input to the protocol inside until it is called again with false.
    fn hold(&mut self, _is_held: bool) {}

    /// Bytes of the protocol inside that were not sent yet.
    fn waiting_bytes(&self) -> usize {
        0
    }

    /// The fault of a client's connection.
    fn fault_of_client(wrong: Self::Wrong) -> Fault;

    /// The fault of a server's connection.
    fn fault_of_server(wrong: Self::Wrong) -> Fault;
}

/// Begins a session on a connection that has just come up.
pub(in crate::layer) type Begin<S> = Arc<dyn Fn(Nanos) -> S + Send + Sync>;
