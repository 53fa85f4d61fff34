//! Frames (RFC 6455, section 5): their headers, read and written, and the mask.

use crate::close::Broken;

/// Kind of a frame (RFC 6455, section 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// More of the message before it.
    Continuation,
    /// A message of text.
    Text,
    /// A message of bytes.
    Binary,
    /// The end.
    Close,
    /// To be answered by a pong with the same payload.
    Ping,
    /// An answer to a ping.
    Pong,
}

impl Opcode {
    /// True for a frame that does not belong to a message.
    pub fn is_control(self) -> bool {
        matches!(self, Opcode::Close | Opcode::Ping | Opcode::Pong)
    }

    fn bits(self) -> u8 {
        match self {
            Opcode::Continuation => 0,
            Opcode::Text => 1,
            Opcode::Binary => 2,
            Opcode::Close => 8,
            Opcode::Ping => 9,
            Opcode::Pong => 10,
        }
    }

    fn of(bits: u8) -> Option<Opcode> {
        Some(match bits {
            0 => Opcode::Continuation,
            1 => Opcode::Text,
            2 => Opcode::Binary,
            8 => Opcode::Close,
            9 => Opcode::Ping,
            10 => Opcode::Pong,
            _ => return None,
        })
    }
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Kind of the frame.
    pub opcode: Opcode,
    /// True for the last frame of a message, and for every control frame.
    pub is_last: bool,
    /// Key of the mask, if the payload is masked.
    pub mask: Option<[u8; 4]>,
    /// Bytes of the payload.
    pub length: u64,
}

impl Header {
    /// Reads the header at the start of `input`, and its number of bytes; `None` if it is not all
    /// there. Of what a client sends if it `expects_mask`, else of what a server sends.
    ///
    /// # Errors
    /// A header that the standard does not allow at any place.
    pub fn read(input: &[u8], expects_mask: bool) -> Result<Option<(Header, usize)>, Broken> {
        let [first, second, ..] = *input else { return Ok(None) };
        if first & RESERVED != 0 {
            return Err(Broken::rule("reserved bits are set, and no extension was agreed on"));
        }
        let opcode = Opcode::of(first & 0x0F)
            .ok_or_else(|| Broken::rule(format!("there is no opcode {}", first & 0x0F)))?;
        let (is_last, is_masked) = (first & FIN != 0, second & MASKED != 0);
        if is_masked != expects_mask {
            let which = if is_masked { "a server's frame is" } else { "a client's frame is not" };
            return Err(Broken::rule(format!("{which} masked")));
        }
        let bytes = bytes(second);
        let Some(header) = input.get(..bytes) else { return Ok(None) };
        let (length, least) = match second & !MASKED {
            LENGTH_16 => (u64::from(u16::from_be_bytes([header[2], header[3]])), 126),
            LENGTH_64 => {
                let mut bytes = [0; 8];
                bytes.copy_from_slice(&header[2..10]);
                (u64::from_be_bytes(bytes), 0x1_0000)
            }
            length => (u64::from(length), 0),
        };
        if length < least || length > i64::MAX as u64 {
            return Err(Broken::rule(format!("a length of {length} is not written so")));
        }
        if opcode.is_control() && (!is_last || length > CONTROL_BYTES_MAX) {
            return Err(Broken::rule("a control frame is in pieces or longer than 125 bytes"));
        }
        let mask = is_masked.then(|| {
            let mut key = [0; 4];
            key.copy_from_slice(&header[bytes - 4..]);
            key
        });
        Ok(Some((Header { opcode, is_last, mask, length }, bytes)))
    }

    /// Appends it.
    pub fn put(&self, out: &mut Vec<u8>) {
        out.push(if self.is_last { FIN } else { 0 } | self.opcode.bits());
        let masked = if self.mask.is_some() { MASKED } else { 0 };
        match self.length {
            length @ 0..=125 => out.push(masked | length as u8),
            length @ 126..=0xFFFF => {
                out.push(masked | LENGTH_16);
                out.extend_from_slice(&(length as u16).to_be_bytes());
            }
            length => {
                out.push(masked | LENGTH_64);
                out.extend_from_slice(&length.to_be_bytes());
            }
        }
        if let Some(key) = self.mask {
            out.extend_from_slice(&key);
        }
    }
}

/// Bytes of a header by its second byte.
pub(crate) fn bytes(second: u8) -> usize {
    let length = match second & !MASKED {
        LENGTH_16 => 2,
        LENGTH_64 => 8,
        _ => 0,
    };
    2 + length + if second & MASKED != 0 { 4 } else { 0 }
}

/// Appends a whole frame. Clients mask (RFC 6455, section 5.3), servers never do.
pub fn put_frame(out: &mut Vec<u8>, opcode: Opcode, mask: Option<[u8; 4]>, payload: &[u8]) {
    put_part(out, opcode, mask, payload, true);
}

/// Appends a frame which is the last of its message or not.
pub fn put_part(
    out: &mut Vec<u8>,
    opcode: Opcode,
    mask: Option<[u8; 4]>,
    payload: &[u8],
    is_last: bool,
) {
    out.reserve(payload.len() + HEADER_BYTES_MAX);
    Header { opcode, is_last, mask, length: payload.len() as u64 }.put(out);
    let start = out.len();
    out.extend_from_slice(payload);
    if let Some(key) = mask {
        apply_mask(&mut out[start..], key, 0);
    }
}

/// Returns the length of the header of a frame with `payload` bytes: 2, and 2 or 8 for a length
/// above 125 or 65,535, and 4 for the mask (RFC 6455, section 5.2).
pub fn header_bytes(payload: u64, is_masked: bool) -> u64 {
    let length = match payload {
        0..=125 => 0,
        126..=0xFFFF => 2,
        _ => 8,
    };
    2 + length + if is_masked { 4 } else { 0 }
}

/// XOR with the key, as if `at` bytes had come before (RFC 6455, section 5.3).
pub fn apply_mask(bytes: &mut [u8], key: [u8; 4], at: u64) {
    let mut turned = key;
    turned.rotate_left((at % 4) as usize);
    let wide = u64::from_ne_bytes([
        turned[0], turned[1], turned[2], turned[3], turned[0], turned[1], turned[2], turned[3],
    ]);
    let (chunks, rest) = bytes.as_chunks_mut::<8>();
    for chunk in chunks {
        *chunk = (u64::from_ne_bytes(*chunk) ^ wide).to_ne_bytes();
    }
    for (byte, key) in rest.iter_mut().zip(turned.iter().cycle()) {
        *byte ^= key;
    }
}

/// Longest header.
pub const HEADER_BYTES_MAX: usize = 14;

// RFC 6455, sections 5.2 and 5.5.
const FIN: u8 = 0x80;
const RESERVED: u8 = 0x70;
const MASKED: u8 = 0x80;
const LENGTH_16: u8 = 126;
const LENGTH_64: u8 = 127;
const CONTROL_BYTES_MAX: u64 = 125;
