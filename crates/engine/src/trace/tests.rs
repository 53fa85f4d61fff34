use weigh_model::hop::{Hop, HopStage};
use weigh_model::ledger::Cause;
use weigh_model::tally::Bits;
use weigh_model::{Load, Nanos, Pattern};

use super::*;
use crate::accounts::ProducerAccount;

const TAG: u16 = 7;
const MS: u64 = 1_000_000;

fn load() -> Load {
    Load {
        messages: Some(1),
        timeout: Nanos::from_millis(100),
        ..Load::closed(Pattern::Publish, 1)
    }
}

fn all() -> Route {
    Route { stages: HopStage::ALL.to_vec(), has_broker: true }
}

fn ways() -> Tracer {
    Tracer::new(all(), TAG, load().timeout)
}

/// Message `number`, whose stamps are these milliseconds: due, sent, arrived at gateway, api and
/// store, committed. Each stage hears of the commit a millisecond after the one behind it.
fn stamped(number: u64, at_ms: [u64; 6]) -> (Departure, [Hop; 3]) {
    let at = at_ms.map(|ms| Nanos(ms * MS));
    let hop = |stage: HopStage, arrived, left| Hop {
        tag: TAG,
        warmup: false,
        repeated: false,
        stage,
        producer: 0,
        sequence: number,
        arrived,
        left,
        batch: 1,
    };
    let later = |ms: u64| at[5] + Nanos(ms * MS);
    let departure =
        Departure { producer: 0, number, due: at[0], sent: at[1], own_lag: at[1] - at[0] };
    let hops = [
        hop(HopStage::Gateway, at[2], later(2)),
        hop(HopStage::Api, at[3], later(1)),
        hop(HopStage::Store, at[4], at[5]),
    ];
    (departure, hops)
}

/// Books of one producer that sent `sent` messages, of which these were confirmed.
fn books(sent: u64, confirmed: impl IntoIterator<Item = u64>) -> Accounts {
    let mut bits = Bits::default();
    for number in confirmed {
        bits.set(number);
    }
    let producer = ProducerAccount { sent, confirmed_bits: bits, ..ProducerAccount::default() };
    Accounts { producers: vec![producer], ..Accounts::default() }
}

fn means(traced: &Traced) -> Vec<(&str, f64)> {
    traced.times.iter().map(|piece| (&*piece.name, piece.mean_ns().unwrap_or(-1.0))).collect()
}

#[test]
fn the_pieces_of_a_way_add_up_to_its_delivery_time() {
    let mut ways = ways();
    let (departure, hops) = stamped(0, [10, 11, 14, 20, 22, 30]);
    ways.departed(&departure);
    // Stages write a message down when they are done with it: the last one first.
    hops.iter().rev().for_each(|hop| ways.passed(hop));
    assert!(ways.open.is_empty(), "nothing is kept of a way that is whole");
    let traced = ways.finish(&books(1, [0]), &load(), false);
    let ms = |count: u64| (count * MS) as f64;
    let expected = [
        ("stage.generator.hop_time_ns", ms(1)),
        ("stage.broker.hop_time_ns", ms(3)),
        ("stage.gateway.hop_time_ns", ms(6)),
        ("stage.api.hop_time_ns", ms(2)),
        ("stage.store.hop_time_ns", ms(8)),
        ("stage.gateway.held_time_ns", ms(18)),
        ("stage.api.held_time_ns", ms(11)),
    ];
    assert_eq!(means(&traced), expected);
    let pieces: f64 = traced.times[..5].iter().filter_map(Piece::mean_ns).sum();
    assert_eq!((pieces, traced.delivery.count()), (ms(20), 1));
    assert_eq!((traced.whole, traced.broken), (1, 0));
    assert_eq!(traced.last_kept, Some(Nanos(30 * MS)));
}

#[test]
fn a_stage_that_delays_shows_it_in_its_hop_and_only_there() {
    let usual = [0, 1, 2, 3, 4, 5];
    for slow in 1..6 {
        let mut ways = ways();
        let delayed = std::array::from_fn(|at| usual[at] + if at >= slow { 40 } else { 0 });
        let (departure, hops) = stamped(0, delayed);
        ways.departed(&departure);
        hops.iter().for_each(|hop| ways.passed(hop));
        let traced = ways.finish(&books(1, []), &load(), false);
        for (at, (name, mean)) in means(&traced)[..5].iter().enumerate() {
            let expected = if at + 1 == slow { 41 } else { 1 };
            assert_eq!(*mean, (expected * MS) as f64, "{name} with {slow}");
        }
    }
}

