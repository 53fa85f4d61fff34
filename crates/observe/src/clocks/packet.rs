//! The datagram of an exchange: 40 bytes each way, so that an answer is not longer than its
//! question.
//!
//! Eight bytes of name and form, then five times eight bytes, big-endian: the number of the
//! question, and the stamps T1, T2 and T3 of RFC 5905. A question has zeros in the place of T2 and
//! T3, and nothing else is answered, so that two responders never answer each other.

/// A question, or its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Identifies answers; the first one cannot be guessed.
    pub number: u64,
    /// When the question left, nanoseconds on the asker's clock.
    pub sent_ns: i64,
    /// When it arrived and when the answer left, nanoseconds on the other clock; `None` in a
    /// question.
    pub answer: Option<(i64, i64)>,
}

impl Packet {
    /// Encodes it.
    pub fn encode(&self) -> [u8; BYTES] {
        let (reached, answered) = self.answer.unwrap_or_default();
        let mut bytes = [0; BYTES];
        let fields = [
            *NAME,
            self.number.to_be_bytes(),
            self.sent_ns.to_be_bytes(),
            reached.to_be_bytes(),
            answered.to_be_bytes(),
        ];
        for (place, field) in bytes.chunks_exact_mut(8).zip(fields) {
            place.copy_from_slice(&field);
        }
        bytes
    }

    /// Decodes it; `None` for anything else.
    pub fn decode(bytes: &[u8]) -> Option<Packet> {
        let bytes: &[u8; BYTES] = bytes.try_into().ok()?;
        let (name, fields) = bytes.split_first_chunk::<8>()?;
        if name != NAME {
            return None;
        }
        let mut fields = fields.as_chunks::<8>().0.iter();
        let mut next = || fields.next().map(|field| i64::from_be_bytes(*field));
        let (number, sent_ns) = (next()?.cast_unsigned(), next()?);
        let answer = match (next()?, next()?) {
            (0, 0) => None,
            both => Some(both),
        };
        Some(Packet { number, sent_ns, answer })
    }
}

/// Length of either.
pub const BYTES: usize = 40;

/// Name and form.
const NAME: &[u8; 8] = b"weighck1";

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(number: u64, sent_ns: i64, reached: i64, answered: i64) {
            let is_question = (reached, answered) == (0, 0);
            let answer = (!is_question).then_some((reached, answered));
            let packet = Packet { number, sent_ns, answer };
            prop_assert_eq!(Packet::decode(&packet.encode()), Some(packet));
        }

        #[test]
        fn anything_else_is_nothing(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            prop_assert_eq!(Packet::decode(&bytes), None);
        }
    }
}
