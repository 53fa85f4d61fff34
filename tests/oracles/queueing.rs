//! A queueing server (oracle O1 of the methodology): each message leaves at the moment that the
//! Lindley recursion says, max(arrival, last departure) + service. Poisson arrivals give M/M/1
//! with exponential service and M/D/1 with constant service, whose distributions are known.

use std::sync::{Arc, Mutex};

use weigh_model::mark::{MARK_BYTES, Mark, Reading};
use weigh_model::{Nanos, Pattern};
use weigh_stats::histogram::Histogram;
use weigh_stats::random::Random;

use crate::rig::{Setup, assert_near};
use crate::scripted::{EMPTY_END_BYTES, Policy};

const SERVICE_NS: f64 = 1e6;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Service {
    Constant,
    Exponential,
}

/// When each message was due and when its answer left, as the server says.
pub type Stamps = Arc<Mutex<Vec<(Nanos, Nanos)>>>;

pub fn queue(service: Service, seed: u64, stamps: Stamps) -> Policy {
    let mut random = Random::stream(seed, 77);
    let mut last = Nanos(0);
    Box::new(move |now, message| {
        let took = match service {
            Service::Constant => SERVICE_NS,
            Service::Exponential => random.exponential(SERVICE_NS),
        };
        last = last.max(now) + Nanos(took.round() as u64);
        if let Some(due) = due_of(message) {
            stamps.lock().unwrap().push((due, last));
        }
        last
    })
}

/// The due time in the mark at the end of the body, which ends the message but for an empty frame
/// a line end, or the end of its frame (AMQP) or record (Kafka).
fn due_of(message: &[u8]) -> Option<Nanos> {
    [0, 1, EMPTY_END_BYTES, LINE_END_BYTES].into_iter().find_map(|after| {
        let body = &message[..message.len().checked_sub(after)?];
        match Mark::read_any(&body[body.len().checked_sub(MARK_BYTES)?..]) {
            Reading::Whole(mark) | Reading::Corrupt(Some(mark)) => Some(mark.due),
            _ => None,
        }
    })
}

const LINE_END_BYTES: usize = 2;

/// Mean and quantile of the response time in units of the service time.
pub fn theory(service: Service, rho: f64) -> (f64, Box<dyn Fn(f64) -> f64>) {
    match service {
        Service::Exponential => {
            (1.0 / (1.0 - rho), Box::new(move |p| -(1.0 - p).ln() / (1.0 - rho)))
        }
        Service::Constant => {
            let mean = 1.0 + rho / (2.0 * (1.0 - rho));
            (mean, Box::new(move |p| 1.0 + waiting_quantile(rho, p)))
        }
    }
}

/// The time that a share `p` of messages waits at most in M/D/1, by bisection.
fn waiting_quantile(rho: f64, p: f64) -> f64 {
    // Beyond 26 service times the terms of the series cancel each other out of 16 digits.
    let (mut low, mut high) = (0.0, 26.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if waits_at_most(rho, middle) < p { low = middle } else { high = middle }
    }
    high
}

/// Erlang's series for M/D/1 in units of the service time: P(W <= t) = (1 - rho) times the sum
/// over k up to t of (rho (k - t))^k / k! times e^(-rho (k - t)).
fn waits_at_most(rho: f64, t: f64) -> f64 {
    let mut sum = 0.0;
    let mut k = 0.0;
    let mut log_factorial = 0.0;
    while k <= t {
        let base: f64 = rho * (k - t);
        let sign = if k % 2.0 == 1.0 { -1.0 } else { 1.0 };
        let power = if k == 0.0 { 0.0 } else { k * base.abs().ln() };
        sum +=
            if k > 0.0 && base == 0.0 { 0.0 } else { sign * (power - log_factorial - base).exp() };
        k += 1.0;
        log_factorial += k.ln();
    }
    ((1.0 - rho) * sum).clamp(0.0, 1.0)
}

