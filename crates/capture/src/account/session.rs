//! One session packet by packet, as a sequence diagram shows it: from the first SYN to the last
//! acknowledgement, or its beginning and its end.

use crate::account::connection::{Connection, Ending, Transport};
use crate::account::naming::{Namer, units};
use crate::account::note::PacketNote;
use crate::account::result::Account;
use crate::account::unit::Unit;

/// A session: one connection, and next to it one of the receiver of its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Its connections: first the one that sends, then the one that only listens, if there is one.
    pub connections: Vec<Connection>,
    /// Its packets by the time they were captured.
    pub steps: Vec<Step>,
    /// Packets left out between the beginning and the end; absent if there are all.
    pub gap: Option<Gap>,
}

/// One packet of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its connection.
    pub connection: usize,
    /// The packet.
    pub note: PacketNote,
    /// Name of the unit that begins in it.
    pub units: Vec<Unit>,
    /// True if all or part of it was sent again later: the packet or its acknowledgement was lost
    /// or late.
    pub is_repeated_later: bool,
}

/// Packets that were left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Index of the step after them.
    pub before: usize,
    /// Number of packets, as captured.
    pub packets: u64,
    /// Their bytes, headers included.
    pub bytes: u64,
}

impl Session {
    /// The first complete session of `account` that has notes, named by `namer`: opened and closed
    /// during the capture. If a later connection asks for messages, it is included. At most
    /// `packets_max` packets are listed: with more of them half are the first and half the last.
    pub fn of(account: &Account, packets_max: usize, namer: Namer<'_>) -> Option<Session> {
        let complete = account.connections.iter().filter(|found| is_complete(found));
        let named = complete.map(|found| (found, units(&found.notes, found.tls.is_some(), namer)));
        let (mut sending, mut listening) = (None, None);
        for (connection, units) in named {
            let subscribes = units.iter().flatten().any(|unit| unit.subscribes);
            let place = if subscribes { &mut listening } else { &mut sending };
            place.get_or_insert((connection, units));
            if sending.is_some() && listening.is_some() {
                break;
            }
        }
        let shown: Vec<_> = [sending, listening].into_iter().flatten().collect();
        (!shown.is_empty()).then(|| Session::merged(shown, packets_max))
    }

    fn merged(shown: Vec<(&Connection, Vec<Vec<Unit>>)>, packets_max: usize) -> Session {
        let totals = shown.iter().map(|(connection, _)| connection.total());
        let (packets, bytes) = totals.fold((0, 0), |(packets, bytes), total| {
            (packets + total.packets_captured, bytes + total.bytes())
        });
        let connections = shown.iter().map(|(connection, _)| (*connection).clone()).collect();
        let mut steps: Vec<Step> = Vec::new();
        for (place, (connection, units)) in shown.into_iter().enumerate() {
            let notes = &connection.notes;
            steps.extend(notes.iter().zip(units).enumerate().map(|(at, (note, units))| Step {
                connection: place,
                note: note.clone(),
                units,
                is_repeated_later: notes[at + 1..].iter().any(|later| repeats(later, note)),
            }));
        }
        steps.sort_by_key(|step| (step.note.at_ns, step.note.number));
        let before = packets_max - packets_max / 2;
        if steps.len() > packets_max {
            steps.drain(before..steps.len() - packets_max / 2);
        }
        let shown_bytes: u64 = steps.iter().map(|step| step.note.bytes).sum();
        let left = packets - steps.len() as u64;
        let gap = (left > 0).then_some(Gap { before, packets: left, bytes: bytes - shown_bytes });
        Session { connections, steps, gap }
    }
}

fn is_complete(found: &Connection) -> bool {
    let is_closed = found.transport == Transport::Tcp && found.ending != Ending::Open;
    is_closed && found.opening_seen && !found.notes.is_empty()
}

/// Whether `later` carries bytes of `note` again.
fn repeats(later: &PacketNote, note: &PacketNote) -> bool {
    let is_same_way = later.from_initiator == note.from_initiator;
    if !later.is_again || !is_same_way || note.keep_alive {
        return false;
    }
    let end = |note: &PacketNote| note.offset + note.stream_bytes as i64;
    let overlaps = later.offset < end(note) && note.offset < end(later);
    let is_syn_again = later.syn && note.syn;
    let is_fin_again = later.fin && note.fin && end(later) == end(note);
    overlaps || is_syn_again || is_fin_again
}
