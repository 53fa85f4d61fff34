//! Trials from seeds in which connections break anywhere, servers refuse for a while, bytes come
//! in pieces and buffers are small: whatever happens, the ledger adds up, nothing is invented,
//! and every loss has the cause that the storm was.

use weigh_engine::io::sim::{Cut, Link};
use weigh_model::ledger::{Cause, NotSentCause};
use weigh_model::load::Topology;
use weigh_model::units::{Rate, parse_rate};
use weigh_model::{Arrival, Nanos, Pattern, Split};
use weigh_stats::random::Random;

use crate::rig::{Seen, Setup, simulated_address};

type Way = (&'static str, &'static [(&'static str, &'static str)], Pattern);

const WAYS: &[Way] = &[
    ("tcp", &[], Pattern::Request),
    ("tcp", &[("echo", "true")], Pattern::Request),
    ("tcp", &[], Pattern::Session),
    ("tcp", &[], Pattern::Deliver),
    ("tcp", &[("acknowledge", "false")], Pattern::Deliver),
    ("http1", &[], Pattern::Request),
    ("http1", &[("pipeline", "5")], Pattern::Request),
    ("http1", &[("keep_alive", "false")], Pattern::Request),
    ("http1", &[], Pattern::Session),
    ("mqtt", &[("qos", "1")], Pattern::Publish),
    ("mqtt", &[("qos", "2"), ("version", "5")], Pattern::Publish),
    ("mqtt", &[("qos", "1")], Pattern::Session),
    ("mqtt", &[("qos", "0")], Pattern::Deliver),
    ("mqtt", &[("qos", "1")], Pattern::Deliver),
    ("mqtt", &[("qos", "2")], Pattern::Deliver),
    ("mqtt", &[("qos", "1"), ("version", "5"), ("topic_alias", "true")], Pattern::Deliver),
    ("mqtt", &[("qos", "2"), ("version", "5")], Pattern::Deliver),
    ("http2", &[("streams", "5")], Pattern::Request),
    ("http2", &[], Pattern::Session),
    #[cfg(feature = "quic")]
    ("http3", &[("streams", "5")], Pattern::Request),
    #[cfg(feature = "quic")]
    ("http3", &[], Pattern::Session),
    #[cfg(feature = "quic")]
    ("mqtt", &[("qos", "1"), ("quic", "true")], Pattern::Deliver),
    #[cfg(feature = "quic")]
    ("mqtt", &[("qos", "1"), ("quic", "true")], Pattern::Session),
    ("grpc", &[], Pattern::Request),
    ("grpc", &[("streaming", "bidi")], Pattern::Request),
    ("grpc", &[("streaming", "client")], Pattern::Session),
];

const ARRIVALS: [&str; 6] = ["closed", "burst", "ramp:200ms", "constant", "poisson", "periodic"];

fn storm(seed: u64) -> Setup {
    let mut random = Random::stream(seed, 9);
    let (protocol, given, pattern) = WAYS[random.below(WAYS.len() as u64) as usize];
    let messages = 20 + random.below(400);
    let mut setup = Setup::new(protocol, given, pattern, messages).seed(seed);
    let load = &mut setup.load;
    load.connections = 1 + random.below(6) as u32;
    load.arrival = ARRIVALS[random.below(6) as usize].parse().unwrap();
    if load.arrival.needs_rate() {
        let rate: Rate = parse_rate(&format!("{}/s", 100 + random.below(2000))).unwrap();
        load.rate = Some(rate);
    }
    if random.below(2) == 0 && !matches!(load.arrival, Arrival::Burst) {
        load.warmup = Nanos::from_millis(random.below(150));
    }
    if random.below(3) == 0 {
        load.window = Some(1 + random.below(9) as u32);
    }
    if random.below(3) == 0 {
        load.think = Nanos::from_micros(random.below(3000));
    }
    if random.below(2) == 0 {
        load.split = Split::Ceil;
    }
    load.timeout = Nanos::from_millis(300 + random.below(700));
    if pattern == Pattern::Deliver {
        let topologies = [Topology::FanIn, Topology::FanOut, Topology::Pairs, Topology::Shared];
        // Only MQTT knows subscriptions that share what comes.
        let known = if protocol == "mqtt" { 4 } else { 3 };
        load.topology = topologies[random.below(known) as usize];
        load.subscribers = match load.topology {
            Topology::Pairs => load.connections,
            Topology::FanIn => 1,
            Topology::FanOut | Topology::Shared => 1 + random.below(3) as u32,
        };
    }
    setup.link = Link {
        delay: Nanos::from_micros(random.below(2000)),
        jitter: Nanos::from_micros(random.below(1000)),
        bytes_per_s: (random.below(3) == 0).then(|| 200_000 + random.below(1_000_000)),
        buffer_bytes: 600 + random.below(20_000) as usize,
        in_pieces: random.below(2) == 0,
        ..Link::default()
    };
    setup
}

