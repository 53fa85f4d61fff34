//! Names the unit that begins in each packet of a connection, with names given by the protocol.

use super::unit::Unit;
use crate::account::note::PacketNote;
use crate::stream::tls_unit;

/// Names the unit that begins with the given bytes, which may be more or fewer than the unit;
/// `None` if it is unknown. The flag is true for bytes sent by the end that opened the
/// connection.
pub type Namer<'n> = &'n dyn Fn(bool, &[u8]) -> Option<Unit>;

/// Names of the units in each of the packets `notes`, all of one connection.
pub(crate) fn units(notes: &[PacketNote], is_tls: bool, namer: Namer<'_>) -> Vec<Vec<Unit>> {
    let mut found: Vec<Vec<Unit>> = notes.iter().map(|_| Vec::new()).collect();
    for from_initiator in [true, false] {
        let way = Way::of(notes, from_initiator);
        if is_tls {
            way.walk(&mut found, &|at, head| tls_unit(head, at < way.handshake_bytes));
        } else {
            way.walk(&mut found, &|_, head| namer(from_initiator, head));
        }
    }
    name_again(notes, &mut found);
    found
}

/// A retransmission has the name of the packet that it repeats.
fn name_again(notes: &[PacketNote], found: &mut [Vec<Unit>]) {
    for (place, note) in notes.iter().enumerate().filter(|(_, note)| note.is_again) {
        let is_first = |earlier: &&PacketNote| {
            let is_same_way = earlier.from_initiator == note.from_initiator;
            is_same_way && earlier.offset == note.offset && earlier.stream_bytes > 0
        };
        let first = notes[..place].iter().position(|earlier| is_first(&earlier));
        if let Some(first) = first.filter(|_| note.stream_bytes > 0 && found[place].is_empty()) {
            found[place] = found[first].clone();
        }
    }
}

/// One direction, in order.
struct Way {
    /// Begin and end of each packet that carries new bytes, and its index among all.
    parts: Vec<(i64, i64, usize)>,
    /// The captured bytes, in runs without gaps.
    runs: Vec<(i64, Vec<u8>)>,
    /// End of the TLS handshake.
    handshake_bytes: i64,
}

impl Way {
    fn of(notes: &[PacketNote], from_initiator: bool) -> Way {
        let of_way =
            || notes.iter().enumerate().filter(|(_, n)| n.from_initiator == from_initiator);
        let is_new = |note: &PacketNote| note.stream_bytes > note.repeated_bytes;
        let mut parts: Vec<(i64, i64, usize)> = of_way()
            .filter(|(_, note)| is_new(note))
            .map(|(place, note)| (note.offset, note.offset + note.stream_bytes as i64, place))
            .collect();
        parts.sort_unstable();
        let mut runs: Vec<(i64, Vec<u8>)> = Vec::new();
        for (start, _, place) in &parts {
            let content = &notes[*place].content;
            match runs.last_mut() {
                Some((from, run)) if *from + run.len() as i64 >= *start => {
                    // Overlapping bytes were there before.
                    let known = (*from + run.len() as i64 - start) as usize;
                    run.extend_from_slice(content.get(known..).unwrap_or_default());
                }
                _ => runs.push((*start, content.clone())),
            }
        }
        let handshake: u64 = of_way().map(|(_, note)| note.tls_handshake_bytes).sum();
        Way { parts, runs, handshake_bytes: handshake as i64 }
    }

    /// Goes from unit to unit. If a unit has no known length, or begins in bytes that were not
    /// captured, continues at the next packet in which one is recognised.
    fn walk(&self, found: &mut [Vec<Unit>], name: &dyn Fn(i64, &[u8]) -> Option<Unit>) {
        let mut next: Option<i64> = None;
        for (start, end, place) in &self.parts {
            let mut at = next.unwrap_or(*start).max(*start);
            while at < *end {
                let unit = self.from(at).and_then(|head| name(at, head));
                let length =
                    unit.as_ref().and_then(|unit| unit.length).filter(|length| *length > 0);
                found[*place].extend(unit);
                next = length.and_then(|length| at.checked_add_unsigned(length));
                match next {
                    Some(next) => at = next,
                    None => break,
                }
            }
        }
    }

    /// The captured bytes from an offset on.
    fn from(&self, at: i64) -> Option<&[u8]> {
        let after = self.runs.partition_point(|(start, _)| *start <= at);
        let (start, run) = self.runs.get(after.checked_sub(1)?)?;
        run.get((at - start) as usize..).filter(|head| !head.is_empty())
    }
}
