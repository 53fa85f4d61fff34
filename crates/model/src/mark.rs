//! The mark that identifies a message: producer, number, due time, and a check value over the whole
//! body. It is text, so that it fits into JSON as well as into bytes, and is at the end of a body
//! (or just before the closing `"}` of a JSON object).
//!
//! Layout: the magic `WB1.`, then 30 bytes in URL-safe base64 (RFC 4648, section 5): run tag 2,
//! flags 1, producer 3, sequence 5, due time 6, lag 5, check of these 22 bytes 4, check of the body
//! 4; integers are big-endian, times are nanoseconds, checks are CRC-32 (IEEE 802.3). The lowest of
//! the flags marks the warm-up; the others are the share of the lag that was a wait.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::units::Nanos;

/// Bytes a mark takes in a body.
pub const MARK_BYTES: usize = MAGIC.len() + ENCODED;

/// Identity and times of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Distinguishes the messages of this trial from those of any other.
    pub tag: u16,
    /// True for a message of the warm-up.
    pub warmup: bool,
    /// Index of the producing connection, below 2^24.
    pub producer: u32,
    /// Number of the message at its producer, from 0, below 2^40.
    pub sequence: u64,
    /// Due time since the start of the trial; wraps after 2^48 ns (78 hours).
    pub due: Nanos,
    /// Time from due to handed to the transport; at most 2^40 - 1 ns (18 minutes).
    pub lag: Nanos,
    /// The part of `lag` that is the generator's own lateness; the remainder was a wait for a full
    /// window or for a connection, caused by the target. Written in 127ths of `lag`, rounded up.
    pub own_lag: Nanos,
}

/// The check value of the bytes before a mark, advanced by the length of the mark's head. A CRC is
/// linear: that of `a` followed by `b` is that of `b` by itself, xor that of `a` advanced by as
/// many zero bytes as `b` has (crc32_combine of zlib). So the head, whose check is in the mark as
/// well, is read once for both checks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before(u32);

impl Before {
    /// Check of these bytes.
    pub(crate) fn of(bytes: &[u8]) -> Before {
        Before::after(crc32fast::hash(bytes))
    }

    /// From the check value of the bytes.
    pub(crate) fn after(check: u32) -> Before {
        let mut hasher = crc32fast::Hasher::new_with_initial(check);
        hasher.update(&[0; HEAD]);
        Before(hasher.finalize() ^ crc32fast::hash(&[0; HEAD]))
    }

    /// The check value of these bytes followed by a head whose own is `head`.
    fn followed_by(self, head: u32) -> u32 {
        self.0 ^ head
    }
}

/// Result of reading a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// A Weighbridge message, whole.
    Whole(Mark),
    /// A Weighbridge message, damaged; the mark is known if the damage is outside it.
    Corrupt(Option<Mark>),
    /// Not a Weighbridge message.
    Foreign,
}

impl Mark {
    /// Writes the mark over `body[at..at + MARK_BYTES]` and seals the whole body with it.
    ///
    /// # Panics
    /// If the body is too short for a mark at `at`.
    pub fn seal(&self, body: &mut [u8], at: usize) {
        self.seal_behind(Before::of(&body[..at]), body, at);
    }

    /// Writes the mark where the check value of `body[..at]` is known.
    pub(crate) fn seal_behind(&self, before: Before, body: &mut [u8], at: usize) {
        let mut raw = [0u8; RAW];
        raw[0..2].copy_from_slice(&self.tag.to_be_bytes());
        raw[2] = u8::from(self.warmup) | (self.waited_share() << 1);
        raw[3..6].copy_from_slice(&self.producer.to_be_bytes()[1..]);
        raw[6..11].copy_from_slice(&self.sequence.to_be_bytes()[3..]);
        raw[11..17].copy_from_slice(&self.due.0.to_be_bytes()[2..]);
        raw[17..22].copy_from_slice(&self.lag.0.min(LAG_MAX).to_be_bytes()[3..]);
        let head = crc32fast::hash(&raw[..HEAD]);
        raw[HEAD..HEAD + 4].copy_from_slice(&head.to_be_bytes());
        let mut hasher = crc32fast::Hasher::new_with_initial(before.followed_by(head));
        hasher.update(&raw[HEAD..HEAD + 4]);
        hasher.update(&body[at + MARK_BYTES..]);
        let check = hasher.finalize();
        raw[HEAD + 4..].copy_from_slice(&check.to_be_bytes());
        let place = &mut body[at..at + MARK_BYTES];
        place[..MAGIC.len()].copy_from_slice(MAGIC);
        encode(&raw, &mut place[MAGIC.len()..]);
    }

