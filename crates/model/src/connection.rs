//! The client's end of a connection as a pure state machine: no socket, no clock, no async.
//! The engine owns the socket and the time; a connection turns operations into bytes and bytes
//! into signals.

use std::fmt;

use crate::content::{Meter, StreamCounts};
use crate::units::Nanos;

/// Identifies an operation between [`Connection::send`] and the signal that ends it; unique among
/// the operations in flight on one connection.
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

/// Expectation of an answer to an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// [`Signal::Done`] or [`Signal::Refused`] will follow.
    Awaited,
    /// No answer follows (MQTT QoS 0, unacknowledged frames); the ticket is free.
    None,
}

/// Report of a connection to the engine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Signal<'a> {
    /// The session is established (CONNACK, and SUBACK for a consumer): operations may start.
    Ready,
    /// The operation is confirmed: its guarantee is met.
    Done(Ticket),
    /// The operation was answered with an error: an HTTP status of 400 and above, an MQTT
    /// reason of 0x80 and above, a gRPC status from 1 on, or [`STREAM_ERROR`] and above.
    Refused(Ticket, u16),
    /// The server did not process the operation, says so, and takes no more on this connection
    /// (HTTP/2's GOAWAY): [`Signal::Closing`] follows, and the engine sends the message again on
    /// the next connection, where connections are kept.
    Unprocessed(Ticket),
    /// The operation is confirmed, and the server reports that it has no subscribers.
    NoSubscriber(Ticket),
    /// A message for this consumer.
    Message {
        /// The topic it came on, empty where the protocol has none.
        topic: &'a [u8],
        /// Its body.
        body: &'a [u8],
    },
    /// The head of a message that comes in pieces, for this consumer.
    Head {
        /// The topic it came on, empty where the protocol has none.
        topic: &'a [u8],
        /// Bytes of its whole body; it is complete when its pieces add up to them.
        bytes: u64,
    },
    /// The next piece of the body that the last [`Signal::Head`] announced; never empty.
    Piece(&'a [u8]),
    /// The answer to [`Poll::ask`] is complete; its messages came before. The error is the status
    /// of a refusal.
    Answered(Result<(), u16>),
    /// A value that the server announced or granted, for the record: `("receive_maximum", 10)`.
    Granted(&'static str, u64),
    /// The peer answered the keep-alive that [`Connection::wake`] sent.
    Alive,
    /// A layer that is also woken for itself reports that the connection inside it sent a
    /// keep-alive; without such a layer the engine sees it.
    KeptAlive,
    /// The server divided the messages of a group of consumers anew (Kafka: a rebalance): this one
    /// has its share, after it read nothing for this time.
    Regrouped(Nanos),
    /// The peer will take no more operations on this connection; the engine closes it once the
    /// staged bytes are out, and opens another for what is left to send.
    Closing,
}

/// [`Signal::Granted`] with this name: the protocol allows the connection no more messages, since
/// all message identifiers are in use; [`Signal::Closing`] follows, so that another replaces it.
pub const IDENTIFIERS_USED_UP: &str = "identifiers_used_up";

/// [`Signal::Refused`] with this and an error code of HTTP/2 (RFC 9113, section 7; above 0xf cut to
/// it): the server reset the stream of the operation.
pub const STREAM_ERROR: u16 = 0x20;

/// Reason for which a connection cannot continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The server refused the session: wrong credentials, not authorised, and so on.
    Refused {
        /// The protocol's own code.
        code: u16,
        /// The code in words.
        reason: String,
    },
    /// The input is not this protocol at all.
    OtherProtocol(String),
    /// The input breaks this protocol's rules.
    Malformed(String),
    /// The server ended the session and gave a reason.
    Ended(String),
    /// TLS refused the other side: a certificate that is not valid, no common version.
    Untrusted(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Refused { code, reason } => write!(f, "the server refused: {reason} ({code})"),
            Fault::OtherProtocol(saw) => write!(f, "the server speaks another protocol: {saw}"),
            Fault::Malformed(what) => write!(f, "the server broke the protocol: {what}"),
            Fault::Ended(why) => write!(f, "the server ended the session: {why}"),
            Fault::Untrusted(why) => write!(f, "TLS: {why}"),
        }
    }
}

impl std::error::Error for Fault {}

/// Bytes to be sent. Connections and servers append; the engine sends.
#[derive(Clone, Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    /// Ends of frames; empty for a stream.
    ends: Vec<u32>,
}

impl Outbox {
    /// Appends `bytes`.
    pub fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The buffer itself, to encode into; append only.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Ends a frame: the bytes appended since the last end leave as one datagram. Streams have no
    /// frames; bytes after the last end are a frame too.
    pub fn frame(&mut self) {
        end_frame(&self.bytes, &mut self.ends);
    }

