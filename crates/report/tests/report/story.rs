//! A run told by hand: loss, a send nobody confirms, a lost quantile, an invalid result, real and
//! reference targets, one repetition and five.

use std::collections::BTreeMap;

use serde_json::json;
use weigh_model::event::{
    Event, HostFacts, Interval, JOURNAL_SCHEMA, RunStarted, Setup, TrialFinished,
};
use weigh_model::ledger::{Cause, Ledger, NotSentCause};
use weigh_model::plan::Plan;
use weigh_model::trial::Point;
use weigh_model::warnings::WarningRecord;
use weigh_model::{Guarantee, Warning};
use weigh_stats::Histogram;

/// One trial in short.
pub(crate) struct Told {
    pub(crate) protocol: &'static str,
    pub(crate) qos: Option<u8>,
    pub(crate) target: &'static str,
    pub(crate) repetition: u32,
    pub(crate) metrics: &'static [(&'static str, f64)],
    pub(crate) ledger: Ledger,
    pub(crate) warnings: Vec<WarningRecord>,
}

impl Told {
    pub(crate) fn new(protocol: &'static str, qos: Option<u8>, target: &'static str) -> Told {
        let ledger = whole(10_000);
        Told { protocol, qos, target, repetition: 0, metrics: &[], ledger, warnings: Vec::new() }
    }

    pub(crate) fn point(&self) -> Point {
        let mut point = Point::new();
        point.insert("protocol".into(), json!(self.protocol));
        point.insert("target".into(), json!(self.target));
        if let Some(qos) = self.qos {
            point.insert("mqtt.qos".into(), json!(qos));
        }
        point
    }

    fn id(&self) -> String {
        format!("{}-{:?}-{}-{}", self.protocol, self.qos, self.target, self.repetition)
    }

    pub(crate) fn events(&self) -> [Event; 3] {
        let (trial, point, repetition) = (self.id(), self.point(), self.repetition);
        let mut response = Histogram::new();
        (1..=100).for_each(|step| response.record(step * 10_000));
        let base64 = response.to_base64();
        let finished = TrialFinished {
            trial: trial.clone(),
            point: point.clone(),
            repetition,
            seed: 7,
            guarantee: match self.qos {
                Some(0) => Guarantee::AtMostOnce,
                Some(2) => Guarantee::ExactlyOnce,
                _ => Guarantee::AtLeastOnce,
            },
            durability: None,
            target: format!("{} {}", self.target, self.protocol),
            metrics: self.metrics.iter().map(|(name, v)| ((*name).to_owned(), *v)).collect(),
            samples: BTreeMap::from([("response_time_ns".to_owned(), 100)]),
            ledger: self.ledger.clone(),
            warnings: self.warnings.clone(),
            granted: BTreeMap::new(),
            server: None,
            counters: BTreeMap::new(),
            scene: BTreeMap::new(),
            histograms: BTreeMap::from([("response_time_ns".to_owned(), base64)]),
        };
        let interval = Interval {
            trial: trial.clone(),
            at_ns: 1_000_000_000,
            sent: 10,
            ..Interval::default()
        };
        [
            Event::TrialStarted { trial, point, repetition, at_ns: None, attempt: None },
            Event::Interval(interval),
            Event::TrialFinished(Box::new(finished)),
        ]
    }
}

/// A ledger in which nothing is missing.
pub(crate) fn whole(messages: u64) -> Ledger {
    Ledger {
        messages,
        scheduled: messages,
        sent: messages,
        acknowledged: messages,
        delivered: Some(messages),
        received: messages,
        ..Ledger::zero()
    }
}

/// The first event of a run with this arrival.
pub(crate) fn started(arrival: &str) -> Event {
    let plan = format!(
        "name = \"compare\"\nseed = 7\n[load]\npattern = \"deliver\"\nconnections = 60\n\
         subscribers = 1\ntopology = \"fan-in\"\nmessages = 10000\nwarmup = \"0s\"\n\
         arrival = \"{arrival}\"\nrate = \"1000/s\"\nthink = \"0s\"\nsplit = \"exact\"\n\
         body = \"readings\"\ntimeout = \"5s\"\n[repeat]\ncount = 5\ncool_down = \"0s\"\n\
         [[case]]\nprotocol = \"mqtt\"\n"
    );
    let plan: Plan = toml::from_str(&plan).unwrap();
    let host = HostFacts { kernel: "6.1.0".into(), cores: 2, ..HostFacts::default() };
    Event::RunStarted(Box::new(RunStarted {
        schema: JOURNAL_SCHEMA.to_owned(),
        id: "2026-11-21T01-02-03-compare".to_owned(),
        started: "2026-11-21T01:02:03Z".to_owned(),
        version: "0.1.0".to_owned(),
        host,
        plan,
        setup: Setup::default(),
        baseline: Vec::new(),
        energy: None,
    }))
}

