//! IDs of entries of a stream: milliseconds and a sequence number.

use super::put::put_decimal;

/// ID of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    /// Milliseconds.
    pub ms: u64,
    /// Number among the entries of that millisecond.
    pub sequence: u64,
}

impl Id {
    /// The lowest ID, before every entry.
    pub const MIN: Id = Id { ms: 0, sequence: 0 };
    /// The highest ID.
    pub const MAX: Id = Id { ms: u64::MAX, sequence: u64::MAX };

    /// Reads `ms-sequence`, or `ms` with the sequence number `missing`.
    pub fn read(text: &[u8], missing: u64) -> Option<Id> {
        let at = text.iter().position(|byte| *byte == b'-');
        let Some(at) = at else { return Some(Id { ms: number(text)?, sequence: missing }) };
        Some(Id { ms: number(&text[..at])?, sequence: number(text.get(at + 1..)?)? })
    }

    /// Returns the ID that follows; `None` after the highest.
    pub fn next(self) -> Option<Id> {
        match self.sequence.checked_add(1) {
            Some(sequence) => Some(Id { sequence, ..self }),
            None => Some(Id { ms: self.ms.checked_add(1)?, sequence: 0 }),
        }
    }

    /// Appends it as text.
    pub fn put(self, out: &mut Vec<u8>) {
        put_decimal(out, self.ms);
        out.push(b'-');
        put_decimal(out, self.sequence);
    }
}

fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_written_and_ordered() {
        let id = Id::read(b"1526919030474-55", 0).unwrap();
        assert_eq!(id, Id { ms: 1_526_919_030_474, sequence: 55 });
        let mut out = Vec::new();
        id.put(&mut out);
        assert_eq!(out, b"1526919030474-55");
        assert_eq!(Id::read(b"7", 9), Some(Id { ms: 7, sequence: 9 }));
        assert_eq!(Id { ms: 1, sequence: u64::MAX }.next(), Some(Id { ms: 2, sequence: 0 }));
        assert_eq!(Id::MAX.next(), None);
        for wrong in [&b""[..], b"-", b"1-", b"-1", b"+1-1", b"1-2-3", b"99999999999999999999"] {
            assert_eq!(Id::read(wrong, 0), None, "{}", wrong.escape_ascii());
        }
    }
}
