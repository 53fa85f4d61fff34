//! A server whose answers leave at computed moments: the reference server of a protocol behind
//! a policy that says, for each message, when what follows from it goes out. It runs over any
//! `Io`, so that the same oracle holds on virtual and on real time.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;

use weigh_engine::io::{Close, Io, IoEvent, Token};
use weigh_model::Nanos;
use weigh_model::connection::Outbox;
use weigh_model::server::{ConnectionId, Outboxes, Record, Server, ServerReport};
use weigh_websocket::{Header, Opcode};

/// Says when the answer to a message leaves: gets the time of arrival and the message's bytes.
pub type Policy = Box<dyn FnMut(Nanos, &[u8]) -> Nanos + Send>;

/// The server.
pub struct Scripted {
    inner: Box<dyn Server>,
    policy: Policy,
    frame: fn(&[u8]) -> Option<Frame>,
    /// Each unit is a datagram.
    is_datagrams: bool,
    connections: BTreeMap<u32, Connection>,
    departures: BinaryHeap<Reverse<(Nanos, u64)>>,
    letters: BTreeMap<u64, Vec<(u32, Outbox)>>,
    next: u64,
}

/// The first unit of some bytes.
struct Frame {
    bytes: usize,
    /// True for a message, false for what sets up a session.
    is_message: bool,
    /// Where the payload is and the key that masks it, for a protocol that masks.
    masked: Option<(Range<usize>, [u8; 4])>,
}

impl Frame {
    fn plain(bytes: usize, is_message: bool) -> Frame {
        Frame { bytes, is_message, masked: None }
    }

    /// What the message says.
    fn content<'u>(&self, unit: &'u [u8]) -> Cow<'u, [u8]> {
        let Some((place, key)) = &self.masked else { return unit.into() };
        let key = key.iter().cycle();
        unit[place.clone()].iter().zip(key).map(|(byte, key)| byte ^ key).collect()
    }
}

#[derive(Default)]
struct Connection {
    input: Vec<u8>,
    output: Outbox,
    /// Bytes of the output that the socket took.
    taken: usize,
    is_blocked: bool,
}

impl Scripted {
    /// `inner` behind `policy`, for the protocol of this name.
    pub fn new(protocol: &str, inner: Box<dyn Server>, policy: Policy) -> Scripted {
        Scripted {
            inner,
            policy,
            frame: frame_of(protocol),
            is_datagrams: protocol == "coap",
            connections: BTreeMap::new(),
            departures: BinaryHeap::new(),
            letters: BTreeMap::new(),
            next: 0,
        }
    }

    /// What the inner server counted.
    pub fn report(&self) -> ServerReport {
        self.inner.report()
    }

    /// One turn, until something happens or the next answer is due.
    pub fn step(&mut self, io: &mut dyn Io, until: Nanos) {
        let next = self.departures.peek().map_or(Nanos::NEVER, |Reverse((at, _))| *at);
        let mut gone = Vec::new();
        io.turn(until.min(next), &mut |now, event| match event {
            IoEvent::Accepted { connection } => {
                let mut desk = Desk::default();
                self.inner.accepted(ConnectionId(connection.0), now, &mut desk);
                // A server may speak first.
                let output = desk.staged.remove(&connection.0).unwrap_or_default();
                let greeted = Connection { output, ..Connection::default() };
                self.connections.insert(connection.0, greeted);
            }
            IoEvent::Received(token, bytes) => self.receive(now, token, bytes),
            IoEvent::Writable(token) => {
                if let Some(connection) = self.connections.get_mut(&token.0) {
                    connection.is_blocked = false;
                }
            }
            IoEvent::Ended(token) | IoEvent::Failed(token, _) => gone.push(token),
            IoEvent::Connected(_) | IoEvent::Woken => {}
        });
        let now = io.now();
        for token in gone {
            if self.connections.remove(&token.0).is_some() {
                self.inner.closed(ConnectionId(token.0), now, &mut Desk::default());
                io.close(token, Close::Graceful);
            }
        }
        while let Some(Reverse((at, number))) = self.departures.peek().copied() {
            if at > now {
                break;
            }
            self.departures.pop();
            for (to, mut letter) in self.letters.remove(&number).unwrap_or_default() {
                let Some(connection) = self.connections.get_mut(&to) else { continue };
                for frame in letter.frames().after(0) {
                    connection.output.put(frame);
                    connection.output.frame();
                }
            }
        }
        self.flush(io);
    }

