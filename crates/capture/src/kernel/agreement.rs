//! Compares the capture with the kernel's own counters: two independent measurements.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::account::{Account, Connection, Counting, Ending, Phases, Transport};
use crate::kernel::figures::{Role, SocketView, Source};

/// Result of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agreement {
    /// Sockets whose connection was captured, and compared.
    pub compared: u64,
    /// Sockets that were still alive when they were read: only their content is compared.
    pub unfinished: u64,
    /// Captured connections that began and ended during the watch, and have no socket: the kernel's
    /// notice of its end was lost.
    pub untold: u64,
    /// Figures that differ.
    pub differences: Vec<Difference>,
}

/// A figure that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The socket's own end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// Source of the kernel's figure.
    pub source: Source,
    /// Name of the figure.
    pub figure: Figure,
    /// Value of the kernel.
    pub kernel: u64,
    /// Value of the capture.
    pub captured: u64,
}

/// A figure that both have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Packets that the socket sent.
    PacketsOut,
    /// Packets that it received.
    PacketsIn,
    /// Bytes of its stream, each once.
    ContentOut,
    /// Packets that it sent again.
    Retransmitted,
}

/// Compares every socket with its connection. The capture must be at the end that the socket is at,
/// or on a path that loses nothing: what is lost before the capture, it cannot count.
pub fn agreement(account: &Account, sockets: &[SocketView]) -> Agreement {
    let mut by_ends: HashMap<(SocketAddr, SocketAddr), Vec<&Connection>> = HashMap::new();
    for connection in account.connections.iter().filter(|c| c.transport == Transport::Tcp) {
        by_ends.entry((connection.initiator, connection.responder)).or_default().push(connection);
    }
    let mut found = Agreement::default();
    for view in sockets {
        // Connections with reused ports cannot be distinguished.
        let [connection] = by_ends.get(&ends(view)).map_or(&[][..], |all| &all[..]) else {
            continue;
        };
        if !connection.opening_seen || account.counting != Counting::OnTheWire {
            continue;
        }
        found.compared += 1;
        compare(view, connection, &mut found);
    }
    let told: HashSet<_> = sockets.iter().map(ends).collect();
    let alone = by_ends.iter().filter(|(ends, all)| all.len() == 1 && !told.contains(*ends));
    let over = |one: &Connection| one.opening_seen && one.ending != Ending::Open;
    found.untold = alone.filter(|(_, all)| over(all[0])).count() as u64;
    found
}

/// Initiator and responder of a socket's connection.
fn ends(view: &SocketView) -> (SocketAddr, SocketAddr) {
    match view.role {
        Role::Opened => (view.local, view.remote),
        Role::Accepted => (view.remote, view.local),
    }
}

fn compare(view: &SocketView, connection: &Connection, found: &mut Agreement) {
    let (out, back) = match view.role {
        Role::Opened => (&connection.sent, &connection.received),
        Role::Accepted => (&connection.received, &connection.sent),
    };
    let mut check = |figure, kernel: u64, captured: u64| {
        if kernel != captured {
            let SocketView { local, remote, source, .. } = *view;
            found.differences.push(Difference { local, remote, source, figure, kernel, captured });
        }
    };
    let figures = &view.figures;
    check(Figure::ContentOut, figures.content_out(), out.total().layers.stream());
    check(Figure::Retransmitted, figures.segments_retransmitted, out.total().retransmitted_packets);
    if connection.ending == Ending::Open || view.source == Source::Listed {
        found.unfinished += 1;
        return;
    }
    // Packets in TIME_WAIT are subtracted as far as the kernel does not count them.
    let uncounted = in_time_wait(out, back);
    let within = |kernel: u64, captured: u64| match captured.checked_sub(kernel) {
        Some(more) if more <= uncounted => kernel,
        _ => captured,
    };
    // No counter of a socket has its own RST.
    let (kernel, captured) = (figures.packets_out(view.role), packets(out) - resets(out));
    check(Figure::PacketsOut, kernel, within(kernel, captured));
    let (kernel, captured) = (figures.segments_in, packets(back));
    check(Figure::PacketsIn, kernel, within(kernel, captured));
}

/// Packets each way that a socket in TIME_WAIT, or one that gave up, may have received and sent,
/// which no counter includes: the FIN of a peer that acknowledged before it closed, answers to
/// a repeated FIN, and TLS's closing alert, which arrives at a closed socket and is answered by
/// RST.
fn in_time_wait(out: &Phases, back: &Phases) -> u64 {
    let [ours, theirs] = [out, back].map(|phases| phases.total().fin_packets);
    let gave_up = resets(out) > 0;
    let waits = back.tear_down.ack_only_packets > 0 || ours > 1 || theirs > 1;
    let farewells = if gave_up { back.tear_down.data_packets } else { 0 };
    if waits || gave_up { theirs + ours.saturating_sub(1) + farewells } else { 0 }
}

fn packets(phases: &Phases) -> u64 {
    phases.total().packets
}

fn resets(phases: &Phases) -> u64 {
    phases.total().rst_packets
}
