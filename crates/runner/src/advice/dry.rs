//! A dry trial: both codecs of a lane on virtual time, without a socket. It takes no measurable
//! time and shows every write of a connection.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

use weigh_advice::session::{Flight, Session};
use weigh_engine::io::Io;
use weigh_engine::io::sim::{Link, Party, SimIo, World};
use weigh_engine::job::Job;
use weigh_engine::rendezvous::one_process::OneProcess;
use weigh_engine::serving::ServerShard;
use weigh_engine::shard::Shard;
use weigh_model::layers::scheme;
use weigh_model::protocol::{Dial, Protocol, Transport};
use weigh_model::units::{Bytes, Rate};
use weigh_model::{Endpoint, Load, Nanos, Pattern, Trial};

use super::heard::{HeardIo, Log, Write};
use crate::case::lanes::{Against, Lane};
use crate::case::material::{Material, composer};
use crate::exit::Stop;
use crate::targets::layers;
use crate::targets::tls::CertificateFiles;

/// What the connections of a protocol with these settings carry. `is_kept` is false if every
/// message has a connection of its own.
///
/// # Errors
/// Settings or a size that the protocol does not accept.
pub fn session(
    protocol: &'static dyn Protocol,
    settings: &BTreeMap<String, String>,
    (is_kept, is_tls): (bool, bool),
    size: u64,
    vault: &CertificateFiles,
) -> Result<Session, Stop> {
    let of = |is_kept, is_tls| writes(protocol, settings, (is_kept, is_tls), size, vault);
    let carried = parts(&of(is_kept, is_tls)?, is_kept)?;
    let plain = if is_tls { parts(&of(is_kept, false)?, is_kept)? } else { carried.clone() };
    let trips =
        if is_kept { round_trips(&carried) } else { round_trips(&parts(&of(true, false)?, true)?) };
    let ping = protocol.properties().ping_bytes.unwrap_or(0);
    let ping = ping + if is_tls && ping > 0 { RECORD_BYTES } else { 0 };
    let [set_up, message, tear_down] = carried;
    let [plain_set_up, plain_message, plain_tear_down] = plain;
    let mut session = Session {
        set_up: joined(&set_up, &plain_set_up),
        message: joined(&message, &plain_message),
        tear_down: joined(&tear_down, &plain_tear_down),
        ping: [ping, ping],
        body: size,
        trips,
    };
    shorten(&mut session, size);
    Ok(session)
}

/// Bodies below this have no room for a mark, so the dry trial sends one of this size.
const MARKED_BYTES: u64 = 64;

/// Takes from the first write of a message what its body is shorter than the one that was sent.
fn shorten(session: &mut Session, size: u64) {
    let more = MARKED_BYTES.saturating_sub(size);
    let is_large = |flight: &&mut Flight| flight.is_up && flight.plain >= MARKED_BYTES;
    if let Some(flight) = session.message.iter_mut().find(is_large) {
        (flight.plain, flight.carried) = (flight.plain - more, flight.carried - more);
    }
}

/// The writes of the parts, with the bytes that they have without TLS. Where TLS has other writes
/// than the protocol, the first one has all of them: only their sum counts.
fn joined(carried: &[Write], plain: &[Write]) -> Vec<Flight> {
    let is_same = carried.len() == plain.len()
        && carried.iter().zip(plain).all(|(carried, plain)| carried.is_up == plain.is_up);
    let sum: u64 = plain.iter().map(|own| own.bytes).sum();
    let of = |(at, own): (usize, &Write)| Flight {
        is_up: own.is_up,
        plain: match (is_same, at) {
            (true, _) => plain[at].bytes,
            (false, 0) => sum,
            (false, _) => 0,
        },
        carried: own.bytes,
    };
    carried.iter().enumerate().map(of).collect()
}

/// Set-up, message and tear-down of a connection. Of three messages a second apart the middle one
/// shows what a message takes; what there is before the first and after the last is around it.
fn parts(writes: &[Write], is_kept: bool) -> Result<[Vec<Write>; 3], Stop> {
    let mut groups: Vec<Vec<Write>> = Vec::new();
    for write in writes {
        let last = groups.last().and_then(|group| group.last());
        if last.is_none_or(|last| write.at.since(last.at) > GAP) {
            groups.push(Vec::new());
        }
        groups.last_mut().expect("there is a group").push(*write);
    }
    let wrong = || Stop::usage(format!("a dry trial had {} groups of writes", groups.len()));
    let [first, message, last] = match groups.as_slice() {
        [first, message, last] => [first, message, last].map(Clone::clone),
        // The connection is set up long before its first message, or closed long after the last.
        [set_up, first, message, last] if is_kept => {
            let first = [set_up.clone(), first.clone()].concat();
            [first, message.clone(), last.clone()]
        }
        _ => return Err(wrong()),
    };
    if !is_kept {
        return Ok([Vec::new(), message, Vec::new()]);
    }
    let set_up = without(&first, &message, true);
    let tear_down = without(&last, &message, false);
    Ok([set_up, message, tear_down])
}

/// The writes without those of a message, searched from the end or from the beginning.
fn without(group: &[Write], message: &[Write], from_end: bool) -> Vec<Write> {
    let mut left = group.to_vec();
    let mut wanted = message.to_vec();
    if from_end {
        wanted.reverse();
    }
    for write in wanted {
        let is_own = |own: &Write| own.is_up == write.is_up && own.bytes.abs_diff(write.bytes) <= 2;
        let place = match from_end {
            true => left.iter().rposition(is_own),
            false => left.iter().position(is_own),
        };
        if let Some(place) = place {
            left.remove(place);
        }
    }
    left
}