    fn receive(&mut self, now: Nanos, token: Token, bytes: &[u8]) {
        let Some(connection) = self.connections.get_mut(&token.0) else { return };
        let mut input = std::mem::take(&mut connection.input);
        input.extend_from_slice(bytes);
        let mut taken = 0;
        while let Some(frame) = (self.frame)(&input[taken..]) {
            let unit = &input[taken..taken + frame.bytes];
            taken += frame.bytes;
            let mut desk = Desk::default();
            let eaten = self.inner.receive(ConnectionId(token.0), unit, now, &mut desk);
            assert_eq!(eaten, Ok(unit.len()));
            let departure =
                if frame.is_message { (self.policy)(now, &frame.content(unit)) } else { now };
            self.departures.push(Reverse((departure, self.next)));
            self.letters.insert(self.next, desk.staged.into_iter().collect());
            self.next += 1;
        }
        input.drain(..taken);
        if let Some(connection) = self.connections.get_mut(&token.0) {
            connection.input = input;
        }
    }

    fn flush(&mut self, io: &mut dyn Io) {
        for (token, connection) in &mut self.connections {
            if connection.is_blocked || connection.output.is_empty() {
                continue;
            }
            let (token, before) = (Token(*token), connection.taken);
            connection.taken = if self.is_datagrams {
                io.send(token, connection.output.frames(), before).unwrap_or(before)
            } else {
                before + io.write(token, &connection.output.bytes()[before..]).unwrap_or(0)
            };
            connection.is_blocked = connection.taken < connection.output.len();
            if !connection.is_blocked {
                connection.output.clear();
                connection.taken = 0;
            }
        }
    }
}

/// The bytes of the first unit of the protocol of this name, and whether it is a message.
pub fn unit_of(protocol: &str) -> impl Fn(&[u8]) -> Option<(usize, bool)> + Send + Sync + use<> {
    let frame = frame_of(protocol);
    move |input| frame(input).map(|found| (found.bytes, found.is_message))
}

fn frame_of(protocol: &str) -> fn(&[u8]) -> Option<Frame> {
    match protocol {
        "tcp" => tcp_frame,
        "http1" => http_frame,
        "http2" | "grpc" => http2_frame,
        "nats" => nats_frame,
        "redis" => redis_frame,
        "amqp" => amqp_frame,
        "amqp1" => amqp1_frame,
        "websocket" => websocket_frame,
        "sse" => sse_frame,
        "kafka" => kafka_frame,
        "coap" => coap_frame,
        _ => mqtt_frame,
    }
}

/// What the inner server staged for one message.
#[derive(Default)]
struct Desk {
    staged: BTreeMap<u32, Outbox>,
}

impl Outboxes for Desk {
    fn stage(&mut self, to: ConnectionId) -> &mut Vec<u8> {
        self.staged.entry(to.0).or_default().buffer()
    }

    fn frame(&mut self, to: ConnectionId) {
        self.staged.entry(to.0).or_default().frame();
    }

    fn pending_bytes(&self, _of: ConnectionId) -> usize {
        0
    }

    fn notify_drained(&mut self, _of: ConnectionId) {}

    fn hold(&mut self, _which: ConnectionId) {}

    fn release(&mut self, _which: ConnectionId) {}

    fn close(&mut self, _which: ConnectionId) {}

    fn abort(&mut self, _which: ConnectionId) {}

    fn notify_shard(&mut self, _shard: u16) {}

