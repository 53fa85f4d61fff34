//! The peers of server sockets for datagrams: each is a connection of its own, known by its
//! address.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use weigh_model::Nanos;

use super::slot::CUT;
use crate::io::datagrams::Batch;
use crate::io::{IoEvent, Token, segmentation};

/// State of datagram sockets in addition to their slots.
pub(super) struct Peers {
    batch: Batch,
    by_token: BTreeMap<Token, Peer>,
    by_address: HashMap<(Token, SocketAddr), Token>,
    /// Time at which silent peers are searched for next.
    next_look: Nanos,
    /// Datagrams that the kernel dropped at sockets that are closed.
    pub(super) dropped: u64,
    /// True if the kernel cuts and joins the datagrams of new sockets.
    cuts: bool,
    /// Sockets at which it refused that.
    pub(super) uncut: u64,
}

/// Peer of a server socket.
struct Peer {
    socket: Token,
    address: SocketAddr,
    /// Time at which a datagram last passed in either direction.
    moved: Nanos,
}

impl Peers {
    pub(super) fn new() -> Box<Peers> {
        Box::new(Peers {
            batch: Batch::new(),
            by_token: BTreeMap::new(),
            by_address: HashMap::new(),
            next_look: Nanos(0),
            dropped: 0,
            cuts: false,
            uncut: 0,
        })
    }

    /// Lets the kernel cut and join the datagrams of sockets made from here on.
    pub(super) fn let_kernel_cut(&mut self) {
        self.cuts = true;
        self.batch.take_joined();
    }

    /// Prepares a new socket; returns what is to be added to its state.
    pub(super) fn prepare(&mut self, socket: &OwnedFd) -> u16 {
        if !self.cuts {
            return 0;
        }
        if segmentation::switch_on(socket) {
            return CUT;
        }
        self.uncut += 1;
        0
    }

    /// The socket through which a token is reached at `now`, and its address where that is needed.
    pub(super) fn way_to(&mut self, to: Token, now: Nanos) -> (Token, Option<SocketAddr>) {
        self.by_token.get_mut(&to).map_or((to, None), |peer| {
            peer.moved = now;
            (peer.socket, Some(peer.address))
        })
    }

    /// Receives what waits at a socket, to be reported next.
    pub(super) fn receive(&mut self, socket: &OwnedFd) -> Result<usize, Errno> {
        self.batch.receive(socket)
    }

    /// Reports the datagrams that were received with this index at the socket of a client, and
    /// returns their size.
    pub(super) fn report(
        &self,
        index: usize,
        socket: Token,
        now: Nanos,
        on_event: &mut dyn FnMut(Nanos, IoEvent<'_>),
    ) -> usize {
        report_all(self.batch.datagrams(index), socket, now, on_event)
    }

    /// Reports what arrived at the socket of a server; a new peer gets a token from `new_token`.
    pub(super) fn report_served(
        &mut self,
        index: usize,
        socket: Token,
        now: Nanos,
        new_token: &mut dyn FnMut() -> Token,
        on_event: &mut dyn FnMut(Nanos, IoEvent<'_>),
    ) -> usize {
        let Some(address) = self.batch.sender(index) else { return 0 };
        let from = *self.by_address.entry((socket, address)).or_insert_with(|| {
            let connection = new_token();
            on_event(now, IoEvent::Accepted { connection });
            connection
        });
        let peer = Peer { socket, address, moved: now };
        self.by_token.entry(from).or_insert(peer).moved = now;
        report_all(self.batch.datagrams(index), from, now, on_event)
    }

    /// The peers of a server socket.
    pub(super) fn of(&self, server: Token) -> impl Iterator<Item = Token> {
        let own = self.by_token.iter().filter(move |(_, peer)| peer.socket == server);
        own.map(|(token, _)| *token)
    }

    /// Peers that have been silent for long, looked for from time to time.
    pub(super) fn silent(&mut self, now: Nanos) -> Vec<Token> {
        if now < self.next_look {
            return Vec::new();
        }
        self.next_look = now + LOOK_EVERY;
        let silent =
            self.by_token.iter_mut().filter(|(_, peer)| now.since(peer.moved) > SILENCE_MAX);
        silent
            .map(|(token, peer)| {
                peer.moved = now;
                *token
            })
            .collect()
    }

    pub(super) fn forget(&mut self, token: Token) {
        if let Some(peer) = self.by_token.remove(&token) {
            self.by_address.remove(&(peer.socket, peer.address));
        }
    }
}

fn report_all<'d>(
    datagrams: impl Iterator<Item = &'d [u8]>,
    from: Token,
    now: Nanos,
    on_event: &mut dyn FnMut(Nanos, IoEvent<'_>),
) -> usize {
    datagrams
        .map(|datagram| {
            on_event(now, IoEvent::Received(from, datagram));
            datagram.len()
        })
        .sum()
}

/// Time that a peer may be silent before it counts as gone; an exchange of CoAP may take 247 s (RFC
/// 7252, section 4.8.2).
const SILENCE_MAX: Nanos = Nanos::from_secs(600);
const LOOK_EVERY: Nanos = Nanos::from_secs(60);
