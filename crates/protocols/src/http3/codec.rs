//! Frames of HTTP/3 (RFC 9114, section 7): the bytes of a stream in, one frame or a part of its
//! content at a time out.

use std::borrow::Cow;

use crate::http2_core::head::Naming;

/// Names of the version.
pub(super) const NAMING: Naming = Naming { key: "http3", secure: "h3" };

/// A rule that the peer broke, with the code of the error (section 8.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Breach {
    pub(super) code: u64,
    pub(super) what: Cow<'static, str>,
}

impl Breach {
    pub(super) fn new(code: u64, what: impl Into<Cow<'static, str>>) -> Breach {
        Breach { code, what: what.into() }
    }
}

impl std::fmt::Display for Breach {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.what, code_name(self.code))
    }
}

/// A frame, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame<'i> {
    /// The next content of a message.
    Data(&'i [u8]),
    /// Any other frame that is known, whole: its type and payload.
    Whole(u64, Cow<'i, [u8]>),
}

/// Reads the frames of one stream.
#[derive(Debug, Default)]
pub(super) struct FrameReader {
    /// A head or a payload that is not whole yet.
    buffer: Vec<u8>,
    /// The frame whose payload is being read: its type, and the bytes that are left.
    open: Option<(u64, u64)>,
}

impl FrameReader {
    /// Takes the next frame from the begin of `input`, and moves `input` behind it; `None` if it
    /// holds no more.
    ///
    /// # Errors
    /// Types that HTTP/3 reserves, and frames that are too large.
    pub(super) fn next<'i>(&mut self, input: &mut &'i [u8]) -> Result<Option<Frame<'i>>, Breach> {
        loop {
            let (kind, left) = match self.open {
                Some(open) => open,
                None => match self.head(input) {
                    Some((kind, length)) => {
                        check(kind, length)?;
                        self.open = Some((kind, length));
                        (kind, length)
                    }
                    None => return Ok(None),
                },
            };
            let here = input.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let is_whole = here as u64 == left;
            if is_known(kind) && kind != DATA {
                if self.buffer.is_empty() && is_whole {
                    let (payload, after) = input.split_at(here);
                    (*input, self.open) = (after, None);
                    return Ok(Some(Frame::Whole(kind, Cow::Borrowed(payload))));
                }
                let (part, after) = input.split_at(here);
                self.buffer.extend_from_slice(part);
                (*input, self.open) = (after, Some((kind, left - here as u64)));
                if !is_whole {
                    return Ok(None);
                }
                self.open = None;
                let payload = std::mem::take(&mut self.buffer);
                return Ok(Some(Frame::Whole(kind, Cow::Owned(payload))));
            }
            let (part, after) = input.split_at(here);
            *input = after;
            self.open = if is_whole { None } else { Some((kind, left - here as u64)) };
            if kind == DATA && !part.is_empty() {
                return Ok(Some(Frame::Data(part)));
            }
            // Frames of unknown types are passed over (section 9).
            if !is_whole {
                return Ok(None);
            }
        }
    }

    /// True where a stream may end: between two frames.
    pub(super) fn is_between(&self) -> bool {
        self.open.is_none() && self.buffer.is_empty()
    }

    /// Reads type and length of a frame.
    fn head(&mut self, input: &mut &[u8]) -> Option<(u64, u64)> {
        if self.buffer.is_empty()
            && let Some((head, bytes)) = two_numbers(input)
        {
            *input = &input[bytes..];
            return Some(head);
        }
        while let Some((byte, after)) = input.split_first() {
            *input = after;
            self.buffer.push(*byte);
            if let Some((head, _)) = two_numbers(&self.buffer) {
                self.buffer.clear();
                return Some(head);
            }
        }
        None
    }
}

fn two_numbers(bytes: &[u8]) -> Option<((u64, u64), usize)> {
    let (kind, first) = number(bytes)?;
    let (length, second) = number(&bytes[first..])?;
    Some(((kind, length), first + second))
}

fn is_known(kind: u64) -> bool {
    matches!(kind, DATA | HEADERS | CANCEL_PUSH | SETTINGS | PUSH_PROMISE | GOAWAY | MAX_PUSH_ID)
}

