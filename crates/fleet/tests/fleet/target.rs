//! The target of the trials: a reference server that keeps every message that it got, behind a
//! fault that may lose some of them.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use weigh_engine::serving::Serving;
use weigh_model::Nanos;
use weigh_model::connection::Fault;
use weigh_model::mark::{MARK_BYTES, Mark, Reading};
use weigh_model::protocol::Host;
use weigh_model::server::{ConnectionId, Outboxes, Server, ServerReport};
use weigh_model::trial::Settings;

/// A running target.
pub struct Target {
    serving: Serving,
    kept: Arc<Mutex<Kept>>,
    wire: Wire,
}

type Kept = HashMap<ConnectionId, Vec<u8>>;

/// Messages by producer, warm-up and number: due time on the trial's clock, and the body without
/// its mark.
pub type Messages = BTreeMap<(u32, bool, u64), (Nanos, Vec<u8>)>;

impl Target {
    /// A target of `tcp` that loses nothing.
    pub fn start() -> Target {
        Target::losing("tcp", |_| false)
    }

    /// A target behind a fault: it never sees the messages that are `lost`, by their marks. They
    /// are kept all the same.
    pub fn losing(protocol: &str, lost: fn(&Mark) -> bool) -> Target {
        let wire = if protocol == "mqtt" { Wire::Mqtt } else { Wire::Tcp };
        let protocol = weigh_protocols::find(protocol).unwrap();
        let settings = Settings::new(protocol.name(), protocol.settings(), []).unwrap();
        let Host { transport, make } = protocol.host(&settings).unwrap();
        let kept: Arc<Mutex<Kept>> = Arc::default();
        let all = Arc::clone(&kept);
        let make = Box::new(move |index| -> Box<dyn Server> {
            let (inner, kept) = (make(index), Arc::clone(&all));
            Box::new(Keeping { inner, kept, rest: Kept::new(), lost, wire })
        });
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let serving = Serving::start(&Host { transport, make }, any, 1).unwrap();
        Target { serving, kept, wire }
    }

    pub fn address(&self) -> SocketAddr {
        self.serving.address()
    }

    /// What came since the last call.
    pub fn messages(&self) -> Messages {
        let kept = std::mem::take(&mut *self.kept.lock().unwrap());
        let mut messages = Messages::new();
        for stream in kept.into_values() {
            let mut rest = &stream[..];
            while let Some(length) = self.wire.frame(rest) {
                let (frame, next) = rest.split_at(length);
                rest = next;
                let Some((mark, body)) = self.wire.message(frame) else { continue };
                let at = body.windows(4).position(|bytes| bytes == b"WB1.").unwrap();
                let mut body = body.to_vec();
                body.drain(at..at + MARK_BYTES);
                let name = (mark.producer, mark.warmup, mark.sequence);
                let before = messages.insert(name, (mark.due, body));
                assert_eq!(before, None, "a message came twice");
            }
        }
        messages
    }
}

/// Frames of a protocol.
#[derive(Clone, Copy, Debug)]
pub enum Wire {
    Tcp,
    Mqtt,
}

impl Wire {
    /// Length of the first frame, if it is complete.
    pub fn frame(self, bytes: &[u8]) -> Option<usize> {
        let length = match self {
            Wire::Tcp => 4 + u32::from_be_bytes(*bytes.first_chunk()?) as usize,
            Wire::Mqtt => {
                let (head, rest) = remaining(bytes)?;
                head + rest
            }
        };
        (bytes.len() >= length).then_some(length)
    }

    /// The message in a whole frame, if it carries one.
    fn message(self, frame: &[u8]) -> Option<(Mark, &[u8])> {
        let body = match self {
            Wire::Tcp => match frame[4..].split_at_checked(5)? {
                ([0x01..=0x03, ..], body) => body,
                _ => return None,
            },
            Wire::Mqtt => {
                let (head, _) = remaining(frame)?;
                if frame[0] >> 4 != PUBLISH {
                    return None;
                }
                let topic = usize::from(u16::from_be_bytes(*frame[head..].first_chunk()?));
                let id = if frame[0] & 0b110 == 0 { 0 } else { 2 };
                &frame[head + 2 + topic + id..]
            }
        };
        let Reading::Whole(mark) = Mark::read_any(body) else { panic!("a foreign body") };
        Some((mark, body))
    }
}

/// Bytes of the fixed header of an MQTT packet, and of what follows it.
pub fn remaining(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut length = 0;
    for (place, byte) in bytes.iter().skip(1).take(4).enumerate() {
        length |= usize::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Some((place + 2, length));
        }
    }
    None
}

/// Type of the MQTT packet that carries a message.
pub const PUBLISH: u8 = 3;

/// Keeps what was received, and passes it on but for what is lost.
struct Keeping {
    inner: Box<dyn Server>,
    kept: Arc<Mutex<Kept>>,
    /// Beginnings of frames.
    rest: Kept,
    lost: fn(&Mark) -> bool,
    wire: Wire,
}

impl Keeping {
    /// The frames that are complete now, but for what is lost.
    fn passed(&mut self, connection: ConnectionId, input: &[u8]) -> Vec<u8> {
        let rest = self.rest.entry(connection).or_default();
        rest.extend_from_slice(input);
        let (mut passed, mut at) = (Vec::with_capacity(rest.len()), 0);
        while let Some(length) = self.wire.frame(&rest[at..]) {
            let frame = &rest[at..at + length];
            if !self.wire.message(frame).is_some_and(|(mark, _)| (self.lost)(&mark)) {
                passed.extend_from_slice(frame);
            }
            at += length;
        }
        rest.drain(..at);
        passed
    }
}

impl Server for Keeping {
    fn accepted(&mut self, connection: ConnectionId, now: Nanos, out: &mut dyn Outboxes) {
        self.inner.accepted(connection, now, out);
    }

    fn receive(
        &mut self,
        connection: ConnectionId,
        input: &[u8],
        now: Nanos,
        out: &mut dyn Outboxes,
    ) -> Result<usize, Fault> {
        let passed = self.passed(connection, input);
        let taken = self.inner.receive(connection, &passed, now, out)?;
        assert_eq!(taken, passed.len(), "frames are complete");
        let mut kept = self.kept.lock().unwrap();
        kept.entry(connection).or_default().extend_from_slice(input);
        Ok(input.len())
    }

    fn drained(&mut self, connection: ConnectionId, now: Nanos, out: &mut dyn Outboxes) {
        self.inner.drained(connection, now, out);
    }

    fn closed(&mut self, connection: ConnectionId, now: Nanos, out: &mut dyn Outboxes) {
        self.rest.remove(&connection);
        self.inner.closed(connection, now, out);
    }

    fn wake(&mut self, now: Nanos, out: &mut dyn Outboxes) -> Option<Nanos> {
        self.inner.wake(now, out)
    }

    fn next_wake(&self) -> Option<Nanos> {
        self.inner.next_wake()
    }

    fn notified(&mut self, now: Nanos, out: &mut dyn Outboxes) {
        self.inner.notified(now, out);
    }

    fn report(&self) -> ServerReport {
        self.inner.report()
    }
}
