//! The ledger at a size that matters: every message by identity, nothing sampled.

use weigh_engine::accounts::{Accounts, ConsumerAccount, ProducerAccount};
use weigh_model::ledger::Cause;
use weigh_model::mark::{Mark, Reading};
use weigh_model::{Nanos, Pattern};

use crate::rig::Setup;

/// 60 producers and one consumer; every 1,000th message is lost, every 1,001st comes twice.
fn drive(messages: u64) {
    let producers = 60;
    let share = messages / producers;
    let setup = Setup::new("mqtt", &[("qos", "1")], Pattern::Deliver, share * producers)
        .connections(producers as u32);
    let mut accounts = Accounts::default();
    let mut consumer = ConsumerAccount::default();
    let (mut lost, mut doubled) = (0, 0);
    for producer in 0..producers {
        let index = producer as u32;
        let mut account = ProducerAccount { index, sent: share, ..ProducerAccount::default() };
        for sequence in 0..share {
            account.confirm(sequence, false, true);
            if sequence % 1000 == 7 {
                lost += 1;
                continue;
            }
            let (due, lag) = (Nanos(0), Nanos(0));
            let mark =
                Mark { tag: 1, warmup: false, producer: index, sequence, due, lag, own_lag: lag };
            consumer.tally.note(Reading::Whole(mark), false);
            if sequence % 1001 == 8 {
                doubled += 1;
                consumer.tally.note(Reading::Whole(mark), false);
            }
        }
        accounts.producers.push(account);
    }
    accounts.consumers.push(consumer);
    let ledger = accounts.settle(&setup.load, true);
    assert_eq!(ledger.contradiction(), None);
    let sent = share * producers;
    assert_eq!((ledger.sent, ledger.acknowledged), (sent, sent));
    assert_eq!((ledger.delivered, ledger.lost), (Some(sent - lost), Some(lost)));
    assert_eq!((ledger.duplicates, ledger.acked_not_delivered), (doubled, lost));
    assert_eq!(ledger.causes.get(&Cause::Unknown), Some(&lost));
    let bytes = accounts.memory_bytes() as f64 / sent as f64;
    println!("{sent} messages: {bytes:.3} bytes of ledger per message");
    assert!(bytes < 1.0, "{bytes}");
}

#[test]
fn a_million_messages_by_identity() {
    drive(1_000_000);
}

#[test]
#[ignore = "ten million messages: for a release build"]
fn ten_million_messages_by_identity() {
    drive(10_000_000);
}

/// The same through shard, connection, broker and simulated sockets.
#[test]
#[ignore = "ten million messages: for a release build"]
fn ten_million_messages_on_virtual_time() {
    let setup = Setup::new("mqtt", &[("qos", "0")], Pattern::Deliver, 10_000_000).connections(60);
    let seen = setup.on_virtual_time();
    let ledger = seen.ledger();
    assert_eq!((ledger.delivered, ledger.lost), (Some(10_000_000), Some(0)));
    let bytes = seen.outcome.ledger_bytes as f64 / 1e7;
    println!("10,000,000 messages: {bytes:.3} bytes of ledger per message");
    assert!(bytes < 1.0, "{bytes}");
}
