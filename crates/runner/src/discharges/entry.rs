//! Lines in the log of a discharge. Every count is of the whole discharge so far, so any line
//! replaces all lines before it.

use serde::{Deserialize, Serialize};
use weigh_model::battery::Battery;
use weigh_model::plan::Plan;

use crate::discharges::start::Start;

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Entry {
    /// Plan, lane and machine of the discharge: the first line of every part.
    Begun(Box<Begun>),
    /// Counts so far: about once a second.
    Standing(Standing),
    /// The target could not be reached; it is tried again.
    Trouble {
        /// Nanoseconds since the discharge began.
        at_ns: u64,
        /// The error.
        reason: String,
    },
    /// It ended for a reason other than a power cut.
    Ended {
        /// Nanoseconds since the discharge began.
        at_ns: u64,
        /// The reason.
        reason: EndReason,
    },
}

/// The first line of a part: plan, lane and machine of a discharge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Begun {
    /// [`SCHEMA`].
    pub schema: String,
    /// The version of the program.
    pub version: String,
    /// Time of the start by the machine's clock, RFC 3339; wrong on boards without a real-time
    /// clock.
    pub started: String,
    /// Boot id of the machine: no power cut separates two discharges with the same one.
    pub boot: String,
    /// The machine, by [`Start::machine`]; logs of earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// The part of the log that this line begins, from 1.
    pub part: u32,
    /// Title of the plan's case.
    pub lane: String,
    /// All lanes of the plan, in their order.
    pub lanes: Vec<String>,
    /// The plan as resolved.
    pub plan: Plan,
    /// The count of finished sessions.
    pub counts: Counts,
    /// The battery by its label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub battery: Option<Battery>,
    /// Charge when full by the gauge, microampere-hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gauge_full_uah: Option<i64>,
    /// Reason for which the battery's gauge is not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_gauge: Option<String>,
}

/// The count of finished sessions, or of messages if sessions are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counts {
    /// Messages that the target confirmed.
    Acknowledged,
    /// Messages that arrived at a consumer.
    Delivered,
    /// Messages that were sent, because the protocol does not confirm them.
    Sent,
}

/// Counts of a discharge so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// Time since the start, nanoseconds, on a clock that also runs while the machine sleeps.
    pub at_ns: u64,
    /// Messages sent; with the pattern `session` each has a session of its own.
    pub sent: u64,
    /// Messages that were confirmed.
    pub acknowledged: u64,
    /// Messages that arrived at a consumer.
    pub delivered: u64,
    /// Error responses.
    pub errors: u64,
    /// CPU time of the program, nanoseconds.
    pub cpu_ns: u64,
    /// Reading of the battery's gauge, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gauge: Option<Gauge>,
}

/// Reading of a battery's gauge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Gauge {
    /// Charge left by a coulomb counter, microampere-hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charge_uah: Option<i64>,
    /// Energy left, microwatt-hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_uwh: Option<i64>,
    /// Voltage, volts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voltage_v: Option<f64>,
}

/// Reason for which a discharge ended without a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// Its time limit was reached.
    TimeOver,
    /// Ctrl-C.
    Interrupted,
    /// SIGTERM, from a user or from a machine that shuts down on a low battery.
    Terminated,
    /// The charger came back.
    Mains,
    /// The storage is full.
    Full,
    /// The target was never reached.
    Unreached,
    /// The program ended on its own, or the storage failed.
    Failed,
}

impl Begun {
    /// Boot and machine of the discharge.
    pub fn start(&self) -> Start {
        Start { boot: Some(self.boot.clone()), machine: self.machine.clone() }
    }

    /// Position of its lane among all lanes.
    pub fn place(&self) -> Option<usize> {
        self.lanes.iter().position(|lane| *lane == self.lane)
    }
}

impl Counts {
    /// Finished sessions in `standing`.
    pub fn of(self, standing: &Standing) -> u64 {
        match self {
            Counts::Acknowledged => standing.acknowledged,
            Counts::Delivered => standing.delivered,
            Counts::Sent => standing.sent,
        }
    }
}

/// Schema of these lines.
pub const SCHEMA: &str = "weigh/rundown/1";
