//! Single requests for a probe: what a client sends on a stream, and what it reads on one.

use super::codec::{self, CONTROL, Frame, FrameReader, HEADERS, SETTINGS, put_data_head};
use super::qpack::{self, LIST_BYTES_MAX};
use crate::http2_core::fields::AnswerHead;

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'r> {
    /// Method.
    pub method: &'r str,
    /// Host and port.
    pub authority: &'r str,
    /// Path.
    pub path: &'r str,
    /// The field `authorization`.
    pub authorization: Option<&'r str>,
    /// Body; without one there is no DATA frame.
    pub body: Option<&'r [u8]>,
}

impl Request<'_> {
    /// Appends its frames, which are all of its stream.
    pub fn put(&self, out: &mut Vec<u8>) {
        codec::put_headers(out, |out| {
            qpack::put_prefix(out);
            qpack::put(b":method", self.method.as_bytes(), out);
            qpack::put(b":scheme", b"https", out);
            qpack::put(b":authority", self.authority.as_bytes(), out);
            qpack::put(b":path", self.path.as_bytes(), out);
            if let Some(value) = self.authorization {
                qpack::put(b"authorization", value.as_bytes(), out);
            }
            if let Some(body) = self.body {
                qpack::put(b"content-type", b"application/json", out);
                qpack::put(b"content-length", body.len().to_string().as_bytes(), out);
            }
        });
        if let Some(body) = self.body {
            put_data_head(out, body.len());
            out.extend_from_slice(body);
        }
    }
}

/// Appends the begin of the client's control stream.
pub fn put_control(out: &mut Vec<u8>) {
    codec::put_control(out, LIST_BYTES_MAX);
}

/// The status of an answer, read from all bytes of its stream so far; `None` before its head.
///
/// # Errors
/// What is wrong with it.
pub fn read_status(stream: &[u8]) -> Result<Option<u16>, String> {
    let (mut frames, mut rest) = (FrameReader::default(), stream);
    while let Some(frame) = frames.next(&mut rest).map_err(|breach| breach.to_string())? {
        let Frame::Whole(HEADERS, section) = frame else { continue };
        let mut head = AnswerHead::<()>::default();
        let taken = qpack::decode(&section, |name, value| {
            let taken = head.take(name, value);
            head.malformed = head.malformed.or(taken.err());
        });
        taken.map_err(|flaw| flaw.0.to_owned())?;
        match (head.malformed, head.status) {
            (Some(what), _) => return Err(what.to_owned()),
            // A head for the time being.
            (None, 100..200) => {}
            (None, status) => return Ok(Some(status)),
        }
    }
    Ok(None)
}

/// A setting of HTTP/3: its number and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Number.
    pub id: u64,
    /// Value.
    pub value: u64,
}

/// The settings of a server, read from all bytes of a stream in one direction so far; `None` before
/// they are whole, and for another stream than its control stream.
///
/// # Errors
/// What is wrong with them.
pub fn read_settings(stream: &[u8]) -> Result<Option<Vec<Setting>>, String> {
    let Some((CONTROL, bytes)) = codec::number(stream) else { return Ok(None) };
    let (mut frames, mut rest) = (FrameReader::default(), &stream[bytes..]);
    let payload = match frames.next(&mut rest).map_err(|breach| breach.to_string())? {
        None => return Ok(None),
        Some(Frame::Whole(SETTINGS, payload)) => payload,
        Some(_) => return Err("its control stream does not begin with SETTINGS".to_owned()),
    };
    let (mut rest, mut all) = (&payload[..], Vec::new());
    while !rest.is_empty() {
        let mut next = || {
            let (number, bytes) = codec::number(rest)?;
            rest = &rest[bytes..];
            Some(number)
        };
        match (next(), next()) {
            (Some(id), Some(value)) => all.push(Setting { id, value }),
            _ => return Err("its SETTINGS have the wrong length".to_owned()),
        }
    }
    Ok(Some(all))
}

/// Numbers of settings (RFC 9114, section 7.2.4.1; RFC 9204, section 5; RFC 9220, section 5; RFC
/// 9297, section 2.1.1).
pub mod setting {
    /// Bytes of QPACK's dynamic table.
    pub const QPACK_MAX_TABLE_CAPACITY: u64 = 1;
    /// Bytes of the fields of a request.
    pub const MAX_FIELD_SECTION_SIZE: u64 = 6;
    /// Streams that may wait for QPACK's table.
    pub const QPACK_BLOCKED_STREAMS: u64 = 7;
    /// WebSocket and similar by the method CONNECT.
    pub const ENABLE_CONNECT_PROTOCOL: u64 = 8;
    /// Datagrams.
    pub const H3_DATAGRAM: u64 = 0x33;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_once_they_are_whole() {
        let mut stream = Vec::new();
        put_control(&mut stream);
        let due = Setting { id: setting::MAX_FIELD_SECTION_SIZE, value: LIST_BYTES_MAX as u64 };
        for end in 0..stream.len() {
            assert_eq!(read_settings(&stream[..end]), Ok(None), "{end}");
        }
        assert_eq!(read_settings(&stream), Ok(Some(vec![due])));
        assert_eq!(read_settings(&[2, 0x20]), Ok(None), "QPACK's encoder");
        assert!(read_settings(&[0, 1, 0]).is_err());
        assert!(read_settings(&[0, 4, 1, 6]).is_err());
    }

    #[test]
    fn a_status_is_that_of_the_last_head() {
        let mut stream = Vec::new();
        for status in [b"103", b"204"] {
            codec::put_headers(&mut stream, |out| {
                qpack::put_prefix(out);
                qpack::put(b":status", status, out);
            });
        }
        let last = stream.len();
        assert_eq!(read_status(&stream), Ok(Some(204)));
        assert_eq!(read_status(&stream[..last - 1]), Ok(None));
        assert!(read_status(&[1, 2, 1, 0]).is_err());
    }
}
