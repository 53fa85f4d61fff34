//! One end of one TLS connection on rustls' unbuffered interface: records in, plain bytes and
//! records out, nothing kept but what is half received.

use std::cell::Cell;
use std::sync::Arc;

use rustls::client::UnbufferedClientConnection;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus};
use rustls::{CommonState, Error, HandshakeKind};
use weigh_model::Nanos;
use weigh_model::connection::Fault;

use super::reasons;
use super::tally::{Finished, Tally};
use crate::layer::session::Session as Layer;

/// A connection of either side.
pub(super) struct Session<C> {
    connection: C,
    /// Received bytes that rustls still needs. It decrypts in place, so that they cannot stay in
    /// the buffer of the caller.
    incoming: Vec<u8>,
    began: Nanos,
    phase: Phase,
    /// Bytes of the handshake, sent and received.
    handshake: (u64, u64),
    /// Bytes after it: in records, and of the protocol inside.
    sent: (u64, u64),
    received: (u64, u64),
    has_peer_closed: bool,
    has_closed: bool,
    tally: Arc<Tally>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Shaking,
    Standing,
    Failed,
}

impl<C: Machine> Session<C> {
    pub(super) fn new(connection: C, began: Nanos, tally: Arc<Tally>) -> Session<C> {
        Session {
            connection,
            incoming: Vec::new(),
            began,
            phase: Phase::Shaking,
            handshake: (0, 0),
            sent: (0, 0),
            received: (0, 0),
            has_peer_closed: false,
            has_closed: false,
            tally,
        }
    }

