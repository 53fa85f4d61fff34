//! Names of NATS lines, for diagrams.

use weigh_model::protocol::PacketName;

use super::api::{ACK, API};
use super::codec::{Head, Limits, Sizes, head_of_client, head_of_server, headers};

/// The line that begins with `head`, with its payload.
pub(super) fn name(from_client: bool, head: &[u8]) -> Option<PacketName> {
    if !begins(from_client, head) {
        return None;
    }
    let line = match from_client {
        true => head_of_client(head, &Limits::CLIENT),
        false => head_of_server(head, &Limits::CLIENT),
    };
    let (line, bytes) = line.ok()??;
    let (name, sizes) = match line {
        Head::Info(_) => ("INFO".to_owned(), None),
        Head::Connect(_) => ("CONNECT".to_owned(), None),
        Head::Okay => ("+OK".to_owned(), None),
        Head::Error(text) => (format!("-ERR {}", String::from_utf8_lossy(text)), None),
        Head::Subscribe(_) => ("SUB".to_owned(), None),
        Head::Unsubscribe(..) => ("UNSUB".to_owned(), None),
        Head::Ping => ("PING".to_owned(), None),
        Head::Pong => ("PONG".to_owned(), None),
        Head::Publish { subject, sizes, .. } => (published(subject), Some(sizes)),
        Head::Message { sizes, .. } => {
            let block = head.get(bytes..bytes + sizes.headers).unwrap_or_default();
            let status = headers::status(block);
            let name = status.map_or_else(
                || if sizes.headers > 0 { "HMSG".to_owned() } else { "MSG".to_owned() },
                |(code, _)| format!("HMSG {code}"),
            );
            (name, Some(sizes))
        }
    };
    let payload = sizes.map_or(0, |Sizes { total, .. }| total + LINE_END_BYTES);
    let subscribes = matches!(line, Head::Subscribe(_));
    Some(PacketName { name, length: Some((bytes + payload) as u64), subscribes })
}

/// A request of JetStream by its words, an acknowledgement, or a message.
fn published(subject: &[u8]) -> String {
    let text = String::from_utf8_lossy(subject);
    if let Some(request) = text.strip_prefix(API) {
        let is_word = |token: &&str| token.bytes().all(|byte| byte.is_ascii_uppercase());
        let words: Vec<&str> = request.split('.').take_while(is_word).collect();
        return format!("PUB {}", words.join(" "));
    }
    if text.starts_with(ACK) { "PUB ACK".to_owned() } else { "PUB".to_owned() }
}

/// Both ends write words in capitals, which the middle of a body seldom begins with.
fn begins(from_client: bool, head: &[u8]) -> bool {
    const CLIENT: [&[u8]; 7] =
        [b"PUB ", b"HPUB ", b"SUB ", b"UNSUB ", b"PING\r", b"PONG\r", b"CONNECT "];
    const SERVER: [&[u8]; 7] =
        [b"MSG ", b"HMSG ", b"INFO ", b"PING\r", b"PONG\r", b"+OK\r", b"-ERR "];
    let words = if from_client { CLIENT } else { SERVER };
    words.iter().any(|word| head.starts_with(word))
}

const LINE_END_BYTES: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_called_by_their_words() {
        let of = |from_client, head: &[u8]| {
            name(from_client, head).map(|found| (found.name, found.length.unwrap()))
        };
        let named = |text: &str, length| Some((text.to_owned(), length));
        assert_eq!(of(true, b"PUB a 5\r\nhello\r\n"), named("PUB", 16));
        assert_eq!(of(true, b"PUB a 500\r\nhel"), named("PUB", 513));
        assert_eq!(of(true, b"PUB $JS.ACK.s.c.1.2.3.4.5 4\r\n+ACK"), named("PUB ACK", 35));
        assert_eq!(
            of(true, b"PUB $JS.API.STREAM.CREATE.s _INBOX.x 2\r\n{}\r\n"),
            named("PUB STREAM CREATE", 44)
        );
        assert_eq!(of(false, b"MSG a 1 0\r\n\r\n"), named("MSG", 13));
        let answer = b"HMSG i 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n";
        assert_eq!(of(false, answer), named("HMSG 503", 34));
        assert_eq!(of(false, b"-ERR 'Slow Consumer'\r\n"), named("-ERR Slow Consumer", 22));
        assert_eq!(of(false, b"+OK\r\n"), named("+OK", 5));
        assert!(name(true, b"SUB a.* 2\r\n").unwrap().subscribes);
        for (from_client, head) in [
            (true, &b"MSG a 1 0\r\n"[..]),
            (false, b"PUB a 0\r\n"),
            (true, b"PUB a"),
            (true, b"{\"sensor\": 4}"),
            (true, b"SUBMARINE\r\n"),
            (false, b"PINGUIN\r\n"),
        ] {
            assert_eq!(name(from_client, head), None, "{:?}", head.escape_ascii().to_string());
        }
    }
}
