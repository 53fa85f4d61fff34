//! Bodies too small for a mark: messages are told apart by connection and order, and the result
//! says so.

use weigh_model::Pattern;
use weigh_model::ledger::Cause;
use weigh_model::units::Bytes;

use crate::rig::Setup;

#[test]
fn small_bodies_are_counted_by_order() {
    for (protocol, given) in [
        ("tcp", &[("acknowledge", "false")][..]),
        ("tcp", &[][..]),
        ("mqtt", &[("qos", "0")][..]),
        ("mqtt", &[("qos", "1")][..]),
        ("mqtt", &[("qos", "2"), ("version", "5")][..]),
    ] {
        let mut setup = Setup::new(protocol, given, Pattern::Deliver, 900)
            .connections(3)
            .open("poisson", "2000/s");
        setup.load.size = Some(Bytes(8));
        for seen in [setup.on_virtual_time(), setup.on_sockets()] {
            let ledger = seen.ledger();
            assert_eq!((ledger.sent, ledger.delivered), (900, Some(900)), "{protocol} {given:?}");
            assert_eq!((ledger.lost, ledger.received), (Some(0), 900));
            let words = |code| setup.protocol.error(code);
            let warnings = seen.outcome.warnings(&setup.load, ledger.acknowledged > 0, &words);
            let codes: Vec<String> = warnings.iter().map(|warning| warning.record().code).collect();
            assert!(codes.iter().any(|code| code == "identity-by-order"), "{codes:?}");
        }
    }
}

/// What a broker dropped from a queue is missing, though nobody can say which it was.
#[test]
fn losses_are_counted_by_order_too() {
    let given = [("qos", "0"), ("overload", "drop-newest:100")];
    let mut setup = Setup::new("mqtt", &given, Pattern::Deliver, 30_000).connections(10);
    setup.load.arrival = weigh_model::Arrival::Burst;
    setup.load.size = Some(Bytes(8));
    let seen = setup.on_virtual_time();
    let ledger = seen.ledger();
    let dropped: u64 = seen.server.dropped.values().sum();
    assert!(dropped > 0, "the burst did not fill the queue");
    assert_eq!(ledger.lost, Some(dropped));
    assert_eq!(ledger.causes.get(&Cause::Unknown), Some(&dropped));
}
