//! A server shut for 100 ms in every second (oracle O2 of the methodology). At 1,000/s, half a
//! millisecond off the gate's edges, 100 of each 1,000 messages wait for 0.5, 1.5 ... 99.5 ms:
//! mean 5.0 ms, p95 49.5, p99 89.5, p99.9 98.5. A closed loop of one connection on a gate with
//! 1 ms of service hides all but one of them.

use weigh_engine::lag_share;
use weigh_model::{Nanos, Pattern};

use crate::rig::{Seen, Setup, assert_near};
use crate::scripted::Policy;

const SHUT: Nanos = Nanos::from_millis(100);
const PERIOD: Nanos = Nanos::from_secs(1);
/// What a time may be off on sockets.
const ALLOWED: Nanos = Nanos::from_millis(1);

/// The gate, first shut half a millisecond before the first message.
pub fn gate(service: Nanos) -> Policy {
    let mut first = None;
    Box::new(move |now, _| {
        let from = *first.get_or_insert(now - Nanos::from_micros(500));
        let into = Nanos(now.since(from).0 % PERIOD.0);
        let opens = if into < SHUT { now + (SHUT - into) } else { now };
        opens + service
    })
}

fn quantile_ms(seen: &Seen, q: f64) -> f64 {
    seen.outcome.shards.recorder.response.quantile(q).unwrap() as f64 / 1e6
}

fn mean_ms(seen: &Seen) -> f64 {
    seen.outcome.shards.recorder.response.mean().unwrap() / 1e6
}

/// True if the generator's own lateness makes up a tenth of what may be off, or more.
pub fn is_late(seen: &Seen, setup: &Setup) -> bool {
    let shares = lag_share::of(&seen.outcome, &setup.load);
    ["mean", "p95", "p99", "p999"]
        .iter()
        .any(|part| shares[&format!("response_time_lag_ns.{part}")] > 0.1 * ALLOWED.0 as f64)
}

fn open_loop(protocol: &str, given: &[(&str, &str)], seconds: u64) -> Setup {
    // Enough connections that none is ever missing: 100 messages wait at once.
    Setup::new(protocol, given, pattern_of(protocol), 1000 * seconds)
        .connections(200)
        .open("constant", "1000/s")
}

fn closed_loop(protocol: &str, given: &[(&str, &str)], messages: u64) -> Setup {
    Setup::new(protocol, given, pattern_of(protocol), messages)
}

fn pattern_of(protocol: &str) -> Pattern {
    if matches!(protocol, "mqtt" | "nats" | "amqp" | "amqp1" | "sse" | "kafka") {
        Pattern::Publish
    } else {
        Pattern::Request
    }
}

/// What the gate itself may add on sockets, milliseconds.
pub const GATE_OPENS_MS: f64 = 3.0;

const PROTOCOLS: &[(&str, &[(&str, &str)])] = &[
    ("tcp", &[]),
    ("http1", &[]),
    ("mqtt", &[("qos", "1")]),
    ("nats", &[("confirm", "jetstream")]),
    ("http2", &[]),
    #[cfg(feature = "quic")]
    ("http3", &[]),
    #[cfg(feature = "quic")]
    ("mqtt", &[("qos", "1"), ("quic", "true")]),
    ("redis", &[]),
    ("amqp", &[]),
    ("amqp1", &[]),
    ("websocket", &[]),
    ("sse", &[]),
    ("kafka", &[]),
    ("coap", &[]),
    ("coap", &[("type", "non")]),
];

#[test]
fn the_open_loop_sees_the_gate_on_virtual_time() {
    for &(protocol, given) in PROTOCOLS {
        let seen = open_loop(protocol, given, 5).scripted_on_virtual_time(gate(Nanos(0)));
        assert_eq!(seen.ledger().delivered, Some(5000));
        let mean = mean_ms(&seen);
        println!(
            "{protocol}: open loop mean {mean:.3} ms, p95 {:.2}, p99 {:.2}, p99.9 {:.2}",
            quantile_ms(&seen, 0.95),
            quantile_ms(&seen, 0.99),
            quantile_ms(&seen, 0.999)
        );
        assert_near("mean", mean, 5.0, 0.005);
        for (q, expected) in [(0.95, 49.55), (0.99, 89.51), (0.999, 98.5)] {
            assert_near("open loop quantile", quantile_ms(&seen, q), expected, 0.1);
        }
    }
}

#[test]
fn the_closed_loop_hides_the_gate_on_virtual_time() {
    for &(protocol, given) in PROTOCOLS {
        let service = Nanos::from_millis(1);
        let seen = closed_loop(protocol, given, 9000).scripted_on_virtual_time(gate(service));
        let mean = mean_ms(&seen);
        println!("{protocol}: closed loop mean {mean:.3} ms, p99 {:.3}", quantile_ms(&seen, 0.99));
        assert_near("closed loop mean", mean, 1.11, 0.005);
        assert_near("closed loop p99", quantile_ms(&seen, 0.99), 1.0, 0.001);
    }
}

/// On sockets within 3 ms and 1 %, in one of four runs; a closed loop would be 48 ms away. When the
/// gate opens, 100 answers leave it one after the other: an unoptimised build saw quantiles 1.2 to
/// 2.0 ms too large, and half as many answers 1.0 ms. The gate is a thread of its own, and a busy
/// machine wakes it late: figures that are wrong are so in every run. Where the generator itself
/// was late in all of them there is no verdict.
#[test]
fn the_gate_is_seen_on_sockets() {
    let setup = open_loop("tcp", &[], 3);
    let mut on_time = Vec::new();
    for attempt in 1..=4 {
        let seen = setup.scripted_on_sockets(gate(Nanos(0)));
        assert_eq!(seen.ledger().delivered, Some(3000));
        let is_refused = is_late(&seen, &setup);
        let lag = seen.outcome.shards.recorder.lags.own.quantile(0.999).unwrap() as f64 / 1e6;
        let mut outside = Vec::new();
        if (mean_ms(&seen) - 5.0).abs() > 1.05 {
            outside.push(format!("mean {:.2} ms, not 5.0", mean_ms(&seen)));
        }
        for (q, expected) in [(0.95, 49.55), (0.99, 89.51), (0.999, 98.5)] {
            let value = quantile_ms(&seen, q);
            println!("sockets, run {attempt}: quantile {q} is {value:.2} ms of {expected}");
            if (value - expected).abs() > GATE_OPENS_MS + 0.01 * expected {
                outside.push(format!("quantile {q} {value:.2} ms, not {expected}"));
            }
        }
        if outside.is_empty() {
            println!("sockets, run {attempt}: mean {:.2} ms, agrees", mean_ms(&seen));
            return;
        }
        println!("DISTURBED: run {attempt} with a send lag of {lag:.2} ms at p99.9: {outside:?}");
        on_time.extend((!is_refused).then_some(outside));
    }
    assert!(on_time.is_empty(), "{on_time:?}, though the generator was on time");
    println!("DISTURBED: the generator was late in every run, so there is no verdict");
}
