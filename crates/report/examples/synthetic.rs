//! Writes the folder of a run that never was, for tests of the report: what it shows is known
//! beforehand, and how large it is can be chosen.
//!
//! `cargo run -p weigh-report --example synthetic -- FOLDER LEVELS REPETITIONS INTERVALS [journal]`
//! writes four protocols at each level of connections, the journal and all results, or the journal
//! alone. The last protocol loses messages from 80 connections on. With `results` in place of the
//! numbers the results of a journal that is there are made, and it is said how long that took.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;
use std::{env, fs, io};

use serde_json::json;
use weigh_model::event::{
    Event, HostFacts, Interval, JOURNAL_SCHEMA, RunStarted, Setup, TrialFinished,
};
use weigh_model::ledger::{Cause, Ledger};
use weigh_model::plan::Plan;
use weigh_model::trial::Point;
use weigh_model::{Guarantee, Warning};
use weigh_report::journal::JOURNAL;
use weigh_report::{RunFolder, Summary};
use weigh_stats::Histogram;
use weigh_stats::random::Random;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = env::args().skip(1);
    let folder = PathBuf::from(arguments.next().unwrap_or_else(|| "synthetic".to_owned()));
    if env::args().nth(2).is_some_and(|word| word == "results") {
        return results(&folder);
    }
    let mut number = |default: u32| -> Result<u32, std::num::ParseIntError> {
        arguments.next().map_or(Ok(default), |text| text.parse())
    };
    let (levels, repetitions, intervals) = (number(6)?, number(5)?, number(30)?);
    fs::create_dir_all(&folder)?;
    let mut journal = io::BufWriter::new(fs::File::create(folder.join(JOURNAL))?);
    let mut write = |event: &Event| -> io::Result<()> {
        serde_json::to_writer(&mut journal, event)?;
        journal.write_all(b"\n")
    };
    write(&started(levels, repetitions))?;
    let mut chance = Random::new(7);
    for repetition in 0..repetitions {
        for (case, point) in points(levels).into_iter().enumerate() {
            let told = Told { case, point, repetition };
            told.intervals(intervals, &mut chance).iter().try_for_each(&mut write)?;
            write(&Event::TrialFinished(Box::new(told.finished(&mut chance))))?;
        }
    }
    write(&Event::RunFinished { outcome: "done".to_owned() })?;
    journal.into_inner()?.sync_data()?;
    if env::args().nth(5).is_some_and(|word| word == "journal") {
        return Ok(());
    }
    results(&folder)
}

/// Makes everything from the journal.
fn results(folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let folder = RunFolder::find(folder, &folder.to_string_lossy())?;
    let start = Instant::now();
    let journal = folder.read_journal()?;
    let read = start.elapsed();
    let summary = Summary::from_events(&journal.events)?;
    let summed_up = start.elapsed();
    folder.write_results(&journal.events)?;
    eprintln!(
        "{} cells: journal read in {read:?}, summed up in {:?}, all results written in {:?}",
        summary.cells.len(),
        summed_up - read,
        start.elapsed() - summed_up
    );
    Ok(())
}

/// The points of the matrix, level by level.
fn points(levels: u32) -> Vec<Point> {
    let mut points = Vec::new();
    for level in 1..=levels {
        for (protocol, qos) in PROTOCOLS {
            let mut point = Point::new();
            point.insert("protocol".into(), json!(protocol));
            point.insert("target".into(), json!("reference"));
            point.insert("load.connections".into(), json!(level * 20));
            if let Some(qos) = qos {
                point.insert("mqtt.qos".into(), json!(qos));
            }
            points.push(point);
        }
    }
    points
}

fn started(levels: u32, repetitions: u32) -> Event {
    let mut plan = format!(
        "name = \"synthetic\"\nseed = 7\n[load]\npattern = \"request\"\nconnections = 20\n\
         subscribers = 0\ntopology = \"fan-in\"\nmessages = 10000\nwarmup = \"1s\"\n\
         arrival = \"constant\"\nrate = \"1000/s\"\nthink = \"0s\"\nsplit = \"exact\"\n\
         body = \"readings\"\nsize = \"120B\"\ntimeout = \"5s\"\n[repeat]\ncount = {repetitions}\n\
         cool_down = \"0s\"\n"
    );
    for point in points(levels) {
        plan += "[[case]]\n";
        point.iter().for_each(|(key, value)| plan += &format!("\"{key}\" = {value}\n"));
    }
    let plan: Plan = toml::from_str(&plan).expect("the text above is a plan");
    Event::RunStarted(Box::new(RunStarted {
        schema: JOURNAL_SCHEMA.to_owned(),
        id: "synthetic".to_owned(),
        started: "2026-11-21T01:02:03Z".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        host: HostFacts {
            kernel: "6.1.0".into(),
            cpu: "A processor".into(),
            cores: 4,
            memory_bytes: 8 << 30,
            ..HostFacts::default()
        },
        plan,
        setup: Setup::default(),
        baseline: Vec::new(),
        energy: None,
    }))
}

/// One trial that never was.
struct Told {
    case: usize,
    point: Point,
    repetition: u32,
}

impl Told {
    fn id(&self) -> String {
        format!("case-{}-{}", self.case, self.repetition)
    }

    fn protocol(&self) -> usize {
        self.case % PROTOCOLS.len()
    }

    fn connections(&self) -> f64 {
        self.point["load.connections"].as_f64().unwrap_or(1.0)
    }

