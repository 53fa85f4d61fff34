//! The client protocol of NATS: control lines, each with at most one payload, both ways. Names and
//! fields: <https://docs.nats.io/reference/reference-protocols/nats-protocol>; headers: ADR-4.

mod control;
mod decimal;
pub mod flaw;
pub mod headers;
pub mod info;
mod lines;
pub mod subject;

pub use control::{Head, head_of_client, head_of_server};
pub use decimal::{decimal, put_decimal};
pub use flaw::Flaw;
pub use lines::{
    FromClient, FromServer, LINE_BYTES_MAX, Limits, Message, OKAY, PAYLOAD_BYTES_MAX, PING, PONG,
    Publish, Sizes, Subscribe, put_error, put_line,
};

use lines::LINE_END;

/// Reads the first line of `input`, with its payload, and its number of bytes; `None` if it is not
/// complete.
///
/// # Errors
/// What breaks the protocol.
pub fn read_server<'a>(
    input: &'a [u8],
    limits: &Limits,
) -> Result<Option<(FromServer<'a>, usize)>, Flaw> {
    let Some((head, line_bytes)) = head_of_server(input, limits)? else { return Ok(None) };
    let (subject, sid, reply, sizes) = match head {
        Head::Message { subject, sid, reply, sizes } => (subject, sid, reply, sizes),
        Head::Info(json) => return Ok(Some((FromServer::Info(json), line_bytes))),
        Head::Ping => return Ok(Some((FromServer::Ping, line_bytes))),
        Head::Pong => return Ok(Some((FromServer::Pong, line_bytes))),
        Head::Okay => return Ok(Some((FromServer::Okay, line_bytes))),
        Head::Error(text) => return Ok(Some((FromServer::Error(text), line_bytes))),
        _ => return Err(Flaw::UnknownOperation),
    };
    let Some((headers, body, bytes)) = payload(&input[line_bytes..], sizes)? else {
        return Ok(None);
    };
    let message = Message { subject, sid, reply, headers, body };
    Ok(Some((FromServer::Message(message), line_bytes + bytes)))
}

/// Reads the first line of `input` at a server, with its payload, and its number of bytes; `None`
/// if it is not complete.
///
/// # Errors
/// What breaks the protocol.
pub fn read_client<'a>(
    input: &'a [u8],
    limits: &Limits,
) -> Result<Option<(FromClient<'a>, usize)>, Flaw> {
    let Some((head, line_bytes)) = head_of_client(input, limits)? else { return Ok(None) };
    let (subject, reply, sizes) = match head {
        Head::Publish { subject, reply, sizes } => (subject, reply, sizes),
        Head::Connect(json) => return Ok(Some((FromClient::Connect(json), line_bytes))),
        Head::Subscribe(subscribe) => {
            return Ok(Some((FromClient::Subscribe(subscribe), line_bytes)));
        }
        Head::Unsubscribe(sid, after) => {
            return Ok(Some((FromClient::Unsubscribe(sid, after), line_bytes)));
        }
        Head::Ping => return Ok(Some((FromClient::Ping, line_bytes))),
        Head::Pong => return Ok(Some((FromClient::Pong, line_bytes))),
        _ => return Err(Flaw::UnknownOperation),
    };
    let Some((headers, body, bytes)) = payload(&input[line_bytes..], sizes)? else {
        return Ok(None);
    };
    let publish = Publish { subject, reply, headers, body };
    Ok(Some((FromClient::Publish(publish), line_bytes + bytes)))
}

/// Header block, body, and their bytes with the line end.
type Payload<'a> = (&'a [u8], &'a [u8], usize);

/// The payload at the start of `rest`; `None` if it is not all there.
fn payload(rest: &[u8], sizes: Sizes) -> Result<Option<Payload<'_>>, Flaw> {
    let Some(end) = rest.get(sizes.total..sizes.total + LINE_END.len()) else {
        return match rest.get(sizes.total) {
            Some(byte) if *byte != b'\r' => Err(Flaw::NoLineEnd),
            _ => Ok(None),
        };
    };
    if end != LINE_END {
        return Err(Flaw::NoLineEnd);
    }
    let (headers, body) = rest[..sizes.total].split_at(sizes.headers);
    Ok(Some((headers, body, sizes.total + LINE_END.len())))
}
