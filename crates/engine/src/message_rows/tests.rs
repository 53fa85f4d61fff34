//! Cases that the trials of `shard/tests.rs` cannot reach: orders between shards, and a full log.
//! Those trials compare the rows with the ledger.

use weigh_model::tally::Tally;
use weigh_model::{Pattern, mark::Mark, mark::Reading};

use super::*;
use crate::accounts::ProducerAccount;

fn load(topology: Topology, subscribers: u32) -> Load {
    Load { subscribers, topology, timeout: Nanos(1000), ..Load::closed(Pattern::Deliver, 1) }
}

fn sent(number: u64) -> MessageEvent {
    let (due, sent) = (Nanos(number * 10), Nanos(number * 10 + 1));
    let (producer, connection, body_bytes, own_lag) = (0, 0, 64, sent - due);
    MessageEvent::Sent { producer, connection, number, due, sent, own_lag, body_bytes }
}

fn arrived(consumer: u32, number: u64) -> MessageEvent {
    let at = Nanos(number * 10 + 5);
    MessageEvent::Arrived { consumer, producer: 0, number, at, is_late: false }
}

fn hear(rows: &mut MessageRows, events: &[MessageEvent]) -> Vec<MessageRow> {
    let mut made = Vec::new();
    events.iter().for_each(|event| rows.hear(*event, &mut |row| made.push(*row)));
    made
}

/// An arrival may be read before the sending: the two are of different shards.
#[test]
fn an_arrival_waits_for_its_sending_and_for_its_confirmation() {
    let mut rows = MessageRows::new(&load(Topology::FanIn, 1), true);
    assert_eq!(hear(&mut rows, &[arrived(0, 0), sent(0)]), []);
    let confirmed = MessageEvent::Confirmed { producer: 0, number: 0, at: Nanos(9) };
    let made = hear(&mut rows, &[confirmed]);
    assert_eq!(made.len(), 1);
    let row = made[0];
    assert_eq!((row.due_ns, row.sent_ns, row.confirmed_ns), (Some(0), Some(1), Some(9)));
    assert_eq!((row.delivered_ns, row.consumer), (Some(5), Some(0)));
    assert_eq!((row.state, row.body_bytes), (MessageState::Delivered, Some(64)));
    assert_eq!(rows.held, 0);
}

#[test]
fn a_message_that_two_sharing_consumers_got_has_one_row() {
    let mut rows = MessageRows::new(&load(Topology::Shared, 2), false);
    let made = hear(&mut rows, &[sent(0), arrived(1, 0), arrived(0, 0), sent(1), arrived(0, 1)]);
    assert_eq!(made.iter().map(|row| row.consumer).collect::<Vec<_>>(), [Some(1), Some(0)]);
    assert_eq!(rows.finish(&Accounts::default(), &mut |row| panic!("{row:?}")), 0);
}

/// Every third pair is missing at consumer 1: the rows at the end name exactly those.
#[test]
fn lost_pairs_are_named_at_the_end() {
    let mut rows = MessageRows::new(&load(Topology::FanOut, 2), false);
    let mut tallies = [Tally::default(), Tally::default()];
    for number in 0..9 {
        hear(&mut rows, &[sent(number)]);
        for consumer in [0, 1_u32] {
            if consumer == 1 && number % 3 == 0 {
                continue;
            }
            assert_eq!(hear(&mut rows, &[arrived(consumer, number)]).len(), 1);
            let (due, lag) = (Nanos(0), Nanos(0));
            let mark = Mark {
                tag: 0,
                warmup: false,
                producer: 0,
                sequence: number,
                due,
                lag,
                own_lag: lag,
            };
            tallies[consumer as usize].note(Reading::Whole(mark), false);
        }
    }
    let consumers = tallies.into_iter().enumerate().map(|(index, tally)| ConsumerAccount {
        index: index as u32,
        tally,
        ..ConsumerAccount::default()
    });
    let producers = vec![ProducerAccount { sent: 9, ..ProducerAccount::default() }];
    let accounts = Accounts { producers, consumers: consumers.collect(), ..Accounts::default() };
    let mut lost = Vec::new();
    assert_eq!(rows.finish(&accounts, &mut |row| lost.push(*row)), 0);
    let named: Vec<_> = lost.iter().map(|row| (row.consumer, row.sequence)).collect();
    assert_eq!(named, [(Some(1), Some(0)), (Some(1), Some(3)), (Some(1), Some(6))]);
    assert!(lost.iter().all(|row| row.cause == Some(LossCause::Lost(Cause::Unknown))));
}

/// A transfer has a row for each subscriber that got it, and for each that did not; without
/// subscribers its answer is its end.
#[test]
fn a_transfer_with_subscribers_has_rows_of_arrivals() {
    let transfer =
        |subscribers| Load { pattern: Pattern::Transfer, ..load(Topology::FanOut, subscribers) };
    let confirmed = MessageEvent::Confirmed { producer: 0, number: 0, at: Nanos(9) };
    let mut rows = MessageRows::new(&transfer(2), true);
    let made = hear(&mut rows, &[sent(0), confirmed, arrived(1, 0)]);
    assert_eq!(made.iter().map(|row| row.consumer).collect::<Vec<_>>(), [Some(1)]);
    let accounts = Accounts {
        producers: vec![ProducerAccount { sent: 1, ..ProducerAccount::default() }],
        consumers: vec![ConsumerAccount::default()],
        ..Accounts::default()
    };
    let mut lost = Vec::new();
    assert_eq!(rows.finish(&accounts, &mut |row| lost.push(*row)), 0);
    let told: Vec<_> = lost.iter().map(|row| (row.consumer, row.state)).collect();
    assert_eq!(told, [(Some(0), MessageState::Lost)]);
    let mut rows = MessageRows::new(&transfer(0), true);
    let made = hear(&mut rows, &[sent(0), confirmed]);
    assert_eq!(made.iter().map(|row| row.consumer).collect::<Vec<_>>(), [None]);
}

/// With nothing arriving, memory stays within the bound and what left it is said.
#[test]
fn beyond_the_bound_the_oldest_is_given_up_and_counted() {
    let mut rows = MessageRows::new(&load(Topology::FanIn, 1), false);
    rows.held_max = 100;
    let sendings: Vec<MessageEvent> = (0..250).map(sent).collect();
    let made = hear(&mut rows, &sendings);
    assert_eq!((made.len(), rows.held), (150, 100));
    assert!(made.iter().all(|row| row.state == MessageState::Unsettled));
    assert_eq!(hear(&mut rows, &[arrived(0, 3)]), []);
    let accounts = Accounts {
        producers: vec![ProducerAccount { sent: 250, ..ProducerAccount::default() }],
        consumers: vec![ConsumerAccount::default()],
        ..Accounts::default()
    };
    let mut lost = 0;
    assert_eq!(rows.finish(&accounts, &mut |_| lost += 1), 150);
    assert_eq!(lost, 100);
}