    /// 127ths of the lag that are not the generator's.
    #[inline]
    fn waited_share(&self) -> u8 {
        if self.own_lag >= self.lag {
            return 0;
        }
        let (lag, own) = (self.lag.0.min(LAG_MAX), self.own_lag.0.min(LAG_MAX));
        (lag.saturating_sub(own) * SHARES / lag.max(1)) as u8
    }

    /// Looks for a mark of the trial `tag` in `body`; marks of other trials are foreign.
    pub fn read(body: &[u8], tag: u16) -> Reading {
        Mark::read_any(body).of_trial(tag)
    }

    /// Looks for a mark of any trial in `body`.
    pub fn read_any(body: &[u8]) -> Reading {
        read_end(body, |at| crc32fast::hash(&body[..at]))
    }
}

impl Reading {
    /// Treats marks of other trials than `tag` as foreign.
    pub fn of_trial(self, tag: u16) -> Reading {
        match self {
            Reading::Whole(mark) | Reading::Corrupt(Some(mark)) if mark.tag != tag => {
                Reading::Foreign
            }
            reading => reading,
        }
    }
}

/// URL-safe base64 of a fixed length: 12 bits at a time take a third of the time of a general
/// library, and every message pays for it.
fn encode(raw: &[u8; RAW], out: &mut [u8]) {
    for (three, four) in raw.chunks_exact(3).zip(out.chunks_exact_mut(4)) {
        let word = usize::from(three[0]) << 16 | usize::from(three[1]) << 8 | usize::from(three[2]);
        four[..2].copy_from_slice(&PAIRS[word >> 12]);
        four[2..].copy_from_slice(&PAIRS[word & 0xfff]);
    }
}

/// Looks for a mark at the end of a body, of which `end` is at least the last [`END_BYTES`] or
/// all. `before` is the check value of everything in front of a place in `end`.
pub(crate) fn read_end(end: &[u8], before: impl Fn(usize) -> u32) -> Reading {
    // A whole mark is recognised by its magic; the check for damaged ones takes longer.
    for after in [0, JSON_END.len()] {
        let Some(at) = end.len().checked_sub(MARK_BYTES + after) else { continue };
        if end[at..].starts_with(MAGIC)
            && let Reading::Whole(mark) = read_at(end, at, &before)
        {
            return Reading::Whole(mark);
        }
    }
    let mut damaged = Reading::Foreign;
    for after in [0, JSON_END.len()] {
        let Some(at) = end.len().checked_sub(MARK_BYTES + after) else { continue };
        match read_at(end, at, &before) {
            Reading::Foreign => {}
            reading => damaged = reading,
        }
    }
    damaged
}

