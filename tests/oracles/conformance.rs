//! Every protocol of the registry, in each of its lanes and patterns: simulated, with faults,
//! inside TLS, and on sockets. A further protocol is tried by being in the registry; the toys show
//! it.

use weigh_engine::io::sim::{Cut, Impairments, Link};
use weigh_engine::record::{Observations, put_together};
use weigh_model::connection::{Connection, Outbox};
use weigh_model::ledger::Cause;
use weigh_model::load::Topology;
use weigh_model::protocol::{Role, Seat, Transport};
use weigh_model::units::Bytes;
use weigh_model::{Nanos, Pattern, Protocol, oscore, quic};
use weigh_protocols::PROTOCOLS;
use weigh_stats::random::Random;

use crate::rig::{Seen, Setup, simulated_address};
use crate::toys::TOYS;

const MESSAGES: u64 = 60;

/// One way to use a protocol, and its name for messages.
struct Case {
    name: String,
    setup: Setup,
}

/// All ways to use all protocols.
fn cases() -> Vec<Case> {
    let protocols = PROTOCOLS.iter().chain(TOYS).copied();
    let mut all = Vec::new();
    for protocol in protocols {
        for lane in lanes(protocol) {
            for pattern in protocol.patterns() {
                let name = format!("{} {lane:?} {pattern}", protocol.name());
                let setup = setup(protocol, &lane, *pattern);
                if !cfg!(feature = "quic") && setup.is_in_quic() {
                    continue;
                }
                // A lane may refuse a pattern that another lane has, by a key of the protocol.
                if let Err(refused) = protocol.dial(&setup.trial(simulated_address())) {
                    let own = format!("{}.", protocol.name());
                    assert!(refused.place.starts_with(&own), "{name}: {refused}");
                    assert!(protocol.lanes().len() > 1, "{name}: {refused}");
                    continue;
                }
                all.push(Case { name, setup });
            }
        }
    }
    all.push(grouped());
    all
}

/// The lanes of a protocol, and all of them inside QUIC, and protected from end to end, where that
/// is a setting.
fn lanes(protocol: &dyn Protocol) -> Vec<Vec<(&'static str, &'static str)>> {
    let plain = protocol.lanes().iter().map(|lane| lane.to_vec());
    let with = |key: &'static str, value: &'static str| {
        let own = plain.clone().map(move |lane| [lane, vec![(key, value)]].concat());
        own.filter(move |_| protocol.has_setting(key))
    };
    let (inside, protected) = (with(quic::ON.key, "true"), with(oscore::ON, "on"));
    plain.clone().chain(inside).chain(protected).collect()
}

/// Consumers of Kafka in a group, which is no lane.
fn grouped() -> Case {
    let own = [("group", "g"), ("heartbeat", "20ms"), ("commit", "10ms"), ("fetch_wait", "50ms")];
    let kafka = weigh_protocols::find("kafka").expect("it is in the registry");
    let mut setup = setup(kafka, &own, Pattern::Deliver);
    setup.load.topology = Topology::Shared;
    Case { name: "kafka in a group".to_owned(), setup }
}

fn setup(protocol: &'static dyn Protocol, lane: &[(&str, &str)], pattern: Pattern) -> Setup {
    let mut setup = Setup::of(protocol, lane, pattern, MESSAGES).connections(3);
    let load = &mut setup.load;
    match pattern {
        Pattern::Deliver => load.subscribers = 2,
        Pattern::Batch => load.batch = Some(10),
        Pattern::Transfer => {
            load.size = Some(Bytes(200_000));
            load.subscribers = u32::from(protocol.properties().is_brokered);
        }
        Pattern::Hold => (load.messages, load.duration) = (None, Some(Nanos::from_secs(30))),
        Pattern::Poll => {
            setup = setup.open("constant", "100/s");
            setup.load.subscribers = 1;
            setup.load.poll.period = Some(Nanos::from_millis(100));
            setup.load.poll.limit = Some(1000);
        }
        Pattern::Request | Pattern::Publish | Pattern::Session => {}
    }
    setup.link = Link { delay: Nanos::from_millis(1), ..Link::default() };
    setup
}

