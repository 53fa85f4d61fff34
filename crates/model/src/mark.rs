//! The mark that makes a message known again: who sent it, which one it is, when it was due,
//! and a check value over the whole body. It is text, so that it fits into JSON as well as into
//! bytes, and stands at the end of a body (or just before the closing `"}` of a JSON object).
//!
//! Layout: the magic `WB1.`, then 30 bytes in URL-safe base64 (RFC 4648, section 5): run tag 2,
//! flags 1, producer 3, sequence 5, due time 6, lag 5, check of these 22 bytes 4, check of the
//! body 4; integers are big-endian, times are nanoseconds, checks are CRC-32 (IEEE 802.3).

use crate::crc;
use crate::units::Nanos;

/// Bytes a mark takes in a body.
pub const MARK_BYTES: usize = MAGIC.len() + ENCODED;

/// Producers that can be told apart.
pub const PRODUCERS_MAX: u32 = 1 << 24;

/// Identity and times of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Tells the messages of this trial from those of any other.
    pub tag: u16,
    /// True for a message before the measurement.
    pub warmup: bool,
    /// Index of the producing connection, below [`PRODUCERS_MAX`].
    pub producer: u32,
    /// Number of the message at its producer, from 0, below 2^40.
    pub sequence: u64,
    /// When it was due, since the start of the trial; wraps after 2^48 ns (78 hours).
    pub due: Nanos,
    /// How much later than due it was handed to the transport; at most 2^40 - 1 ns (18 minutes).
    pub lag: Nanos,
}

/// What a body turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// A message of ours, whole.
    Whole(Mark),
    /// A message of ours, damaged; the mark is known if the damage lies outside it.
    Corrupt(Option<Mark>),
    /// Not a message of ours.
    Foreign,
}

impl Mark {
    /// Writes the mark over `body[at..at + MARK_BYTES]` and seals the whole body with it.
    ///
    /// # Panics
    /// If the body is too short for a mark at `at`.
    pub fn seal(&self, body: &mut [u8], at: usize) {
        self.seal_behind(crc::append(0, &body[..at]), body, at);
    }

    /// The same where the check value of `body[..at]` is known.
    pub(crate) fn seal_behind(&self, before: u32, body: &mut [u8], at: usize) {
        let (due, lag) = (self.due.0 & SIX_BYTES, self.lag.0.min(LAG_MAX));
        let sequence = self.sequence & FIVE_BYTES;
        let producer = u64::from(self.producer & (PRODUCERS_MAX - 1));
        let flags = u64::from(self.warmup);
        let first = u64::from(self.tag) << 48 | flags << 40 | producer << 16 | sequence >> 24;
        let second = sequence << 40 | due >> 8;
        let third = (due & 0xFF) << 40 | lag;
        let head = crc::of_22(first, second, third);
        let check = u64::from(body_check(before, head, &body[at + MARK_BYTES..]));
        let head = u64::from(head);
        let sixes = [
            first >> 16,
            (first & 0xFFFF) << 32 | second >> 32,
            (second & 0xFFFF_FFFF) << 16 | third >> 32,
            (third & 0xFFFF_FFFF) << 16 | head >> 16,
            (head & 0xFFFF) << 32 | check,
        ];
        let place = &mut body[at..at + MARK_BYTES];
        place[..MAGIC.len()].copy_from_slice(MAGIC);
        let eights = place[MAGIC.len()..].as_chunks_mut::<8>().0;
        for (six, eight) in sixes.into_iter().zip(eights) {
            *eight = letters(six).to_be_bytes();
        }
    }

    /// Looks for a mark of the trial `tag` in `body`; marks of other trials are foreign.
    pub fn read(body: &[u8], tag: u16) -> Reading {
        match Mark::read_any(body) {
            Reading::Whole(mark) | Reading::Corrupt(Some(mark)) if mark.tag != tag => {
                Reading::Foreign
            }
            reading => reading,
        }
    }