    /// Returns the bytes appended so far, with the last frame ended.
    pub fn frames(&mut self) -> Frames<'_> {
        self.frame();
        Frames { bytes: &self.bytes, ends: &self.ends }
    }

    /// Returns the bytes appended so far.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the number of bytes appended so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// True if nothing has been appended.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Clears the content, keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

/// Ends a frame of `bytes` at their end, unless it would be empty.
pub fn end_frame(bytes: &[u8], ends: &mut Vec<u32>) {
    let end = bytes.len() as u32;
    if ends.last().map_or(end > 0, |last| *last < end) {
        ends.push(end);
    }
}

/// Consecutive frames: each is a datagram.
#[derive(Clone, Copy, Debug)]
pub struct Frames<'b> {
    /// The bytes of all of them.
    pub bytes: &'b [u8],
    /// End of each of them, in rising order.
    pub ends: &'b [u32],
}

impl<'b> Frames<'b> {
    /// The frames behind the first `taken` bytes, where a frame ends.
    pub fn after(self, taken: usize) -> impl Iterator<Item = &'b [u8]> {
        let first = self.ends.partition_point(|end| *end as usize <= taken);
        let mut start = taken;
        self.ends[first..].iter().map(move |end| {
            let frame = &self.bytes[start..*end as usize];
            start = *end as usize;
            frame
        })
    }
}

/// Callback to which a connection passes its signals.
pub type Emit<'e> = &'e mut dyn FnMut(Signal<'_>);

/// Use of time by a connection. The engine asks once, when the connection is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timing {
    /// It is never woken.
    Untimed,
    /// Keep-alive: once the session stands, calls only put the next wake-up off. It is woken at
    /// most 20 ms late.
    KeepAlive,
    /// Retransmission: any call may bring the next wake-up forward. It is woken on time.
    Exact,
}