    fn intervals(&self, number: u32, chance: &mut Random) -> Vec<Event> {
        let warm = number / 10;
        let interval = |index: u32| {
            let sent = (1_000.0 * (1.0 + 0.05 * chance.next_f64())) as u64;
            let lost = if self.loses() && index >= warm { sent / 9 } else { 0 };
            Event::Interval(Interval {
                draining: false,
                trial: self.id(),
                at_ns: u64::from(index + 1) * 1_000_000_000,
                warmup: index < warm,
                sent,
                acknowledged: sent - lost,
                delivered: sent - lost,
                errors: 0,
                connections: self.connections() as u64,
                length_ns: Some(1_000_000_000),
                response_time_ns_p50: Some((1e6 * (1.0 + chance.next_f64())) as u64),
                response_time_ns_p99: Some((5e6 * (1.0 + chance.next_f64())) as u64),
                send_lag_ns_p99: Some((1e5 * (1.0 + chance.next_f64())) as u64),
                target_cpu_percent: Some(40.0 + 5.0 * chance.next_f64()),
                target_memory_bytes: Some(8 << 20),
                generator_cpu_percent: Some(30.0 + 5.0 * chance.next_f64()),
            })
        };
        (0..number).map(interval).collect()
    }

    fn loses(&self) -> bool {
        self.protocol() + 1 == PROTOCOLS.len() && self.connections() > 60.0
    }

    fn finished(&self, chance: &mut Random) -> TrialFinished {
        let base_ns = BASES_NS[self.protocol()] * (1.0 + self.connections() / 150.0);
        let of_run = base_ns * (1.0 + 0.03 * (chance.next_f64() - 0.5));
        let mut metrics = BTreeMap::from([
            ("throughput_in_per_s".to_owned(), 1_000.0),
            ("throughput_out_per_s".to_owned(), if self.loses() { 888.9 } else { 1_000.0 }),
            ("target_cpu_us_per_message".to_owned(), of_run / 9e3),
            ("generator_cpu_us_per_message".to_owned(), 11.0 + chance.next_f64()),
            ("target_cpu_percent.mean".to_owned(), of_run / 9e4),
            ("target_memory_bytes.max".to_owned(), 4e6 + 1e5 * self.connections()),
            ("wire.bytes_per_message".to_owned(), 310.0 + 90.0 * self.protocol() as f64),
        ]);
        let (mut samples, mut histograms) = (BTreeMap::new(), BTreeMap::new());
        for (name, factor) in TIMES {
            let times = times(chance, of_run * factor);
            for (part, q) in [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99)] {
                let is_lost = self.loses() && q > 0.88 && name == "response_time_ns";
                let value = times.quantile(q).filter(|_| !is_lost);
                metrics.insert(
                    format!("{name}.{part}"),
                    value.map_or(f64::INFINITY, |value| value as f64),
                );
            }
            metrics.insert(format!("{name}.mean"), times.mean().unwrap_or(0.0));
            samples.insert(name.to_owned(), times.count());
            histograms.insert(name.to_owned(), times.to_base64());
        }
        TrialFinished {
            trial: self.id(),
            point: self.point.clone(),
            repetition: self.repetition,
            seed: 7,
            guarantee: Guarantee::AtLeastOnce,
            durability: None,
            target: format!("weigh reference {}", PROTOCOLS[self.protocol()].0),
            metrics,
            samples,
            ledger: self.ledger(),
            warnings: self.warnings(),
            granted: BTreeMap::new(),
            server: None,
            counters: BTreeMap::new(),
            scene: BTreeMap::new(),
            histograms,
        }
    }

    fn ledger(&self) -> Ledger {
        let mut ledger = Ledger { messages: 9_000, scheduled: 9_000, ..Ledger::zero() };
        let lost = if self.loses() { 1_000 } else { 0 };
        (ledger.sent, ledger.acknowledged) = (9_000, 9_000 - lost);
        (ledger.delivered, ledger.lost) = (Some(9_000 - lost), Some(lost));
        ledger.received = 9_000 - lost;
        if lost > 0 {
            ledger.causes.insert(Cause::ServerDropped, 900);
            ledger.causes.insert(Cause::Timeout, 100);
        }
        ledger
    }

    fn warnings(&self) -> Vec<weigh_model::warnings::WarningRecord> {
        match self.loses() {
            true => vec![Warning::QuantileInLoss("response_time_ns", "p90").record()],
            false => Vec::new(),
        }
    }
}

/// Exponential times above a floor, with a slow hundredth.
fn times(chance: &mut Random, scale_ns: f64) -> Histogram {
    let mut times = Histogram::new();
    for index in 0..1_800 {
        let slow = if index % 100 == 0 { 6.0 } else { 1.0 };
        times.record(((0.7 * scale_ns + chance.exponential(0.4 * scale_ns)) * slow) as u64);
    }
    times
}

const PROTOCOLS: [(&str, Option<u32>); 4] =
    [("mqtt", Some(1)), ("http1", None), ("tcp", None), ("mqtt", Some(2))];

/// What a message takes, nanoseconds.
const BASES_NS: [f64; 4] = [180e3, 240e3, 95e3, 330e3];

const TIMES: [(&str, f64); 4] = [
    ("response_time_ns", 1.0),
    ("service_time_ns", 0.9),
    ("send_lag_ns", 0.05),
    ("connect_time_ns", 1.5),
];
