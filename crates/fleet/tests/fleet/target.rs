//! The target of the trials: the reference server of `tcp`, which also keeps every message that it
//! got.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use weigh_engine::serving::Serving;
use weigh_model::Nanos;
use weigh_model::connection::Fault;
use weigh_model::mark::{MARK_BYTES, Mark, Reading};
use weigh_model::protocol::{Host, Protocol};
use weigh_model::server::{ConnectionId, Outboxes, Server, ServerReport};
use weigh_model::trial::Settings;
use weigh_protocols::tcp::Tcp;

/// A running target.
pub struct Target {
    serving: Serving,
    kept: Arc<Mutex<Kept>>,
}

type Kept = HashMap<ConnectionId, Vec<u8>>;

/// Messages by producer, warm-up and number: due time on the trial's clock, and the body without
/// its mark.
pub type Messages = BTreeMap<(u32, bool, u64), (Nanos, Vec<u8>)>;

impl Target {
    pub fn start() -> Target {
        let settings = Settings::new("tcp", Tcp.settings(), []).unwrap();
        let Host { transport, make } = Tcp.host(&settings).unwrap();
        let kept: Arc<Mutex<Kept>> = Arc::default();
        let all = Arc::clone(&kept);
        let make = Box::new(move |index| -> Box<dyn Server> {
            Box::new(Keeping { inner: make(index), kept: Arc::clone(&all) })
        });
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let serving = Serving::start(&Host { transport, make }, any, 1).unwrap();
        Target { serving, kept }
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
            while let Some((length, after)) = rest.split_first_chunk::<4>() {
                let (frame, next) = after.split_at(u32::from_be_bytes(*length) as usize);
                rest = next;
                let ([0x01..=0x03, ..], body) = frame.split_at(5) else { continue };
                let Reading::Whole(mark) = Mark::read_any(body) else { panic!("a foreign body") };
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

/// Passes everything on, and keeps what was received.
struct Keeping {
    inner: Box<dyn Server>,
    kept: Arc<Mutex<Kept>>,
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
        let taken = self.inner.receive(connection, input, now, out)?;
        let mut kept = self.kept.lock().unwrap();
        kept.entry(connection).or_default().extend_from_slice(&input[..taken]);
        Ok(taken)
    }

    fn drained(&mut self, connection: ConnectionId, now: Nanos, out: &mut dyn Outboxes) {
        self.inner.drained(connection, now, out);
    }

    fn closed(&mut self, connection: ConnectionId, now: Nanos, out: &mut dyn Outboxes) {
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