impl Case {
    /// That of the protocol, inside whatever layer.
    fn transport(&self) -> Transport {
        match self.setup.is_in_quic() {
            true => Transport::Streams,
            false => self.setup.host().transport,
        }
    }

    fn pattern(&self) -> Pattern {
        self.setup.load.pattern
    }

    /// Where nothing went wrong everything arrived, once.
    fn check_whole(&self, seen: &Seen) {
        assert_eq!(
            seen.outcome.shards.lost_links, 0,
            "{}: {:?}",
            self.name, seen.outcome.shards.first_loss
        );
        self.check_arrived(seen);
    }

    /// Everything arrived, once, however many attempts the sessions took.
    fn check_arrived(&self, seen: &Seen) {
        let (name, ledger) = (&self.name, seen.ledger());
        if self.pattern() == Pattern::Hold {
            assert_eq!(seen.outcome.shards.held, 3, "{name}");
            return;
        }
        assert_eq!(ledger.messages, MESSAGES, "{name}: {ledger:#?}");
        assert_eq!(ledger.not_sent, 0, "{name}: {ledger:#?}");
        // A server of notifications may replace a state by a newer one, if it says so.
        let superseded = seen.server.dropped.get("superseded").copied().unwrap_or(0);
        let delivered = ledger.delivered.unwrap_or(ledger.sent) + superseded;
        assert_eq!(delivered, ledger.sent, "{name}: {ledger:#?}");
        assert_eq!((ledger.duplicates, ledger.corrupt, ledger.foreign), (0, 0, 0), "{name}");
        if self.setup.protocol.carries(&self.setup.table()) {
            assert_eq!(seen.server.unique, MESSAGES, "{name}: {:#?}", seen.server);
        }
        assert_eq!((seen.server.corrupt, seen.server.foreign), (0, 0), "{name}");
    }

    /// Whatever went wrong, the books hold: every message is in one place, and no loss is without a
    /// cause.
    fn check_books(&self, seen: &Seen) {
        let (name, ledger) = (&self.name, seen.ledger());
        assert_eq!(ledger.messages, MESSAGES, "{name}: {ledger:#?}");
        assert_eq!((ledger.corrupt, ledger.foreign), (0, 0), "{name}: {ledger:#?}");
        assert!(seen.server.unique <= ledger.messages, "{name}: {:#?}", seen.server);
        if let Some(delivered) = ledger.delivered {
            assert!(
                delivered + ledger.late <= seen.server.unique * self.setup.load.copies(),
                "{name}"
            );
        }
    }
}

#[test]
fn everything_arrives_once_where_nothing_goes_wrong() {
    for case in cases() {
        case.check_whole(&case.setup.on_virtual_time());
    }
}

#[test]
fn pieces_of_any_size_change_nothing_and_one_seed_is_one_history() {
    for mut case in cases() {
        case.setup.link.in_pieces = true;
        case.setup.link.jitter = Nanos::from_micros(300);
        let seen = case.setup.on_virtual_time();
        case.check_whole(&seen);
        let again = case.setup.on_virtual_time();
        // The keys of a handshake are never the same, and signatures differ in length.
        if case.transport() != Transport::Streams {
            assert_eq!(seen.log_hash, again.log_hash, "{}", case.name);
        }
    }
}

#[test]
fn the_books_are_exact_when_connections_are_cut() {
    for case in cases().iter_mut() {
        if case.transport() != Transport::Stream || case.pattern() == Pattern::Hold {
            continue;
        }
        case.setup.load.timeout = Nanos::from_secs(2);
        let (to, connection) = (simulated_address(), u64::from(case.setup.load.subscribers));
        for (from_listener, after_bytes) in [(false, 300), (false, 1_111), (true, 60)] {
            case.setup.cuts = vec![Cut { to, connection, from_listener, after_bytes }];
            case.check_books(&case.setup.on_virtual_time());
        }
    }
}