    /// Looks for a mark of any trial in `body`.
    pub fn read_any(body: &[u8]) -> Reading {
        // A whole mark shows by its magic; whether something else was one takes longer to tell.
        for after in [0, JSON_END.len()] {
            let Some(at) = body.len().checked_sub(MARK_BYTES + after) else { continue };
            if body[at..].starts_with(MAGIC)
                && let Reading::Whole(mark) = read_at(body, at)
            {
                return Reading::Whole(mark);
            }
        }
        let mut damaged = Reading::Foreign;
        for after in [0, JSON_END.len()] {
            let Some(at) = body.len().checked_sub(MARK_BYTES + after) else { continue };
            match read_at(body, at) {
                Reading::Foreign => {}
                reading => damaged = reading,
            }
        }
        damaged
    }
}

fn read_at(body: &[u8], at: usize) -> Reading {
    let place = &body[at..at + MARK_BYTES];
    let has_magic = place.starts_with(MAGIC);
    let nothing = if has_magic { Reading::Corrupt(None) } else { Reading::Foreign };
    let Some([a, b, c, d, e]) = decode(&place[MAGIC.len()..]) else { return nothing };
    let (first, second) = (a << 16 | b >> 32, b << 32 | c >> 16);
    let third = (c & 0xFFFF) << 32 | d >> 16;
    let head = crc::of_22(first, second, third);
    if (d & 0xFFFF) << 16 | e >> 32 != u64::from(head) {
        return nothing;
    }
    let mark = Mark {
        tag: (first >> 48) as u16,
        warmup: first >> 40 & 1 == 1,
        producer: (first >> 16) as u32 & (PRODUCERS_MAX - 1),
        sequence: (first & 0xFFFF) << 24 | second >> 40,
        due: Nanos((second << 8 | third >> 40) & SIX_BYTES),
        lag: Nanos(third & FIVE_BYTES),
    };
    let is_whole = || {
        let check = body_check(crc::append(0, &body[..at]), head, &body[at + MARK_BYTES..]);
        e as u32 == check
    };
    if has_magic && is_whole() { Reading::Whole(mark) } else { Reading::Corrupt(Some(mark)) }
}

/// CRC-32 of everything but the check itself: what precedes the mark (whose value is `before`),
/// the mark's other fields (whose value is `head`, which is one of them), and what follows.
fn body_check(before: u32, head: u32, after: &[u8]) -> u32 {
    crc::append(crc::append(crc::join_22(before, head), &head.to_be_bytes()), after)
}

/// The eight letters of base64 for six bytes, the first of each in the highest bits. All eight
/// are reckoned at once, each in its byte of the word; no byte ever overflows into the next.
fn letters(six: u64) -> u64 {
    let halves = (six & 0xFFFF_FF00_0000) << 8 | six & 0xFF_FFFF;
    let quarters = (halves & 0x00FF_F000_00FF_F000) << 4 | halves & 0x0000_0FFF_0000_0FFF;
    let values = (quarters & 0x0FC0_0FC0_0FC0_0FC0) << 2 | quarters & 0x003F_003F_003F_003F;
    let from = |least: u64| (values + ONES * (0x80 - least)) >> 7 & ONES;
    let upper = values + ONES * u64::from(b'A');
    let lower = upper + from(26) * u64::from(b'a' - b'Z' - 1);
    let digits = lower - from(52) * u64::from(b'z' + 1 - b'0');
    let minus = digits - from(62) * u64::from(b'9' + 1 - b'-');
    minus + from(63) * u64::from(b'_' - b'-' - 1)
}

/// The raw mark, six bytes in each word; `None` if any letter is not of the alphabet.
fn decode(place: &[u8]) -> Option<[u64; 5]> {
    let mut sixes = [0; 5];
    let mut seen = 0;
    for (eight, six) in place.as_chunks::<8>().0.iter().zip(&mut sixes) {
        let values = eight.map(|letter| u64::from(VALUES[usize::from(letter)]));
        let [a, b, c, d, e, f, g, h] = values;
        seen |= (a | b | c | d) | (e | f | g | h);
        let (high, low) = (a << 18 | b << 12 | c << 6 | d, e << 18 | f << 12 | g << 6 | h);
        *six = high << 24 | low;
    }
    (seen < u64::from(NO_LETTER)).then_some(sixes)
}

/// What follows the mark in a JSON object.
pub const JSON_END: &[u8] = b"\"}";

