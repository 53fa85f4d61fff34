//! The head of an answer, as a client reads it.

use std::mem::MaybeUninit;

use httparse::{Error, ParserConfig, Response, Status};
use weigh_model::connection::Fault;

use super::framing::{FIELDS_MAX, Framing, HEAD_BYTES_MAX};

/// The head of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Framing of its body.
    pub body: Body,
    /// Whether the connection stays open after it.
    pub keeps_alive: bool,
}

/// Framing of an answer's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// After this many bytes.
    Length(u64),
    /// With the last chunk.
    Chunked,
    /// With the connection.
    UntilClose,
}

/// Reads the head at the start of `input`; `None` if it is not all there. An answer to HEAD has
/// no body whatever its fields say (RFC 9112, section 6.3, item 1).
///
/// # Errors
/// [`Fault::Malformed`] for a head that is not of HTTP/1.
pub fn read(input: &[u8], is_to_head: bool) -> Result<Option<(Answer, usize)>, Fault> {
    read_fields(input, is_to_head, &mut |_, _| {})
}

/// Does what [`read`] does; `each` gets every field of a head that is whole.
///
/// # Errors
/// [`Fault::Malformed`] for a head that is not of HTTP/1.
pub fn read_fields(
    input: &[u8],
    is_to_head: bool,
    each: &mut dyn FnMut(&str, &[u8]),
) -> Result<Option<(Answer, usize)>, Fault> {
    let mut headers = [const { MaybeUninit::uninit() }; FIELDS_MAX];
    let mut response = Response::new(&mut []);
    let seen = &input[..input.len().min(HEAD_BYTES_MAX)];
    let parsed = ParserConfig::default().parse_response_with_uninit_headers(
        &mut response,
        seen,
        &mut headers,
    );
    let head_bytes = match parsed {
        Ok(Status::Complete(head_bytes)) => head_bytes,
        Ok(Status::Partial) if input.len() < HEAD_BYTES_MAX => return Ok(None),
        Ok(Status::Partial) => {
            let text = format!("the head of an answer is longer than {HEAD_BYTES_MAX} bytes");
            return Err(Fault::Malformed(text));
        }
        Err(error) => return Err(flawed(error)),
    };
    let (Some(status), Some(minor)) = (response.code, response.version) else {
        return Err(Fault::Malformed("an answer without a status".to_owned()));
    };
    if !(100..1000).contains(&status) {
        return Err(Fault::Malformed(format!("invalid status {status}")));
    }
    let framing = Framing::of(response.headers, minor)
        .map_err(|flaw| Fault::Malformed(format!("the head of an answer: {flaw}")))?;
    response.headers.iter().for_each(|header| each(header.name, header.value));
    let has_no_body = is_to_head || status < 200 || status == 204 || status == 304;
    let body = match framing.length {
        _ if has_no_body => Body::Length(0),
        _ if framing.is_chunked => Body::Chunked,
        Some(length) => Body::Length(length),
        None => Body::UntilClose,
    };
    let keeps_alive = framing.keeps_alive(minor) && body != Body::UntilClose;
    Ok(Some((Answer { status, body, keeps_alive }, head_bytes)))
}

/// Refuses a server whose first bytes are not those of HTTP/1.
pub(crate) fn recognise(input: &[u8]) -> Result<(), Fault> {
    if input.iter().zip(b"HTTP/").all(|(byte, due)| byte == due) {
        return Ok(());
    }
    let text = || format!("it starts with \"{}\"", shown(input));
    Err(Fault::OtherProtocol(crate::requests::answers_in_tls(input).unwrap_or_else(text)))
}

/// The first of these bytes, as text.
pub(crate) fn shown(input: &[u8]) -> impl std::fmt::Display {
    input[..input.len().min(SHOWN_BYTES_MAX)].escape_ascii()
}

const SHOWN_BYTES_MAX: usize = 16;

fn flawed(error: Error) -> Fault {
    Fault::Malformed(match error {
        Error::TooManyHeaders => format!("an answer with more than {FIELDS_MAX} header fields"),
        other => format!("the head of an answer: {other}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(head: &str) -> Answer {
        let (answer, bytes) = read(head.as_bytes(), false).unwrap().unwrap();
        assert_eq!(bytes, head.len());
        answer
    }

    #[test]
    fn bodies_end_where_rfc_9112_says() {
        let body = |head| answer(head).body;
        assert_eq!(body("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"), Body::Length(5));
        assert_eq!(body("HTTP/1.1 204 No Content\r\n\r\n"), Body::Length(0));
        assert_eq!(body("HTTP/1.1 304 -\r\nContent-Length: 5\r\n\r\n"), Body::Length(0));
        assert_eq!(body("HTTP/1.1 200 OK\r\n\r\n"), Body::UntilClose);
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n";
        assert_eq!(body(chunked), Body::Chunked);
        let gzip = "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n";
        assert_eq!(body(gzip), Body::UntilClose);
    }

    #[test]
    fn connections_go_on_as_rfc_9112_says() {
        let goes_on = |version: &str, connection: &str| {
            answer(&format!("{version} 200 OK\r\nContent-Length: 0\r\n{connection}\r\n"))
                .keeps_alive
        };
        assert!(goes_on("HTTP/1.1", ""));
        assert!(!goes_on("HTTP/1.1", "Connection: x, Close\r\n"));
        assert!(!goes_on("HTTP/1.0", ""));
        assert!(goes_on("HTTP/1.0", "Connection: keep-alive\r\n"));
    }
}
