//! Does what a kind is to do to the bytes of one connection, as they pass.

use weigh_model::protocol::Transport;

use crate::kind::{Act, End, Kind, Place, SPAN};
use crate::speaker::Rehearsal;

/// The bytes of one direction of one connection.
pub struct Tamper {
    act: Act,
    /// The place, once it is known.
    at: Option<u64>,
    awaits_greeting: Option<u64>,
    is_first: bool,
    is_done: bool,
    is_muted: bool,
    /// Honest bytes that have passed.
    offset: u64,
    /// All of them, where they are to be said again.
    said: Vec<u8>,
}

/// What is to be sent in place of some honest bytes.
#[derive(Default)]
pub struct Passed {
    pub bytes: Vec<u8>,
    pub flood: Option<Flood>,
    pub end: Option<End>,
    /// From here on slowly.
    pub drips: bool,
}

/// Bytes that are said over and over.
#[derive(Clone, Copy, Debug)]
pub struct Flood {
    pub pattern: &'static [u8],
    pub left: usize,
}

/// Which side the honest bytes are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Client,
    Server,
}

impl Tamper {
    /// Lets everything pass.
    pub fn none() -> Tamper {
        Tamper {
            act: Act::Cut(End::Stay),
            at: None,
            awaits_greeting: None,
            is_first: false,
            is_done: true,
            is_muted: false,
            offset: 0,
            said: Vec::new(),
        }
    }

    /// What `kind` does on the connection of this number, where an honest one would be as long as
    /// `known`.
    pub fn new(kind: &Kind, number: u64, side: Side, known: &Rehearsal) -> Tamper {
        let (greeting, all) = match side {
            Side::Client => known.client,
            Side::Server => known.server,
        };
        let place = number % SPAN;
        let (at, awaits_greeting) = match (kind.place, side) {
            (Place::First, _) => (None, None),
            (Place::At(at), _) => (Some(at), None),
            (Place::Each, _) => (Some(place), None),
            (Place::Eighth(eighths), _) => (Some((all * eighths / 8).min(all - 1)), None),
            // A client knows when its session stands; a server, how much it has said until then.
            (Place::Greeted, Side::Client) => (None, Some(0)),
            (Place::EachGreeted, Side::Client) => (None, Some(place)),
            (Place::Greeted, Side::Server) => (Some(greeting), None),
            (Place::EachGreeted, Side::Server) => (Some(greeting + place), None),
        };
        let is_first = kind.place == Place::First;
        let act = kind.act;
        Tamper { act, at, awaits_greeting, is_first, is_done: false, ..Tamper::none() }
    }

    /// The session stands.
    pub fn greeted(&mut self) {
        if let Some(after) = self.awaits_greeting.take() {
            self.at = Some(self.offset + after);
        }
    }

    /// The connection stands.
    pub fn begin(&mut self) -> Passed {
        let mut passed = Passed::default();
        if self.is_first {
            self.act(0, &mut passed);
        }
        passed
    }

    /// The honest side would say this.
    pub fn pass(&mut self, honest: &[u8]) -> Passed {
        if self.is_muted {
            return Passed::default();
        }
        let mut passed = Passed { bytes: honest.to_vec(), ..Passed::default() };
        let place = self.at.and_then(|at| at.checked_sub(self.offset));
        let place = place.filter(|place| !self.is_done && *place < honest.len() as u64);
        if let Some(place) = place {
            self.act(place as usize, &mut passed);
        }
        if self.act == Act::Twice {
            self.said.extend_from_slice(honest);
        }
        self.offset += honest.len() as u64;
        passed
    }

