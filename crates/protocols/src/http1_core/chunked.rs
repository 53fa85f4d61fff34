//! The chunked transfer coding (RFC 9112, section 7.1), decoded piece by piece as it arrives.

use crate::fields::is_token;

/// State of a chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunked {
    part: Part,
    trailer_bytes: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Size,
    Data(u64),
    DataEnd,
    Trailers,
}

/// Result of [`Chunked::advance`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advance {
    /// Bytes of the input that were consumed.
    pub taken: usize,
    /// True once the empty line behind the trailers is taken.
    pub is_whole: bool,
}

/// Why it is not a chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChunkFlaw {
    /// The chunk does not begin with a size.
    #[error("a chunk size that is not a hexadecimal number")]
    BadSize,
    /// More than its size says.
    #[error("a chunk that does not end with its size")]
    BadEnd,
    /// Too long.
    #[error("a chunk extension or trailer section that is too long")]
    TooLong,
    /// A line ends by LF alone.
    #[error("a line that ends without a carriage return")]
    BareLineFeed,
    /// A trailer line is not a field.
    #[error("a trailer line that is not a field")]
    BadTrailer,
}

impl Chunked {
    /// The start of a body.
    pub const START: Chunked = Chunked { part: Part::Size, trailer_bytes: 0 };

    /// Takes what it can of `input`; `data` gets the body's bytes as they come.
    ///
    /// # Errors
    /// If it is not a chunked body.
    pub fn advance(
        &mut self,
        input: &[u8],
        data: &mut dyn FnMut(&[u8]),
    ) -> Result<Advance, ChunkFlaw> {
        let mut taken = 0;
        loop {
            let rest = &input[taken..];
            match self.part {
                Part::Size => {
                    let Some((text, bytes)) = line(rest)? else { break };
                    self.part = match size(text)? {
                        0 => Part::Trailers,
                        size => Part::Data(size),
                    };
                    taken += bytes;
                }
                Part::Data(size) => {
                    let here = rest.len().min(usize::try_from(size).unwrap_or(usize::MAX));
                    if here == 0 {
                        break;
                    }
                    data(&rest[..here]);
                    taken += here;
                    self.part = match size - here as u64 {
                        0 => Part::DataEnd,
                        left => Part::Data(left),
                    };
                }
                Part::DataEnd => match rest {
                    [b'\r', b'\n', ..] => {
                        self.part = Part::Size;
                        taken += 2;
                    }
                    [] | [b'\r'] => break,
                    _ => return Err(ChunkFlaw::BadEnd),
                },
                Part::Trailers => {
                    let Some((text, bytes)) = line(rest)? else { break };
                    taken += bytes;
                    if text.is_empty() {
                        return Ok(Advance { taken, is_whole: true });
                    }
                    self.trailer(text)?;
                }
            }
        }
        Ok(Advance { taken, is_whole: false })
    }

    fn trailer(&mut self, text: &[u8]) -> Result<(), ChunkFlaw> {
        self.trailer_bytes += text.len() as u32;
        if self.trailer_bytes as usize > TRAILER_BYTES_MAX {
            return Err(ChunkFlaw::TooLong);
        }
        let name = text.split(|byte| *byte == b':').next().unwrap_or_default();
        let is_field = name.len() < text.len() && is_token(name);
        if is_field { Ok(()) } else { Err(ChunkFlaw::BadTrailer) }
    }
}

/// The first line of `input` without its end, and its length with it.
fn line(input: &[u8]) -> Result<Option<(&[u8], usize)>, ChunkFlaw> {
    let seen = &input[..input.len().min(LINE_BYTES_MAX)];
    match seen.iter().position(|byte| *byte == b'\n') {
        Some(at) if at > 0 && seen[at - 1] == b'\r' => Ok(Some((&seen[..at - 1], at + 1))),
        Some(_) => Err(ChunkFlaw::BareLineFeed),
        None if input.len() >= LINE_BYTES_MAX => Err(ChunkFlaw::TooLong),
        None => Ok(None),
    }
}

/// The size before any extension; whitespace before a semicolon is tolerated, as RFC 9112,
/// section 7.1.1, asks.
fn size(text: &[u8]) -> Result<u64, ChunkFlaw> {
    let digits = text.split(|byte| *byte == b';').next().unwrap_or_default();
    let has_extension = digits.len() < text.len();
    let digits = if has_extension { digits.trim_ascii_end() } else { digits };
    if digits.is_empty() || digits.len() > SIZE_DIGITS_MAX {
        return Err(ChunkFlaw::BadSize);
    }
    digits.iter().try_fold(0, |value, byte| {
        let digit = char::from(*byte).to_digit(16).ok_or(ChunkFlaw::BadSize)?;
        Ok(value << 4 | u64::from(digit))
    })
}

const LINE_BYTES_MAX: usize = 4096;
const TRAILER_BYTES_MAX: usize = 16 * 1024;
const SIZE_DIGITS_MAX: usize = 15;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: &[u8]) -> Result<(Vec<u8>, Advance), ChunkFlaw> {
        let mut body = Vec::new();
        let mut data = |piece: &[u8]| body.extend_from_slice(piece);
        let mut chunked = Chunked::START;
        let advance = chunked.advance(input, &mut data)?;
        Ok((body, advance))
    }

    #[test]
    fn chunks_extensions_and_trailers_are_taken() {
        let input = b"4;a=\"b\"\r\nwiki\r\n00A ;x\r\n0123456789\r\n0\r\nX-Sum: 7\r\n\r\nHTTP";
        let (body, advance) = read(input).unwrap();
        assert_eq!(body, b"wiki0123456789");
        assert_eq!(advance, Advance { taken: input.len() - 4, is_whole: true });
    }

    #[test]
    fn cuts_change_nothing() {
        let input = b"3\r\nabc\r\n1\r\nd\r\n0\r\nA: b\r\n\r\n";
        for cut in 0..input.len() {
            let mut body = Vec::new();
            let mut data = |piece: &[u8]| body.extend_from_slice(piece);
            let mut chunked = Chunked::START;
            let first = chunked.advance(&input[..cut], &mut data).unwrap();
            assert!(!first.is_whole);
            let second = chunked.advance(&input[first.taken..], &mut data).unwrap();
            assert!(second.is_whole && first.taken + second.taken == input.len());
            assert_eq!(body, b"abcd");
        }
    }

    #[test]
    fn what_is_not_chunked_is_refused() {
        for (input, flaw) in [
            (&b"\r\n"[..], ChunkFlaw::BadSize),
            (b"x\r\n", ChunkFlaw::BadSize),
            (b"-1\r\n", ChunkFlaw::BadSize),
            (b" 1\r\n", ChunkFlaw::BadSize),
            (b"1 \r\n", ChunkFlaw::BadSize),
            (b"0x1\r\n", ChunkFlaw::BadSize),
            (b"1111111111111111\r\n", ChunkFlaw::BadSize),
            (b"1\nab", ChunkFlaw::BareLineFeed),
            (b"1\r\nabc", ChunkFlaw::BadEnd),
            (b"1\r\na\rb", ChunkFlaw::BadEnd),
            (b"0\r\nno field\r\n\r\n", ChunkFlaw::BadTrailer),
            (b"0\r\n folded: x\r\n\r\n", ChunkFlaw::BadTrailer),
        ] {
            assert_eq!(read(input), Err(flaw), "{}", input.escape_ascii());
        }
        assert_eq!(read(&[b'1'; 5000]), Err(ChunkFlaw::TooLong));
    }
}