/// Two lanes or more along the number of connections, five repetitions each; the p99 grows with
/// both, by 10 us a connection and lane.
pub(crate) fn along(protocols: &[&'static str], places: &[u32]) -> Vec<Event> {
    let mut events = vec![started("constant")];
    for (number, protocol) in protocols.iter().enumerate() {
        for connections in places {
            for repetition in 0..5 {
                let told = Told { repetition, ..Told::new(protocol, None, "reference") };
                events.extend(told.events().map(|event| match event {
                    Event::TrialFinished(mut trial) => {
                        trial.point.insert("load.connections".into(), (*connections).into());
                        trial.trial = format!("{protocol}-{connections}-{repetition}");
                        let value = f64::from((number as u32 + 1) * connections + repetition);
                        trial.metrics.insert("response_time_ns.p99".into(), value * 1e4);
                        trial.samples.insert("response_time_ns".into(), 1_000);
                        Event::TrialFinished(trial)
                    }
                    Event::Interval(mut interval) => {
                        interval.trial = format!("{protocol}-{connections}-{repetition}");
                        Event::Interval(interval)
                    }
                    other => other,
                }));
            }
        }
    }
    events
}

/// `events` of a plan that says what must hold.
pub(crate) fn with_thresholds(mut events: Vec<Event>, conditions: &[&str]) -> Vec<Event> {
    if let Some(Event::RunStarted(started)) = events.first_mut() {
        started.plan.thresholds = conditions.iter().map(|text| text.parse().unwrap()).collect();
    }
    events
}

/// The whole run.
pub(crate) fn run() -> Vec<Event> {
    let mut events = vec![started("constant")];
    trials().iter().for_each(|told| events.extend(told.events()));
    let failed = Told::new("tcp", None, "reference");
    events.push(Event::TrialFailed {
        trial: "tcp-1".to_owned(),
        point: failed.point(),
        error: "the port 1883 is in use; stop what listens there or give another".to_owned(),
        is_repeated: false,
    });
    events.push(Event::RunFinished { outcome: "interrupted".to_owned() });
    events
}

fn trials() -> Vec<Told> {
    let mut trials: Vec<Told> = (0..5).map(http).collect();
    trials.extend((0..5).map(lossy_mqtt));
    trials.extend((0..5).map(|repetition| {
        let metrics: &[(&str, f64)] = &[("response_time_ns.p50", 410_000.0)];
        Told { repetition, metrics, ..Told::new("http1", None, "nginx") }
    }));
    trials.push(Told {
        metrics: &[
            ("response_time_ns.p50", 310_000.0),
            ("response_time_ns.p99", f64::INFINITY),
            ("response_time_ns.max", f64::INFINITY),
            ("throughput_in_per_s", 1_000.0),
            ("throughput_out_per_s", 972.0),
            ("target_cpu_us_per_message", 21.0),
        ],
        ledger: lossy(10_000, 280),
        warnings: vec![
            Warning::QuantileInLoss("response_time_ns", "p99").record(),
            Warning::generator_limited(99.0).record(),
        ],
        ..Told::new("mqtt", Some(1), "mosquitto")
    });
    let mut unconfirmed = Told::new("mqtt", Some(0), "mosquitto");
    unconfirmed.ledger.delivered = None;
    unconfirmed.ledger.lost = None;
    unconfirmed.ledger.acknowledged = 0;
    unconfirmed.ledger.received = 0;
    unconfirmed.warnings.push(Warning::Unconfirmed.record());
    trials.push(unconfirmed);
    trials.push(Told {
        metrics: &[("response_time_ns.p50", 512_345.0), ("send_lag_ns.p99", 98_765.0)],
        ..Told::new("mqtt", Some(2), "reference")
    });
    trials
}

fn http(repetition: u32) -> Told {
    const METRICS: [&[(&str, f64)]; 5] = [
        &[("response_time_ns.p50", 200_000.0), ("response_time_ns.p99", 900_000.0)],
        &[("response_time_ns.p50", 202_000.0), ("response_time_ns.p99", 910_000.0)],
        &[("response_time_ns.p50", 198_000.0), ("response_time_ns.p99", 890_000.0)],
        &[("response_time_ns.p50", 201_000.0), ("response_time_ns.p99", 905_000.0)],
        &[("response_time_ns.p50", 199_000.0), ("response_time_ns.p99", 895_000.0)],
    ];
    let metrics = METRICS[repetition as usize];
    Told { repetition, metrics, ..Told::new("http1", None, "reference") }
}

fn lossy_mqtt(repetition: u32) -> Told {
    Told {
        repetition,
        metrics: &[
            ("delivery_time_ns.p50", 1_234_567.0),
            ("delivery_time_ns.p99", 12_345_678.0),
            ("delivery_time_ns.max", 99_960_000.0),
            ("throughput_in_per_s", 1_000.0),
            ("throughput_out_per_s", 999.8),
            ("target_cpu_percent.mean", 12.34),
            ("target_cpu_us_per_message", 8.5),
            ("target_memory_bytes.max", 4_321_000.0),
            ("generator_cpu_percent.max", 45.6),
            ("send_lag_ns.p99", 61_234.0),
        ],
        ledger: lossy(10_000, u64::from(repetition == 2) * 2),
        ..Told::new("mqtt", Some(0), "reference")
    }
}

fn lossy(messages: u64, lost: u64) -> Ledger {
    let mut ledger = whole(messages);
    ledger.delivered = Some(messages - lost);
    ledger.received = messages - lost;
    ledger.lost = Some(lost);
    if lost > 0 {
        ledger.causes.insert(Cause::ServerDropped, lost);
        ledger.scheduled += 3;
        ledger.not_sent = 3;
        ledger.not_sent_causes.insert(NotSentCause::WindowFull, 3);
    }
    ledger
}
