//! Everything that happens in a run, as one stream. The terminal, the journal and the report
//! are readers of it; `docs/journal.md` documents the lines it makes.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use crate::background::BackgroundRan;
use crate::calibration::Calibration;
use crate::condition::{LOSS_RATIO, LOST, resolve};
use crate::connections::Connections;
use crate::durability::Durability;
use crate::energy::{EnergyMeasured, LoadPulses, LogAligned, MeterChosen};
use crate::fleet::{FleetPlaced, FleetRan};
use crate::ledger::Ledger;
use crate::modelled::{Activity, EnergyBasis};
use crate::plan::Plan;
use crate::protocol::Guarantee;
use crate::server::ServerReport;
use crate::session::SessionPackets;
use crate::trial::Point;
use crate::warnings::{Warning, WarningRecord};

/// The version of the journal's format.
pub const JOURNAL_SCHEMA: &str = "weigh/journal/1";

/// One line of the journal.
///
/// # Examples
///
/// ```
/// use weigh_model::event::Event;
///
/// let event: Event = serde_json::from_str(r#"{"event":"run_finished","outcome":"done"}"#)?;
/// assert!(matches!(event, Event::RunFinished { outcome } if outcome == "done"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The first line: everything needed to understand and repeat the run.
    RunStarted(Box<RunStarted>),
    /// The hosts that generate the load, if it is not this one.
    FleetPlaced(Box<FleetPlaced>),
    /// A trial begins.
    TrialStarted {
        /// Its id.
        trial: String,
        /// Its point of the matrix.
        point: Point,
        /// Its repetition, from 0.
        repetition: u32,
        /// Begin on the run's own clock, nanoseconds: time between a run and its resumption does
        /// not count. Absent in journals before this key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_ns: Option<u64>,
        /// Number of the attempt, from 1, under which agents of a fleet store their outcomes.
        /// Absent without a fleet.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attempt: Option<u32>,
    },
    /// Counts of a trial in the last interval.
    Interval(Interval),
    /// The packets of one session of a trial with packet capture.
    SessionPackets(Box<SessionPackets>),
    /// Bytes of single connections of a trial on the wire.
    Connections(Box<Connections>),
    /// Activity of the producers of a trial with packet capture, for a model of their radios.
    Activity(Box<Activity>),
    /// State of the path, as TCP knew it at a moment of a trial with packet capture.
    TcpSample(TcpSample),
    /// Record of the background during a trial.
    BackgroundRan(Box<BackgroundRan>),
    /// Record of the hosts of a fleet during a trial.
    FleetRan(Box<FleetRan>),
    /// The energy meter of the run, or why it has none.
    MeterChosen(Box<MeterChosen>),
    /// Measurement of the meter in a trial.
    EnergyMeasured(Box<EnergyMeasured>),
    /// Load that marks a moment in the log of an external meter.
    LoadPulses(LoadPulses),
    /// Alignment of that log with the run's clock.
    LogAligned(Box<LogAligned>),
    /// A trial ended with a result.
    TrialFinished(Box<TrialFinished>),
    /// A trial could not be done.
    TrialFailed {
        /// Its id.
        trial: String,
        /// Its point of the matrix.
        point: Point,
        /// Error in words.
        error: String,
        /// True if a generator of a fleet was lost: the trial is repeated, and this attempt does
        /// not count as one.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_repeated: bool,
    },
    /// A stop rule held: larger values of the axis are not measured in this lane.
    AxisEnded(Box<AxisEnded>),
    /// A case whose repetitions depend on its own figures needs no more of them.
    CaseSettled {
        /// Its point of the matrix.
        point: Point,
        /// Number of its repetitions.
        repetitions: u32,
        /// Number of times its figures were checked to decide whether to continue.
        looks: u32,
        /// True if they were as precise as the plan asks; false if it had reached the maximum
        /// number of repetitions.
        is_precise: bool,
    },
    /// The next trial would have ended after the plan's time budget, so none was begun.
    BudgetSpent {
        /// The run's own clock, nanoseconds.
        at_ns: u64,
        /// Number of trials that were left in the plan, at least.
        left: u64,
    },
    /// A search for a limit begins in one lane.
    SearchBegun {
        /// The lane: a case of the plan.
        lane: Point,
        /// The axis, the loads and the goals: the `Search` of the crate `limit`.
        search: serde_json::Value,
        /// True if a second generator is tried afterwards.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        second_generator: bool,
    },
    /// The result that a search received for a trial.
    SearchTold {
        /// The lane.
        lane: Point,
        /// The trial; its other events precede this one.
        trial: String,
        /// Request of the search: the `TrialRequest` of the crate `limit`.
        request: serde_json::Value,
        /// The result: the `TrialResult` of the crate `limit`.
        result: serde_json::Value,
        /// Observations for its attribution: the `Observed` of the crate `limit`; null if nothing
        /// was observed.
        #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
        observed: serde_json::Value,
    },
    /// The effect of a second generator on the throughput.
    SecondGenerator(Box<SecondGenerator>),
    /// The baseline was measured again, because a trial had exceeded it.
    Calibrated(Calibration),
    /// A run that had ended early was resumed.
    RunResumed(Box<RunResumed>),
    /// The last line.
    RunFinished {
        /// `done`, `interrupted` or `failed`.
        outcome: String,
    },
}

