//! What stands in the log of a discharge. Every count is of the whole discharge so far, so that any
//! line tells all that came before it.

use serde::{Deserialize, Serialize};
use weigh_model::battery::Battery;
use weigh_model::plan::Plan;

use crate::discharges::start::Start;

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Entry {
    /// What is run down, and how: the first line of every part.
    Begun(Box<Begun>),
    /// Where it stands: about once a second.
    Standing(Standing),
    /// The target could not be reached; it is tried again.
    Trouble {
        /// Nanoseconds since the discharge began.
        at_ns: u64,
        /// Why.
        reason: String,
    },
    /// It ended for another reason than that the power went.
    Ended {
        /// Nanoseconds since the discharge began.
        at_ns: u64,
        /// Why.
        reason: EndReason,
    },
}

/// The begin of a discharge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Begun {
    /// [`SCHEMA`].
    pub schema: String,
    /// The version of the program.
    pub version: String,
    /// When it began by the machine's clock, RFC 3339; boards without a clock of their own are
    /// wrong.
    pub started: String,
    /// Which start of the machine this was: two discharges that share it had no power cut between.
    pub boot: String,
    /// Which machine, by [`Start::machine`]; logs of earlier versions name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// The part of the log that this line begins, from 1.
    pub part: u32,
    /// What is run down: the title of the plan's case.
    pub lane: String,
    /// All lanes of the plan, in their order.
    pub lanes: Vec<String>,
    /// The plan as resolved.
    pub plan: Plan,
    /// Which count is the one of finished sessions.
    pub counts: Counts,
    /// The battery as its label names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub battery: Option<Battery>,
    /// A full charge as the gauge knows it, microampere-hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gauge_full_uah: Option<i64>,
    /// Why no gauge of the battery is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_gauge: Option<String>,
}

/// Which count is that of finished sessions, or of messages where sessions are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counts {
    /// What the target confirmed.
    Acknowledged,
    /// What arrived at a consumer.
    Delivered,
    /// What was handed over, because nobody confirms it.
    Sent,
}

/// Where a discharge stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// Nanoseconds since it began, on a clock that also runs while the machine sleeps.
    pub at_ns: u64,
    /// Messages handed over, each in a session of its own where the pattern is `session`.
    pub sent: u64,
    /// Those that were confirmed.
    pub acknowledged: u64,
    /// Those that arrived at a consumer.
    pub delivered: u64,
    /// Error answers.
    pub errors: u64,
    /// Processor time of the program, nanoseconds.
    pub cpu_ns: u64,
    /// What the battery's gauge says, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gauge: Option<Gauge>,
}

/// What the gauge of a battery says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Gauge {
    /// Charge left, microampere-hours, of a coulomb counter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charge_uah: Option<i64>,
    /// Energy left, microwatt-hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_uwh: Option<i64>,
    /// Voltage, volts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voltage_v: Option<f64>,
}

/// Why a discharge ended while there was power.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// The time that it was given was over.
    TimeOver,
    /// Ctrl-C.
    Interrupted,
    /// SIGTERM: somebody, or the machine that shuts down on a low battery.
    Terminated,
    /// The charger came back.
    Mains,
    /// The card has no room left.
    Full,
    /// The target was never reached.
    Unreached,
    /// The program: it came to an end of its own, or the card took no more.
    Failed,
}

impl Begun {
    /// The start of the machine that it began in.
    pub fn start(&self) -> Start {
        Start { boot: Some(self.boot.clone()), machine: self.machine.clone() }
    }

    /// Which lane it is among all.
    pub fn place(&self) -> Option<usize> {
        self.lanes.iter().position(|lane| *lane == self.lane)
    }
}

impl Counts {
    /// The finished sessions of `standing`.
    pub fn of(self, standing: &Standing) -> u64 {
        match self {
            Counts::Acknowledged => standing.acknowledged,
            Counts::Delivered => standing.delivered,
            Counts::Sent => standing.sent,
        }
    }
}

/// The form of these lines.
pub const SCHEMA: &str = "weigh/rundown/1";
