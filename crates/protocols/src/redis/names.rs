//! Names of commands and replies, for diagrams.

use weigh_model::protocol::PacketName;

use super::codec::{self, RequestMax, Token};

/// The command or reply that begins with `head`.
pub(super) fn name(from_client: bool, head: &[u8]) -> Option<PacketName> {
    if from_client { request(head) } else { reply(head) }
}

/// An array whose first word is a command in capitals, as this client writes it and most others.
fn request(head: &[u8]) -> Option<PacketName> {
    let (Token::Array(count), used) = codec::read_token(head, BYTES_MAX).ok()?? else {
        return None;
    };
    let (Token::Bulk(word), _) = codec::read_token(head.get(used..)?, BYTES_MAX).ok()?? else {
        return None;
    };
    let is_command =
        !word.is_empty() && word.len() <= 16 && word.iter().all(u8::is_ascii_uppercase);
    if count == 0 || !is_command {
        return None;
    }
    let most = RequestMax { bulk_bytes: BYTES_MAX, bytes: BYTES_MAX };
    let length = codec::read_request(head, most, &mut Vec::new()).ok()?;
    let word = String::from_utf8_lossy(word).into_owned();
    Some(PacketName {
        subscribes: matches!(&*word, "SUBSCRIBE" | "PSUBSCRIBE" | "XREADGROUP" | "XREAD"),
        name: word,
        length: length.map(|length| length as u64),
    })
}

fn reply(head: &[u8]) -> Option<PacketName> {
    let (token, used) = codec::read_token(head, BYTES_MAX).ok()??;
    let length = codec::read_reply(head, BYTES_MAX).ok()?.map(|(_, length)| length as u64);
    let elements = |word: &str, count: u32| match codec::read_token(
        head.get(used..).unwrap_or_default(),
        BYTES_MAX,
    ) {
        Ok(Some((Token::Bulk(kind), _))) if matches!(kind, b"message" | b"subscribe") => {
            String::from_utf8_lossy(kind).into_owned()
        }
        _ => format!("{word} of {count}"),
    };
    let name = match token {
        Token::Simple(text) => shown("", text)?,
        Token::Error(text) => shown("-", text)?,
        Token::Integer(number) => format!("integer {number}"),
        Token::Bulk(text) => format!("{} bytes", text.len()),
        Token::Null => "null".to_owned(),
        Token::Array(count) => elements("array", count),
        Token::Push(count) => elements("push", count),
        Token::Map(count) => elements("map", count),
        _ => return None,
    };
    Some(PacketName { name, length, subscribes: false })
}

/// The first word of a line of text.
fn shown(before: &str, text: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?;
    let word = text.split(' ').next().filter(|word| !word.is_empty() && word.len() <= 16)?;
    Some(format!("{before}{word}"))
}

/// Longer values have no name.
const BYTES_MAX: usize = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_called_by_command_and_type() {
        let of = |from_client, head: &[u8]| name(from_client, head).map(|found| found.name);
        let named = |text: &str| Some(text.to_owned());
        let ping = b"*1\r\n$4\r\nPING\r\n";
        assert_eq!(of(true, ping), named("PING"));
        assert_eq!(name(true, ping).unwrap().length, Some(14));
        assert_eq!(of(false, b"+PONG\r\n"), named("PONG"));
        assert_eq!(of(false, b"-MOVED 3999 h:1\r\n"), named("-MOVED"));
        assert_eq!(of(false, b":1\r\n"), named("integer 1"));
        assert_eq!(of(false, b"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n"), named("message"));
        assert_eq!(of(false, b"*1\r\n*2\r\n"), named("array of 1"));
        assert!(name(true, b"*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nc\r\n").unwrap().subscribes);
        assert_eq!(of(true, b"{\"t\":21}"), None);
        assert_eq!(of(true, b"+PONG\r\n"), None);
        assert_eq!(of(false, b"HTTP/1.1 200 OK\r\n"), None);
    }
}