/// The first line of a journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunStarted {
    /// [`JOURNAL_SCHEMA`].
    pub schema: String,
    /// The run's id: its folder's name.
    pub id: String,
    /// Start, RFC 3339.
    pub started: String,
    /// The version of Weighbridge.
    pub version: String,
    /// The machine.
    pub host: HostFacts,
    /// The plan as resolved.
    pub plan: Plan,
    /// Other settings with which the run was started; all zero and empty in journals before this
    /// key.
    #[serde(default)]
    pub setup: Setup,
    /// The baseline of this machine and this build, if it is known.
    #[serde(rename = "null_path", default, skip_serializing_if = "Vec::is_empty")]
    pub baseline: Vec<Calibration>,
    /// Basis of modelled energy figures, if the plan asks for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<Box<EnergyBasis>>,
}

/// Settings of a run besides its plan, so that it can be resumed in the same way. Passwords are not
/// included: the user gives them again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// Threads of the generator and of reference servers; 0 if it was not recorded.
    #[serde(default)]
    pub shards: u32,
    /// The folder whose `targets/*.toml` take precedence over the built-in ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// User name at targets given by URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Names of other secrets that must not be recorded: URLs that had credentials, and plan keys
    /// of secret settings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// The folder in which it was started; relative paths of the plan start from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Check value of the files for bodies and traces, hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub material: Option<String>,
    /// SHA-256 of the `study.toml` whose plan it runs, in hexadecimal digits; absent outside
    /// studies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub study_hash: Option<String>,
    /// The kernel's name of the boot in which the run was started; absent where it gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
    /// The commit from which the program was built; absent where the build did not know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Number of agents of the fleet that generates the load; absent where the program itself does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<u32>,
}

/// A run that had ended early was resumed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunResumed {
    /// Time, RFC 3339.
    pub at: String,
    /// The version of Weighbridge that resumed it.
    pub version: String,
    /// The machine on which it was resumed.
    pub host: HostFacts,
    /// The kernel's name of the boot in which it is resumed; absent where it gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
}

/// End of an axis with a stop rule in one lane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AxisEnded {
    /// The point without the axis: which lane.
    pub lane: Point,
    /// The axis: a plan key such as `load.connections`.
    pub axis: String,
    /// The value at which the condition held; it is still measured.
    pub at: serde_json::Value,
    /// The condition, as the plan has it.
    pub condition: String,
    /// The figure of the condition, in the metric's own unit; null if it is infinite.
    #[serde(deserialize_with = "null_figure")]
    pub figure: f64,
    /// The values that are not measured, ascending.
    pub not_weighed: Vec<serde_json::Value>,
}