const MAGIC: &[u8] = b"WB1.";
const ENCODED: usize = 30 / 3 * 4;
const FIVE_BYTES: u64 = (1 << 40) - 1;
const SIX_BYTES: u64 = (1 << 48) - 1;
const LAG_MAX: u64 = FIVE_BYTES;
/// A 1 in every byte.
const ONES: u64 = 0x0101_0101_0101_0101;

/// The alphabet of RFC 4648, section 5.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// What each letter stands for.
static VALUES: [u8; 256] = {
    let mut values = [NO_LETTER; 256];
    let mut value = 0;
    while value < LETTERS.len() {
        values[LETTERS[value] as usize] = value as u8;
        value += 1;
    }
    values
};

/// The value of a byte that is not in the alphabet; greater than any that is.
const NO_LETTER: u8 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: Mark = Mark {
        tag: 0xBEEF,
        warmup: false,
        producer: 59,
        sequence: 123_456,
        due: Nanos(1_000_000_007),
        lag: Nanos(42),
    };

    fn sealed(before: &[u8], after: &[u8]) -> Vec<u8> {
        let mut body = [before, &[0; MARK_BYTES], after].concat();
        MARK.seal(&mut body, before.len());
        body
    }

    #[test]
    fn a_mark_is_read_back_at_the_end_and_in_json() {
        for body in [sealed(b"", b""), sealed(b"pad", b""), sealed(b"{\"mark\":\"", JSON_END)] {
            assert_eq!(Mark::read(&body, 0xBEEF), Reading::Whole(MARK));
            assert_eq!(Mark::read(&body, 0xBEEE), Reading::Foreign);
        }
    }

    /// Flips every bit of a body in turn: none may pass as whole, and wherever the identity is
    /// still legible it must be the right one.
    #[test]
    fn every_single_bit_error_is_seen() {
        let body = sealed(b"{\"ph\":6.1,\"mark\":\"", JSON_END);
        for bit in 0..body.len() * 8 {
            let mut damaged = body.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            match Mark::read(&damaged, 0xBEEF) {
                Reading::Whole(_) => panic!("bit {bit} passed"),
                Reading::Corrupt(Some(mark)) => assert_eq!(mark, MARK),
                Reading::Corrupt(None) | Reading::Foreign => {}
            }
        }
    }

    /// The layout that the module describes, written with other people's base64 and CRC.
    #[test]
    fn the_layout_is_as_described() {
        use base64::Engine;
        use base64::engine::general_purpose::URL_SAFE_NO_PAD;
        let body = sealed(b"some content, and {", JSON_END);
        let at = 19;
        let raw = URL_SAFE_NO_PAD.decode(&body[at + 4..at + MARK_BYTES]).unwrap();
        assert_eq!(&body[at..at + 4], b"WB1.");
        assert_eq!(raw[..2], 0xBEEFu16.to_be_bytes());
        assert_eq!(raw[3..6], [0, 0, 59]);
        assert_eq!(raw[22..26], crc32fast::hash(&raw[..22]).to_be_bytes());
        let sealed = [&body[..at], &raw[..26], JSON_END].concat();
        assert_eq!(raw[26..], crc32fast::hash(&sealed).to_be_bytes());
    }

    /// What a mark costs; run with `--release --ignored --nocapture`.
    #[test]
    #[ignore = "prints a figure"]
    fn cost_in_nanoseconds() {
        let mut body = sealed(&[b'.'; 20], b"");
        let rounds = 5_000_000u32;
        let start = std::time::Instant::now();
        for _ in 0..rounds {
            std::hint::black_box(MARK).seal(std::hint::black_box(&mut body), 20);
        }
        println!("seal: {:.1} ns", start.elapsed().as_nanos() as f64 / f64::from(rounds));
        let start = std::time::Instant::now();
        for _ in 0..rounds {
            let reading = Mark::read_any(std::hint::black_box(&body));
            assert!(matches!(std::hint::black_box(reading), Reading::Whole(_)));
        }
        println!("read_any: {:.1} ns", start.elapsed().as_nanos() as f64 / f64::from(rounds));
    }

    #[test]
    fn other_peoples_bodies_are_foreign() {
        for body in [&b""[..], b"hello", &[0u8; 200], &[b'A'; 44]] {
            assert_eq!(Mark::read(body, 1), Reading::Foreign);
        }
    }
}
