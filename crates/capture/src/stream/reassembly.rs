//! Puts the bytes of one direction in order, each once, with bounded memory.

use std::collections::BTreeMap;

/// The bytes of one direction of a TCP connection, put in order (RFC 9293, section 3.10.7.4).
///
/// Bytes are passed on once and in order. Bytes out of order wait, up to [`HELD_BYTES_MAX`] and
/// [`HELD_PIECES_MAX`]; beyond that the oldest gap is given up, and counted.
#[derive(Debug, Default)]
pub struct Reassembly {
    next: i64,
    waiting: BTreeMap<i64, Waiting>,
    held_bytes: usize,
    /// Bytes that were never seen, in gaps that were given up.
    pub unseen_bytes: u64,
}

#[derive(Debug)]
struct Waiting {
    length: u64,
    /// The first bytes of the piece, as far as they were captured and wanted.
    bytes: Vec<u8>,
}

/// A part of a stream, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Bytes that were captured.
    Bytes(&'a [u8]),
    /// Number of bytes that were on the wire, but cut off by the capture.
    Cut(u64),
    /// Number of bytes that the capture never saw.
    Hole(u64),
}

/// What a segment contained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Bytes seen for the first time.
    pub new_bytes: u64,
    /// Bytes that had been seen before.
    pub repeated_bytes: u64,
    /// True if something before it is missing, or something after it came first.
    pub out_of_order: bool,
}

impl Reassembly {
    /// The offset of the first byte that is not in order yet.
    pub fn next(&self) -> i64 {
        self.next
    }

    /// Bytes held for later.
    pub fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Takes a segment of `length` bytes at `offset`, of which the first `bytes` were captured.
    /// Without `keep`, the content of waiting bytes is forgotten and returned as [`Piece::Cut`].
    pub fn take(
        &mut self,
        offset: i64,
        length: u64,
        bytes: &[u8],
        keep: bool,
        hand_on: &mut dyn FnMut(Piece<'_>),
    ) -> Taken {
        let end = offset + length as i64;
        if offset == self.next && self.waiting.is_empty() {
            hand_on_part(bytes, length, hand_on);
            self.next = end;
            return Taken { new_bytes: length, ..Taken::default() };
        }
        let mut taken = Taken { out_of_order: offset > self.next, ..Taken::default() };
        for (from, to) in self.gaps(offset.max(self.next), end) {
            taken.new_bytes += (to - from) as u64;
            taken.out_of_order |= !self.waiting.is_empty();
            let start = ((from - offset) as usize).min(bytes.len());
            let stop = ((to - offset) as usize).min(bytes.len());
            let part = &bytes[start..stop];
            if from == self.next {
                // Bytes in order are not copied; bytes waiting behind them follow below.
                hand_on_part(part, (to - from) as u64, hand_on);
                self.next = to;
            } else {
                self.hold(from, (to - from) as u64, if keep { part } else { &[] });
            }
        }
        taken.repeated_bytes = length - taken.new_bytes;
        self.release(hand_on);
        while self.held_bytes > HELD_BYTES_MAX || self.waiting.len() > HELD_PIECES_MAX {
            self.give_up_a_hole(hand_on);
        }
        taken
    }

    /// Passes on all waiting bytes, with the gaps before them; at the end of a capture.
    pub fn flush(&mut self, hand_on: &mut dyn FnMut(Piece<'_>)) {
        while !self.waiting.is_empty() {
            self.give_up_a_hole(hand_on);
        }
    }

    /// The parts of `from..to` that are not held yet.
    fn gaps(&self, from: i64, to: i64) -> Vec<(i64, i64)> {
        let mut gaps = Vec::new();
        let mut at = from;
        let before = self.waiting.range(..from).next_back();
        for (&start, piece) in before.into_iter().chain(self.waiting.range(from..)) {
            if start >= to {
                break;
            }
            if start > at {
                gaps.push((at, start));
            }
            at = at.max(start + piece.length as i64);
        }
        if at < to {
            gaps.push((at, to));
        }
        gaps
    }

    fn hold(&mut self, offset: i64, length: u64, bytes: &[u8]) {
        self.held_bytes += bytes.len();
        self.waiting.insert(offset, Waiting { length, bytes: bytes.to_vec() });
    }

    fn release(&mut self, hand_on: &mut dyn FnMut(Piece<'_>)) {
        while let Some(entry) = self.waiting.first_entry() {
            if *entry.key() != self.next {
                break;
            }
            let piece = entry.remove();
            self.held_bytes -= piece.bytes.len();
            self.next += piece.length as i64;
            hand_on_part(&piece.bytes, piece.length, hand_on);
        }
    }

    fn give_up_a_hole(&mut self, hand_on: &mut dyn FnMut(Piece<'_>)) {
        let Some((&start, _)) = self.waiting.first_key_value() else { return };
        let missing = (start - self.next) as u64;
        self.unseen_bytes += missing;
        self.next = start;
        hand_on(Piece::Hole(missing));
        self.release(hand_on);
    }
}

fn hand_on_part(bytes: &[u8], length: u64, hand_on: &mut dyn FnMut(Piece<'_>)) {
    if !bytes.is_empty() {
        hand_on(Piece::Bytes(bytes));
    }
    let cut = length - bytes.len() as u64;
    if cut > 0 {
        hand_on(Piece::Cut(cut));
    }
}

/// Bytes of one direction that may wait for a hole to be filled: a window of 4 MiB, above which
/// Linux does not let a receive buffer grow by default (6 MiB of memory, `tcp_rmem`).
pub const HELD_BYTES_MAX: usize = 4 << 20;

/// Pieces that may wait: 4 MiB in segments of 1 KiB.
pub const HELD_PIECES_MAX: usize = 4096;