/// One load above a target's limit, offered by one generator process and by two.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SecondGenerator {
    /// The lane.
    pub lane: Point,
    /// Offered load of each trial, in the unit of the search's axis.
    pub load: f64,
    /// Messages per second of throughput with one generator, trial by trial.
    pub one_per_s: Vec<f64>,
    /// Messages per second of throughput with two generators together; trials alternate with those
    /// of one.
    pub two_per_s: Vec<f64>,
    /// The largest share of a core that a thread of the one used, percent.
    pub one_cpu_percent: Option<f64>,
    /// Largest share of a core that a thread of the two used, percent.
    pub two_cpu_percent: Option<f64>,
    /// True if the second generator had to share the core of the first.
    pub shares_core: bool,
    /// Reason for giving up the attempt.
    pub error: Option<String>,
}

/// Facts about the machine that are needed to judge or repeat a figure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFacts {
    /// Kernel release.
    pub kernel: String,
    /// Model name of the processor.
    pub cpu: String,
    /// Cores this process may use.
    pub cores: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Frequency governor; empty if the kernel does not report it.
    pub governor: String,
    /// Clock source of the kernel.
    pub clock_source: String,
    /// TCP congestion control.
    pub congestion_control: String,
    /// `kvm`, `none` and so on; empty if it is unknown.
    pub virtualisation: String,
}

/// Counts of a trial in one interval.
///
/// # Examples
///
/// ```
/// use weigh_model::event::{Event, Interval};
///
/// let interval = Interval { trial: "a".to_owned(), sent: 500, ..Interval::default() };
/// let line = serde_json::to_string(&Event::Interval(interval))?;
/// assert!(line.starts_with(r#"{"event":"interval","trial":"a""#));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The trial's id.
    pub trial: String,
    /// End of the interval, nanoseconds since the trial's clock stood at 0.
    pub at_ns: u64,
    /// True before the measured window.
    pub warmup: bool,
    /// True after the load has ended, while only answers and deliveries are awaited; false in
    /// journals before this key.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub draining: bool,
    /// Messages handed to the transport in it.
    pub sent: u64,
    /// Messages confirmed in it.
    pub acknowledged: u64,
    /// Pairs delivered in it.
    pub delivered: u64,
    /// Error answers in it.
    pub errors: u64,
    /// Connections open at its end.
    pub connections: u64,
    /// Length, nanoseconds; absent in journals before this key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length_ns: Option<u64>,
    /// Median response time (due to confirmed) of messages confirmed in it, warm-up included; if
    /// nothing is confirmed, of delivery time (due to delivered). At most 0.8 % too large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_time_ns_p50: Option<u64>,
    /// The 99 % quantile of the response time; absent below 100 values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_time_ns_p99: Option<u64>,
    /// The 99 % quantile of send lag (due to sent) of messages sent in it; absent below 100 values.
    /// Of unconfirmed messages that leave in one write only the first counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_lag_ns_p99: Option<u64>,
    /// Load of the target in percent of the cores it was given; absent if it is not observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_cpu_percent: Option<f64>,
    /// Largest resident memory of the target seen in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_memory_bytes: Option<u64>,
    /// Load of the generator's busiest thread in percent of one core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator_cpu_percent: Option<f64>,
}

/// State of some connections at one moment, as known to the kernel of the clients' hosts
/// (`TCP_INFO`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TcpSample {
    /// The trial's id.
    pub trial: String,
    /// Time, nanoseconds since the trial's clock was at 0.
    pub at_ns: u64,
    /// Both ends of the connection, `10.87.0.1:40000 10.87.0.2:1883`; absent in a row for all
    /// connections that have no row of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<String>,
    /// Number of connections that the row represents.
    pub connections: u64,
    /// Smoothed round-trip time, microseconds; the mean over the row's connections.
    pub round_trip_us: f64,
    /// The longest of them.
    pub round_trip_us_max: u64,
    /// Congestion window in segments; the mean.
    pub congestion_window_segments: f64,
    /// Segments sent and not acknowledged, total of the row's connections.
    pub unacknowledged_segments: u64,
    /// Segments retransmitted since each connection was opened, total of the row's connections.
    pub retransmitted_segments: u64,
}