    fn act(&mut self, place: usize, passed: &mut Passed) {
        self.is_done = true;
        let bytes = &mut passed.bytes;
        match self.act {
            Act::Set(value) => bytes.iter_mut().skip(place).take(1).for_each(|byte| *byte = value),
            Act::Flip(bits) => bytes.iter_mut().skip(place).take(1).for_each(|byte| *byte ^= bits),
            Act::Insert(more) => drop(bytes.splice(place..place, more.iter().copied())),
            Act::Skip(count) => drop(bytes.drain(place..bytes.len().min(place + count))),
            Act::Twice => {
                let mut before = self.said.clone();
                before.extend_from_slice(&bytes[..place]);
                drop(bytes.splice(place..place, before));
            }
            Act::Drip => passed.drips = true,
            Act::Cut(End::Deaf) => passed.end = Some(End::Deaf),
            Act::Cut(end) => self.mute(place, passed, b"", end),
            Act::Instead(more, end) => self.mute(place, passed, more, end),
            Act::Flood(pattern, left, end) => {
                self.mute(place, passed, b"", end);
                passed.flood = Some(Flood { pattern, left });
            }
            Act::Body(head, pattern, left, end) => {
                self.mute(place, passed, head, end);
                passed.flood = Some(Flood { pattern, left });
            }
        }
    }

    fn mute(&mut self, place: usize, passed: &mut Passed, more: &[u8], end: End) {
        self.is_muted = true;
        passed.bytes.truncate(place);
        passed.bytes.extend_from_slice(more);
        passed.end = Some(end);
    }

    /// True if nothing honest is said any more.
    pub fn is_muted(&self) -> bool {
        self.is_muted
    }
}

impl Flood {
    /// The next piece; `None` if it is over. A datagram has the pattern once, unless that is short.
    pub fn next(&mut self, transport: Transport) -> Option<Vec<u8>> {
        let whole = match transport {
            Transport::Stream => PIECE_BYTES,
            Transport::Datagram | Transport::DatagramRuns | Transport::Streams
                if self.pattern.len() < DATAGRAM_BYTES_MIN =>
            {
                DATAGRAM_BYTES
            }
            Transport::Datagram | Transport::DatagramRuns | Transport::Streams => {
                self.pattern.len()
            }
        };
        let length = self.left.min(whole);
        self.left -= length;
        (length > 0).then(|| self.pattern.iter().copied().cycle().take(length).collect())
    }
}

const PIECE_BYTES: usize = 16 * 1024;

/// A pattern below this is said over and over within a datagram.
const DATAGRAM_BYTES_MIN: usize = 4;

const DATAGRAM_BYTES: usize = 1_200;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::at;

    const KNOWN: Rehearsal = Rehearsal { client: (4, 12), server: (2, 6) };

    fn played(place: Place, act: Act) -> Vec<u8> {
        let mut tamper = Tamper::new(&at("", place, act), 3, Side::Client, &KNOWN);
        let mut said = tamper.begin().bytes;
        said.extend(tamper.pass(b"abcd").bytes);
        tamper.greeted();
        said.extend(tamper.pass(b"efgh").bytes);
        said.extend(tamper.pass(b"ijkl").bytes);
        said
    }

    #[test]
    fn bytes_are_changed_where_they_are_to_be() {
        for (place, act, expected) in [
            (Place::First, Act::Instead(b"!", End::Stay), "!"),
            (Place::At(0), Act::Instead(b"!", End::Stay), "!"),
            (Place::Greeted, Act::Instead(b"!", End::Stay), "abcd!"),
            (Place::Eighth(4), Act::Insert(b"--"), "abcdef--ghijkl"),
            (Place::Eighth(8), Act::Set(b'!'), "abcdefghijk!"),
            (Place::Each, Act::Flip(0x20), "abcDefghijkl"),
            (Place::EachGreeted, Act::Skip(4), "abcdefgijkl"),
            (Place::At(5), Act::Twice, "abcdeabcdefghijkl"),
            (Place::At(5), Act::Cut(End::Reset), "abcde"),
            (Place::At(5), Act::Cut(End::Deaf), "abcdefghijkl"),
        ] {
            let said = String::from_utf8(played(place, act)).unwrap();
            assert_eq!(said, expected, "{place:?} {act:?}");
        }
    }
}