fn check(kind: u64, length: u64) -> Result<(), Breach> {
    // Section 7.2.8: types of HTTP/2 that HTTP/3 does not have.
    if matches!(kind, 2 | 6 | 8 | 9) {
        return Err(Breach::new(FRAME_UNEXPECTED, format!("a frame of type {kind} of HTTP/2")));
    }
    if is_known(kind) && kind != DATA && length > PAYLOAD_BYTES_MAX {
        return Err(Breach::new(EXCESSIVE_LOAD, format!("a frame of {length} bytes")));
    }
    Ok(())
}

/// Reads an integer of QUIC (RFC 9000, section 16), and how many bytes it has.
pub(super) fn number(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    let length = 1 << (first >> 6);
    let digits = bytes.get(..length)?;
    let value = digits[1..]
        .iter()
        .fold(u64::from(first & 0x3f), |value, digit| value << 8 | u64::from(*digit));
    Some((value, length))
}

/// Appends an integer of QUIC in its shortest form.
pub(super) fn put_number(out: &mut Vec<u8>, value: u64) {
    match value {
        0..=0x3f => out.push(value as u8),
        0x40..=0x3fff => out.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        0x4000..=0x3fff_ffff => {
            out.extend_from_slice(&(value as u32 | 0x8000_0000).to_be_bytes());
        }
        _ => out.extend_from_slice(&(value | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

/// Appends a HEADERS frame whose section `put` appends; sections have less than 16,384 bytes.
pub(super) fn put_headers(out: &mut Vec<u8>, put: impl FnOnce(&mut Vec<u8>)) {
    out.push(HEADERS as u8);
    let start = out.len();
    out.extend_from_slice(&[0, 0]);
    put(out);
    let length = (out.len() - start - 2) as u16;
    out[start..start + 2].copy_from_slice(&(length | 0x4000).to_be_bytes());
}

/// Appends the head of a DATA frame of this many bytes.
pub(super) fn put_data_head(out: &mut Vec<u8>, length: usize) {
    out.push(DATA as u8);
    put_number(out, length as u64);
}

/// Appends the begin of a control stream: its type, and SETTINGS (section 7.2.4).
pub(super) fn put_control(out: &mut Vec<u8>, section_bytes_max: usize) {
    let mut settings = Vec::new();
    put_number(&mut settings, MAX_FIELD_SECTION_SIZE);
    put_number(&mut settings, section_bytes_max as u64);
    put_number(out, CONTROL);
    put_number(out, SETTINGS);
    put_number(out, settings.len() as u64);
    out.extend_from_slice(&settings);
}

/// Name of an error code (RFC 9114, section 8.1; RFC 9204, section 6).
pub(super) fn code_name(code: u64) -> String {
    let at = |first: u64, names: &[&str]| {
        let place = usize::try_from(code.checked_sub(first)?).ok()?;
        names.get(place).map(|name| (*name).to_owned())
    };
    let known = at(NO_ERROR, &NAMES).or_else(|| at(0x200, &QPACK_NAMES));
    known.unwrap_or_else(|| format!("error {code:#x}"))
}

pub(super) const DATA: u64 = 0;
pub(super) const HEADERS: u64 = 1;
pub(super) const CANCEL_PUSH: u64 = 3;
pub(super) const SETTINGS: u64 = 4;
pub(super) const PUSH_PROMISE: u64 = 5;
pub(super) const GOAWAY: u64 = 7;
pub(super) const MAX_PUSH_ID: u64 = 0xd;

/// Type of the control stream (section 6.2.1).
pub(super) const CONTROL: u64 = 0;

/// Section 7.2.4.1.
const MAX_FIELD_SECTION_SIZE: u64 = 6;

pub(super) const NO_ERROR: u64 = 0x100;
pub(super) const STREAM_CREATION_ERROR: u64 = 0x103;
pub(super) const CLOSED_CRITICAL_STREAM: u64 = 0x104;
pub(super) const FRAME_UNEXPECTED: u64 = 0x105;
pub(super) const FRAME_ERROR: u64 = 0x106;
pub(super) const EXCESSIVE_LOAD: u64 = 0x107;
pub(super) const ID_ERROR: u64 = 0x108;
pub(super) const SETTINGS_ERROR: u64 = 0x109;
pub(super) const MISSING_SETTINGS: u64 = 0x10a;
pub(super) const REQUEST_INCOMPLETE: u64 = 0x10d;
pub(super) const MESSAGE_ERROR: u64 = 0x10e;
pub(super) const DECOMPRESSION_FAILED: u64 = 0x200;
pub(super) const ENCODER_STREAM_ERROR: u64 = 0x201;

const NAMES: [&str; 17] = [
    "H3_NO_ERROR",
    "H3_GENERAL_PROTOCOL_ERROR",
    "H3_INTERNAL_ERROR",
    "H3_STREAM_CREATION_ERROR",
    "H3_CLOSED_CRITICAL_STREAM",
    "H3_FRAME_UNEXPECTED",
    "H3_FRAME_ERROR",
    "H3_EXCESSIVE_LOAD",
    "H3_ID_ERROR",
    "H3_SETTINGS_ERROR",
    "H3_MISSING_SETTINGS",
    "H3_REQUEST_REJECTED",
    "H3_REQUEST_CANCELLED",
    "H3_REQUEST_INCOMPLETE",
    "H3_MESSAGE_ERROR",
    "H3_CONNECT_ERROR",
    "H3_VERSION_FALLBACK",
];

const QPACK_NAMES: [&str; 3] =
    ["QPACK_DECOMPRESSION_FAILED", "QPACK_ENCODER_STREAM_ERROR", "QPACK_DECODER_STREAM_ERROR"];

/// Largest frame that is kept whole: sections of fields, and settings.
const PAYLOAD_BYTES_MAX: u64 = 64 * 1024;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// RFC 9000, appendix A.1.
    #[test]
    fn the_integers_of_the_standard_are_read() {
        for (bytes, value) in [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ] {
            assert_eq!(number(bytes), Some((value, bytes.len())));
            assert_eq!(number(&bytes[..bytes.len() - 1]), None);
            let mut own = Vec::new();
            put_number(&mut own, value);
            assert_eq!(own, bytes);
        }
        assert_eq!(number(&[0x40, 0x25]), Some((37, 2)), "not the shortest form");
    }

    /// Types and payloads.
    type Frames = Vec<(u64, Vec<u8>)>;

    /// All frames of some bytes that come in pieces of this size, with content put together.
    fn read(bytes: &[u8], piece: usize) -> Result<(Frames, bool), Breach> {
        let (mut reader, mut all) = (FrameReader::default(), Frames::new());
        for mut input in bytes.chunks(piece.max(1)) {
            while let Some(frame) = reader.next(&mut input)? {
                match (frame, all.last_mut()) {
                    (Frame::Data(part), Some((DATA, content))) => content.extend_from_slice(part),
                    (Frame::Data(part), _) => all.push((DATA, part.to_vec())),
                    (Frame::Whole(kind, payload), _) => all.push((kind, payload.into_owned())),
                }
            }
        }
        Ok((all, reader.is_between()))
    }

    fn message() -> Vec<u8> {
        let mut bytes = Vec::new();
        put_headers(&mut bytes, |out| out.extend_from_slice(b"section"));
        put_data_head(&mut bytes, 100);
        bytes.extend_from_slice(&[7; 100]);
        // A type that is reserved for greasing (section 7.2.8), and an empty DATA frame.
        bytes.extend_from_slice(&[0x21, 3, 1, 2, 3, 0, 0]);
        put_headers(&mut bytes, |out| out.extend_from_slice(b"trailers"));
        bytes
    }

    #[test]
    fn frames_are_read_in_any_pieces() {
        let due = vec![
            (HEADERS, b"section".to_vec()),
            (DATA, vec![7; 100]),
            (HEADERS, b"trailers".to_vec()),
        ];
        let bytes = message();
        for piece in 1..bytes.len() + 1 {
            assert_eq!(read(&bytes, piece), Ok((due.clone(), true)), "{piece}");
        }
        for end in [1, 2, 5, 20] {
            assert!(!read(&bytes[..end], 3).unwrap().1, "{end}");
        }
    }

    #[test]
    fn frames_of_http2_and_large_ones_are_refused() {
        for kind in [2, 6, 8, 9] {
            assert_eq!(read(&[kind, 0], 9).unwrap_err().code, FRAME_UNEXPECTED);
        }
        let mut bytes = vec![HEADERS as u8];
        put_number(&mut bytes, 1 << 20);
        assert_eq!(read(&bytes, 9).unwrap_err().code, EXCESSIVE_LOAD);
        assert_eq!(code_name(0x105), "H3_FRAME_UNEXPECTED");
        assert_eq!(code_name(0x200), "QPACK_DECOMPRESSION_FAILED");
        assert_eq!(code_name(0x999), "error 0x999");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            piece in 1..40_usize,
        ) {
            let _ = read(&bytes, piece);
        }
    }
}