/// Standard errors of mean and quantiles from the batches of a run.
fn standard_errors(responses: &[f64], quantiles: &[f64]) -> Vec<f64> {
    let batch = (responses.len() / BATCHES).max(1);
    let mut rows: Vec<Vec<f64>> = vec![Vec::new(); quantiles.len() + 1];
    for part in responses.chunks_exact(batch) {
        let mut sorted = part.to_vec();
        sorted.sort_by(f64::total_cmp);
        rows[0].push(part.iter().sum::<f64>() / part.len() as f64);
        for (row, q) in rows[1..].iter_mut().zip(quantiles) {
            row.push(sorted[((sorted.len() - 1) as f64 * q) as usize]);
        }
    }
    rows.iter()
        .map(|row| {
            let n = row.len() as f64;
            let mean = row.iter().sum::<f64>() / n;
            let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
            (variance / n).sqrt()
        })
        .collect()
}

const BATCHES: usize = 30;
const QUANTILES: [f64; 3] = [0.5, 0.9, 0.99];

fn weigh(setup: Setup, service: Service, rho: f64, seed: u64) {
    let rate = format!("{}/s", rho * 1e9 / SERVICE_NS);
    let setup = setup.open("poisson", &rate).seed(seed);
    let stamps = Stamps::default();
    let seen = setup.scripted_on_virtual_time(queue(service, seed, stamps.clone()));
    let recorded = &seen.outcome.shards.recorder.response;
    let stamps = stamps.lock().unwrap();
    assert_eq!(seen.ledger().delivered, setup.load.messages);
    let responses: Vec<f64> =
        stamps.iter().map(|(due, left)| (*left - *due).0 as f64 / SERVICE_NS).collect();
    // On virtual time the record must be the server's own, bucket for bucket (O1b).
    let mut rebuilt = Histogram::new();
    stamps.iter().for_each(|(due, left)| rebuilt.record((*left - *due).0));
    assert!(**recorded == rebuilt, "the record differs from the server's stamps");
    let errors = standard_errors(&responses, &QUANTILES);
    let (mean, quantile) = theory(service, rho);
    let name = format!("{} {service:?} rho {rho}", setup.protocol.name());
    let measured = recorded.mean().unwrap() / SERVICE_NS;
    let mut line = format!("{name}: mean {measured:.3} (theory {mean:.3})");
    let mut checks = vec![(format!("{name} mean"), measured, mean, errors[0])];
    for (q, error) in QUANTILES.into_iter().zip(&errors[1..]) {
        let value = recorded.quantile(q).unwrap() as f64 / SERVICE_NS;
        line.push_str(&format!(", p{:.0} {value:.3} ({:.3})", q * 100.0, quantile(q)));
        checks.push((format!("{name} p{}", q * 100.0), value, quantile(q), *error));
    }
    println!("{line}; n {}", recorded.count());
    for (what, value, expected, error) in checks {
        assert_near(&what, value, expected, (0.02 * expected).max(3.0 * error));
    }
}

fn tcp(messages: u64) -> Setup {
    Setup::new("tcp", &[], Pattern::Request, messages)
}

#[test]
fn a_queue_at_half_load() {
    weigh(tcp(280_000), Service::Exponential, 0.5, 11);
    weigh(tcp(180_000), Service::Constant, 0.5, 12);
}

#[test]
fn a_constant_queue_at_seven_tenths() {
    weigh(tcp(270_000), Service::Constant, 0.7, 13);
}

#[test]
fn an_exponential_queue_at_seven_tenths() {
    weigh(tcp(590_000), Service::Exponential, 0.7, 14);
}

/// With fewer messages than 2 % needs: three standard errors decide.
#[test]
fn a_queue_through_every_protocol() {
    let many = 60_000;
    for (service, rho) in [(Service::Exponential, 0.3), (Service::Constant, 0.8)] {
        let http = Setup::new("http1", &[], Pattern::Request, many).connections(100);
        weigh(http, service, rho, 21);
        weigh(Setup::new("mqtt", &[("qos", "1")], Pattern::Publish, many), service, rho, 22);
        let jetstream = [("confirm", "jetstream")];
        weigh(Setup::new("nats", &jetstream, Pattern::Publish, many), service, rho, 24);
        weigh(Setup::new("redis", &[], Pattern::Publish, many), service, rho, 26);
        weigh(tcp(many), service, rho, 23);
        weigh(Setup::new("amqp", &[], Pattern::Publish, many), service, rho, 26);
        weigh(Setup::new("amqp1", &[], Pattern::Publish, many), service, rho, 26);
        weigh(Setup::new("websocket", &[], Pattern::Request, many), service, rho, 27);
        let pong = [("confirm", "pong")];
        weigh(Setup::new("websocket", &pong, Pattern::Publish, many), service, rho, 28);
        let sse = Setup::new("sse", &[], Pattern::Publish, many).connections(100);
        weigh(sse, service, rho, 31);
        // Each message is a batch, as long as no request has to wait for an earlier one.
        let apart = [("max_in_flight", "100000")];
        weigh(Setup::new("kafka", &apart, Pattern::Publish, many), service, rho, 34);
        // One message is under way on an endpoint at a time (NSTART).
        let coap = Setup::new("coap", &[], Pattern::Request, many).connections(100);
        weigh(coap, service, rho, 33);
    }
}