/// Breaks some connections; every storm has at least one.
fn with_cuts(mut setup: Setup) -> Setup {
    let mut random = Random::stream(setup.seed, 10);
    let opened = u64::from(setup.load.connections + setup.load.subscribers);
    for _ in 0..=random.below(4) {
        setup.cuts.push(Cut {
            to: simulated_address(),
            connection: random.below(opened + 3),
            from_listener: random.below(2) == 0,
            after_bytes: random.below(20_000),
        });
    }
    if random.below(4) == 0 {
        let from = Nanos::from_millis(50 + random.below(100));
        setup.refusals.push((from, from + Nanos::from_millis(random.below(400))));
    }
    setup
}

fn name(setup: &Setup) -> String {
    let load = &setup.load;
    format!(
        "seed {}: {} {:?} {:?} {:?} {} c{} y{} window {:?} think {} warmup {} {:?}\n{:?} {:?}",
        setup.seed,
        setup.protocol.name(),
        setup.settings,
        load.pattern,
        load.topology,
        load.arrival,
        load.connections,
        load.subscribers,
        load.window,
        load.think,
        load.warmup,
        setup.link,
        setup.cuts,
        setup.refusals
    )
}

fn check(setup: &Setup, seen: &Seen) {
    let name = name(setup);
    let (load, ledger) = (&setup.load, &seen.outcome.ledger);
    assert_eq!(ledger.contradiction(), None, "{name}\n{ledger:#?}");
    let total = load.split.total(load.messages.unwrap(), load.connections);
    assert_eq!(ledger.messages, total, "{name}\n{ledger:#?}");
    assert_eq!((ledger.duplicates, ledger.corrupt, ledger.foreign), (0, 0, 0), "{name}");
    // A load beyond what the window lets through ends with messages on their way, of which
    // nobody can say more; elsewhere a break is always the cause.
    // The same holds for a burst that takes longer than Tmax from the moment it was due.
    let was_too_much = ledger.not_sent_causes.contains_key(&NotSentCause::WindowFull);
    if !was_too_much && ledger.late == 0 {
        assert_eq!(ledger.causes.get(&Cause::Unknown), None, "{name}\n{ledger:#?}");
    }
    let arrived = ledger.delivered.unwrap() + ledger.late;
    let copies = load.copies();
    let sent = ledger.sent / copies;
    assert!(seen.server.unique <= sent, "{name}: the server has more than was sent");
    assert!(arrived <= seen.server.unique * copies, "{name}\n{ledger:#?} {:?}", seen.server);
    assert!(ledger.acknowledged / copies <= seen.server.unique, "{name}\n{ledger:#?}");
    assert_eq!(seen.server.duplicates, 0, "{name}");
    let recorder = &seen.outcome.shards.recorder;
    assert_eq!(recorder.response.count(), ledger.acknowledged / copies, "{name}\n{ledger:#?}");
    if load.pattern == Pattern::Deliver {
        assert_eq!(recorder.delivery.count(), arrived, "{name}");
    }
    assert_eq!(recorder.lags.all.count(), sent, "{name}");
    assert!(
        seen.outcome.shards.ended < Nanos::from_secs(60),
        "{name}: {}",
        seen.outcome.shards.ended
    );
}

/// How many seeds are tried; `WEIGH_STORMS=5000` asks for more than the usual.
fn seeds(usual: u64) -> u64 {
    std::env::var("WEIGH_STORMS").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Without a break nothing may be lost, however the bytes come.
#[test]
fn without_a_break_nothing_is_lost() {
    for seed in 0..seeds(200) {
        let mut setup = storm(seed);
        setup.load.timeout = Nanos::from_secs(20);
        let seen = setup.on_virtual_time();
        check(&setup, &seen);
        let ledger = seen.ledger();
        let (lost, not_sent) = (ledger.lost, ledger.not_sent);
        assert_eq!((lost, not_sent), (Some(0), 0), "{}\n{ledger:#?}", name(&setup));
    }
}

#[test]
fn storms_are_accounted_for() {
    let (mut lost, mut sent) = (0, 0);
    for seed in 0..seeds(300) {
        let setup = with_cuts(storm(seed));
        if std::env::var_os("WEIGH_STORM_NAMES").is_some() {
            println!("{}", name(&setup));
        }
        let seen = setup.on_virtual_time();
        check(&setup, &seen);
        lost += seen.ledger().lost.unwrap();
        sent += seen.ledger().sent;
    }
    println!("{} storms: {lost} of {sent} lost, every one with its cause", seeds(300));
}