    fn store(&mut self, _record: Record<'_>) {}

    fn stores(&self) -> bool {
        false
    }
}

/// RFC 7252, section 3: a datagram; a request if the class of its code is 0, and not empty.
fn coap_frame(input: &[u8]) -> Option<Frame> {
    let code = *input.get(1)?;
    Some(Frame::plain(input.len(), matches!(code, 1..=31)))
}

/// Four bytes of length, then the kind; kinds 1 to 3 are messages.
fn tcp_frame(input: &[u8]) -> Option<Frame> {
    let (length, rest) = input.split_first_chunk::<4>()?;
    let bytes = 4 + u32::from_be_bytes(*length) as usize;
    let is_message = matches!(rest.first()?, 1..=3);
    (input.len() >= bytes).then_some(Frame::plain(bytes, is_message))
}

/// RFC 9112, section 6: the head ends with an empty line, Content-Length says the rest.
fn http_frame(input: &[u8]) -> Option<Frame> {
    let head = input.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&input[..head]).to_ascii_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
    let bytes = head + length.map_or(0, |length| length.trim().parse::<usize>().unwrap());
    (input.len() >= bytes).then_some(Frame::plain(bytes, true))
}

/// The same, where a GET subscribes.
fn sse_frame(input: &[u8]) -> Option<Frame> {
    let frame = http_frame(input)?;
    Some(Frame { is_message: input.starts_with(b"POST "), ..frame })
}

/// RFC 6455, sections 4.1 and 5.2: the request of the upgrade, then masked frames; a ping right
/// behind a message is answered with it.
fn websocket_frame(input: &[u8]) -> Option<Frame> {
    if input.starts_with(b"GET ") {
        return http_frame(input).map(|frame| Frame { is_message: false, ..frame });
    }
    let frame = |input: &[u8]| {
        let (header, head_bytes) = Header::read(input, true).unwrap()?;
        let bytes = head_bytes + header.length as usize;
        (input.len() >= bytes).then_some((header, head_bytes, bytes))
    };
    let (header, head_bytes, bytes) = frame(input)?;
    let is_message = !header.opcode.is_control();
    let ping = match frame(&input[bytes..]) {
        Some((Header { opcode: Opcode::Ping, .. }, _, ping)) if is_message => ping,
        _ => 0,
    };
    let masked = header.mask.map(|key| (head_bytes..bytes, key));
    Some(Frame { bytes: bytes + ping, is_message, masked })
}

/// How a DATA frame begins that holds nothing and ends its stream: so end calls of gRPC.
const EMPTY_END: [u8; 5] = [0, 0, 0, 0, 1];

/// Bytes of such a frame.
pub const EMPTY_END_BYTES: usize = 9;

/// RFC 9113, sections 3.4 and 4.1: a preface of 24 bytes, then frames: three bytes of length, type,
/// flags, stream. Where a message is whole, a DATA frame ends its stream.
fn http2_frame(input: &[u8]) -> Option<Frame> {
    if input.starts_with(b"PRI") {
        return (input.len() >= 24).then_some(Frame::plain(24, false));
    }
    let [high, middle, low, kind, flags, ..] = *input else { return None };
    let bytes = 9 + u32::from_be_bytes([0, high, middle, low]) as usize;
    let is_message = kind == 0 && flags & 1 == 1;
    if kind == 0 && !is_message && input.get(bytes..)?.starts_with(&EMPTY_END) {
        return Some(Frame::plain(bytes + EMPTY_END_BYTES, true));
    }
    (input.len() >= bytes).then_some(Frame::plain(bytes, is_message))
}

/// RESP: an array of bulk strings; PUBLISH, XADD and SET bring messages.
fn redis_frame(input: &[u8]) -> Option<Frame> {
    let line = |at: usize| {
        let end = input.get(at..)?.windows(2).position(|two| two == b"\r\n")?;
        let number: usize = std::str::from_utf8(&input[at + 1..at + end]).unwrap().parse().unwrap();
        Some((number, at + end + 2))
    };
    let (words, mut at) = line(0)?;
    let command = line(at)?.1;
    for _ in 0..words {
        let (length, after) = line(at)?;
        at = after + length + 2;
    }
    let is_message = ["PUBLISH\r", "XADD\r", "SET\r"]
        .iter()
        .any(|word| input[command..].starts_with(word.as_bytes()));
    (input.len() >= at).then_some(Frame::plain(at, is_message))
}

