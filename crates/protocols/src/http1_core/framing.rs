//! Framing of HTTP/1.1 messages, for both ends: where a body ends (RFC 9112, section 6.3) and
//! whether the connection stays open (section 9.3).

use httparse::Header;

/// Why a head cannot be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Flaw {
    #[error("Content-Length is not a whole number")]
    BadLength,
    #[error("two Content-Length fields that differ")]
    LengthConflict,
    #[error("both Content-Length and Transfer-Encoding")]
    LengthAndCoding,
    #[error("Transfer-Encoding in a message of HTTP/1.0")]
    CodingInHttp10,
    #[error("chunked is applied twice, or is not the last transfer coding")]
    ChunkedMisplaced,
    #[error("a transfer coding other than chunked")]
    UnknownCoding,
}

/// The fields of a head that decide about framing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Framing {
    pub(crate) length: Option<u64>,
    pub(crate) is_chunked: bool,
    pub(crate) has_other_coding: bool,
    pub(crate) says_close: bool,
    pub(crate) says_keep_alive: bool,
}

impl Framing {
    /// Reads the framing fields of a head of HTTP/1.`minor`.
    pub(crate) fn of(headers: &[Header<'_>], minor: u8) -> Result<Framing, Flaw> {
        let mut framing = Framing::default();
        for header in headers {
            let name = header.name.as_bytes();
            // The length of a name tells most others apart before a byte is compared.
            match name.len() {
                14 if name.eq_ignore_ascii_case(b"content-length") => {
                    framing.add_length(header.value)?;
                }
                17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                    framing.add_codings(header.value)?;
                }
                10 if name.eq_ignore_ascii_case(b"connection") => {
                    framing.add_options(header.value);
                }
                _ => {}
            }
        }
        let has_coding = framing.is_chunked || framing.has_other_coding;
        match has_coding {
            true if minor == 0 => Err(Flaw::CodingInHttp10),
            true if framing.length.is_some() => Err(Flaw::LengthAndCoding),
            _ => Ok(framing),
        }
    }

    /// Whether the connection stays open after a message of HTTP/1.`minor`.
    pub(crate) fn keeps_alive(&self, minor: u8) -> bool {
        !self.says_close && (minor >= 1 || self.says_keep_alive)
    }

    /// Identical repetitions are one value; RFC 9112, section 6.3, item 5.
    fn add_length(&mut self, value: &[u8]) -> Result<(), Flaw> {
        for item in items(value) {
            let length = decimal(item).ok_or(Flaw::BadLength)?;
            if self.length.is_some_and(|earlier| earlier != length) {
                return Err(Flaw::LengthConflict);
            }
            self.length = Some(length);
        }
        Ok(())
    }

    fn add_codings(&mut self, value: &[u8]) -> Result<(), Flaw> {
        for item in items(value) {
            if self.is_chunked {
                return Err(Flaw::ChunkedMisplaced);
            }
            match item.eq_ignore_ascii_case(b"chunked") {
                true => self.is_chunked = true,
                false if item.is_empty() => return Err(Flaw::UnknownCoding),
                false => self.has_other_coding = true,
            }
        }
        Ok(())
    }

    fn add_options(&mut self, value: &[u8]) {
        for item in items(value) {
            self.says_close |= item.eq_ignore_ascii_case(b"close");
            self.says_keep_alive |= item.eq_ignore_ascii_case(b"keep-alive");
        }
    }
}

/// The items of a comma-separated list.
fn items(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

/// `1*DIGIT` (RFC 9110, section 8.6) that fits 63 bits, and nothing else.
pub(crate) fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > DIGITS_MAX {
        return None;
    }
    text.iter().try_fold(0, |value: u64, byte| {
        byte.is_ascii_digit().then(|| value * 10 + u64::from(byte - b'0'))
    })
}

/// Appends `number` in decimal digits.
pub(crate) fn put_decimal(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// The last head that was read and its meaning. Peers repeat their heads byte for byte (but
/// for a date that changes once a second), and comparing costs a tenth of reading.
#[derive(Default)]
pub(crate) struct Memory<T> {
    bytes: Box<[u8]>,
    meaning: Option<T>,
}

impl<T: Copy> Memory<T> {
    pub(crate) const fn new(bytes: Box<[u8]>) -> Memory<T> {
        Memory { bytes, meaning: None }
    }

    /// Meaning and length of the head at the start of `input`, if it is the remembered one.
    /// A remembered head ends with its empty line, so no longer head starts with it.
    pub(crate) fn recall(&self, input: &[u8]) -> Option<(T, usize)> {
        let meaning = self.meaning?;
        input.starts_with(&self.bytes).then_some((meaning, self.bytes.len()))
    }

    /// Remembers a whole head, unless it is long.
    pub(crate) fn keep(&mut self, head: &[u8], meaning: T) {
        if head.len() > REMEMBERED_BYTES_MAX {
            return;
        }
        if self.bytes.len() == head.len() {
            self.bytes.copy_from_slice(head);
        } else {
            self.bytes = head.into();
        }
        self.meaning = Some(meaning);
    }
}

/// Header fields in one head, at most.
pub(crate) const FIELDS_MAX: usize = 64;
/// Bytes of one head, at most; a longer request is answered with 431.
pub(crate) const HEAD_BYTES_MAX: usize = 16 * 1024;

const REMEMBERED_BYTES_MAX: usize = 512;
const DIGITS_MAX: usize = 18;

#[cfg(test)]
mod tests {
    use super::*;

    fn framing(fields: &[(&str, &str)]) -> Result<Framing, Flaw> {
        let headers: Vec<Header<'_>> =
            fields.iter().map(|(name, value)| Header { name, value: value.as_bytes() }).collect();
        Framing::of(&headers, 1)
    }

    #[test]
    fn lengths_are_digits_and_agree() {
        let length = |value| framing(&[("content-LENGTH", value)]).map(|f| f.length);
        assert_eq!(length("0"), Ok(Some(0)));
        assert_eq!(length("5, 5"), Ok(Some(5)));
        assert_eq!(length("5, 6"), Err(Flaw::LengthConflict));
        for bad in ["", "+5", "-5", "5 5", "0x5", "5,", "1234567890123456789"] {
            assert_eq!(length(bad), Err(Flaw::BadLength), "{bad:?}");
        }
        let two = [("Content-Length", "5"), ("Content-Length", "6")];
        assert_eq!(framing(&two), Err(Flaw::LengthConflict));
    }

    #[test]
    fn chunked_stands_alone_and_last() {
        let coding = |value| framing(&[("Transfer-Encoding", value)]);
        assert!(coding("Chunked").unwrap().is_chunked);
        assert!(coding("gzip, chunked").unwrap().has_other_coding);
        assert_eq!(coding("chunked, gzip"), Err(Flaw::ChunkedMisplaced));
        assert_eq!(coding("chunked, chunked"), Err(Flaw::ChunkedMisplaced));
        assert_eq!(coding("chunked,"), Err(Flaw::ChunkedMisplaced));
        assert_eq!(coding(""), Err(Flaw::UnknownCoding));
        let both = [("Content-Length", "5"), ("Transfer-Encoding", "chunked")];
        assert_eq!(framing(&both), Err(Flaw::LengthAndCoding));
    }

    #[test]
    fn numbers_are_written_as_they_are_read() {
        for number in [0, 9, 10, 64, 999_999_999_999_999_999] {
            let mut out = Vec::new();
            put_decimal(&mut out, number);
            assert_eq!(decimal(&out), Some(number));
        }
    }
}
