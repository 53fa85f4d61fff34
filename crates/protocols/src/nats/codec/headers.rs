//! Header blocks: a first line `NATS/1.0` with perhaps a status, lines `Name: value`, and an empty
//! line (ADR-4).

use super::decimal::{decimal, put_decimal};

/// Status in the first line of a header block, with its description; `None` if it has none.
pub fn status(headers: &[u8]) -> Option<(u16, &[u8])> {
    let line = headers.split(|byte| *byte == b'\r').next()?;
    let rest = line.strip_prefix(VERSION)?.trim_ascii();
    let code = decimal(rest.get(..3)?)? as u16;
    Some((code, rest[3..].trim_ascii()))
}

/// Value of the first field of this name, whatever its case.
pub fn value<'a>(headers: &'a [u8], name: &str) -> Option<&'a [u8]> {
    headers.split(|byte| *byte == b'\n').skip(1).find_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let is_it = line[..colon].trim_ascii().eq_ignore_ascii_case(name.as_bytes());
        is_it.then(|| line[colon + 1..].trim_ascii())
    })
}

/// True for a block that begins with the version and ends with an empty line.
pub fn is_block(headers: &[u8]) -> bool {
    headers.starts_with(VERSION) && headers.ends_with(b"\r\n\r\n")
}

/// Appends a block with a status and fields.
pub fn put_status(out: &mut Vec<u8>, code: u16, words: &str, fields: &[(&str, u64)]) {
    out.extend_from_slice(VERSION);
    out.push(b' ');
    put_decimal(out, u64::from(code));
    if !words.is_empty() {
        out.push(b' ');
        out.extend_from_slice(words.as_bytes());
    }
    out.extend_from_slice(b"\r\n");
    for (name, number) in fields {
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b": ");
        put_decimal(out, *number);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends a block that identifies a message by numbers, with hyphens between.
pub fn put_message_id(out: &mut Vec<u8>, numbers: &[u64]) {
    out.extend_from_slice(VERSION);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(MESSAGE_ID.as_bytes());
    out.extend_from_slice(b": weigh");
    for number in numbers {
        out.push(b'-');
        put_decimal(out, *number);
    }
    out.extend_from_slice(b"\r\n\r\n");
}

/// Field by which JetStream recognises a message that was published before.
pub const MESSAGE_ID: &str = "Nats-Msg-Id";

/// Status of notices: idle heartbeats and flow control.
pub const CONTROL: u16 = 100;

const VERSION: &[u8] = b"NATS/1.0";
