//! What both ends send: lines, and the messages in some of them.

use super::decimal::put_decimal;

/// What a server sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FromServer<'a> {
    /// `INFO`: JSON.
    Info(&'a [u8]),
    /// `MSG` or `HMSG`.
    Message(Message<'a>),
    /// `PING`.
    Ping,
    /// `PONG`.
    Pong,
    /// `+OK`: the answer to each line of a client that is `verbose`.
    Okay,
    /// `-ERR`: the text between the quotes.
    Error(&'a [u8]),
}

/// What a client sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FromClient<'a> {
    /// `CONNECT`: JSON.
    Connect(&'a [u8]),
    /// `PUB` or `HPUB`.
    Publish(Publish<'a>),
    /// `SUB`.
    Subscribe(Subscribe<'a>),
    /// `UNSUB`, and after how many messages.
    Unsubscribe(&'a [u8], Option<u64>),
    /// `PING`.
    Ping,
    /// `PONG`.
    Pong,
}

/// A message for a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Subject on which it was published.
    pub subject: &'a [u8],
    /// The subscription's identifier, chosen by the client.
    pub sid: &'a [u8],
    /// Subject for an answer; empty if none is wanted.
    pub reply: &'a [u8],
    /// Header block with its end, empty if there is none.
    pub headers: &'a [u8],
    /// Payload.
    pub body: &'a [u8],
}

/// A message that a client publishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publish<'a> {
    /// Subject.
    pub subject: &'a [u8],
    /// Subject for an answer; empty if none is wanted.
    pub reply: &'a [u8],
    /// Header block with its end, empty if there is none.
    pub headers: &'a [u8],
    /// Payload.
    pub body: &'a [u8],
}

/// A subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscribe<'a> {
    /// Subject, perhaps with wildcards.
    pub subject: &'a [u8],
    /// Queue group; empty for none.
    pub queue: &'a [u8],
    /// Identifier for messages of this subscription.
    pub sid: &'a [u8],
}

/// Limits on what is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest control line.
    pub line_bytes_max: usize,
    /// Largest header block and payload together.
    pub payload_bytes_max: usize,
}

impl Limits {
    /// Limits of a client: an INFO may be long, a payload as large as a server may allow.
    pub const CLIENT: Limits =
        Limits { line_bytes_max: INFO_BYTES_MAX, payload_bytes_max: PAYLOAD_BYTES_MAX as usize };
}

/// Number of bytes of a payload: of its header block, and of everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes of the header block; 0 without one.
    pub headers: usize,
    /// Bytes of the header block and the body.
    pub total: usize,
}

impl Publish<'_> {
    /// Appends it as `PUB`, or as `HPUB` if it has headers.
    pub fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(if self.headers.is_empty() { b"PUB " } else { b"HPUB " });
        out.extend_from_slice(self.subject);
        put_end(out, self.reply, self.headers, self.body);
    }
}

impl Message<'_> {
    /// Appends it as `MSG`, or as `HMSG` if it has headers.
    pub fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(if self.headers.is_empty() { b"MSG " } else { b"HMSG " });
        out.extend_from_slice(self.subject);
        out.push(b' ');
        out.extend_from_slice(self.sid);
        put_end(out, self.reply, self.headers, self.body);
    }

    /// Most bytes that it has on the wire.
    pub fn bytes_max(&self) -> usize {
        let fields = self.subject.len() + self.sid.len() + self.reply.len();
        fields + self.headers.len() + self.body.len() + HEAD_BYTES_MAX
    }
}

/// Appends what follows subject and sid: the answer's subject, sizes, and the payload.
fn put_end(out: &mut Vec<u8>, reply: &[u8], headers: &[u8], body: &[u8]) {
    out.push(b' ');
    if !reply.is_empty() {
        out.extend_from_slice(reply);
        out.push(b' ');
    }
    if !headers.is_empty() {
        put_decimal(out, headers.len() as u64);
        out.push(b' ');
    }
    put_decimal(out, (headers.len() + body.len()) as u64);
    out.extend_from_slice(LINE_END);
    out.extend_from_slice(headers);
    out.extend_from_slice(body);
    out.extend_from_slice(LINE_END);
}

impl Subscribe<'_> {
    /// Appends it as `SUB`.
    pub fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"SUB ");
        out.extend_from_slice(self.subject);
        out.push(b' ');
        if !self.queue.is_empty() {
            out.extend_from_slice(self.queue);
            out.push(b' ');
        }
        out.extend_from_slice(self.sid);
        out.extend_from_slice(LINE_END);
    }
}

/// Appends a line `NAME TEXT`, for `INFO` and `CONNECT`.
pub fn put_line(out: &mut Vec<u8>, name: &str, text: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.push(b' ');
    out.extend_from_slice(text);
    out.extend_from_slice(LINE_END);
}

/// Appends `-ERR 'TEXT'`.
pub fn put_error(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(b"-ERR '");
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(b"'\r\n");
}

/// `PING` as a line.
pub const PING: &[u8] = b"PING\r\n";
/// `PONG` as a line.
pub const PONG: &[u8] = b"PONG\r\n";
/// `+OK` as a line.
pub const OKAY: &[u8] = b"+OK\r\n";

/// End of every line and payload.
pub(super) const LINE_END: &[u8] = b"\r\n";

/// The largest payload that any server allows (`max_payload`).
pub const PAYLOAD_BYTES_MAX: u64 = 64 << 20;

/// Longest control line that a server accepts (`max_control_line`).
pub const LINE_BYTES_MAX: usize = 4096;

const INFO_BYTES_MAX: usize = 1 << 20;

/// Bytes of a message that are neither a field nor payload.
const HEAD_BYTES_MAX: usize = 32;
