//! Packets whose phase the codec's count may still change: the first and the last of a connection.

use std::collections::VecDeque;

use weigh_model::content::{CodecCount, Phase};

use crate::account::note::PacketNote;
use crate::account::traffic::{Phases, Traffic};
use crate::stream::tls::Side;

/// A packet that was counted among the messages, by the byte that decides: the first that it
/// carries or, if it carries none, the last that it acknowledges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    /// The sender.
    pub sender: Side,
    /// The stream of the byte.
    pub stream: Side,
    /// Offset of the byte in that stream.
    pub offset: i64,
    /// Its counts.
    pub traffic: Traffic,
}

/// The first and the last packets among the messages of a connection. Set-up and tear-down of a
/// protocol are a few packets; what lies between cannot belong to them.
#[derive(Debug, Default)]
pub(crate) struct Edges {
    first: Vec<Placed>,
    last: VecDeque<Placed>,
}

impl Edges {
    pub(crate) fn note(&mut self, placed: Placed) {
        if self.first.len() < EDGE_PACKETS {
            self.first.push(placed);
            return;
        }
        if self.last.len() == EDGE_PACKETS {
            self.last.pop_front();
        }
        self.last.push_back(placed);
    }

    pub(crate) fn take(&mut self) -> Vec<Placed> {
        let mut all = std::mem::take(&mut self.first);
        all.extend(std::mem::take(&mut self.last));
        all
    }
}

/// Moves packets that carried or acknowledged the protocol's own set-up or tear-down to these
/// phases.
pub(crate) fn move_edges(placed: &[Placed], phases: [&mut Phases; 2], counts: [&CodecCount; 2]) {
    for packet in placed {
        let Some(phase) = phase_at(packet.offset, counts[packet.stream as usize]) else { continue };
        let of = &mut *phases[packet.sender as usize];
        of.messages -= packet.traffic;
        of[phase] += packet.traffic;
    }
}

/// Moves noted packets likewise.
pub(crate) fn move_notes(notes: &mut [PacketNote], [sent, received]: [&CodecCount; 2]) {
    for note in notes {
        let Some((by_initiator, offset)) = note.decided_by else { continue };
        let count = if by_initiator { sent } else { received };
        note.phase = phase_at(offset, count).unwrap_or(note.phase);
    }
}

/// The phase that is not that of the messages to which the byte at `offset` belongs.
fn phase_at(offset: i64, count: &CodecCount) -> Option<Phase> {
    let set_up_end = count.set_up.total() as i64;
    let tear_down_start = (count.total() - count.tear_down.total()) as i64;
    match offset {
        offset if (0..set_up_end).contains(&offset) => Some(Phase::SetUp),
        offset if count.tear_down.total() > 0 && offset >= tear_down_start => Some(Phase::TearDown),
        _ => None,
    }
}

/// At either end of a connection.
const EDGE_PACKETS: usize = 12;
