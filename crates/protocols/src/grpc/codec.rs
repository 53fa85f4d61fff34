//! The service of `proto/store.proto` on the wire: messages of gRPC with their prefixes (gRPC over
//! HTTP/2, "Length-Prefixed-Message"), and their fields (Protocol Buffers, "Encoding").

#[cfg(feature = "library")]
pub use super::prost_messages::{
    AppendBatchReply, AppendReply, AppendRequest, CountReply, CountRequest, ReadReply, ReadRequest,
};

/// The service, as it stands in paths (gRPC over HTTP/2, "Requests").
pub const SERVICE: &str = "weigh.store.v1.Store";

/// `Append`, unary.
pub const APPEND: &str = "/weigh.store.v1.Store/Append";
/// `AppendBatch`, client-streaming.
pub const APPEND_BATCH: &str = "/weigh.store.v1.Store/AppendBatch";
/// `AppendEach`, with streams in both directions.
pub const APPEND_EACH: &str = "/weigh.store.v1.Store/AppendEach";
/// `Read`, unary.
pub const READ: &str = "/weigh.store.v1.Store/Read";
/// `Count`, unary.
pub const COUNT: &str = "/weigh.store.v1.Store/Count";

/// Readings of an answer where the call names no limit.
pub const READ_DEFAULT: usize = 100;

/// Bytes before each message: whether it is compressed, and its length.
pub(super) const PREFIX_BYTES: usize = 5;

/// Status codes ("Status codes and their use in gRPC").
pub(super) mod code {
    pub(crate) const UNKNOWN: u16 = 2;
    pub(crate) const INVALID_ARGUMENT: u16 = 3;
    pub(crate) const DEADLINE_EXCEEDED: u16 = 4;
    pub(crate) const OUT_OF_RANGE: u16 = 11;
    pub(crate) const UNIMPLEMENTED: u16 = 12;
    pub(crate) const INTERNAL: u16 = 13;
    pub(crate) const DATA_LOSS: u16 = 15;
    pub(crate) const MAX: u16 = 16;
}

/// Messages that come in pieces of any size.
#[derive(Debug, Default)]
pub(super) struct Messages {
    /// The beginning of a message that is not complete.
    partial: Vec<u8>,
}

impl Messages {
    /// Takes data, and passes each complete message to `each`, without its prefix.
    ///
    /// # Errors
    /// The status of a message that is compressed or larger than `bytes_max`, or what `each`
    /// returned.
    pub(super) fn take(
        &mut self,
        data: &[u8],
        bytes_max: usize,
        mut each: impl FnMut(&[u8]) -> Result<(), u16>,
    ) -> Result<(), u16> {
        if self.partial.is_empty() {
            let taken = whole(data, bytes_max, &mut each)?;
            self.partial.extend_from_slice(&data[taken..]);
            return Ok(());
        }
        self.partial.extend_from_slice(data);
        let taken = whole(&self.partial, bytes_max, &mut each)?;
        self.partial.drain(..taken);
        Ok(())
    }

    /// True if no message has begun.
    pub(super) fn is_empty(&self) -> bool {
        self.partial.is_empty()
    }
}

/// Passes the complete messages at the start of `data` to `each`. Returns their bytes.
fn whole(
    data: &[u8],
    bytes_max: usize,
    each: &mut impl FnMut(&[u8]) -> Result<(), u16>,
) -> Result<usize, u16> {
    let mut taken = 0;
    while let Some(prefix) = data[taken..].first_chunk::<PREFIX_BYTES>() {
        let [compressed, a, b, c, d] = *prefix;
        match compressed {
            0 => {}
            1 => return Err(code::UNIMPLEMENTED),
            _ => return Err(code::INTERNAL),
        }
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if length > bytes_max {
            return Err(code::OUT_OF_RANGE);
        }
        let start = taken + PREFIX_BYTES;
        let Some(message) = data.get(start..start + length) else { break };
        each(message)?;
        taken = start + length;
    }
    Ok(taken)
}

/// The prefix of a message of `length` bytes.
pub(super) fn prefix(length: usize) -> [u8; PREFIX_BYTES] {
    let [a, b, c, d] = (length as u32).to_be_bytes();
    [0, a, b, c, d]
}

/// A field's value, as far as the service has such fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'m> {
    Number(u64),
    Bytes(&'m [u8]),
    /// Of a type that the service does not use.
    Other,
}

/// Passes the fields of a message to `each`, by number; false if the message is not valid.
#[must_use]
pub(super) fn read_fields<'m>(message: &'m [u8], mut each: impl FnMut(u64, Value<'m>)) -> bool {
    let mut rest = message;
    while !rest.is_empty() {
        let Some(tag) = varint(&mut rest) else { return false };
        let bytes = match tag & 7 {
            0 => {
                let Some(number) = varint(&mut rest) else { return false };
                each(tag >> 3, Value::Number(number));
                continue;
            }
            1 => 8,
            2 => match varint(&mut rest).map(usize::try_from) {
                Some(Ok(length)) => length,
                _ => return false,
            },
            5 => 4,
            _ => return false,
        };
        let Some((value, after)) = rest.split_at_checked(bytes) else { return false };
        rest = after;
        each(tag >> 3, if tag & 7 == 2 { Value::Bytes(value) } else { Value::Other });
    }
    true
}

