//! Names of upgrades and frames, for diagrams.

use weigh_model::protocol::PacketName;
use weigh_websocket::{Header, Opcode, close};

/// The upgrade or frame that begins with `head`.
pub(super) fn name(from_client: bool, head: &[u8]) -> Option<PacketName> {
    if head.starts_with(if from_client { b"GET /" } else { b"HTTP/" }) {
        return upgrade(from_client, head);
    }
    let (header, head_bytes) = Header::read(head, from_client).ok()??;
    // Bytes from the middle of a body seldom are a header that is whole and plausible.
    if header.length > LENGTH_MAX {
        return None;
    }
    let kind = match header.opcode {
        Opcode::Continuation => "continuation".to_owned(),
        Opcode::Text => "text".to_owned(),
        Opcode::Binary => "binary".to_owned(),
        Opcode::Ping => "PING".to_owned(),
        Opcode::Pong => "PONG".to_owned(),
        Opcode::Close => match head.get(head_bytes..head_bytes + 2) {
            Some(&[high, low]) if header.mask.is_none() && header.length >= 2 => {
                let code = u16::from_be_bytes([high, low]);
                format!("CLOSE {code} {}", close::name(code))
            }
            _ => "CLOSE".to_owned(),
        },
    };
    let part = if header.is_last { "" } else { ", more follows" };
    let name = match header.opcode.is_control() {
        true => kind,
        false => format!("{kind} of {}{part}", header.length),
    };
    let length = Some(head_bytes as u64 + header.length);
    Some(PacketName { name, length, subscribes: false })
}

fn upgrade(from_client: bool, head: &[u8]) -> Option<PacketName> {
    let end = head.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at as u64 + 4);
    let line = head.split(|byte| *byte == b'\r').next()?;
    let word = std::str::from_utf8(line).ok()?.split(' ').nth(1)?;
    let shown: String = word.chars().take(TARGET_CHARS).collect();
    Some(PacketName {
        name: match from_client {
            true => format!("upgrade {shown}"),
            false => format!("HTTP {shown}"),
        },
        length: end,
        subscribes: from_client && word.starts_with("/subscribe"),
    })
}

/// Longer paths would not fit next to an arrow.
const TARGET_CHARS: usize = 24;

/// Larger messages have no name.
const LENGTH_MAX: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_called_by_their_kind() {
        let of = |from_client, head: &[u8]| {
            name(from_client, head).map(|found| (found.name, found.length))
        };
        let named = |text: &str, length| Some((text.to_owned(), length));
        assert_eq!(of(false, b"\x82\x05Hello"), named("binary of 5", Some(7)));
        assert_eq!(of(true, b"\x81\x85\x37\xfa\x21\x3d\x7f"), named("text of 5", Some(11)));
        assert_eq!(of(false, b"\x01\x03Hel"), named("text of 3, more follows", Some(5)));
        assert_eq!(of(false, b"\x88\x02\x03\xf5"), named("CLOSE 1013 try again later", Some(4)));
        assert_eq!(of(true, b"\x89\x80\0\0\0\0"), named("PING", Some(6)));
        let asked = b"GET /subscribe/1 HTTP/1.1\r\nHost: h\r\n\r\n";
        assert_eq!(of(true, asked), named("upgrade /subscribe/1", Some(asked.len() as u64)));
        assert!(name(true, asked).unwrap().subscribes);
        let answer = b"HTTP/1.1 101 Switching Protocols\r\n\r\n";
        assert_eq!(of(false, answer), named("HTTP 101", Some(answer.len() as u64)));
        assert_eq!(of(false, b"{\"sensor\": 4}"), None);
        assert_eq!(of(true, b"\x82\x05Hello"), None, "clients mask");
        assert_eq!(of(true, b"GET"), None);
    }
}