fn round_trips(parts: &[Vec<Write>; 3]) -> f64 {
    let flight = |own: &Write| Flight { is_up: own.is_up, plain: own.bytes, carried: own.bytes };
    let message: Vec<Flight> = parts[1].iter().map(flight).collect();
    Session::round_trips(&message)
}

/// All writes of three messages, a second apart.
fn writes(
    protocol: &'static dyn Protocol,
    settings: &BTreeMap<String, String>,
    (is_kept, is_tls): (bool, bool),
    size: u64,
    vault: &CertificateFiles,
) -> Result<Vec<Write>, Stop> {
    let mut given = settings.clone();
    if is_tls {
        given.insert("tls".to_owned(), "on".to_owned());
        if protocol.has_setting("tls_resume") {
            given.insert("tls_resume".to_owned(), "false".to_owned());
        }
    }
    let lane = Lane::new(protocol, Against::Reference, given)?;
    let trial = trial(&lane, is_kept, size);
    let mut served = lane.settings.clone();
    for word in vault.serve_arguments(&lane)? {
        let word = word.to_string_lossy().into_owned();
        let own = word.strip_prefix(&format!("{}.", protocol.name()));
        if let Some((key, value)) = own.and_then(|own| own.split_once('=')) {
            served.0.insert(key.to_owned(), value.to_owned());
        }
    }
    let host = layers::host(protocol.host(&served)?, &protocol.properties(), &served, None)?;
    let address = address();
    let endpoint = Endpoint::at(scheme(protocol, &lane.settings), address);
    let (dial, _) = layers::dial(&lane, protocol.dial(&trial)?, (&endpoint, 1), vault)?;
    let job = job(trial, dial)?;
    let log: Log = Rc::new(RefCell::new(Vec::new()));
    let mut world = World::new(1);
    world.link(address, Link { delay: DELAY, ..Link::default() });
    let mut server = HeardIo::new(world.party(), false, &log);
    match host.transport {
        Transport::Stream => server.listen(address, 16),
        Transport::Datagram | Transport::DatagramRuns | Transport::Streams => {
            server.listen_datagrams(address)
        }
    }
    .map_err(|fault| Stop::usage(format!("a dry trial cannot listen: {fault:?}")))?;
    let shard = ServerShard::new((host.make)(0), host.transport, vec![server.waker()]);
    let mut server = Serving { shard, io: server };
    let io = HeardIo::new(world.party(), true, &log);
    let mut client = Client { shard: Shard::new(job, 0, Box::new(|_| {})), io };
    let mut rest = Rest { io: world.party() };
    world.run(&mut [&mut server, &mut client, &mut rest], Nanos::from_secs(60));
    if let Some(failure) = client.shard.outcome().failure {
        return Err(Stop::usage(format!("a dry trial failed: {failure:?}")));
    }
    let found = log.borrow().clone();
    Ok(found)
}

/// Three messages, one a second, in a trial that nothing measures.
fn trial(lane: &Lane, is_kept: bool, size: u64) -> Trial {
    let pattern = if is_kept { Pattern::Publish } else { Pattern::Session };
    let rate = Rate { per_second: 1.0, per_client: false };
    let load = Load {
        messages: Some(MESSAGES),
        size: Some(Bytes(size.max(MARKED_BYTES))),
        timeout: Nanos::from_secs(10),
        ..Load::open(pattern, 1, rate)
    };
    Trial {
        id: String::new(),
        point: BTreeMap::new(),
        repetition: 0,
        seed: 1,
        protocol: lane.protocol.name().to_owned(),
        target: "reference".to_owned(),
        endpoint: Some(Endpoint::at(scheme(lane.protocol, &lane.settings), address())),
        load,
        settings: lane.settings.clone(),
    }
}

fn job(trial: Trial, dial: Dial) -> Result<Arc<Job>, Stop> {
    let (composer, _) = composer(&trial, &Material::default(), 0)?;
    Ok(Arc::new(Job {
        trial,
        dial,
        composer,
        object: None,
        address: address(),
        sources: Vec::new(),
        consumers: None,
        trace: Vec::new(),
        shards: 1,
        every: Nanos::from_secs(1),
        messages: None,
        is_metered: false,
        may_be_cut_off: false,
        rendezvous: Arc::new(OneProcess::new(1)),
    }))
}

/// Where the server listens in the simulated world.
fn address() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, PORT))
}

struct Serving {
    shard: ServerShard,
    io: HeardIo,
}

impl Party for Serving {
    fn step(&mut self) -> bool {
        self.shard.step(&mut self.io, Nanos::NEVER);
        true
    }

    fn serves(&self) -> bool {
        true
    }
}

struct Client {
    shard: Shard,
    io: HeardIo,
}

impl Party for Client {
    fn step(&mut self) -> bool {
        self.shard.step(&mut self.io)
    }
}

/// Keeps the world going after the client is over: a server that is closed answers with the
/// close_notify of TLS.
struct Rest {
    io: SimIo,
}

impl Party for Rest {
    fn step(&mut self) -> bool {
        self.io.turn(END, &mut |_, _| {});
        self.io.now() < END
    }
}

/// Long after the last message.
const END: Nanos = Nanos::from_secs(30);

const MESSAGES: u64 = 3;

/// A port with as many digits as most have: HTTP sends it.
const PORT: u16 = 1883;

/// From one end to the other.
const DELAY: Nanos = Nanos::from_millis(5);

/// Silence that separates one message from the next.
const GAP: Nanos = Nanos::from_millis(400);

/// What TLS 1.3 adds to a small record: header 5, content type 1, tag 16 (RFC 8446, section 5.2).
const RECORD_BYTES: u64 = 22;
