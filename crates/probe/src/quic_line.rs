//! One QUIC connection: a UDP socket that blocks, around the product's own layer, whose streams are
//! kept until they are read.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::{Duration, Instant};

use weigh_engine::layer::tls::Tally;
use weigh_model::Nanos;
use weigh_model::connection::{Connection, Emit, Fault, Op, Outbox, Signal, Ticket};
use weigh_model::protocol::{Dial, Role, Seat, Transport};
use weigh_model::streams::{self, Piece};

use crate::link::raw;
use crate::quic_wire::{bound, secured};
use crate::reach::{Reach, SHORTEST, Trouble};
use crate::wire::of_udp;

/// A connection, and what came on its streams.
pub(crate) struct QuicLine {
    socket: UdpSocket,
    connection: Box<dyn Connection>,
    reach: Reach,
    opened: Instant,
    tally: Arc<Tally>,
    heard: Heard,
}

/// What came.
#[derive(Default)]
struct Heard {
    stands: bool,
    streams: BTreeMap<u64, Stream>,
    /// Streams that this end may open.
    allowed: u64,
}

/// A stream, as far as it came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stream {
    pub(crate) bytes: Vec<u8>,
    /// The code with which the server abandoned it, or reads no more of this end's.
    pub(crate) reset: Option<u64>,
}

impl QuicLine {
    /// Opens a connection for the protocol of this name (ALPN).
    pub(crate) fn open(reach: &Reach, alpn: &[u8]) -> Result<QuicLine, Trouble> {
        let tally = Arc::default();
        let dial = Dial { transport: Transport::Streams, ..raw() };
        let dial = secured(reach, dial, alpn, &tally)?;
        let mut line = QuicLine {
            socket: bound(reach)?,
            connection: (dial.make)(Seat { index: 0, role: Role::Producer }),
            reach: reach.clone(),
            opened: Instant::now(),
            tally,
            heard: Heard::default(),
        };
        let until = reach.until()?;
        line.step(|connection, now, out, emit| {
            connection.open(now, out, emit);
            Ok(())
        })?;
        while !line.heard.stands {
            line.turn(until)?;
        }
        Ok(line)
    }

    /// Sends all of `bytes` on a stream.
    pub(crate) fn send(&mut self, stream: u64, bytes: &[u8], is_last: bool) -> Result<(), Trouble> {
        let mut piece = Vec::new();
        streams::put_bytes(&mut piece, stream, is_last, |out| out.extend_from_slice(bytes));
        self.step(|connection, now, out, _| {
            connection.send(&Op { ticket: Ticket(0), body: &piece }, now, out);
            Ok(())
        })
    }

    /// Waits until `find` finds something in the streams.
    pub(crate) fn hear<T>(
        &mut self,
        mut find: impl FnMut(&BTreeMap<u64, Stream>) -> Result<Option<T>, Trouble>,
    ) -> Result<T, Trouble> {
        let until = self.reach.until()?;
        loop {
            if let Some(found) = find(&self.heard.streams)? {
                return Ok(found);
            }
            self.turn(until)?;
        }
    }

    /// Streams that the server lets a client open, as far as it said.
    pub(crate) fn allowed(&self) -> u64 {
        self.heard.allowed
    }

    /// Versions of QUIC and TLS, and the protocol that was agreed on.
    pub(crate) fn negotiated(&self) -> String {
        self.tally.figures().negotiated.unwrap_or_default()
    }

    /// Waits for a datagram or a time, and lets the connection answer.
    fn turn(&mut self, until: Instant) -> Result<(), Trouble> {
        let now = self.now();
        let wake = self.connection.next_wake();
        if wake.is_some_and(|at| at <= now) {
            self.reach.turn(until)?;
            return self.step(|connection, now, out, emit| connection.wake(now, out, emit));
        }
        let turn = self.reach.turn(until)?;
        let turn = wake.map_or(turn, |at| turn.min(Duration::from_nanos(at.0 - now.0)));
        self.socket
            .set_read_timeout(Some(turn.max(SHORTEST)))
            .map_err(|error| of_udp(&error, &self.reach))?;
        let mut datagram = vec![0; DATAGRAM_BYTES_MAX];
        match self.socket.recv(&mut datagram) {
            Ok(bytes) => self.step(|connection, now, out, emit| {
                connection.receive(&datagram[..bytes], now, out, emit).map(|_| ())
            }),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Ok(())
            }
            Err(error) => Err(of_udp(&error, &self.reach)),
        }
    }

    fn step(
        &mut self,
        call: impl FnOnce(&mut dyn Connection, Nanos, &mut Outbox, Emit<'_>) -> Result<(), Fault>,
    ) -> Result<(), Trouble> {
        let (now, mut out) = (self.now(), Outbox::default());
        let QuicLine { connection, heard, .. } = self;
        let called = call(&mut **connection, now, &mut out, &mut |signal| match signal {
            Signal::Ready => heard.stands = true,
            Signal::Message { body, .. } => heard.take(body),
            _ => {}
        });
        let mut sent = Ok(0);
        for datagram in out.frames().after(0) {
            sent = sent.and_then(|_| self.socket.send(datagram));
        }
        called.map_err(|fault| self.trouble(fault))?;
        sent.map(drop).map_err(|error| of_udp(&error, &self.reach))
    }

    fn now(&self) -> Nanos {
        Nanos(self.opened.elapsed().as_nanos() as u64)
    }

    fn trouble(&self, fault: Fault) -> Trouble {
        match fault {
            Fault::Ended(text) if self.heard.stands => Trouble::Closed(text),
            Fault::Refused { reason, .. } => Trouble::Refused(reason),
            Fault::OtherProtocol(text) | Fault::Malformed(text) => Trouble::Foreign(text),
            Fault::Ended(text) | Fault::Untrusted(text) => {
                Trouble::Foreign(format!("QUIC did not come about: {text}"))
            }
        }
    }
}

impl Heard {
    fn take(&mut self, pieces: &[u8]) {
        let mut rest = pieces;
        while let Some((piece, bytes)) = streams::next(rest) {
            rest = &rest[bytes..];
            match piece {
                Piece::Bytes { stream, bytes, .. } => {
                    self.streams.entry(stream).or_default().bytes.extend_from_slice(bytes);
                }
                Piece::Reset { stream, code } | Piece::Stop { stream, code } => {
                    self.streams.entry(stream).or_default().reset = Some(code);
                }
                Piece::Opened(streams) => self.allowed = streams,
                Piece::Close(_) => {}
            }
        }
    }
}

impl Drop for QuicLine {
    /// The server is informed; what it answers nothing waits for.
    fn drop(&mut self) {
        let mut out = Outbox::default();
        self.connection.close(&mut out);
        for datagram in out.frames().after(0) {
            let _ = self.socket.send(datagram);
        }
    }
}

const DATAGRAM_BYTES_MAX: usize = 65_536;
