//! A real server's own counters, read after the trial from its topics and pages. They are recorded
//! next to the ledger and never replace it.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use weigh_model::connection::{Outbox, Signal};
use weigh_model::protocol::{Dial, Role, Seat};
use weigh_model::trial::Settings;
use weigh_model::{Endpoint, Load, Nanos, Pattern, Trial};
use weigh_protocols::urls;
use weigh_testbed::counter::{Counter, CounterKind};
use weigh_testbed::hosts::Scene;
use weigh_testbed::managed::ManagedServer;
use weigh_testbed::patience;

use crate::targets::counter_watch::{Expected, Watch};
use crate::targets::hosts::TARGET;
use crate::targets::http_counters;
use crate::targets::layers;
use crate::targets::tls::CertificateFiles;

/// Shows the user why the run waits.
pub type Say<'s> = &'s (dyn Fn(&str) + Sync);

/// The counters of `server` by name, once they include the expected counts or were reported twice;
/// empty if it has none or does not answer. Counters of a broker lag, Mosquitto's by up to three
/// seconds. They are read on the server's own host, so that no path delays them and no captured
/// wire carries them.
pub fn read_settled(
    server: &ManagedServer,
    (load, expected): (&Load, Expected),
    scene: Option<&Scene>,
    vault: &CertificateFiles,
    say: Say<'_>,
) -> BTreeMap<String, f64> {
    if server.counters().is_empty() {
        return BTreeMap::new();
    }
    let read = || {
        let mut all = http_counters::read_settled(server.counters());
        if server.counters().iter().any(|own| own.topic.is_some()) {
            all.extend(listen(server, (load, expected), vault, say).unwrap_or_default());
        }
        all
    };
    match scene.and_then(|scene| scene.host(TARGET).ok()) {
        Some(host) => host.inside(|| Ok(read())).unwrap_or_default(),
        None => read(),
    }
}

/// The counts of `all` since `before`, of the same server: totals are subtracted, momentary values
/// are kept.
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

fn listen(
    server: &ManagedServer,
    (load, expected): (&Load, Expected),
    vault: &CertificateFiles,
    say: Say<'_>,
) -> Option<BTreeMap<String, f64>> {
    let (protocol, _) = urls::find(&server.endpoint().scheme)?;
    let given = [
        ("filter", COUNTER_FILTER),
        ("qos", "0"),
        ("client_id", "weigh-counters"),
        ("tls_mutual", "true"),
    ];
    let settings = Settings::new(protocol.name(), protocol.settings(), given).ok()?;
    let trial = reader(protocol.name(), server.endpoint(), load, settings);
    let dial = protocol.dial(&trial).ok()?;
    let (subprotocol, endpoint) = (protocol.properties().websocket, server.endpoint());
    let dial = layers::dial_to_ours(dial, subprotocol, &trial.settings, endpoint, vault)?;
    let topic = |own: &Counter| Some((own.topic.clone()?, own.name.clone()));
    let topics = server.counters().iter().filter_map(topic).collect();
    let mut watch = Watch::new(topics, Some(expected), REPORTS);
    let awaited = format!("waiting for the counters of {} ($SYS)", server.title());
    hear(&dial, endpoint.address?, &mut watch, (GIVE_UP_AFTER, &|| say(&awaited)))?;
    Some(watch.values)
}

/// A client that reads counter topics, which are whole messages and not parts of them. There is
/// only one, so its name needs no number.
pub fn reader(protocol: &str, endpoint: &Endpoint, load: &Load, settings: Settings) -> Trial {
    Trial {
        id: String::new(),
        point: BTreeMap::new(),
        repetition: 0,
        seed: 0,
        protocol: protocol.to_owned(),
        target: String::new(),
        endpoint: Some(endpoint.clone()),
        load: Load { pattern: Pattern::Deliver, connections: 1, subscribers: 1, ..load.clone() },
        settings,
    }
}

/// Reads counter topics until they are complete, for at most `within`. `None` if the server could
/// not be asked. After a while `say` is called, once.
pub fn hear(
    dial: &Dial,
    address: SocketAddr,
    watch: &mut Watch,
    (most, say): (Duration, &dyn Fn()),
) -> Option<()> {
    let mut wire = (dial.make)(Seat { index: 0, role: Role::Consumer });
    let mut socket = TcpStream::connect_timeout(&address, most).ok()?;
    socket.set_read_timeout(Some(LOOK_EVERY)).ok()?;
    let mut out = Outbox::default();
    wire.open(Nanos(0), &mut out, &mut |_| {});
    let started = Instant::now();
    let (mut carry, mut buffer) = (Vec::new(), [0u8; 16 * 1024]);
    let mut is_said = false;
    let is_waited = || started.elapsed() < most && !patience::is_over();
    while is_waited() && !watch.stands_still(started.elapsed()) {
        if !is_said && started.elapsed() > SAID_AFTER {
            is_said = true;
            say();
        }
        socket.write_all(out.bytes()).ok()?;
        out.clear();
        match socket.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => carry.extend_from_slice(&buffer[..count]),
            Err(error) if is_timeout(&error) => continue,
            Err(_) => break,
        }
        let elapsed = started.elapsed();
        let now = Nanos(elapsed.as_nanos() as u64);
        let mut hear = |signal: Signal<'_>| {
            if let Signal::Message { topic, body } = signal {
                watch.hear(topic, body, elapsed);
            }
        };
        let taken = wire.receive(&carry, now, &mut out, &mut hear).ok()?;
        carry.drain(..taken);
    }
    wire.close(&mut out);
    let _ = socket.write_all(out.bytes());
    Some(())
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
}

const COUNTER_FILTER: &str = "$SYS/broker/#";
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Retained values, and two reports after the trial: the first may have started before its last
/// messages were counted.
const REPORTS: u32 = 3;
const GIVE_UP_AFTER: Duration = Duration::from_secs(6);

/// Time before the user is informed about the wait.
const SAID_AFTER: Duration = Duration::from_millis(700);
