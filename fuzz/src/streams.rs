//! The same for protocols over streams of QUIC: the peer's bytes come in pieces of streams, as the
//! layer would pass them on.

use std::collections::BTreeSet;

use weigh_model::Nanos;
use weigh_model::connection::{Op, Outbox, Signal, Ticket};
use weigh_model::load::{Pattern, Topology};
use weigh_model::protocol::{Protocol, Role, Seat};
use weigh_model::streams::{self, Piece};

use crate::rig::{Heard, Shard, kind, trial};
use crate::{Script, Step};

impl Script<'_> {
    /// Runs a client; each step of the peer is bytes of one stream.
    pub fn run_client_over_streams(
        &self,
        protocol: &dyn Protocol,
        url: &str,
        given: &[(&str, &str)],
    ) {
        let trial = trial(protocol, Pattern::Request, Topology::FanIn, url, given).unwrap();
        let run = |cuts: &[usize]| {
            let dial = protocol.dial(&trial).expect("its settings are right");
            let mut connection = (dial.make)(Seat { index: 0, role: Role::Producer });
            let (mut out, mut heard) = (Outbox::default(), Vec::<Heard>::new());
            connection.open(Nanos(0), &mut out, &mut |signal| heard.push(signal.into()));
            let mut opened = Vec::new();
            streams::put_opened(&mut opened, 50);
            let (mut ticket, mut ended) = (0, BTreeSet::new());
            let mut result = Ok(());
            let mut inputs = vec![opened];
            for step in &self.steps {
                match step {
                    Step::Peer(bytes) => inputs.extend(pieces(bytes, cuts, &CLIENT, &mut ended)),
                    Step::Send(body) if connection.room() > 0 => {
                        let op = Op { ticket: Ticket(ticket), body };
                        connection.send(&op, Nanos(0), &mut out);
                        ticket += 1;
                    }
                    Step::Send(_) | Step::Wait(_) => {}
                }
                for input in inputs.drain(..) {
                    if result.is_ok() {
                        let mut emit = |signal: Signal<'_>| heard.push(signal.into());
                        let taken = connection.receive(&input, Nanos(0), &mut out, &mut emit);
                        result = taken.map(|taken| assert_eq!(taken, input.len()));
                    }
                }
            }
            (heard, kind(&result))
        };
        assert_eq!(run(&[]), run(&self.cuts()));
    }

    /// Runs a server; each step of the peer is bytes of one stream.
    pub fn run_server_over_streams(&self, protocol: &dyn Protocol, given: &[(&str, &str)]) {
        let run = |cuts: &[usize]| {
            let mut shard = Shard::of(protocol, given);
            shard.accept(0);
            let (mut ended, mut result) = (BTreeSet::new(), Ok(()));
            for step in &self.steps {
                let (Step::Peer(bytes) | Step::Send(bytes)) = step else { continue };
                for input in pieces(bytes, cuts, &SERVER, &mut ended) {
                    let is_read = match streams::next(&input) {
                        Some((Piece::Bytes { stream, .. }, _)) => {
                            !stopped(&shard.desk.staged).contains(&stream)
                        }
                        _ => true,
                    };
                    if result.is_ok() && is_read {
                        result = shard.feed(0, &input);
                    }
                }
            }
            let report = shard.server.report();
            (report.received, report.unique, report.corrupt, kind(&result))
        };
        assert_eq!(run(&[]), run(&self.cuts()));
    }
}

/// Streams of which the server reads no more: the layer passes nothing of them on.
fn stopped(staged: &std::collections::BTreeMap<u32, Vec<u8>>) -> BTreeSet<u64> {
    let mut rest = staged.get(&0).map_or(&[][..], |bytes| bytes);
    let mut all = BTreeSet::new();
    while let Some((piece, bytes)) = streams::next(rest) {
        rest = &rest[bytes..];
        if let Piece::Stop { stream, .. } = piece {
            all.insert(stream);
        }
    }
    all
}

/// The pieces of a step: its first byte chooses the stream, and whether it ends or is abandoned. A
/// stream that has ended has nothing more.
fn pieces(step: &[u8], cuts: &[usize], of_peer: &[u64], ended: &mut BTreeSet<u64>) -> Vec<Vec<u8>> {
    let Some((choice, bytes)) = step.split_first() else { return Vec::new() };
    let stream = of_peer[usize::from(choice & 7) % of_peer.len()];
    let (is_last, is_reset) = (choice & 8 != 0, choice & 0x30 == 0x30);
    if ended.contains(&stream) {
        return Vec::new();
    }
    if is_last || is_reset {
        ended.insert(stream);
    }
    let parts: Vec<&[u8]> = crate::rig::pieces(bytes, cuts).collect();
    let mut all = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let mut piece = Vec::new();
        let is_last = is_last && !is_reset && index + 1 == parts.len();
        streams::put_bytes(&mut piece, stream, is_last, |out| out.extend_from_slice(part));
        all.push(piece);
    }
    if is_reset {
        let mut piece = Vec::new();
        streams::put_reset(&mut piece, stream, u64::from(*choice) | 0x100);
        all.push(piece);
    }
    all
}

/// Streams on which a client hears its server: those of requests, and those in one direction.
const CLIENT: [u64; 7] = [0, 4, 8, 3, 7, 11, 15];

/// Streams on which a server hears its client.
const SERVER: [u64; 7] = [0, 4, 8, 2, 6, 10, 14];
