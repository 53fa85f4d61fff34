//! Names of HTTP/1.1 messages, for diagrams.

use httparse::{EMPTY_HEADER, Header, Request, Response, Status};
use weigh_model::protocol::PacketName;

use super::framing::Framing;

/// The request or answer that begins with `head`.
pub(crate) fn name(from_client: bool, head: &[u8]) -> Option<PacketName> {
    let mut fields = [EMPTY_HEADER; FIELDS_MAX];
    let (name, length) = match from_client {
        true => {
            let mut request = Request::new(&mut fields);
            let parsed = request.parse(head).ok()?;
            let target = request.path?;
            let shown: String = target.chars().take(TARGET_CHARS).collect();
            let cut = if shown.len() < target.len() { "…" } else { "" };
            let name = format!("HTTP {} {shown}{cut}", request.method?);
            (name, whole(parsed, request.headers))
        }
        false => {
            let mut answer = Response::new(&mut fields);
            let parsed = answer.parse(head).ok()?;
            let code = answer.code?;
            let name = format!("HTTP {code} {}", answer.reason.unwrap_or_default());
            let has_body = !matches!(code, 100..=199 | 204 | 304);
            let length = match parsed {
                Status::Complete(end) if !has_body || is_next(head, end) => Some(end as u64),
                // An answer to HEAD has a length and no body: whether one follows, the next packet
                // shows.
                Status::Complete(end) if end == head.len() => None,
                parsed => whole(parsed, answer.headers),
            };
            (name, length)
        }
    };
    Some(PacketName { name: name.trim_end().to_owned(), length, subscribes: false })
}

fn is_next(head: &[u8], end: usize) -> bool {
    head.get(end..).is_some_and(|rest| rest.starts_with(b"HTTP/1."))
}

/// Length of head and body, if the head is complete and has it (RFC 9112, section 6.3); a chunked
/// body does not.
fn whole(parsed: Status<usize>, fields: &[Header<'_>]) -> Option<u64> {
    let Status::Complete(end) = parsed else { return None };
    let framing = Framing::of(fields, 1).ok()?;
    (!framing.is_chunked).then(|| end as u64 + framing.length.unwrap_or(0))
}

/// Lower than the reference server's limit, to save memory.
const FIELDS_MAX: usize = 64;

/// Longer paths would not fit next to an arrow.
const TARGET_CHARS: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_called_by_their_first_line() {
        let of = |from_client, head: &[u8]| {
            name(from_client, head).map(|found| (found.name, found.length))
        };
        let named = |text: &str, length| Some((text.to_owned(), length));
        let post = b"POST /messages HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhel";
        assert_eq!(of(true, post), named("HTTP POST /messages", Some(60)));
        // The rest of the head was not captured.
        assert_eq!(of(true, &post[..40]), named("HTTP POST /messages", None));
        let answer = b"HTTP/1.1 204 No Content\r\n\r\n";
        assert_eq!(of(false, answer), named("HTTP 204 No Content", Some(27)));
        let long = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n";
        assert_eq!(of(false, long), named("HTTP 200 OK", None));
        assert_eq!(of(false, &[&long[..], b"123"].concat()), named("HTTP 200 OK", Some(47)));
        assert_eq!(of(false, &[&long[..], long].concat()), named("HTTP 200 OK", Some(38)));
        let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n";
        assert_eq!(of(false, chunked), named("HTTP 200 OK", None));
        assert_eq!(of(false, b"{\"next\": 1}"), None);
        assert_eq!(of(true, b"HTTP/1.1 200 OK\r\n\r\n"), None);
    }
}
