//! Consumer groups: complete before the load, and divided anew in it. The ledger is exact in both,
//! and what was read twice is a duplicate.

use weigh_engine::io::sim::Cut;
use weigh_model::load::Topology;
use weigh_model::protocol::ErrorWords;
use weigh_model::{Nanos, Pattern, Warning};

use crate::rig::{Seen, Setup, simulated_address};

const MESSAGES: u64 = 2_000;

/// Two producers and consumers of Kafka, who share two partitions in a group, at 400 messages/s.
fn setup(given: &[(&str, &str)]) -> Setup {
    let own = [("group", "g"), ("fetch_wait", "100ms"), ("heartbeat", "100ms")];
    let given = [&own[..], given].concat();
    let setup = Setup::new("kafka", &given, Pattern::Deliver, MESSAGES);
    let mut setup = setup.connections(2).open("constant", "400/s");
    setup.load.subscribers = 2;
    setup.load.topology = Topology::Shared;
    setup
}

/// The warning about rebalances.
fn warned(setup: &Setup, seen: &Seen) -> Option<Warning> {
    let words = |code: u16| ErrorWords { name: code.to_string(), advice: ErrorWords::ADVICE };
    let all = seen.outcome.warnings(&setup.load, true, &words);
    all.into_iter().find(|warning| matches!(warning, Warning::Rebalanced(..)))
}

/// The number of messages that came to each consumer, in rising order.
fn shares(seen: &Seen) -> Vec<u64> {
    let consumers = seen.outcome.shards.accounts.consumers.iter();
    let mut shares: Vec<u64> = consumers.map(|own| own.tally.unique()).collect();
    shares.sort_unstable();
    shares
}

#[test]
fn a_group_is_complete_before_the_load_and_stays_so() {
    for shards in [1, 2] {
        let mut setup = setup(&[("commit", "200ms")]);
        setup.shards = shards;
        let seen = if shards == 1 { setup.on_virtual_time() } else { setup.on_sockets() };
        let ledger = seen.ledger();
        assert_eq!((ledger.sent, ledger.delivered), (MESSAGES, Some(MESSAGES)), "{ledger:#?}");
        assert_eq!((ledger.duplicates, ledger.late, ledger.lost), (0, 0, Some(0)), "{ledger:#?}");
        assert_eq!(shares(&seen), [MESSAGES / 2; 2]);
        assert_eq!(warned(&setup, &seen), None);
        assert_eq!(seen.outcome.shards.lost_links, 0, "{:?}", seen.outcome.shards.first_loss);
        assert_eq!(seen.outcome.shards.recorder.connect.count(), 4, "its time is a set-up time");
        let metrics = seen.outcome.metrics(&setup.load);
        assert!(!metrics.contains_key("rebalances"), "{metrics:?}");
    }
}

/// A consumer is away for longer than its session: the other one reads its partition from the last
/// commit on, until it is back.
#[test]
fn a_rebalance_doubles_messages_and_loses_none() {
    for (commit, is_committed) in [("10s", false), ("200ms", true)] {
        let mut setup = setup(&[("session_timeout", "600ms"), ("commit", commit)]);
        setup.load.timeout = Nanos::from_secs(20);
        let to = simulated_address();
        setup.cuts = vec![Cut { to, connection: 0, from_listener: true, after_bytes: 20_000 }];
        setup.refusals = vec![(Nanos::from_millis(200), Nanos::from_millis(1_700))];
        let seen = setup.on_virtual_time();
        let ledger = seen.ledger();
        assert_eq!((ledger.sent, ledger.delivered), (MESSAGES, Some(MESSAGES)), "{ledger:#?}");
        assert_eq!((ledger.late, ledger.lost), (0, Some(0)), "{ledger:#?}");
        let twice = shares(&seen).iter().sum::<u64>() - MESSAGES;
        assert_eq!(ledger.duplicates, twice, "{ledger:#?}");
        assert!(twice > 0, "{commit}: the last ones are read again");
        assert!(!is_committed || twice <= 60, "{commit}: {twice} since the last commit");
        assert_eq!(seen.outcome.shards.lost_links, 5, "the connection, and four refusals");
        let Some(Warning::Rebalanced(times, pause)) = warned(&setup, &seen) else {
            panic!("{commit}: no warning");
        };
        assert!(times >= 3, "{commit}: {times}: one leaves, and both take part when it is back");
        assert!(pause > Nanos(0) && pause < Nanos::from_secs(2), "{commit}: {pause}");
        let metrics = seen.outcome.metrics(&setup.load);
        assert_eq!(metrics["rebalances"], times as f64);
        assert_eq!(metrics["rebalance_pause_s"], pause.as_secs_f64());
    }
}
