//! The same bad clients on sockets, all kinds of a protocol at once, while they stay connected: the
//! next honest client is served exactly, and the server sleeps afterwards.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use weigh_engine::generator::{Generator, TrialObserver};
use weigh_engine::io::Io;
use weigh_engine::io::epoll::EpollIo;
use weigh_engine::job::Progress;
use weigh_engine::serving::Serving;
use weigh_model::Nanos;

use crate::bad_client::BadClients;
use crate::lists;
use crate::servers::{rehearse, tampers};
use crate::speaker::{MANNERS, Manner, Speaker};

struct Nobody;

impl TrialObserver for Nobody {
    fn progress(&self, _: u32, _: Progress) {}
}

/// Processor time of the thread so far, nanoseconds.
fn processor_ns(thread: i32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

fn check(manner: Manner) {
    let speaker = Speaker::new(manner);
    let (known, _) = rehearse(&speaker);
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let serving = Serving::start(&speaker.host(), any, 1).unwrap();
    let address = serving.address();
    let all = lists::clients(manner.name).into_iter().flat_map(|kind| {
        let mut own = tampers(&speaker, &kind, &known);
        // Every place of each is tried on virtual time.
        own.truncate(4);
        own
    });
    let mut clients = BadClients::new(&speaker.dial(address, 99), address, all.collect());
    let mut io = EpollIo::new(Instant::now()).unwrap();
    let mut quiet_turns = 0;
    while quiet_turns < 10 && io.now() < BAD_TIME_MAX {
        let soon = io.now() + Nanos::from_millis(10);
        clients.step(&mut io, soon);
        quiet_turns = if clients.are_quiet() { quiet_turns + 1 } else { 0 };
    }
    let mut load = speaker.load(HONEST_MESSAGES, 2);
    load.timeout = Nanos::from_secs(30);
    let observer: Arc<dyn TrialObserver> = Arc::new(Nobody);
    let job = speaker.job(address, load);
    let generator = Generator::start(job, 0..1, Instant::now(), &observer).unwrap();
    let outcome = generator.finish().unwrap_or_else(|failure| panic!("{}: {failure}", manner.name));
    let ledger = &outcome.ledger;
    assert_eq!(ledger.contradiction(), None, "{}", manner.name);
    let seen = (ledger.sent, ledger.delivered, ledger.lost);
    assert_eq!(seen, (HONEST_MESSAGES, Some(HONEST_MESSAGES), Some(0)), "{}", manner.name);
    // Nothing comes any more: the server finishes what it has, and then sleeps. One that spins
    // uses what it gets of a core for ever.
    let thread = serving.thread_ids()[0];
    let used = (0..LOOKS).map(|_| {
        let before = processor_ns(thread);
        std::thread::sleep(LOOKED_AT);
        Duration::from_nanos(processor_ns(thread) - before)
    });
    let all: Vec<Duration> = used.take_while(|used| *used >= LOOKED_AT / 10).collect();
    assert!(all.len() < LOOKS, "{}: the idle server used {all:?}", manner.name);
    serving.stop();
}

macro_rules! on_sockets {
    ($($name:ident $place:literal)*) => {
        $(#[test]
        fn $name() {
            check(MANNERS[$place]);
        })*
    };
}

on_sockets! {
    http1 0 http2 1 grpc 2 mqtt_3 3 mqtt_5 4 tcp 5 nats 6 amqp 7 redis 8 coap 9
    websocket 10 tls 11 kafka 12 amqp1 13 kafka_group 14 oscore 15
}

#[cfg(feature = "quic")]
on_sockets! {
    quic 16 mqtt_in_quic 17
}

const HONEST_MESSAGES: u64 = 200;

/// Longest time that the bad ones have, on the clock of their sockets.
const BAD_TIME_MAX: Nanos = Nanos::from_secs(5);

/// Looks at the server until it sleeps, and the length of each.
const LOOKS: usize = 50;
const LOOKED_AT: Duration = Duration::from_millis(200);
