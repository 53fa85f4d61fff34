//! The reassembler against a reference that remembers every byte.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use weigh_capture::stream::reassembly::{HELD_BYTES_MAX, HELD_PIECES_MAX, Piece, Reassembly};
use weigh_capture::stream::sequence::Sequence;

/// A byte that tells its place, so that misplaced bytes are found.
fn byte_at(offset: usize) -> u8 {
    (offset.wrapping_mul(2_654_435_761) >> 13) as u8
}

fn content(from: usize, to: usize) -> Vec<u8> {
    (from..to).map(byte_at).collect()
}

/// Cuts `0..length` at the given places, then repeats and adds overlapping parts, then shuffles.
fn segments(length: usize) -> impl Strategy<Value = Vec<(usize, usize)>> {
    let cuts = vec(any::<Index>(), 0..40);
    let extra = vec((any::<Index>(), 1..3000_usize), 0..30);
    let swaps = vec((any::<Index>(), any::<Index>()), 0..60);
    (cuts, extra, swaps).prop_map(move |(cuts, extra, swaps)| {
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(length)).collect();
        places.extend([0, length]);
        places.sort_unstable();
        places.dedup();
        let mut parts: Vec<(usize, usize)> = places.windows(2).map(|w| (w[0], w[1])).collect();
        for (start, count) in extra {
            let start = start.index(length);
            parts.push((start, (start + count).min(length)));
        }
        for (one, other) in swaps {
            let (one, other) = (one.index(parts.len()), other.index(parts.len()));
            parts.swap(one, other);
        }
        parts
    })
}

proptest! {
    #[test]
    fn every_byte_comes_once_and_in_its_place(
        parts in segments(20_000),
        first in any::<u32>(),
        cut_at in 0..4000_usize,
    ) {
        let mut reassembly = Reassembly::default();
        // Sequence numbers begin anywhere, and wrap.
        let mut sequence = Sequence::default();
        sequence.anchor(first, 0);
        let mut seen = vec![false; 20_000];
        let mut place = 0;
        let mut cut = 0;
        for (from, to) in parts {
            let offset = sequence.offset(first.wrapping_add(from as u32));
            prop_assert_eq!(offset, from as i64);
            // The capture may have cut the packet.
            let captured = content(from, to.min(from + cut_at.max(1)));
            let mut wrong = None;
            let taken = reassembly.take(offset, (to - from) as u64, &captured, true, &mut |piece| {
                match piece {
                    Piece::Bytes(bytes) => {
                        if bytes != content(place, place + bytes.len()) {
                            wrong = Some(place);
                        }
                        place += bytes.len();
                    }
                    Piece::Cut(count) => {
                        place += count as usize;
                        cut += count;
                    }
                    Piece::Hole(count) => wrong = Some(count as usize),
                }
            });
            prop_assert_eq!(wrong, None);
            let new = seen[from..to].iter().filter(|seen| !**seen).count() as u64;
            prop_assert_eq!(taken.new_bytes, new);
            prop_assert_eq!(taken.repeated_bytes, (to - from) as u64 - new);
            seen[from..to].fill(true);
            let in_order = seen.iter().position(|seen| !seen).unwrap_or(seen.len());
            prop_assert_eq!(place, in_order);
            prop_assert_eq!(reassembly.next(), in_order as i64);
        }
        prop_assert_eq!(place, 20_000);
        prop_assert_eq!(reassembly.held_bytes(), 0);
        prop_assert!(cut_at > 3000 || cut < 20_000);
    }

    #[test]
    fn what_is_missing_is_said_and_nothing_else_is_lost(
        parts in segments(20_000),
        missing in vec(any::<Index>(), 1..5),
    ) {
        let mut reassembly = Reassembly::default();
        let mut seen = vec![false; 20_000];
        let (mut place, mut holes, mut handed) = (0_u64, 0_u64, 0_u64);
        let mut hand_on = |piece: Piece<'_>| match piece {
            Piece::Bytes(bytes) => {
                assert_eq!(bytes, content(place as usize, place as usize + bytes.len()));
                place += bytes.len() as u64;
                handed += bytes.len() as u64;
            }
            Piece::Cut(_) => panic!("nothing was cut"),
            Piece::Hole(count) => {
                place += count;
                holes += count;
            }
        };
        let missing: Vec<usize> = missing.iter().map(|index| index.index(parts.len())).collect();
        for (at, (from, to)) in parts.into_iter().enumerate() {
            if missing.contains(&at) {
                continue;
            }
            let bytes = content(from, to);
            reassembly.take(from as i64, (to - from) as u64, &bytes, true, &mut hand_on);
            seen[from..to].fill(true);
        }
        reassembly.flush(&mut hand_on);
        let last = seen.iter().rposition(|seen| *seen).map_or(0, |last| last + 1);
        let all = seen.iter().filter(|seen| **seen).count() as u64;
        prop_assert_eq!(handed, all);
        prop_assert_eq!(holes, last as u64 - all);
        prop_assert_eq!(reassembly.unseen_bytes, holes);
    }
}

#[test]
fn memory_is_bounded_while_the_first_byte_is_missing() {
    let mut reassembly = Reassembly::default();
    let segment = vec![1; 1448];
    let (mut handed, mut holes, mut held_max) = (0_u64, 0_u64, 0);
    for at in 0..20_000_i64 {
        // Every other segment is missing.
        reassembly.take(1 + at * 2896, 1448, &segment, true, &mut |piece| match piece {
            Piece::Bytes(bytes) => handed += bytes.len() as u64,
            Piece::Cut(count) => panic!("{count} bytes cut"),
            Piece::Hole(count) => holes += count,
        });
        held_max = held_max.max(reassembly.held_bytes());
    }
    assert!(held_max <= HELD_BYTES_MAX, "{held_max}");
    assert_eq!(reassembly.unseen_bytes, holes);
    assert!(handed > 20_000 * 1448 - HELD_BYTES_MAX as u64 - 1448, "{handed}");

    let mut reassembly = Reassembly::default();
    for at in 0..20_000_i64 {
        reassembly.take(1 + at * 2, 1, &[1], false, &mut |_| {});
    }
    assert_eq!(reassembly.held_bytes(), 0, "nothing is held that is not read");
    assert!(reassembly.unseen_bytes >= 20_000 - HELD_PIECES_MAX as u64 - 1);
}