#[test]
fn the_books_are_exact_when_datagrams_are_lost_doubled_and_overtaken() {
    for case in cases().iter_mut() {
        // A consumer of poll that asks in vain begins a new session, which takes its own time.
        if case.transport() != Transport::Datagram || case.pattern() == Pattern::Poll {
            continue;
        }
        case.setup.load.timeout = Nanos::from_secs(2);
        case.setup.link.impairments = Impairments {
            lost_ppm: 200_000,
            doubled_ppm: 100_000,
            late_ppm: 100_000,
            late_by: Nanos::from_millis(5),
        };
        for seed in 1..=5 {
            case.setup.seed = seed;
            let seen = case.setup.on_virtual_time();
            case.check_books(&seen);
            // A block that is doubled is not a message that is.
            let is_doubled = seen.server.duplicates > 0 || case.pattern() == Pattern::Transfer;
            assert!(is_doubled, "{}: nothing was doubled", case.name);
        }
    }
}

/// QUIC repairs what the network does to its packets: everything arrives, once.
#[test]
fn everything_arrives_once_inside_quic_whatever_happens_to_packets() {
    let is_meant = |case: &Case| case.transport() == Transport::Streams;
    let mut cases: Vec<Case> = cases().into_iter().filter(is_meant).collect();
    assert_eq!(cases.is_empty(), !cfg!(feature = "quic"));
    for case in &mut cases {
        case.setup.load.timeout = Nanos::from_secs(30);
        case.setup.link.impairments = Impairments {
            lost_ppm: 100_000,
            doubled_ppm: 100_000,
            late_ppm: 100_000,
            late_by: Nanos::from_millis(5),
        };
        for seed in 1..=5 {
            case.setup.seed = seed;
            let seen = case.setup.on_virtual_time();
            // A handshake may be lost four times in a row, which takes longer than a session may.
            match case.pattern() {
                Pattern::Session => case.check_arrived(&seen),
                _ => case.check_whole(&seen),
            }
        }
    }
}

#[cfg(feature = "tls")]
#[test]
fn everything_arrives_once_inside_tls() {
    use weigh_engine::layer::tls::Versions;

    let is_built = |case: &&mut Case| match case.transport() {
        Transport::Stream => true,
        Transport::Datagram | Transport::DatagramRuns => cfg!(feature = "dtls"),
        Transport::Streams => cfg!(feature = "quic"),
    };
    let has_tls = |case: &&mut Case| case.setup.protocol.has_setting("tls");
    for case in cases().iter_mut().filter(has_tls).filter(is_built) {
        let secured = crate::secured::Secured::new(Versions::Tls13, true, "conformance");
        case.setup.secured = Some(secured);
        case.check_whole(&case.setup.on_virtual_time());
    }
}

#[test]
fn everything_arrives_once_on_sockets() {
    for case in cases().iter_mut().filter(|case| case.pattern() != Pattern::Hold) {
        case.check_whole(&case.setup.on_sockets());
    }
}

/// Whoever cuts and joins the datagrams of QUIC, over a network that loses some of them and over
/// none.
#[test]
fn everything_arrives_once_where_the_kernel_cuts_datagrams() {
    let is_meant = |case: &Case| case.transport() == Transport::Streams;
    for case in cases().iter_mut().filter(|case| is_meant(case)) {
        let kernel = quic::SEGMENTATION.key.to_owned();
        case.setup.settings.push((kernel, quic::KERNEL.to_owned()));
        if case.pattern() != Pattern::Hold {
            case.check_whole(&case.setup.on_sockets());
        }
        // The simulated network has no kernel.
        case.setup.load.timeout = Nanos::from_secs(30);
        case.setup.link.impairments = Impairments { lost_ppm: 50_000, ..Impairments::default() };
        case.check_arrived(&case.setup.on_virtual_time());
    }
}

