//! Data of the flows of datagrams in the simulation; `datagrams` moves them.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use weigh_model::Nanos;

use crate::io::Token;

/// Impairments of datagrams on a link; each probability is in parts per million.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Impairments {
    /// Datagrams that are lost.
    pub lost_ppm: u32,
    /// Datagrams that arrive twice.
    pub doubled_ppm: u32,
    /// Datagrams that are delayed by `late_by`, so that later ones overtake them.
    pub late_ppm: u32,
    /// Delay of late datagrams.
    pub late_by: Nanos,
}

/// Index of one end of a flow in the world; never used again.
pub(super) type FlowId = usize;

/// One end of a flow of datagrams: a socket with one peer, or a server's peer.
pub(super) struct Flow {
    pub(super) party: usize,
    pub(super) token: Token,
    pub(super) link: usize,
    /// The address of the server.
    pub(super) to: SocketAddr,
    /// The other end, once something has reached it.
    pub(super) peer: Option<FlowId>,
    pub(super) is_served: bool,
    pub(super) is_closed: bool,
    pub(super) has_failed: bool,
    pub(super) is_noted: bool,
    /// True while its party reads nothing.
    pub(super) is_held: bool,
    pub(super) queue: VecDeque<Vec<u8>>,
    pub(super) queued_bytes: usize,
}

/// Event for the party of a flow.
#[derive(Clone, Copy)]
pub(super) enum FlowNews {
    Connected,
    Accepted,
    Readable,
}

/// All flows, and who takes datagrams where.
#[derive(Default)]
pub(super) struct Flows {
    pub(super) flows: Vec<Flow>,
    pub(super) servers: Vec<(SocketAddr, usize)>,
    /// Datagrams that came to a full queue, by party.
    pub(super) dropped: BTreeMap<usize, u64>,
}