/// A client connection without its socket.
///
/// Order of calls: [`Connection::timing`] and the capabilities when it is made;
/// [`Connection::open`] once, when the transport is established; then [`Connection::receive`],
/// [`Connection::send`] and [`Connection::wake`] in any order, `send` only while
/// [`Connection::room`] is not 0; at the end [`Connection::close`] (this side closes first) or
/// [`Connection::end`] (the peer closed), after which at most `receive` follows.
/// [`Connection::next_wake`] is called as required by [`Connection::timing`].
///
/// Four methods make a connection of a producer, two of them one of a consumer. Further abilities
/// are offered as capabilities: [`Transfer`], [`Batch`], [`Poll`], [`Metered`].
pub trait Connection {
    /// The transport is established: send the greeting. A protocol without a greeting emits
    /// [`Signal::Ready`] here.
    fn open(&mut self, now: Nanos, out: &mut Outbox, emit: Emit<'_>);

    /// Returns how many more operations may start now; 0 until ready. A consumer, which sends no
    /// messages, never has room.
    fn room(&self) -> u32 {
        0
    }

    /// Encodes one operation. The engine never calls it without room.
    fn send(&mut self, _op: &Op<'_>, _now: Nanos, _out: &mut Outbox) -> Reply {
        Reply::None
    }

    /// Takes what it can of `input` and returns how many bytes that was; the remainder comes again,
    /// with more after it. Over [`crate::protocol::Transport::Datagram`] `input` is one datagram,
    /// and bytes not taken of it are lost. Never panics, whatever the bytes.
    ///
    /// # Errors
    /// If the connection cannot continue.
    fn receive(
        &mut self,
        input: &[u8],
        now: Nanos,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<usize, Fault>;

    /// The peer closed its side; `rest` is what [`Connection::receive`] left over. A body that is
    /// delimited by the end of the connection completes here.
    ///
    /// # Errors
    /// If the end came too early.
    fn end(&mut self, _rest: &[u8], _emit: Emit<'_>) -> Result<(), Fault> {
        Ok(())
    }

    /// Ends the session politely (DISCONNECT), after which the engine closes the socket. Later
    /// input may be handed to [`Connection::receive`]; it is not answered.
    fn close(&mut self, _out: &mut Outbox) {}

    /// True after [`Connection::close`] while what was said before may not have arrived. The engine
    /// keeps the socket and continues to call [`Connection::receive`] and [`Connection::wake`],
    /// whose signals nothing hears, for a limited time. Over TCP the kernel sees to it.
    fn is_parting(&self) -> bool {
        false
    }

    /// Returns its use of time: constant for the life of a connection.
    fn timing(&self) -> Timing {
        Timing::Untimed
    }

    /// Returns the time at which [`Connection::wake`] is to be called; `None` as long as nothing is
    /// waited for. With [`Timing::Exact`] it is asked after every call that may change it; with
    /// [`Timing::KeepAlive`] after every call until the session is established, after that only
    /// when the time that it last returned has come, and after each wake-up.
    fn next_wake(&self) -> Option<Nanos> {
        None
    }

    /// The moment that [`Connection::next_wake`] names has come: for keep-alive and retransmission.
    ///
    /// # Errors
    /// If the connection cannot continue: the peer has been silent for too long.
    fn wake(&mut self, _now: Nanos, _out: &mut Outbox, _emit: Emit<'_>) -> Result<(), Fault> {
        Ok(())
    }

    /// True for a consumer that gets what it missed on its next connection (Last-Event-ID of
    /// server-sent events): lost, it is connected again. Other consumers of `deliver` stay away,
    /// since what they miss meanwhile is lost. Asked when it is made.
    fn resumes(&self) -> bool {
        false
    }

    /// Returns the time limit for its session, where the server may hold it back for longer than an
    /// answer takes: until a group of consumers is complete. Asked when it is made.
    fn opens_within(&self) -> Option<Nanos> {
        None
    }

    /// True if it learns the round trip from its handshake: connections that open together would
    /// take each other's computing time for a part of it. Asked when it is made.
    fn times_its_handshake(&self) -> bool {
        false
    }

    /// Bodies that are never whole in memory (pattern `transfer`).
    fn transfer(&mut self) -> Option<&mut dyn Transfer> {
        None
    }

    /// Several messages in one exchange (pattern `batch`). Without it the messages of a batch are
    /// sent one after the other, each with its own answer.
    fn batch(&mut self) -> Option<&mut dyn Batch> {
        None
    }

    /// Requests for what is new (pattern `poll`).
    fn poll(&mut self) -> Option<&mut dyn Poll> {
        None
    }

    /// Counts of what the codec writes and reads.
    fn metered(&mut self) -> Option<&mut dyn Metered> {
        None
    }
}

/// A connection that sends bodies piece by piece.
pub trait Transfer {
    /// Encodes the head of an operation whose body is too large to be composed at once, and its
    /// first piece: `op.body`. `rest` bytes follow through [`Transfer::more`] before anything else
    /// is begun; the connection keeps its own output back until then.
    fn begin(&mut self, op: &Op<'_>, rest: u64, now: Nanos, out: &mut Outbox) -> Reply;

    /// Encodes the next piece of the body that was begun.
    fn more(&mut self, piece: &[u8], now: Nanos, out: &mut Outbox);

    /// False while the connection waits for the peer before it takes the next piece: over datagrams
    /// nothing else holds a sender back. The engine asks again after every call of
    /// [`Connection::receive`] and [`Connection::wake`].
    fn takes_more(&mut self) -> bool {
        true
    }
}

/// A connection whose protocol has one exchange for several messages.
pub trait Batch {
    /// Returns how many more operations may start now in one exchange.
    fn room_together(&mut self) -> u32;

    /// Encodes operations that leave together, at least one and never more than
    /// [`Batch::room_together`], each confirmed separately. The reply applies to all of them.
    fn send_together(&mut self, ops: &[Op<'_>], now: Nanos, out: &mut Outbox) -> Reply;
}

/// A connection of a consumer that polls.
pub trait Poll {
    /// Requests what is new since the last request: the messages follow, and then
    /// [`Signal::Answered`]. Called only on an established session, one request at a time.
    fn ask(&mut self, now: Nanos, out: &mut Outbox);
}

/// A connection that counts its bytes, where packets are captured.
pub trait Metered {
    /// Called before [`Connection::open`]: the codec then counts what it writes and reads, by
    /// phase, payload separate from everything else ([`crate::content::Meter`]).
    fn meter(&mut self);

    /// The counts since then. Received bytes that do not make a whole packet yet are not included.
    fn counts(&mut self) -> Option<StreamCounts>;
}

impl Metered for Meter {
    fn meter(&mut self) {
        self.start();
    }

    fn counts(&mut self) -> Option<StreamCounts> {
        Meter::counts(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_end_where_they_were_ended() {
        let mut out = Outbox::default();
        out.frame();
        out.put(b"one");
        out.frame();
        out.frame();
        out.put(b"two");
        out.put(b"!");
        let frames = out.frames();
        assert_eq!(frames.after(0).collect::<Vec<_>>(), [&b"one"[..], b"two!"]);
        assert_eq!(frames.after(3).collect::<Vec<_>>(), [b"two!"]);
        assert_eq!(frames.after(7).count(), 0);
        out.clear();
        assert_eq!(out.frames().after(0).count(), 0);
    }
}
