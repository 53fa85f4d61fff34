//! The client's end of a connection as a pure state machine: no socket, no clock, no async.
//! The engine owns the socket and the time; a wire turns operations into bytes and bytes into
//! signals.

use std::fmt;

use crate::units::Nanos;

/// Names an operation between [`Wire::send`] and the signal that ends it; unique among the
/// operations in flight on one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u32);

/// One message to move.
#[derive(Clone, Copy, Debug)]
pub struct Op<'a> {
    /// Its name until it is done.
    pub ticket: Ticket,
    /// The body, mark included.
    pub body: &'a [u8],
}

/// Whether an answer to an operation will come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// [`Signal::Done`] or [`Signal::Refused`] will follow.
    Awaited,
    /// Nothing will be heard of it (MQTT QoS 0, unacknowledged frames); the ticket is free.
    None,
}

/// What a wire tells the engine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Signal<'a> {
    /// The session stands (CONNACK, and SUBACK for a consumer): operations may start.
    Ready,
    /// The operation is confirmed: its guarantee is met.
    Done(Ticket),
    /// The operation was answered with an error: an HTTP status of 400 and above, an MQTT
    /// reason of 0x80 and above.
    Refused(Ticket, u16),
    /// The operation is confirmed, and the server says that nobody subscribes to it.
    NoSubscriber(Ticket),
    /// A message for this consumer.
    Message {
        /// The topic it came on, empty where the protocol has none.
        topic: &'a [u8],
        /// Its body.
        body: &'a [u8],
    },
    /// Something the server announced or granted, for the record: `("receive_maximum", 10)`.
    Granted(&'static str, u64),
    /// The peer will take no more operations on this connection; the engine closes it once the
    /// staged bytes are out, and opens another for what is left to send.
    Closing,
}

/// Why a connection cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The server refused the session: wrong credentials, not authorised, and so on.
    Refused {
        /// The protocol's own code.
        code: u16,
        /// The code in words.
        reason: String,
    },
    /// What came is not this protocol at all.
    OtherProtocol(String),
    /// What came breaks this protocol's rules.
    Malformed(String),
    /// The server ended the session and said why.
    Ended(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Refused { code, reason } => write!(f, "the server refused: {reason} ({code})"),
            Fault::OtherProtocol(saw) => write!(f, "the server speaks another protocol: {saw}"),
            Fault::Malformed(what) => write!(f, "the server broke the protocol: {what}"),
            Fault::Ended(why) => write!(f, "the server ended the session: {why}"),
        }
    }
}

impl std::error::Error for Fault {}

/// Bytes on their way to a socket. Wires and servers append; the engine sends.
#[derive(Clone, Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
}

impl Outbox {
    /// Appends `bytes`.
    pub fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The buffer itself, to encode into; only ever append.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// What has been appended so far.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many bytes have been appended so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// True if nothing has been appended.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Forgets everything, keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }
}

/// Where a wire hands its signals.
pub type Emit<'e> = &'e mut dyn FnMut(Signal<'_>);

/// A client connection without its socket.
pub trait Wire {
    /// The transport stands: say what must be said first. A protocol that needs no greeting
    /// emits [`Signal::Ready`] here.
    fn open(&mut self, now: Nanos, out: &mut Outbox, emit: Emit<'_>);

    /// How many more operations may start now; 0 until ready.
    fn room(&self) -> u32;

    /// Encodes one operation. The engine never calls it without room.
    fn send(&mut self, op: &Op<'_>, now: Nanos, out: &mut Outbox) -> Reply;

    /// Takes what it can of `input` and returns how many bytes that was; the rest comes again,
    /// with more behind it. Never panics, whatever the bytes.
    fn receive(
        &mut self,
        input: &[u8],
        now: Nanos,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<usize, Fault>;

    /// The peer closed its side; `rest` is what [`Wire::receive`] left over. A body that is
    /// delimited by the end of the connection completes here.
    fn end(&mut self, _rest: &[u8], _emit: Emit<'_>) -> Result<(), Fault> {
        Ok(())
    }

    /// Called once after [`Wire::open`] and then whenever the time it returned has come: for
    /// keep-alive and retransmission. `None` asks never to be called again. An error means that
    /// the peer has been silent for too long.
    fn wake(&mut self, _now: Nanos, _out: &mut Outbox) -> Result<Option<Nanos>, Fault> {
        Ok(None)
    }

    /// A polite goodbye (DISCONNECT), after which the engine closes the socket.
    fn close(&mut self, _out: &mut Outbox) {}
}
