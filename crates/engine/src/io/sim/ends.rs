//! The ends of connections in a simulated world, and what travels between them.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::net::SocketAddr;

use weigh_model::Nanos;

use super::Link;
use super::flows::FlowId;
use crate::io::{IoFault, Token};

/// Index of one end of a connection in the world; never used again.
pub(super) type EndId = usize;

/// One end of a connection.
pub(super) struct End {
    pub(super) party: usize,
    pub(super) token: Token,
    pub(super) link: usize,
    /// The other end, once the connection has reached it.
    pub(super) peer: Option<EndId>,
    pub(super) to: SocketAddr,
    pub(super) listens: bool,
    pub(super) established: bool,
    pub(super) closed: bool,
    /// The end was announced to the peer ahead of the close.
    pub(super) shut: bool,
    pub(super) received: VecDeque<u8>,
    pub(super) readable_noted: bool,
    /// Its party reads nothing for now.
    pub(super) held: bool,
    pub(super) finished: bool,
    pub(super) finish_told: bool,
    pub(super) failure: Option<IoFault>,
    pub(super) failure_told: bool,
    pub(super) out: Outward,
}

/// Bytes that an end has written, and what keeps it from writing more.
#[derive(Default)]
pub(super) struct Outward {
    /// Bytes written and not known to be read.
    pub(super) outstanding: usize,
    pub(super) blocked: bool,
    /// All bytes ever written.
    pub(super) written: u64,
    /// After how many of them a cut comes.
    pub(super) cut_after: Option<u64>,
    pub(super) severed: bool,
    /// Time at which the last thing that left here arrives; nothing overtakes it.
    pub(super) last_arrival: Nanos,
}

/// One way to a listening address; index 0 leads away from the listener, 1 towards it.
pub(super) struct LinkState {
    pub(super) link: Link,
    pub(super) free_at: [Nanos; 2],
}

/// A listening socket.
pub(super) struct Listener {
    pub(super) party: usize,
    pub(super) backlog: u32,
    pub(super) waiting: u32,
    /// Number of connections that have reached it.
    pub(super) reached: u64,
}

/// Something on its way.
pub(super) struct Travel {
    pub(super) at: Nanos,
    pub(super) order: u64,
    pub(super) payload: Payload,
}

/// Content in transit, by the end that it goes to; a first request goes to no end yet.
pub(super) enum Payload {
    Request {
        client: EndId,
        attempt: u32,
    },
    Answer(EndId),
    Confirmation(EndId),
    Bytes(EndId, Vec<u8>),
    Finish(EndId),
    Failure(EndId, IoFault),
    Window(EndId, usize),
    /// A datagram, by the end of the flow that it left.
    Datagram(FlowId, Vec<u8>),
    /// No party took the datagrams of this flow.
    Unheard(FlowId),
}

impl LinkState {
    pub(super) fn new(link: Link) -> LinkState {
        LinkState { link, free_at: [Nanos(0); 2] }
    }
}

impl End {
    pub(super) fn new(party: usize, token: Token, link: usize, to: SocketAddr) -> End {
        End {
            party,
            token,
            link,
            peer: None,
            to,
            listens: false,
            established: false,
            closed: false,
            shut: false,
            received: VecDeque::new(),
            readable_noted: false,
            held: false,
            finished: false,
            finish_told: false,
            failure: None,
            failure_told: false,
            out: Outward::default(),
        }
    }
}

impl Ord for Travel {
    /// The earliest is the greatest, as the heap wants it; equals in the order of departure.
    fn cmp(&self, other: &Travel) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

impl PartialOrd for Travel {
    fn partial_cmp(&self, other: &Travel) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Travel {
    fn eq(&self, other: &Travel) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Travel {}
