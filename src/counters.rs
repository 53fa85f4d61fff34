//! A real broker's own counters, read from its counter topics after the trial, beside the
//! ledger and never instead of it.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use weigh_model::protocol::{Role, Seat};
use weigh_model::trial::Settings;
use weigh_model::wire::{Outbox, Signal};
use weigh_model::{Load, Nanos, Trial};
use weigh_protocols as registry;
use weigh_stage::managed::ManagedServer;

/// The counters of `server` by name, once they have stood still for two of its reports; empty
/// where it has none or does not tell them. Counters of a broker lag behind, Mosquitto's by up
/// to three seconds.
pub fn read_settled(server: &ManagedServer, load: &Load) -> BTreeMap<String, f64> {
    if server.counters().is_empty() {
        return BTreeMap::new();
    }
    listen(server, load).unwrap_or_default()
}

fn listen(server: &ManagedServer, load: &Load) -> Option<BTreeMap<String, f64>> {
    let protocol = registry::find_by_scheme(&server.endpoint().scheme)?;
    let given = [("filter", COUNTER_FILTER), ("qos", "0"), ("client_id", "weigh-counters")];
    let settings = Settings::new(protocol.name(), protocol.settings(), given).ok()?;
    let trial = Trial {
        id: String::new(),
        point: BTreeMap::new(),
        repetition: 0,
        seed: 0,
        protocol: protocol.name().to_owned(),
        target: String::new(),
        endpoint: Some(server.endpoint().clone()),
        // One reader, whose name therefore needs no number.
        load: Load { connections: 1, subscribers: 1, ..load.clone() },
        settings,
    };
    let dial = protocol.dial(&trial).ok()?;
    let mut wire = (dial.make)(Seat { index: 0, role: Role::Consumer });
    let mut socket = TcpStream::connect(server.endpoint().address?).ok()?;
    socket.set_read_timeout(Some(LOOK_EVERY)).ok()?;
    let mut out = Outbox::default();
    wire.open(Nanos(0), &mut out, &mut |_| {});
    let started = Instant::now();
    let mut watch = Watch::new(server);
    let (mut carry, mut buffer) = (Vec::new(), [0u8; 16 * 1024]);
    while started.elapsed() < GIVE_UP_AFTER && !watch.stands_still() {
        socket.write_all(out.bytes()).ok()?;
        out.clear();
        match socket.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => carry.extend_from_slice(&buffer[..count]),
            Err(error) if is_timeout(&error) => continue,
            Err(_) => break,
        }
        let now = Nanos(started.elapsed().as_nanos() as u64);
        let taken = wire.receive(&carry, now, &mut out, &mut |signal| watch.hear(signal)).ok()?;
        carry.drain(..taken);
    }
    wire.close(&mut out);
    let _ = socket.write_all(out.bytes());
    Some(watch.values)
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
}

/// The counters while they move.
struct Watch {
    topics: BTreeMap<String, String>,
    values: BTreeMap<String, f64>,
    started: Instant,
    moved: Instant,
}

impl Watch {
    fn new(server: &ManagedServer) -> Watch {
        let topics = server
            .counters()
            .iter()
            .map(|counter| (counter.topic.clone(), counter.name.clone()))
            .collect();
        let now = Instant::now();
        Watch { topics, values: BTreeMap::new(), started: now, moved: now }
    }

    fn hear(&mut self, signal: Signal<'_>) {
        let Signal::Message { topic, body } = signal else { return };
        let name = std::str::from_utf8(topic).ok().and_then(|topic| self.topics.get(topic));
        let value = std::str::from_utf8(body).ok().and_then(|text| text.trim().parse::<f64>().ok());
        let (Some(name), Some(value)) = (name, value) else { return };
        if self.values.insert(name.clone(), value) != Some(value) {
            self.moved = Instant::now();
        }
    }

    /// Nothing has moved for longer than a broker takes between two reports. Brokers publish a
    /// counter only when it changes, so silence is standing still.
    fn stands_still(&self) -> bool {
        !self.values.is_empty()
            && self.moved.elapsed() > STILL_FOR
            && self.started.elapsed() > STILL_FOR
    }
}

const COUNTER_FILTER: &str = "$SYS/broker/#";
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Longer than the second that our profiles of Mosquitto set as its interval.
const STILL_FOR: Duration = Duration::from_millis(1300);
const GIVE_UP_AFTER: Duration = Duration::from_secs(6);