/// A connection can do what the patterns of its protocol need, and bytes by chance are no reason to
/// panic, at either end.
#[test]
fn connections_keep_their_contract() {
    let mut random = Random::new(7);
    for case in cases() {
        let job = case.setup.job(simulated_address());
        let seat = |role| Seat { index: 0, role };
        let mut producer = (job.dial.make)(seat(Role::Producer));
        assert_eq!(producer.room(), 0, "{}: room before it is open", case.name);
        if case.pattern() == Pattern::Transfer {
            assert!(producer.transfer().is_some(), "{}", case.name);
        }
        let mut consumer = (job.dial.make)(seat(Role::Consumer));
        if case.pattern() == Pattern::Poll {
            assert!(consumer.poll().is_some(), "{}", case.name);
        }
        for connection in [&mut producer, &mut consumer] {
            hear_noise(&mut **connection, &mut random);
        }
    }
}

fn hear_noise(connection: &mut dyn Connection, random: &mut Random) {
    let mut out = Outbox::default();
    connection.open(Nanos(1), &mut out, &mut |_| {});
    for round in 2..50 {
        let noise: Vec<u8> = (0..random.below(60)).map(|_| random.below(256) as u8).collect();
        let taken = connection.receive(&noise, Nanos(round), &mut out, &mut |_| {});
        match taken {
            Ok(taken) => assert!(taken <= noise.len()),
            Err(_) => return,
        }
    }
}

/// Datagrams that come faster than the server reads them are dropped by the kernel, and the ledger
/// says so.
#[test]
fn what_full_receive_queues_drop_has_a_cause() {
    let protocol = TOYS.iter().find(|toy| toy.name() == "udp-echo").unwrap();
    let mut setup = Setup::of(*protocol, &[], Pattern::Request, 1_000);
    setup.load.arrival = weigh_model::Arrival::Burst;
    setup.load.timeout = Nanos::from_secs(1);
    setup.link = Link { delay: Nanos::from_millis(1), buffer_bytes: 20_000, ..Link::default() };
    let seen = setup.on_virtual_time();
    let dropped = seen.server.dropped[weigh_model::server::RECEIVE_QUEUE_FULL];
    assert!(dropped > 0 && seen.server.unique + dropped == 1_000, "{:#?}", seen.server);
    let mut observed = Observations::unwatched(protocol.guarantee(&setup.table()), "oracle");
    observed.server = Some(seen.server);
    let trial = setup.job(simulated_address()).trial.clone();
    let record = put_together(&trial, seen.outcome, observed, *protocol);
    assert_eq!(record.ledger.causes, [(Cause::ReceiveQueueFull, dropped)].into());
    assert_eq!(record.ledger.contradiction(), None);
}

/// With a timer a lost datagram is sent again, on time and until its echo is there.
#[test]
fn what_is_sent_again_arrives() {
    let protocol = TOYS.iter().find(|toy| toy.name() == "udp-echo").unwrap();
    let mut setup = Setup::of(*protocol, &[("retransmit", "30ms")], Pattern::Request, 400);
    setup.link = Link { delay: Nanos::from_millis(5), ..Link::default() };
    setup.link.impairments.lost_ppm = 200_000;
    let seen = setup.on_virtual_time();
    assert_eq!(seen.ledger().delivered, Some(400));
    let response = &seen.outcome.shards.recorder.response;
    // Ten milliseconds there and back, and thirty more for each time that something was lost.
    let ms = |q: f64| response.quantile(q).unwrap() as f64 / 1e6;
    crate::rig::assert_near("median, ms", ms(0.5), 10.0, 0.1);
    crate::rig::assert_near("p80, ms", ms(0.8), 40.0, 0.4);
}