/// The result of one trial.
///
/// # Examples
///
/// ```
/// use weigh_model::event::TrialFinished;
/// use weigh_model::{Condition, Ledger};
///
/// let finished: TrialFinished = serde_json::from_value(serde_json::json!({
///     "trial": "a", "point": {}, "repetition": 0, "seed": 1,
///     "guarantee": "at least once", "target": "reference", "doubts": [],
///     "metrics": { "response_time_ns.p99": 2e6 }, "samples": {}, "granted": {},
///     "ledger": Ledger { sent: 4, lost: Some(1), ..Ledger::default() }, "histograms": {},
/// }))?;
/// let condition: Condition = "loss <= 1 %".parse()?;
/// let ratio = finished.figure(&condition.metric).expect("arrivals are observed");
/// assert_eq!((ratio, condition.holds(ratio)), (0.25, Some(false)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialFinished {
    /// The trial's id.
    pub trial: String,
    /// Its point of the matrix.
    pub point: Point,
    /// Its repetition, from 0.
    pub repetition: u32,
    /// Its seed.
    pub seed: u64,
    /// Guarantee of the protocol at this point.
    pub guarantee: Guarantee,
    /// What a confirmation means on the target; absent in journals before this key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durability: Option<Durability>,
    /// Name and version of the target: `Mosquitto 2.0.11`, `weigh 0.1.0 reference mqtt`.
    pub target: String,
    /// Values by metric name (`response_time_ns.p99`); what was not measured is absent. A quantile
    /// in the lost share is infinite here and null in the journal (JSON has no infinity).
    #[serde(deserialize_with = "null_is_infinite")]
    pub metrics: BTreeMap<String, f64>,
    /// Number of samples of each recorded time (`response_time_ns`).
    pub samples: BTreeMap<String, u64>,
    /// The ledger: where every message ended.
    pub ledger: Ledger,
    /// Warnings on the result.
    #[serde(rename = "doubts")]
    pub warnings: Vec<WarningRecord>,
    /// Values that the server granted or announced, the minimum over all connections.
    pub granted: BTreeMap<String, u64>,
    /// The reference server's own counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerReport>,
    /// A real broker's own counters over the trial: `$SYS/broker/publish/messages/dropped`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, f64>,
    /// The path between the parties if they were separate hosts, how its packets were carried, and
    /// the state of the capture.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scene: BTreeMap<String, String>,
    /// Recorded times as HdrHistogram V2 in base64, by name (`response_time_ns`).
    pub histograms: BTreeMap<String, String>,
}

impl TrialFinished {
    /// True if a signal cut it short: a resumed run repeats the trial.
    pub fn is_cut_short(&self) -> bool {
        let interrupted = Warning::Interrupted.record().code;
        self.warnings.iter().any(|warning| warning.code == interrupted)
    }

    /// Returns the figure of a [`Condition`](crate::Condition) or a precision, in the metric's own
    /// unit: a value of [`TrialFinished::metrics`], or the losses of the ledger. `None` if it was
    /// not measured, and for losses if arrivals are not observed.
    pub fn figure(&self, metric: &str) -> Option<f64> {
        let lost = self.ledger.lost.map(|lost| lost as f64);
        match metric {
            LOST => lost,
            LOSS_RATIO if self.ledger.sent == 0 => None,
            LOSS_RATIO => lost.map(|lost| lost / self.ledger.sent as f64),
            _ => {
                let metric = resolve(metric, |name| self.metrics.contains_key(name));
                self.metrics.get(metric.as_ref()).copied()
            }
        }
    }
}

fn null_is_infinite<'de, D>(deserializer: D) -> Result<BTreeMap<String, f64>, D::Error>
where
    D: Deserializer<'de>,
{
    let values = BTreeMap::<String, Option<f64>>::deserialize(deserializer)?;
    let finite = |value: Option<f64>| value.unwrap_or(f64::INFINITY);
    Ok(values.into_iter().map(|(name, value)| (name, finite(value))).collect())
}

fn null_figure<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::INFINITY))
}

crate::portable_fields!(Interval {
    trial,
    at_ns,
    warmup,
    draining,
    sent,
    acknowledged,
    delivered,
    errors,
    connections,
    length_ns,
    response_time_ns_p50,
    response_time_ns_p99,
    send_lag_ns_p99,
    target_cpu_percent,
    target_memory_bytes,
    generator_cpu_percent,
});
