//! Options (RFC 7252, section 3.1): each has a number, written as the difference to the option
//! before it, and a value.

use super::flaw::Flaw;

/// One option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoapOption<'m> {
    /// Number: see [`number`].
    pub number: u16,
    /// Value.
    pub value: &'m [u8],
}

/// Numbers of options (section 12.2).
pub mod number {
    /// Name of the host (section 5.10.1).
    pub const URI_HOST: u16 = 3;
    /// Names the representation that a response carries (section 5.10.6).
    pub const ETAG: u16 = 4;
    /// Registers for notifications, or numbers them (RFC 7641, section 2).
    pub const OBSERVE: u16 = 6;
    /// Port of the host.
    pub const URI_PORT: u16 = 7;
    /// The message is protected (RFC 8613, section 2).
    pub const OSCORE: u16 = 9;
    /// A segment of the path.
    pub const URI_PATH: u16 = 11;
    /// Format of the payload.
    pub const CONTENT_FORMAT: u16 = 12;
    /// Seconds for which a response may be cached.
    pub const MAX_AGE: u16 = 14;
    /// A part of the query.
    pub const URI_QUERY: u16 = 15;
    /// Format that the client accepts.
    pub const ACCEPT: u16 = 17;
    /// Block of a response (RFC 7959, section 2.1).
    pub const BLOCK2: u16 = 23;
    /// Block of a request (RFC 7959, section 2.1).
    pub const BLOCK1: u16 = 27;
    /// Size of the whole response (RFC 7959, section 4).
    pub const SIZE2: u16 = 28;
    /// The whole URI of a request to a proxy.
    pub const PROXY_URI: u16 = 35;
    /// Scheme of the URI of a request to a proxy.
    pub const PROXY_SCHEME: u16 = 39;
    /// Size of the whole request (RFC 7959, section 4).
    pub const SIZE1: u16 = 60;
    /// Classes of responses that the client does not want (RFC 7967, section 2).
    pub const NO_RESPONSE: u16 = 258;
}

/// The options of a message, checked: iterating them cannot fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options<'m> {
    bytes: &'m [u8],
}

impl<'m> Options<'m> {
    /// The options in their order.
    pub fn iter(self) -> impl Iterator<Item = CoapOption<'m>> {
        let (mut rest, mut last) = (self.bytes, 0);
        std::iter::from_fn(move || {
            let (option, after) = next(rest, last).ok().flatten()?;
            (rest, last) = (after, option.number);
            Some(option)
        })
    }

    /// The value of the first option with this number.
    pub fn first(self, number: u16) -> Option<&'m [u8]> {
        self.iter().find(|option| option.number == number).map(|option| option.value)
    }

    /// Number of the first critical option (section 5.4.1) that is not among `known`.
    pub fn unknown_critical(self, known: &[u16]) -> Option<u16> {
        let mut numbers = self.iter().map(|option| option.number);
        numbers.find(|number| number % 2 == 1 && !known.contains(number))
    }

    /// Bytes of all options.
    pub fn bytes(self) -> &'m [u8] {
        self.bytes
    }
}

/// Splits what follows the token into options and payload.
///
/// # Errors
/// An option that is cut off or malformed, and a payload marker without a payload.
pub fn split(input: &[u8]) -> Result<(Options<'_>, &[u8]), Flaw> {
    let (mut rest, mut last) = (input, 0);
    while let Some((option, after)) = next(rest, last)? {
        (rest, last) = (after, option.number);
    }
    let bytes = &input[..input.len() - rest.len()];
    match rest {
        [] => Ok((Options { bytes }, &[])),
        [_] => Err(Flaw::NoPayload),
        [_, payload @ ..] => Ok((Options { bytes }, payload)),
    }
}

/// The next option and what follows it; `None` at the end, or at the payload marker.
fn next(input: &[u8], last: u16) -> Result<Option<(CoapOption<'_>, &[u8])>, Flaw> {
    let Some((first, rest)) = input.split_first() else { return Ok(None) };
    if *first == PAYLOAD_MARKER {
        return Ok(None);
    }
    let (delta, rest) = extended(first >> 4, rest)?;
    let (length, rest) = extended(first & 0xf, rest)?;
    let number = u32::from(last) + delta;
    let number = u16::try_from(number).map_err(|_| Flaw::OptionNumber)?;
    let (value, rest) = rest.split_at_checked(length as usize).ok_or(Flaw::OptionCut)?;
    Ok(Some((CoapOption { number, value }, rest)))
}

