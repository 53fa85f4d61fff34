//! A real server's own counters, read after the trial from its counter topics and from where it
//! shows them, beside the ledger and never instead of it.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use weigh_model::protocol::{Role, Seat};
use weigh_model::trial::Settings;
use weigh_model::wire::{Outbox, Signal};
use weigh_model::{Load, Nanos, Pattern, Trial};
use weigh_protocols as registry;
use weigh_stage::counter::{Counter, CounterKind};
use weigh_stage::hosts::Scene;
use weigh_stage::managed::ManagedServer;
use weigh_stage::patience;

use crate::run::secured::Vault;
use crate::run::stage::TARGET;
use crate::run::{layers, shown};

/// The counters of `server` by name, once it has reported them twice; empty where it has none or
/// does not tell them. Counters of a broker lag behind, Mosquitto's by up to three seconds.
/// They are asked for on the server's own host, so that no path delays them and no wire that is
/// listened on carries them.
pub fn read_settled(
    server: &ManagedServer,
    load: &Load,
    scene: Option<&Scene>,
    vault: &Vault,
) -> BTreeMap<String, f64> {
    if server.counters().is_empty() {
        return BTreeMap::new();
    }
    let read = || {
        let mut all = shown::read_settled(server.counters());
        if server.counters().iter().any(|own| own.topic.is_some()) {
            all.extend(listen(server, load, vault).unwrap_or_default());
        }
        all
    };
    match scene.and_then(|scene| scene.host(TARGET).ok()) {
        Some(host) => host.inside(|| Ok(read())).unwrap_or_default(),
        None => read(),
    }
}

/// What of `all` came after `before`, which the same server told earlier: totals are differences,
/// states of the moment stay.
pub fn since(
    server: &ManagedServer,
    all: &BTreeMap<String, f64>,
    before: &BTreeMap<String, f64>,
) -> BTreeMap<String, f64> {
    let mut since = all.clone();
    for counter in server.counters().iter().filter(|own| own.kind == CounterKind::Total) {
        if let (Some(value), Some(earlier)) =
            (since.get_mut(&counter.name), before.get(&counter.name))
        {
            *value -= earlier;
        }
    }
    since
}

fn listen(server: &ManagedServer, load: &Load, vault: &Vault) -> Option<BTreeMap<String, f64>> {
    let protocol = registry::find_by_scheme(&server.endpoint().scheme)?;
    let given = [
        ("filter", COUNTER_FILTER),
        ("qos", "0"),
        ("client_id", "weigh-counters"),
        ("tls_mutual", "true"),
    ];
    let settings = Settings::new(protocol.name(), protocol.settings(), given).ok()?;
    let trial = Trial {
        id: String::new(),
        point: BTreeMap::new(),
        repetition: 0,
        seed: 0,
        protocol: protocol.name().to_owned(),
        target: String::new(),
        endpoint: Some(server.endpoint().clone()),
        // One reader, whose name therefore needs no number, of messages and not of pieces of them.
        load: Load { pattern: Pattern::Deliver, connections: 1, subscribers: 1, ..load.clone() },
        settings,
    };
    let dial = protocol.dial(&trial).ok()?;
    let (name, endpoint) = (protocol.name(), server.endpoint());
    let dial = layers::dial_to_ours(dial, name, &trial.settings, endpoint, vault)?;
    let mut wire = (dial.make)(Seat { index: 0, role: Role::Consumer });
    let mut socket = TcpStream::connect(server.endpoint().address?).ok()?;
    socket.set_read_timeout(Some(LOOK_EVERY)).ok()?;
    let mut out = Outbox::default();
    wire.open(Nanos(0), &mut out, &mut |_| {});
    let started = Instant::now();
    let mut watch = Watch::new(server);
    let (mut carry, mut buffer) = (Vec::new(), [0u8; 16 * 1024]);
    let is_waited = || started.elapsed() < GIVE_UP_AFTER && !patience::is_over();
    while is_waited() && !watch.stands_still() {
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

/// The counters while they come in. A broker tells all of them at once, first those it kept and
/// then again at each of its reports.
struct Watch {
    topics: BTreeMap<String, String>,
    values: BTreeMap<String, f64>,
    reports: u32,
    heard: Option<Instant>,
}

impl Watch {
    fn new(server: &ManagedServer) -> Watch {
        let topic = |own: &Counter| Some((own.topic.clone()?, own.name.clone()));
        let topics = server.counters().iter().filter_map(topic).collect();
        Watch { topics, values: BTreeMap::new(), reports: 0, heard: None }
    }

    fn hear(&mut self, signal: Signal<'_>) {
        let Signal::Message { topic, body } = signal else { return };
        if self.is_silent() {
            self.reports += 1;
        }
        self.heard = Some(Instant::now());
        let name = std::str::from_utf8(topic).ok().and_then(|topic| self.topics.get(topic));
        let value = std::str::from_utf8(body).ok().and_then(|text| text.trim().parse::<f64>().ok());
        if let (Some(name), Some(value)) = (name, value) {
            self.values.insert(name.clone(), value);
        }
    }

    /// Nothing more belongs to the last report.
    fn is_silent(&self) -> bool {
        self.heard.is_none_or(|heard| heard.elapsed() > BETWEEN_REPORTS)
    }

    /// The broker has told everything twice since we asked: nothing of the trial is missing.
    fn stands_still(&self) -> bool {
        self.reports >= REPORTS && self.is_silent()
    }
}

const COUNTER_FILTER: &str = "$SYS/broker/#";
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What it kept, and two reports of the time after the trial: the first may have begun before its
/// last messages were counted.
const REPORTS: u32 = 3;

/// Shorter than the second between reports that our profiles of Mosquitto set, and longer than
/// a report takes.
const BETWEEN_REPORTS: Duration = Duration::from_millis(300);
const GIVE_UP_AFTER: Duration = Duration::from_secs(6);