/// The reading of an `AppendRequest`; `None` if the message is not valid.
pub(super) fn reading(message: &[u8]) -> Option<&[u8]> {
    let mut reading = &[][..];
    let is_valid = read_fields(message, |number, value| {
        if let (1, Value::Bytes(bytes)) = (number, value) {
            reading = bytes;
        }
    });
    is_valid.then_some(reading)
}

/// Appends the tag and the length of a field of bytes.
pub(super) fn put_bytes_head(out: &mut Vec<u8>, field: u8, length: usize) {
    out.push(field << 3 | 2);
    put_varint(out, length as u64);
}

/// Appends a field of a number, unless it is 0, which is left out.
pub(super) fn put_number(out: &mut Vec<u8>, field: u8, number: u64) {
    if number > 0 {
        out.push(field << 3);
        put_varint(out, number);
    }
}

/// Bytes of a number as a varint.
pub(super) fn varint_bytes(number: u64) -> usize {
    (64 - (number | 1).leading_zeros() as usize).div_ceil(7)
}

pub(super) fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for place in 0..10 {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        number |= u64::from(byte & 0x7f).checked_shl(7 * place)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn message(reading: &[u8]) -> Vec<u8> {
        let mut message = Vec::new();
        put_bytes_head(&mut message, 1, reading.len());
        message.extend_from_slice(reading);
        message
    }

    #[test]
    fn fields_are_read_as_they_were_written() {
        assert_eq!(message(b"hi"), [0x0a, 2, b'h', b'i']);
        assert_eq!(reading(&message(b"hi")), Some(&b"hi"[..]));
        assert_eq!(reading(b""), Some(&b""[..]));
        let mut out = Vec::new();
        put_number(&mut out, 1, 300);
        put_number(&mut out, 2, 0);
        assert_eq!(out, [0x08, 0xac, 0x02]);
        let mut fields = Vec::new();
        assert!(read_fields(&out, |number, value| fields.push((number, value))));
        assert_eq!(fields, [(1, Value::Number(300))]);
        for (number, bytes) in
            [(0, 1), (127, 1), (128, 2), (16_383, 2), (16_384, 3), (u64::MAX, 10)]
        {
            assert_eq!(varint_bytes(number), bytes, "{number}");
        }
        // Unknown fields of every type are passed over, and the last of several values counts.
        let unknown = [&[0x11][..], &[0; 8], &[0x1d], &[0; 4], &[0x20, 1]].concat();
        let both = [message(b"a"), unknown, message(b"b")].concat();
        assert_eq!(reading(&both), Some(&b"b"[..]));
        for wrong in [&[0x0a][..], &[0x0a, 2, 1], &[0x0b], &[0x80; 11], &[0x09, 1]] {
            assert_eq!(reading(wrong), None, "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn messages_are_found_in_any_pieces(
            lengths in vec(0_usize..50, 0..6), cuts in vec(0_usize..400, 0..6)
        ) {
            let bodies: Vec<Vec<u8>> = lengths.iter().map(|length| vec![7; *length]).collect();
            let mut stream = Vec::new();
            for body in &bodies {
                stream.extend_from_slice(&prefix(body.len()));
                stream.extend_from_slice(body);
            }
            let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % (stream.len() + 1)).collect();
            ends.push(stream.len());
            ends.sort_unstable();
            let (mut messages, mut found, mut from) = (Messages::default(), Vec::new(), 0);
            for end in ends {
                let piece = &stream[from..end];
                let taken = messages.take(piece, 50, |message| {
                    found.push(message.to_vec());
                    Ok(())
                });
                prop_assert_eq!(taken, Ok(()));
                from = end;
            }
            prop_assert_eq!(found, bodies);
            prop_assert!(messages.is_empty());
        }
    }

    #[test]
    fn messages_that_cannot_be_taken_have_a_status() {
        let status = |data: &[u8]| Messages::default().take(data, 3, |_| Ok(())).err();
        assert_eq!(status(&[0, 0, 0, 0, 3, 1, 2, 3]), None);
        assert_eq!(status(&[0, 0, 0, 0, 4]), Some(code::OUT_OF_RANGE));
        assert_eq!(status(&[1, 0, 0, 0, 0]), Some(code::UNIMPLEMENTED));
        assert_eq!(status(&[2, 0, 0, 0, 0]), Some(code::INTERNAL));
    }

    /// The definition that foreign clients read names every method and field, with its number, that
    /// stands here.
    #[test]
    fn the_definition_and_the_code_agree() {
        let definition = include_str!("../../proto/store.proto");
        let (package, service) = SERVICE.rsplit_once('.').unwrap();
        assert!(definition.contains(&format!("package {package};")));
        assert!(definition.contains(&format!("service {service} {{")));
        for path in [APPEND, APPEND_BATCH, APPEND_EACH, READ, COUNT] {
            let method = path.strip_prefix(&format!("/{SERVICE}/")).unwrap();
            assert!(definition.contains(&format!("rpc {method}(")), "{method}");
        }
        for field in [
            "bytes reading = 1;",
            "uint64 appended = 1;",
            "uint64 since = 1;",
            "uint32 limit = 2;",
            "string sensor = 3;",
            "repeated bytes readings = 1;",
            "uint64 next = 2;",
            "uint64 count = 1;",
        ] {
            assert!(definition.contains(field), "{field}");
        }
        assert_eq!(definition.matches(" = ").count(), 8 + 1, "as many fields, and the syntax");
    }
}