fn read_at(end: &[u8], at: usize, before: &impl Fn(usize) -> u32) -> Reading {
    let place = &end[at..at + MARK_BYTES];
    let has_magic = place.starts_with(MAGIC);
    let nothing = if has_magic { Reading::Corrupt(None) } else { Reading::Foreign };
    let mut raw = [0u8; RAW];
    if URL_SAFE_NO_PAD.decode_slice(&place[MAGIC.len()..], &mut raw).is_err() {
        return nothing;
    }
    let word = |from: usize, bytes: usize| {
        raw[from..from + bytes].iter().fold(0u64, |value, byte| value << 8 | u64::from(*byte))
    };
    if word(HEAD, 4) != u64::from(crc32fast::hash(&raw[..HEAD])) {
        return nothing;
    }
    let (lag, waited) = (word(17, 5), u64::from(raw[2] >> 1));
    let mark = Mark {
        tag: word(0, 2) as u16,
        warmup: raw[2] & 1 == 1,
        producer: word(3, 3) as u32,
        sequence: word(6, 5),
        due: Nanos(word(11, 6)),
        lag: Nanos(lag),
        own_lag: Nanos(lag - lag * waited / SHARES),
    };
    let is_whole =
        || word(HEAD + 4, 4) == u64::from(body_check(before(at), &raw, &end[at + MARK_BYTES..]));
    if has_magic && is_whole() { Reading::Whole(mark) } else { Reading::Corrupt(Some(mark)) }
}

/// CRC-32 of everything but the check itself: what precedes the mark (whose value is `before`),
/// the mark's other fields, and what follows it.
fn body_check(before: u32, raw: &[u8; RAW], after: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(before);
    hasher.update(&raw[..HEAD + 4]);
    hasher.update(after);
    hasher.finalize()
}

/// Bytes after the mark in a JSON object.
pub const JSON_END: &[u8] = b"\"}";

/// Bytes at the end of a body that a mark may take up.
pub(crate) const END_BYTES: usize = MARK_BYTES + JSON_END.len();
/// The two characters of every 12 bits.
static PAIRS: [[u8; 2]; 4096] = {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut pairs = [[0; 2]; 4096];
    let mut bits = 0;
    while bits < pairs.len() {
        pairs[bits] = [alphabet[bits >> 6], alphabet[bits & 63]];
        bits += 1;
    }
    pairs
};

const MAGIC: &[u8] = b"WB1.";
const HEAD: usize = 22;
const RAW: usize = HEAD + 8;
const ENCODED: usize = RAW / 3 * 4;
const LAG_MAX: u64 = (1 << 40) - 1;
/// Denominator of the waiting share of a lag: seven bits of the flags hold it.
const SHARES: u64 = 127;

/// A mark of tests.
#[cfg(test)]
pub(crate) const MARK: Mark = Mark {
    tag: 7,
    warmup: false,
    producer: 3,
    sequence: 12,
    due: Nanos(5),
    lag: Nanos(1),
    own_lag: Nanos(1),
};

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
        own_lag: Nanos(42),
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

    /// `cargo test --release -p weigh-model cost_in_nanoseconds -- --ignored --nocapture`
    #[test]
    #[ignore = "prints what a mark costs: the command stands above"]
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

    /// A reader that knows one flag only still reads the rest; the generator's part of the lag is
    /// exact where it is all or nothing, and else never too small.
    #[test]
    fn the_generators_part_of_the_lag_travels_along() {
        for (lag, own) in [(42, 42), (42, 0), (0, 0), (1_000_000, 250_000), (LAG_MAX, 1), (9, 8)] {
            for warmup in [false, true] {
                let (lag, own_lag) = (Nanos(lag), Nanos(own));
                let mark = Mark { warmup, lag, own_lag, ..MARK };
                let mut body = vec![0; MARK_BYTES];
                mark.seal(&mut body, 0);
                let Reading::Whole(read) = Mark::read(&body, 0xBEEF) else { panic!("{mark:?}") };
                assert_eq!((read.warmup, read.lag), (warmup, lag));
                assert!(read.own_lag >= own_lag && read.own_lag <= lag, "{read:?}");
                assert!(read.own_lag.0 - own <= lag.0 / SHARES + 1, "{read:?}");
                let is_exact = own == 0 || own == lag.0;
                assert!(!is_exact || read.own_lag == own_lag, "{read:?}");
            }
        }
    }

    #[test]
    fn other_peoples_bodies_are_foreign() {
        for body in [&b""[..], b"hello", &[0u8; 200], &[b'A'; 44]] {
            assert_eq!(Mark::read(body, 1), Reading::Foreign);
        }
    }
}