/// Whatever the order in which files are read, the books are the same.
#[test]
fn every_order_gives_the_same_books() {
    let messages: Vec<_> = (0..4)
        .map(|n| stamped(n, [n, n + 1, n + 2, n + 3, n + 4, n + 150 * n]))
        .map(|(departure, hops)| (departure, hops.to_vec()))
        .collect();
    let orders: [[usize; 4]; 4] = [[0, 1, 2, 3], [3, 2, 1, 0], [3, 0, 1, 2], [1, 2, 3, 0]];
    let mut seen = Vec::new();
    for order in orders {
        let mut ways = ways();
        for what in order {
            for (departure, hops) in &messages[..3] {
                match what {
                    0 => ways.departed(departure),
                    hop => ways.passed(&hops[hop - 1]),
                }
            }
        }
        // The store has the second message three times, the fourth was never seen by it.
        ways.passed(&messages[1].1[2]);
        ways.passed(&messages[1].1[2]);
        ways.departed(&messages[3].0);
        let traced = ways.finish(&books(4, 0..4), &load(), false);
        assert_eq!(traced.ledger.contradiction(), None);
        let Ledger { delivered, late, lost, duplicates, received, .. } = traced.ledger;
        seen.push((delivered, late, lost, duplicates, received, traced.whole, traced.broken));
    }
    // The first was stored before it was sent, which no clock does: it is kept and not traced.
    assert!(seen.iter().all(|one| *one == (Some(1), 2, Some(1), 2, 5, 2, 1)), "{seen:?}");
}

#[test]
fn duplicates_are_counted_before_and_after_the_departure_is_known() {
    for departs_first in [true, false] {
        let mut ways = ways();
        let (departure, hops) = stamped(0, [0, 1, 2, 3, 4, 5]);
        if departs_first {
            ways.departed(&departure);
        }
        ways.passed(&hops[2]);
        ways.passed(&Hop { repeated: true, ..hops[2] });
        if !departs_first {
            ways.departed(&departure);
        }
        let traced = ways.finish(&books(1, [0]), &load(), false);
        assert_eq!((traced.ledger.delivered, traced.ledger.duplicates), (Some(1), 1));
        assert_eq!((traced.whole, traced.broken), (0, 1), "its way has holes");
        assert_eq!(traced.delivery.count_up_to(6 * MS), 1);
    }
}

#[test]
fn lost_messages_are_told_by_where_they_were_seen_last() {
    let mut ways = ways();
    for number in 0..5 {
        let (departure, hops) = stamped(number, [0, 1, 2, 3, 4, 5]);
        ways.departed(&departure);
        match number {
            0 => hops.iter().for_each(|hop| ways.passed(hop)),
            1 => ways.passed(&hops[0]),
            2 => ways.passed(&hops[1]),
            _ => {}
        }
    }
    // The fourth was confirmed by the broker, the fifth refused.
    let mut books = books(5, [0, 1, 2, 3]);
    books.producers[0].fail(4, Cause::ErrorAnswer, true);
    let traced = ways.finish(&books, &load(), true);
    let ledger = &traced.ledger;
    assert_eq!(ledger.contradiction(), None);
    let seen: Vec<(&str, u64)> = ledger.last_seen.iter().map(|(k, v)| (&**k, *v)).collect();
    assert_eq!(seen, [("api", 1), ("broker", 1), ("gateway", 1), ("generator", 1)]);
    assert_eq!(ledger.causes[&Cause::SubscriberDisconnected], 3);
    assert_eq!(ledger.causes[&Cause::ErrorAnswer], 1);
    assert_eq!((ledger.delivered, ledger.lost, ledger.acked_not_delivered), (Some(1), Some(4), 3));
}

#[test]
fn others_and_the_warm_up_are_passed_over() {
    let mut ways = ways();
    let (departure, hops) = stamped(0, [0, 1, 2, 3, 4, 5]);
    ways.departed(&departure);
    for hop in hops {
        ways.passed(&Hop { warmup: true, ..hop });
        ways.passed(&Hop { tag: TAG + 1, ..hop });
    }
    let traced = ways.finish(&books(1, []), &load(), false);
    assert_eq!((traced.ledger.received, traced.ledger.lost), (0, Some(1)));
}

#[test]
fn without_a_broker_the_first_stage_has_a_gap_before_it() {
    let route = Route { stages: vec![HopStage::Api, HopStage::Store], has_broker: false };
    let mut ways = Tracer::new(route, TAG, load().timeout);
    let (departure, hops) = stamped(0, [0, 1, 2, 3, 5, 9]);
    ways.departed(&departure);
    hops.iter().for_each(|hop| ways.passed(hop));
    let traced = ways.finish(&books(1, [0]), &load(), false);
    let ms = |count: u64| (count * MS) as f64;
    let expected = [
        ("stage.generator.hop_time_ns", ms(1)),
        ("stage.api.gap_time_ns", ms(2)),
        ("stage.api.hop_time_ns", ms(2)),
        ("stage.store.hop_time_ns", ms(4)),
        ("stage.api.held_time_ns", ms(7)),
    ];
    assert_eq!(means(&traced), expected);
}