/// AMQP 0-9-1, sections 2.3.5 and 4.2: a protocol header of 8 bytes, then frames; `basic.publish`
/// goes with its content header and as many bodies as that says.
fn amqp_frame(input: &[u8]) -> Option<Frame> {
    if input.starts_with(b"AMQP") {
        return (input.len() >= 8).then_some(Frame::plain(8, false));
    }
    let size = |at: usize| {
        let length: &[u8; 4] = input.get(at + 3..)?.first_chunk()?;
        let end = at + 8 + u32::from_be_bytes(*length) as usize;
        (input.len() >= end).then_some(end)
    };
    let header_at = size(0)?;
    if input[0] != 1 || input.get(7..11)? != [0, 60, 0, 40] {
        return Some(Frame::plain(header_at, false));
    }
    let mut end = size(header_at)?;
    let body: &[u8; 8] = input.get(header_at + 11..)?.first_chunk()?;
    let mut left = u64::from_be_bytes(*body);
    while left > 0 {
        let after = size(end)?;
        left = left.saturating_sub((after - end - 8) as u64);
        end = after;
    }
    Some(Frame::plain(end, true))
}

/// Kafka's protocol guide: four bytes of length, then the key of the API; 0 is Produce.
fn kafka_frame(input: &[u8]) -> Option<Frame> {
    let (length, rest) = input.split_first_chunk::<4>()?;
    let bytes = 4 + u32::from_be_bytes(*length) as usize;
    let is_message = rest.starts_with(&[0, 0]);
    (input.len() >= bytes).then_some(Frame::plain(bytes, is_message))
}

/// AMQP 1.0, sections 2.2 and 2.3: a protocol header of 8 bytes, then frames, which begin with
/// their size; a transfer (0x14) brings a message.
fn amqp1_frame(input: &[u8]) -> Option<Frame> {
    let length: &[u8; 4] = input.first_chunk()?;
    let (size, is_message) = match length == b"AMQP" {
        true => (8, false),
        false => {
            let is_message = input.get(8..11) == Some(&[0, 0x53, 0x14]);
            (u32::from_be_bytes(*length) as usize, is_message)
        }
    };
    (input.len() >= size).then_some(Frame::plain(size, is_message))
}

/// MQTT 5.0, section 2.1.4: the remaining length in groups of seven bits; type 3 is PUBLISH.
fn mqtt_frame(input: &[u8]) -> Option<Frame> {
    let mut length = 0;
    for (place, byte) in input.iter().skip(1).take(4).enumerate() {
        length |= usize::from(byte & 0x7F) << (7 * place);
        if byte & 0x80 == 0 {
            let bytes = 2 + place + length;
            let is_message = input[0] >> 4 == 3;
            return (input.len() >= bytes).then_some(Frame::plain(bytes, is_message));
        }
    }
    None
}

/// A line, and the payload of PUB; a PING right behind a message is answered with it. Requests to
/// JetStream, acknowledgements and answers to inboxes are no messages.
fn nats_frame(input: &[u8]) -> Option<Frame> {
    let line = input.windows(2).position(|two| two == b"\r\n")? + 2;
    let text = std::str::from_utf8(&input[..line]).unwrap();
    let mut words = text.split_ascii_whitespace();
    if !matches!(words.next()?, "PUB" | "HPUB") {
        return Some(Frame::plain(line, false));
    }
    let is_message = !words.next()?.starts_with(['$', '_']);
    let bytes = line + words.next_back()?.parse::<usize>().unwrap() + 2;
    let rest = input.get(bytes..)?;
    let flush = if is_message && rest.starts_with(b"PING\r\n") { 6 } else { 0 };
    Some(Frame::plain(bytes + flush, is_message))
}