/// A delta or length: four bits, or one or two bytes more (section 3.1).
fn extended(nibble: u8, rest: &[u8]) -> Result<(u32, &[u8]), Flaw> {
    match (nibble, rest) {
        (0..=12, _) => Ok((nibble.into(), rest)),
        (13, [more, rest @ ..]) => Ok((u32::from(*more) + ONE_BYTE_FROM, rest)),
        (14, [high, low, rest @ ..]) => {
            Ok((u32::from(u16::from_be_bytes([*high, *low])) + TWO_BYTES_FROM, rest))
        }
        (13 | 14, _) => Err(Flaw::OptionCut),
        _ => Err(Flaw::OptionReserved),
    }
}

/// Writes options in rising order of their numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct OptionWriter {
    last: u16,
}

impl OptionWriter {
    /// Continues after an option with this number.
    pub fn after(last: u16) -> OptionWriter {
        OptionWriter { last }
    }

    /// Appends an option. Numbers must not fall; values have at most 65,804 bytes.
    pub fn put(&mut self, out: &mut Vec<u8>, number: u16, value: &[u8]) {
        debug_assert!(number >= self.last, "options are written in rising order");
        let delta = u32::from(number.saturating_sub(self.last));
        let value = &value[..value.len().min(VALUE_BYTES_MAX)];
        let length = value.len() as u32;
        out.push(nibble(delta) << 4 | nibble(length));
        put_extension(out, delta);
        put_extension(out, length);
        out.extend_from_slice(value);
        self.last = number;
    }

    /// Appends an option whose value is a number (section 3.2).
    pub fn put_unsigned(&mut self, out: &mut Vec<u8>, number: u16, value: u32) {
        let (bytes, from) = unsigned(value);
        self.put(out, number, &bytes[from..]);
    }
}

fn nibble(value: u32) -> u8 {
    match value {
        0..ONE_BYTE_FROM => value as u8,
        ONE_BYTE_FROM..TWO_BYTES_FROM => 13,
        _ => 14,
    }
}

fn put_extension(out: &mut Vec<u8>, value: u32) {
    match value {
        0..ONE_BYTE_FROM => {}
        ONE_BYTE_FROM..TWO_BYTES_FROM => out.push((value - ONE_BYTE_FROM) as u8),
        _ => out.extend_from_slice(&((value - TWO_BYTES_FROM) as u16).to_be_bytes()),
    }
}

/// A number as a value: its bytes, and the index of the first that is not zero (section 3.2).
pub fn unsigned(value: u32) -> ([u8; 4], usize) {
    (value.to_be_bytes(), (value.leading_zeros() / 8) as usize)
}

/// The number in a value; `None` if it has more than four bytes.
pub fn read_unsigned(value: &[u8]) -> Option<u32> {
    (value.len() <= 4).then(|| value.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
}

/// The value of Block1 and Block2 (RFC 7959, section 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Index of the block, below 2^20.
    pub index: u32,
    /// True if more blocks follow.
    pub has_more: bool,
    /// The size is 16 bytes shifted left by this; at most [`BLOCK_SZX_MAX`].
    pub szx: u8,
}

impl Block {
    /// Reads a value; `None` if it is too long or its size is the reserved one.
    pub fn read(value: &[u8]) -> Option<Block> {
        let number = read_unsigned(value).filter(|_| value.len() <= 3)?;
        let szx = (number & 7) as u8;
        let block = Block { index: number >> 4, has_more: number & 8 != 0, szx };
        (szx <= BLOCK_SZX_MAX).then_some(block)
    }

    /// The value as a number.
    pub fn number(self) -> u32 {
        self.index << 4 | u32::from(self.has_more) << 3 | u32::from(self.szx)
    }

    /// Bytes of a whole block.
    pub fn bytes(self) -> usize {
        16 << self.szx
    }
}

/// Blocks of 1,024 bytes, the largest.
pub const BLOCK_SZX_MAX: u8 = 6;

/// Deltas and lengths from here on take a byte more.
const ONE_BYTE_FROM: u32 = 13;

/// Deltas and lengths from here on take two bytes more.
const TWO_BYTES_FROM: u32 = 269;

/// The longest value that two bytes can give the length of.
const VALUE_BYTES_MAX: usize = 65_535 + 269;

/// Stands before a payload (section 3).
pub const PAYLOAD_MARKER: u8 = 0xff;
