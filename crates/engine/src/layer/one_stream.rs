//! One stream of QUIC as a layer: a protocol for TCP speaks on the first stream that the client
//! opens, and exchanges pieces of it with QUIC. The end that ends the stream ends the connection,
//! as MQTT over QUIC has it.

use weigh_model::Nanos;
use weigh_model::connection::Fault;
use weigh_model::protocol::{Dial, Host, Transport};
use weigh_model::streams::{self, Piece};

use super::session::Session;
use super::{client, server};

/// Puts these clients onto one stream.
pub(super) fn wrap_dial(dial: Dial) -> Dial {
    let is_answered = dial.is_answered;
    let dial = client::layered(dial, std::sync::Arc::new(|_| Ok(OneStream::of_client())));
    // The end of the peer is not awaited: QUIC confirms what was said last.
    Dial { transport: Transport::Streams, is_answered, ..dial }
}

/// Puts this server onto one stream of each connection.
pub(super) fn wrap_host(host: Host) -> Host {
    let host = server::layered(host, std::sync::Arc::new(|_| Ok(OneStream::of_server())));
    Host { transport: Transport::Streams, ..host }
}

/// The stream of one connection.
struct OneStream {
    is_server: bool,
    /// True once this end may speak: a client when QUIC lets it open the stream.
    stands: bool,
    /// True once this end has ended its side.
    has_closed: bool,
    has_peer_closed: bool,
}

impl OneStream {
    fn of_client() -> OneStream {
        OneStream { is_server: false, stands: false, has_closed: false, has_peer_closed: false }
    }

    fn of_server() -> OneStream {
        OneStream { is_server: true, stands: true, ..OneStream::of_client() }
    }

    /// Takes a piece. True if this end may speak from now on.
    fn take(&mut self, piece: Piece<'_>, plain: &mut Vec<u8>) -> Result<bool, Fault> {
        match piece {
            Piece::Opened(streams) if streams > 0 && !self.stands => {
                self.stands = true;
                return Ok(true);
            }
            Piece::Bytes { stream: STREAM, bytes, is_last } => {
                plain.extend_from_slice(bytes);
                self.has_peer_closed |= is_last;
            }
            Piece::Reset { stream: STREAM, .. } | Piece::Stop { stream: STREAM, .. } => {
                self.has_peer_closed = true;
            }
            Piece::Bytes { stream, .. } => {
                let text = format!("QUIC: the session is on stream 0, and stream {stream} came");
                return Err(Fault::Malformed(text));
            }
            Piece::Opened(_) | Piece::Reset { .. } | Piece::Stop { .. } | Piece::Close(_) => {}
        }
        Ok(false)
    }
}

impl Session for OneStream {
    fn feed(
        &mut self,
        input: &[u8],
        _now: Nanos,
        plain: &mut Vec<u8>,
        _out: &mut Vec<u8>,
    ) -> Result<bool, Fault> {
        let (mut rest, mut has_begun) = (input, false);
        while let Some((piece, bytes)) = streams::next(rest) {
            rest = &rest[bytes..];
            has_begun |= self.take(piece, plain)?;
        }
        // A server closes with the stream; a client has no other sign that the session is over.
        match self.has_peer_closed && !self.is_server {
            true => Err(self.cut_off()),
            false => Ok(has_begun),
        }
    }

    fn say(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        if !plain.is_empty() && self.stands && !self.has_closed {
            streams::put_bytes(out, STREAM, false, |out| out.extend_from_slice(plain));
        }
        Ok(())
    }

    fn goodbye(&mut self, out: &mut Vec<u8>) {
        if self.stands && !self.has_closed {
            self.has_closed = true;
            streams::put_bytes(out, STREAM, true, |_| {});
        }
    }

    fn stands(&self) -> bool {
        self.stands
    }

    /// Its time limit for a first packet counts from the handshake on.
    fn speaks_first(&self) -> bool {
        self.is_server
    }

    fn has_peer_closed(&self) -> bool {
        self.has_peer_closed
    }

    fn cut_off(&self) -> Fault {
        Fault::Ended("it ended the stream of QUIC that carries the session".to_owned())
    }
}

/// The first stream of a client in both directions (RFC 9000, section 2.1).
const STREAM: u64 = 0;

#[cfg(test)]
mod tests {
    use super::*;

    fn fed(of: &mut OneStream, put: impl FnOnce(&mut Vec<u8>)) -> (Result<bool, Fault>, Vec<u8>) {
        let (mut input, mut plain) = (Vec::new(), Vec::new());
        put(&mut input);
        let result = of.feed(&input, Nanos(0), &mut plain, &mut Vec::new());
        (result, plain)
    }

    fn put_hello(input: &mut Vec<u8>) {
        streams::put_bytes(input, 0, false, |out| out.extend_from_slice(b"hello"));
    }

    #[test]
    fn a_client_speaks_when_it_may_open_the_stream() {
        let (mut client, mut out) = (OneStream::of_client(), Vec::new());
        client.say(b"early", &mut out).unwrap();
        assert!(out.is_empty() && !client.stands());
        let opened = |streams| move |input: &mut Vec<u8>| streams::put_opened(input, streams);
        assert_eq!(fed(&mut client, opened(0)).0, Ok(false));
        assert_eq!(fed(&mut client, opened(1)).0, Ok(true));
        assert_eq!(fed(&mut client, opened(2)).0, Ok(false), "once");
        client.say(b"hello", &mut out).unwrap();
        let piece = Piece::Bytes { stream: 0, bytes: b"hello", is_last: false };
        assert_eq!(streams::next(&out), Some((piece, streams::HEAD_BYTES + 5)));
        out.clear();
        client.goodbye(&mut out);
        let last = Piece::Bytes { stream: 0, bytes: b"", is_last: true };
        assert_eq!(streams::next(&out), Some((last, streams::HEAD_BYTES)));
        client.goodbye(&mut out);
        client.say(b"late", &mut out).unwrap();
        assert_eq!(out.len(), streams::HEAD_BYTES, "nothing follows the end");
    }

    #[test]
    fn the_end_of_the_stream_is_that_of_the_session() {
        let ends: [fn(&mut Vec<u8>); 3] = [
            |input| streams::put_bytes(input, 0, true, |_| {}),
            |input| streams::put_reset(input, 0, 7),
            |input| streams::put_stop(input, 0, 7),
        ];
        for put_end in ends {
            let both = |input: &mut Vec<u8>| {
                put_hello(input);
                put_end(input);
            };
            let mut client = OneStream::of_client();
            let (result, plain) = fed(&mut client, both);
            assert_eq!((result, &*plain), (Err(client.cut_off()), &b"hello"[..]));
            let mut server = OneStream::of_server();
            let (result, plain) = fed(&mut server, both);
            assert_eq!((result, &*plain), (Ok(false), &b"hello"[..]));
            assert!(server.has_peer_closed());
        }
    }

    #[test]
    fn other_streams_are_not_of_the_session() {
        let put_other = |input: &mut Vec<u8>| streams::put_bytes(input, 4, false, |_| {});
        let (result, _) = fed(&mut OneStream::of_server(), put_other);
        assert!(matches!(result, Err(Fault::Malformed(text)) if text.contains("stream 4")));
    }
}