/// In streams of HTTP/2 the same, and by the libraries, at 0.8 with half as many messages.
#[test]
fn a_queue_in_streams() {
    let hosted: &[(&str, &str)] = &[("implementation", "hosted")];
    let ways = [&[][..], hosted];
    let ways = if cfg!(feature = "library") { &ways[..] } else { &ways[..1] };
    for (rho, many) in [(0.5, 12_000), (0.8, 30_000)] {
        for (protocol, seed, given) in [("http2", 24), ("grpc", 25)]
            .into_iter()
            .flat_map(|(protocol, seed)| ways.iter().map(move |given| (protocol, seed, *given)))
        {
            let setup = Setup::new(protocol, given, Pattern::Request, many).connections(4);
            weigh(setup, Service::Constant, rho, seed);
        }
        #[cfg(feature = "quic")]
        weigh(
            Setup::new("http3", &[], Pattern::Request, many).connections(4),
            Service::Constant,
            rho,
            26,
        );
        #[cfg(feature = "quic")]
        weigh(
            Setup::new("mqtt", &[("qos", "1"), ("quic", "true")], Pattern::Publish, many),
            Service::Constant,
            rho,
            26,
        );
    }
}

#[test]
#[ignore = "7 million messages: minutes in a release build"]
fn a_queue_near_its_limit() {
    for (service, messages) in [(Service::Exponential, 4_300_000), (Service::Constant, 2_400_000)] {
        weigh(tcp(messages), service, 0.9, 31);
    }
}

/// On sockets the server's stamps are the truth of every message, however busy the machine: the
/// answer cannot be booked before it left, and what the record adds to the stamps is only the
/// way back.
#[test]
fn every_message_is_true_on_sockets() {
    let ways = [
        ("tcp", Service::Constant),
        ("tcp", Service::Exponential),
        ("http2", Service::Constant),
        #[cfg(feature = "quic")]
        ("http3", Service::Constant),
        ("grpc", Service::Constant),
    ];
    for (protocol, service) in ways {
        let setup = Setup::new(protocol, &[], Pattern::Request, 1500);
        let setup = setup.open("poisson", "500/s").seed(5);
        let stamps = Stamps::default();
        let seen = setup.scripted_on_sockets(queue(service, 5, stamps.clone()));
        assert_eq!(seen.ledger().delivered, Some(1500));
        let recorded = &seen.outcome.shards.recorder.response;
        let stamps = stamps.lock().unwrap();
        let mut rebuilt = Histogram::new();
        stamps.iter().for_each(|(due, left)| rebuilt.record((*left - *due).0));
        assert_eq!(recorded.count(), rebuilt.count());
        let excess =
            |q: f64| recorded.quantile(q).unwrap() as f64 - rebuilt.quantile(q).unwrap() as f64;
        println!(
            "{protocol}, {service:?} on sockets: record above stamps by {:.0} ns, p99 {:.0}",
            excess(0.5),
            excess(0.99)
        );
        // Quantiles of the record lie at or above those of the stamps: every single message was
        // booked after it left, up to the 0.1 % of a bucket.
        for step in 1..100 {
            let q = f64::from(step) / 100.0;
            let floor = -0.001 * rebuilt.quantile(q).unwrap() as f64;
            assert!(
                excess(q) >= floor,
                "{protocol} {service:?} p{step}: {} ns too early",
                -excess(q)
            );
        }
    }
}
