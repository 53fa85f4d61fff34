//! Content of a stream, recognised by its first bytes.

use crate::stream::reassembly::Piece;
use crate::stream::tls::{Session, Side, may_be_client_hello};

/// The content of a connection: plain, or in records of TLS.
#[derive(Debug)]
pub enum Content {
    /// Not yet known: the first bytes of the client could be the beginning of TLS.
    Undecided(Vec<u8>),
    /// No TLS, or a stream whose beginning was not seen.
    Plain,
    /// TLS from the first byte of the client.
    Tls(Box<Session>),
}

impl Content {
    /// Takes a piece in order; bytes outside TLS are counted in `plain_bytes`.
    pub fn take(&mut self, side: Side, piece: Piece<'_>, plain_bytes: &mut [u64; 2]) {
        match self {
            Content::Plain => plain_bytes[side as usize] += on_the_wire(piece),
            Content::Tls(session) => session.take(side, piece),
            Content::Undecided(held) => match (side, piece) {
                (Side::Client, Piece::Bytes(bytes)) => {
                    let room = HELLO_PREFIX_BYTES - held.len();
                    let (first, rest) = bytes.split_at(bytes.len().min(room));
                    held.extend_from_slice(first);
                    if !may_be_client_hello(held) {
                        self.become_plain(plain_bytes);
                    } else if held.len() == HELLO_PREFIX_BYTES {
                        let mut session = Session::default();
                        session.begin_at(Side::Server, plain_bytes[Side::Server as usize]);
                        session.take(Side::Client, Piece::Bytes(held));
                        *self = Content::Tls(Box::new(session));
                    }
                    if !rest.is_empty() {
                        self.take(side, Piece::Bytes(rest), plain_bytes);
                    }
                }
                // A server may speak first, in the clear, and TLS follow (NATS).
                (Side::Server, Piece::Bytes(bytes)) if held.is_empty() => {
                    plain_bytes[Side::Server as usize] += bytes.len() as u64;
                }
                _ => {
                    self.become_plain(plain_bytes);
                    self.take(side, piece, plain_bytes);
                }
            },
        }
    }

    /// Ends the stream.
    pub fn finish(&mut self, plain_bytes: &mut [u64; 2]) {
        match self {
            Content::Undecided(_) => self.become_plain(plain_bytes),
            Content::Tls(session) => session.settle_flight(),
            Content::Plain => {}
        }
    }

    /// True if bytes have to be looked at, not only counted.
    pub fn is_read(&self) -> bool {
        !matches!(self, Content::Plain)
    }

    fn become_plain(&mut self, plain_bytes: &mut [u64; 2]) {
        if let Content::Undecided(held) = self {
            plain_bytes[Side::Client as usize] += held.len() as u64;
        }
        *self = Content::Plain;
    }
}

fn on_the_wire(piece: Piece<'_>) -> u64 {
    match piece {
        Piece::Bytes(bytes) => bytes.len() as u64,
        Piece::Cut(count) => count,
        Piece::Hole(_) => 0,
    }
}

/// Up to the type of the first message in the first record.
const HELLO_PREFIX_BYTES: usize = 6;
