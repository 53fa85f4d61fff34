//! Client and server joined in memory: every byte that one end writes reaches the other in pieces
//! that chance chooses, and nothing is read from a clock.

mod pair;
mod refusals;

use std::sync::Arc;

use pair::{Pair, Setting};
use proptest::prelude::*;
use weigh_model::connection::Fault;

use super::Versions;

/// Bytes arrive as they were sent, however they are split: records across reads and several records
/// in one read, bodies from nothing to many records.
#[test]
fn bytes_arrive_whole_in_any_pieces() {
    for versions in [Versions::Tls12, Versions::Tls13] {
        let setting = Setting { versions, ..Setting::default() };
        let bodies = prop::collection::vec(body(), 1..5);
        let pieces = prop::collection::vec(1usize..3000, 1..40);
        let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
            cases: 48,
            failure_persistence: None,
            ..ProptestConfig::default()
        });
        let made = setting.made();
        runner
            .run(&(bodies, pieces), |(bodies, pieces)| {
                let mut pair = Pair::new(&made, pieces);
                pair.run();
                prop_assert!(pair.is_ready());
                for body in &bodies {
                    pair.send(body);
                }
                pair.run();
                prop_assert_eq!(&pair.fault, &None);
                prop_assert_eq!(pair.answers(), bodies);
                pair.close();
                pair.run();
                prop_assert_eq!(pair.ended(), Ok(()));
                Ok(())
            })
            .unwrap();
    }
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    let length = prop_oneof![Just(0usize), 1usize..200, 16_300usize..16_500, 30_000usize..70_000];
    (length, any::<u8>()).prop_map(|(length, first)| {
        (0..length).map(|index| first.wrapping_add((index % 251) as u8)).collect()
    })
}

/// One byte at a time: every border lies everywhere once.
#[test]
fn one_byte_at_a_time_is_enough() {
    for versions in [Versions::Tls12, Versions::Tls13] {
        for mutual in [false, true] {
            let made = Setting { versions, mutual, ..Setting::default() }.made();
            let mut pair = Pair::new(&made, vec![1]);
            pair.run();
            pair.send(b"small");
            pair.run();
            assert_eq!((pair.fault.clone(), pair.answers()), (None, vec![b"small".to_vec()]));
        }
    }
}

/// A body of 5 MB crosses in records of 16 KiB, each with at most 22 bytes more in TLS 1.3
/// (header 5, type 1, tag 16: RFC 8446, section 5.2) and 29 in TLS 1.2 (header 5, nonce 8, tag
/// 16: RFC 5288, section 3).
#[test]
fn large_bodies_cost_what_the_standard_says() {
    for (versions, each, suite) in
        [(Versions::Tls13, 22, "TLS13_AES_256_GCM_SHA384"), (Versions::Tls12, 29, "AES_256_GCM")]
    {
        let made = Setting { versions, resumes: false, ..Setting::default() }.made();
        let mut pair = Pair::new(&made, vec![65_536]);
        pair.run();
        let body = vec![7; 5_000_000];
        pair.send(&body);
        pair.run();
        assert_eq!(pair.answers(), [body]);
        pair.drop_client();
        let figures = made.client_tally.figures();
        assert!(figures.negotiated.clone().unwrap().contains(suite), "{figures:?}");
        // The frame has 4 bytes before the body.
        let records = 5_000_004_u64.div_ceil(16_384);
        assert_eq!(figures.record_sent_bytes, records * each, "{versions:?}");
        assert_eq!((figures.full, figures.resumed), (1, 0));
    }
}

/// The first handshake is full, those after it resume, and cost fewer bytes; without resumption
/// all are full.
#[test]
fn sessions_are_resumed_unless_they_must_not_be() {
    for versions in [Versions::Tls12, Versions::Tls13] {
        for resumes in [true, false] {
            let made = Setting { versions, resumes, ..Setting::default() }.made();
            let mut bytes = Vec::new();
            for _ in 0..5 {
                let mut pair = Pair::new(&made, vec![1_000]);
                pair.run();
                pair.send(b"x");
                pair.run();
                assert_eq!(pair.answers().len(), 1);
                let figures = made.client_tally.figures();
                bytes.push(figures.handshake_received_bytes);
            }
            let figures = made.client_tally.figures();
            let expected = if resumes { (1, 4) } else { (5, 0) };
            assert_eq!((figures.full, figures.resumed), expected, "{versions:?}");
            let (first, second) = (bytes[0], bytes[1] - bytes[0]);
            assert_eq!(second < first / 2, resumes, "{versions:?}: {first} then {second}");
        }
    }
}

/// An end of the transport without close_notify does not end the session, whatever was there.
#[test]
fn an_end_without_close_notify_is_a_truncation() {
    let made = Setting::default().made();
    let mut pair = Pair::new(&made, vec![100]);
    pair.run();
    pair.send(b"all of it");
    pair.run();
    assert_eq!(pair.answers(), [b"all of it".to_vec()]);
    let Err(Fault::Ended(text)) = pair.ended() else { panic!("taken for an end") };
    assert!(text.contains("truncation"), "{text}");
}

/// A byte that is changed in transit is noticed.
#[test]
fn a_changed_byte_ends_the_session() {
    let made = Setting::default().made();
    let mut pair = Pair::new(&made, vec![100]);
    pair.run();
    pair.send(b"all of it");
    pair.corrupt_next();
    pair.run();
    let fault = pair.server_fault.clone().unwrap().to_string();
    assert!(fault.contains("TLS"), "{fault}");
    assert!(pair.answers().is_empty());
}

/// The protocol that both ends agree on by ALPN is known, and a server that accepts only another
/// one refuses.
#[test]
fn protocols_are_agreed_on() {
    let made = Setting { offered: "one", taken: "one two", ..Setting::default() }.made();
    let mut pair = Pair::new(&made, vec![500]);
    pair.run();
    assert!(made.client_tally.figures().negotiated.unwrap().ends_with(" one"));
    let made = Setting { offered: "one", taken: "two", ..Setting::default() }.made();
    let mut pair = Pair::new(&made, vec![500]);
    pair.run();
    let fault = pair.fault.clone().unwrap().to_string();
    assert!(fault.contains("none of the protocols offered by ALPN"), "{fault}");
}

/// The time of a handshake counts from the transport standing, on the clock that is handed in.
#[test]
fn handshakes_are_timed() {
    let made = Setting::default().made();
    let mut pair = Pair::new(&made, vec![100_000]);
    pair.run();
    let figures = made.client_tally.figures();
    let max = figures.handshake_time_ns.iter().find(|(name, _)| *name == "max").unwrap().1;
    // The pair's clock advances by 1 ms with each piece that is delivered: the client's first
    // flight, then the server's.
    assert!((1.99e6..2.01e6).contains(&max), "{max}");
    let parts: Vec<_> = figures.handshake_time_ns.iter().map(|(name, _)| *name).collect();
    assert_eq!(parts, ["mean", "max", "p50", "p90", "p95", "p99", "p999"]);
    assert!(figures.handshake_sent_bytes > 200 && figures.handshake_received_bytes > 500);
    drop(pair);
    assert_eq!(Arc::strong_count(&made.client_tally), 2, "the dial and the test");
}