    /// Takes all of `input`; what it held for the protocol inside is appended to `plain`, what
    /// must be answered to `out`. True if the handshake was finished by it. After an error `out`
    /// ends with the alert, and the session is over.
    fn take(
        &mut self,
        input: &[u8],
        now: Nanos,
        plain: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<bool, Error> {
        if self.phase == Phase::Failed {
            return Ok(false);
        }
        let mut held = if self.incoming.is_empty() {
            SPARE.take()
        } else {
            std::mem::take(&mut self.incoming)
        };
        held.extend_from_slice(input);
        let mut taken = 0;
        let result = self.run(&mut held, &mut taken, now, plain, out);
        if result.is_err() {
            self.fail(&mut held[taken..], out);
        }
        if taken < held.len() && result.is_ok() {
            if taken == 0 {
                self.incoming = held;
                return result;
            }
            self.incoming = held[taken..].to_vec();
        }
        held.clear();
        if held.capacity() <= SPARE_BYTES_MAX {
            SPARE.set(held);
        }
        result
    }

    fn run(
        &mut self,
        held: &mut [u8],
        taken: &mut usize,
        now: Nanos,
        plain: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<bool, Error> {
        let mut has_finished = false;
        loop {
            let before = (out.len(), plain.len());
            let (discard, went) = self.connection.step(&mut held[*taken..], plain, out, None);
            *taken += discard;
            self.count(out.len() - before.0, discard, (0, plain.len() - before.1));
            match went? {
                StepEnd::On => {}
                StepEnd::PeerClosed => self.has_peer_closed = true,
                StepEnd::Blocked => return Ok(has_finished),
                StepEnd::Open => {
                    if self.phase == Phase::Shaking {
                        has_finished = true;
                        self.phase = Phase::Standing;
                        self.tell(now);
                    }
                    return Ok(has_finished);
                }
            }
        }
    }

    fn speak(&mut self, speech: Speech<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
        let mut held = std::mem::take(&mut self.incoming);
        let said = if let Speech::Data(plain) = speech { plain.len() } else { 0 };
        let mut taken = 0;
        let mut unread = Vec::new();
        let result = loop {
            let before = out.len();
            let rest = &mut held[taken..];
            let (discard, went) = self.connection.step(rest, &mut unread, out, Some(speech));
            taken += discard;
            self.count(out.len() - before, discard, (0, 0));
            match went {
                Ok(StepEnd::On) => {}
                Ok(StepEnd::PeerClosed) => self.has_peer_closed = true,
                Ok(StepEnd::Open | StepEnd::Blocked) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        self.sent.1 += said as u64;
        held.drain(..taken);
        self.incoming = held;
        result
    }

    /// Sends the alert that reports what was wrong, and asks rustls for nothing else: it must not
    /// look again at the bytes that it could not take.
    fn fail(&mut self, held: &mut [u8], out: &mut Vec<u8>) {
        self.phase = Phase::Failed;
        let mut unread = Vec::new();
        while self.connection.state().wants_write() {
            if self.connection.step(held, &mut unread, out, None).1.is_err() {
                return;
            }
        }
    }

    fn count(&mut self, sent: usize, received: usize, plain: (usize, usize)) {
        if self.phase == Phase::Shaking {
            self.handshake.0 += sent as u64;
            self.handshake.1 += received as u64;
        } else {
            self.sent.0 += sent as u64;
            self.received.0 += received as u64;
        }
        self.received.1 += plain.1 as u64;
    }

    fn tell(&mut self, now: Nanos) {
        let state = self.connection.state();
        let version = state.protocol_version().map(|version| format!("{version:?}"));
        let suite = state.negotiated_cipher_suite().map(|suite| format!("{:?}", suite.suite()));
        let alpn = state.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned());
        let words: Vec<String> = [version, suite, alpn].into_iter().flatten().collect();
        self.tally.finished(Finished {
            resumed: state.handshake_kind() == Some(HandshakeKind::Resumed),
            time: now - self.began,
            now,
            sent_bytes: self.handshake.0,
            received_bytes: self.handshake.1,
            negotiated: words.join(" "),
        });
    }
}

impl<C: Machine> Layer for Session<C> {
    fn feed(
        &mut self,
        input: &[u8],
        now: Nanos,
        plain: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<bool, Fault> {
        self.take(input, now, plain, out).map_err(|error| C::fault(&error))
    }

    fn say(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        if plain.is_empty() || !self.stands() || self.has_closed {
            return Ok(());
        }
        self.speak(Speech::Data(plain), out).map_err(|error| C::fault(&error))
    }

    fn goodbye(&mut self, out: &mut Vec<u8>) {
        if self.stands() && !self.has_closed {
            // Where it cannot be said any more, the peer will see the end of the transport.
            let _ = self.speak(Speech::Close, out);
            self.has_closed = true;
        }
    }

    fn stands(&self) -> bool {
        self.phase == Phase::Standing
    }

    fn has_peer_closed(&self) -> bool {
        self.has_peer_closed
    }

    fn cut_off(&self) -> Fault {
        if !self.stands() {
            return Fault::Ended(UNFINISHED.to_owned());
        }
        Fault::Ended(TRUNCATED.to_owned())
    }
}

impl<C> Drop for Session<C> {
    fn drop(&mut self) {
        self.tally.moved(self.sent, self.received);
    }
}

/// Content to send when rustls is ready to encrypt.
#[derive(Clone, Copy)]
pub(super) enum Speech<'s> {
    Data(&'s [u8]),
    Close,
}

/// State after one step.
pub(super) enum StepEnd {
    /// There is more to do.
    On,
    /// The handshake needs more bytes, or all is over.
    Blocked,
    /// The peer said close_notify.
    PeerClosed,
    /// The session stands and has done all there was; what was to be said is said.
    Open,
}

/// Both sides of rustls' unbuffered interface, which share no trait.
pub(super) trait Machine {
    /// One state of rustls; the first is how many bytes of `incoming` it needs no more.
    fn step(
        &mut self,
        incoming: &mut [u8],
        plain: &mut Vec<u8>,
        out: &mut Vec<u8>,
        speech: Option<Speech<'_>>,
    ) -> (usize, Result<StepEnd, Error>);

    fn state(&self) -> &CommonState;

    /// Converts an error into the fault of this side.
    fn fault(error: &Error) -> Fault;
}

impl Machine for UnbufferedClientConnection {
    fn step(
        &mut self,
        incoming: &mut [u8],
        plain: &mut Vec<u8>,
        out: &mut Vec<u8>,
        speech: Option<Speech<'_>>,
    ) -> (usize, Result<StepEnd, Error>) {
        handle(self.process_tls_records(incoming), plain, out, speech)
    }

    fn state(&self) -> &CommonState {
        self
    }

    fn fault(error: &Error) -> Fault {
        reasons::of_client(error)
    }
}

impl Machine for UnbufferedServerConnection {
    fn step(
        &mut self,
        incoming: &mut [u8],
        plain: &mut Vec<u8>,
        out: &mut Vec<u8>,
        speech: Option<Speech<'_>>,
    ) -> (usize, Result<StepEnd, Error>) {
        handle(self.process_tls_records(incoming), plain, out, speech)
    }

    fn state(&self) -> &CommonState {
        self
    }

    fn fault(error: &Error) -> Fault {
        reasons::of_server(error)
    }
}

fn handle<Data>(
    status: UnbufferedStatus<'_, '_, Data>,
    plain: &mut Vec<u8>,
    out: &mut Vec<u8>,
    speech: Option<Speech<'_>>,
) -> (usize, Result<StepEnd, Error>) {
    let UnbufferedStatus { mut discard, state } = status;
    let went = match state {
        Err(error) => Err(error),
        Ok(ConnectionState::ReadTraffic(mut traffic)) => {
            let mut went = Ok(StepEnd::On);
            while let Some(record) = traffic.next_record() {
                match record {
                    Ok(record) => {
                        plain.extend_from_slice(record.payload);
                        discard += record.discard;
                    }
                    Err(error) => went = Err(error),
                }
            }
            went
        }
        Ok(ConnectionState::EncodeTlsData(mut data)) => {
            let mut encode = |room: &mut [u8]| match data.encode(room) {
                Ok(length) => Ok(Ok(length)),
                Err(EncodeError::InsufficientSize(wants)) => Ok(Err(wants.required_size)),
                Err(EncodeError::AlreadyEncoded) => Ok(Ok(0)),
            };
            append(out, FLIGHT_BYTES, &mut encode).map(|()| StepEnd::On)
        }
        Ok(ConnectionState::TransmitTlsData(data)) => {
            data.done();
            Ok(StepEnd::On)
        }
        Ok(ConnectionState::WriteTraffic(mut traffic)) => {
            let done = match speech {
                None => Ok(()),
                Some(Speech::Data(said)) => append(out, sealed_bytes(said.len()), &mut |room| {
                    encrypted(traffic.encrypt(said, room))
                }),
                Some(Speech::Close) => append(out, RECORD_BYTES_ADDED, &mut |room| {
                    encrypted(traffic.queue_close_notify(room))
                }),
            };
            done.map(|()| StepEnd::Open)
        }
        Ok(ConnectionState::PeerClosed) => Ok(StepEnd::PeerClosed),
        // Early data is never accepted; what else there may be is waited out.
        Ok(_) => Ok(StepEnd::Blocked),
    };
    (discard, went)
}

/// Bytes written, or the room that they need.
type Filled = Result<Result<usize, usize>, Error>;

fn encrypted(result: Result<usize, EncryptError>) -> Filled {
    match result {
        Ok(length) => Ok(Ok(length)),
        Err(EncryptError::InsufficientSize(wants)) => Ok(Err(wants.required_size)),
        Err(EncryptError::EncryptExhausted) => Err(Error::EncryptError),
    }
}

/// Has `fill` write behind the end of `out`, with more room where the first was too small.
fn append(
    out: &mut Vec<u8>,
    room: usize,
    fill: &mut dyn FnMut(&mut [u8]) -> Filled,
) -> Result<(), Error> {
    let start = out.len();
    let mut room = room;
    loop {
        out.resize(start + room, 0);
        match fill(&mut out[start..])? {
            Ok(length) => {
                out.truncate(start + length);
                return Ok(());
            }
            Err(wanted) => room = wanted,
        }
    }
}

/// An upper bound of what this many bytes become.
fn sealed_bytes(plain: usize) -> usize {
    plain + (plain / RECORD_BYTES_MAX + 1) * RECORD_BYTES_ADDED
}

thread_local! {
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The largest fragment of a record (RFC 8446, section 5.1).
const RECORD_BYTES_MAX: usize = 1 << 14;

/// More than a record adds: header 5, content type 1 and tag 16 in TLS 1.3; header 5, nonce 8 and
/// tag 16 in TLS 1.2 (RFC 8446, section 5.2; RFC 5288, section 3).
const RECORD_BYTES_ADDED: usize = 64;

/// Room for a usual flight of a handshake; rustls reports a larger one.
const FLIGHT_BYTES: usize = 2048;

const SPARE_BYTES_MAX: usize = 1 << 20;

/// An end of the transport can be forged by any host on the route, so it must not count as the end
/// of a message (RFC 8446, section 6.1).
const TRUNCATED: &str =
    "without close_notify, so that something may have been cut off (truncation)";

const UNFINISHED: &str = "in the middle of the TLS handshake; check the port, and whether it \
                          speaks TLS and wants a certificate (--cert FILE --key FILE)";
