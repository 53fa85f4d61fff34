//! A thousand on one side: what one publisher brings to a thousand subscribers, a thousand
//! publishers to one, and pairs to each other. Consumers count every message by identity, and the
//! generator is never the first to drop.

use weigh_model::load::Topology;
use weigh_model::{Arrival, Nanos, Pattern};

use crate::rig::{Seen, Setup};

const MANY: u32 = 1_000;

/// Publishers, subscribers, messages.
const SHAPES: [(Topology, u32, u32, u64); 3] = [
    (Topology::FanOut, 1, MANY, 60),
    (Topology::FanIn, MANY, 1, 20_000),
    (Topology::Pairs, MANY / 2, MANY / 2, 20_000),
];

fn setup((topology, publishers, subscribers, messages): (Topology, u32, u32, u64)) -> Setup {
    let mut setup = Setup::new("mqtt", &[("qos", "0")], Pattern::Deliver, messages);
    setup = setup.connections(publishers);
    setup.load.subscribers = subscribers;
    setup.load.topology = topology;
    setup
}

fn check(what: &str, setup: &Setup, seen: &Seen) {
    let ledger = seen.ledger();
    let (messages, copies) = (setup.load.messages.unwrap(), setup.load.copies());
    let pairs = messages * copies;
    assert_eq!((ledger.messages, ledger.sent), (messages, pairs), "{what}");
    assert_eq!((ledger.delivered, ledger.received), (Some(pairs), pairs), "{what}");
    assert_eq!((ledger.lost, ledger.late, ledger.duplicates), (Some(0), 0, 0), "{what}");
    assert_eq!((ledger.corrupt, ledger.foreign, ledger.not_sent), (0, 0, 0), "{what}");
    let server = &seen.server;
    assert_eq!((server.unique, server.forwarded), (messages, pairs), "{what}");
    assert!(server.dropped.is_empty() && seen.outcome.shards.lost_links == 0, "{what}: {server:?}");
}

#[test]
fn a_thousand_on_one_side_on_virtual_time() {
    for shape in SHAPES {
        for qos in ["0", "1", "2"] {
            let mut setup = setup(shape);
            setup.settings = vec![("qos".to_owned(), qos.to_owned())];
            check(&format!("{shape:?} {qos}"), &setup, &setup.on_virtual_time());
        }
    }
}

#[test]
fn a_thousand_on_one_side_on_sockets() {
    for shape in SHAPES {
        let setup = setup(shape);
        check(&format!("{shape:?}"), &setup, &setup.on_sockets());
    }
}

/// All at once, which fills every buffer on the way: what waits, waits where it is counted.
#[test]
fn a_burst_to_a_thousand_on_sockets() {
    for qos in ["0", "1"] {
        let mut setup = setup((Topology::FanOut, 1, MANY, 100));
        setup.settings = vec![("qos".to_owned(), qos.to_owned())];
        setup.load.arrival = Arrival::Burst;
        setup.load.timeout = Nanos::from_secs(60);
        check(&format!("burst {qos}"), &setup, &setup.on_sockets());
    }
}
