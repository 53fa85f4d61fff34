//! The data types of section 1.5: integers, texts, binary data, variable byte integers.

use super::Fault;

/// Reads fields off the front of a packet's bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(super) fn new(rest: &'a [u8]) -> Cursor<'a> {
        Cursor { rest }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Everything that is left.
    pub(super) fn remainder(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    pub(super) fn take(&mut self, bytes: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) = self.rest.split_at_checked(bytes).ok_or(CUT_SHORT)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Fault> {
        let (&byte, rest) = self.rest.split_first().ok_or(CUT_SHORT)?;
        self.rest = rest;
        Ok(byte)
    }

    /// Two bytes, big-endian (section 1.5.2).
    pub(super) fn two(&mut self) -> Result<u16, Fault> {
        let (bytes, rest) = self.rest.split_first_chunk::<2>().ok_or(CUT_SHORT)?;
        self.rest = rest;
        Ok(u16::from_be_bytes(*bytes))
    }

    /// Four bytes, big-endian (section 1.5.3).
    pub(super) fn four(&mut self) -> Result<u32, Fault> {
        let (bytes, rest) = self.rest.split_first_chunk::<4>().ok_or(CUT_SHORT)?;
        self.rest = rest;
        Ok(u32::from_be_bytes(*bytes))
    }

    /// A variable byte integer in its shortest form (section 1.5.5).
    pub(super) fn varint(&mut self) -> Result<u32, Fault> {
        let mut value = 0;
        for place in 0..4 {
            let byte = self.byte()?;
            value |= u32::from(byte & 0x7F) << (7 * place);
            if byte & 0x80 == 0 {
                return match byte == 0 && place > 0 {
                    true => Err(TOO_LONG_FORM),
                    false => Ok(value),
                };
            }
        }
        Err(Fault::malformed("a variable byte integer has more than four bytes", "1.5.5"))
    }

    /// Binary data with its length (section 1.5.6).
    pub(super) fn binary(&mut self) -> Result<&'a [u8], Fault> {
        let length = self.two()?;
        self.take(usize::from(length))
    }

    /// A text: UTF-8 without surrogates and without U+0000 (section 1.5.4).
    pub(super) fn text(&mut self) -> Result<&'a str, Fault> {
        let bytes = self.binary()?;
        let text = std::str::from_utf8(bytes)
            .map_err(|_| Fault::malformed("a text is not well-formed UTF-8", "1.5.4"))?;
        match bytes.contains(&0) {
            true => Err(Fault::malformed("a text contains the null character", "1.5.4")),
            false => Ok(text),
        }
    }

    /// A packet identifier, which is never 0 (section 2.2.1).
    pub(super) fn packet_id(&mut self) -> Result<u16, Fault> {
        match self.two()? {
            0 => Err(Fault::malformed("the packet identifier is 0", "2.2.1")),
            id => Ok(id),
        }
    }
}

/// Bytes that `value` takes as a variable byte integer (section 1.5.5, table 1-1).
pub fn varint_size(value: usize) -> usize {
    match value {
        0..=127 => 1,
        128..=16_383 => 2,
        16_384..=2_097_151 => 3,
        _ => 4,
    }
}

pub(super) fn put_varint(out: &mut Vec<u8>, mut value: usize) {
    while value > 0x7F {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(super) fn put_two(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// Binary data or a text with its length; what exceeds the format's 65,535 bytes is cut off.
pub(super) fn put_binary(out: &mut Vec<u8>, bytes: &[u8]) {
    let fits = &bytes[..bytes.len().min(usize::from(u16::MAX))];
    put_two(out, fits.len() as u16);
    out.extend_from_slice(fits);
}

/// The fixed header, with room made for what it announces.
pub(super) fn put_header(out: &mut Vec<u8>, first: u8, remaining: usize) {
    out.reserve(5 + remaining);
    out.push(first);
    put_varint(out, remaining);
}

const CUT_SHORT: Fault = Fault::malformed("the packet ends in the middle of a field", "2.1.4");
const TOO_LONG_FORM: Fault = Fault::malformed("a length is written with too many bytes", "1.5.5");
