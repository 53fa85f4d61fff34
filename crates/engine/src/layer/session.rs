//! End of a layer on one connection: bytes of the transport on one side, bytes of the inner
//! protocol on the other.

use std::cell::RefCell;
use std::sync::Arc;

use weigh_model::Nanos;
use weigh_model::connection::{Fault, Outbox};
use weigh_model::content::StreamCounts;

/// One end of one connection of a layer.
pub(super) trait Session {
    /// Takes all of `input`, which may be empty; content for the inner protocol is appended to
    /// `plain`, answers of the layer to `out`. Returns true if the input completed the layer's
    /// handshake. After an error `out` ends with the notice to the peer, and the session is over.
    fn feed(
        &mut self,
        input: &[u8],
        now: Nanos,
        plain: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<bool, Fault>;

    /// Wraps `plain` behind what is in `out`; nothing before the layer stands.
    fn say(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), Fault>;

    /// Sends the close notice, once; a session whose handshake is not complete has nothing to
    /// close.
    fn goodbye(&mut self, out: &mut Vec<u8>);

    /// True once the protocol inside may speak.
    fn stands(&self) -> bool;

    /// True if a server inside has the connection from its first moment, and not from the end of
    /// the layer's handshake.
    fn speaks_first(&self) -> bool {
        false
    }

    /// True after the peer's close notice: nothing was cut off.
    fn has_peer_closed(&self) -> bool;

    /// Returns the bytes that this layer adds to the content of the stream, as seen by packet
    /// capture; zero if the capture itself can distinguish them from content.
    fn added(&self) -> StreamCounts {
        StreamCounts::default()
    }

    /// Returns the fault that it means if the transport ended without the peer's close notice.
    fn cut_off(&self) -> Fault;
}

/// Begins a session on a connection that has just come up.
pub(super) type Begin<S> = Arc<dyn Fn(Nanos) -> Result<S, Fault> + Send + Sync>;

/// Outboxes and buffers that are lent for the length of a call.
pub(super) struct Scratch {
    pub(super) heard: Vec<u8>,
    pub(super) said: Outbox,
}

impl Scratch {
    pub(super) fn take() -> Scratch {
        let spare = SCRATCH.with_borrow_mut(Vec::pop);
        spare.unwrap_or_else(|| Scratch { heard: Vec::new(), said: Outbox::default() })
    }

    pub(super) fn give_back(mut self) {
        self.heard.clear();
        self.heard.shrink_to(SPARE_BYTES_MAX);
        self.said.clear();
        self.said.buffer().shrink_to(SPARE_BYTES_MAX);
        SCRATCH.with_borrow_mut(|spare| spare.push(self));
    }
}

thread_local! {
    /// As many as there are layers in each other.
    static SCRATCH: RefCell<Vec<Scratch>> = const { RefCell::new(Vec::new()) };
}

const SPARE_BYTES_MAX: usize = 1 << 20;
