//! What a meter says, what is known of it, and what keeps it from being read.

use std::time::Duration;

use super::accuracy::Accuracy;

/// What keeps a meter from being read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MeterError {
    /// There is none of this kind.
    #[error("{reason}; {mend}")]
    Absent {
        /// What was looked for.
        reason: String,
        /// What to do.
        mend: String,
    },
    /// There is one, and its figures would be no measurement.
    #[error("{meter}: {reason}; {mend}")]
    Unusable {
        /// Which one.
        meter: String,
        /// Why.
        reason: String,
        /// What to do.
        mend: String,
    },
    /// It was there and is not any more.
    #[error("{path}: {reason}")]
    Vanished {
        /// The file that it was read from.
        path: String,
        /// What came instead of a number.
        reason: String,
    },
}

/// What is known of a meter before it is read.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// What it is called: `ina226 at hwmon3`.
    pub name: String,
    /// What it measures: `processor packages, without memory and board`.
    pub covers: String,
    /// How often it should be read: about as often as it has something new to say.
    pub period: Duration,
    /// Names of its energy counters, in the order of [`Value::Energy`], and for each of them where
    /// it wraps, microjoules, and whether it is part of the sum.
    pub domains: Vec<Domain>,
    /// How right it is.
    pub accuracy: Accuracy,
    /// Mean power that it can sensibly show, watts: from, to. What lies outside is no unit of the
    /// kernel's.
    pub plausible_w: (f64, f64),
}

/// One energy counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// `package-0`.
    pub name: String,
    /// The counter begins again at 0 after so many microjoules.
    pub wraps_at_uj: u64,
    /// True if the sum holds it; a part of another domain, or a second view of one, does not
    /// belong there.
    pub is_summed: bool,
}

/// One look at a meter.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// When, on `CLOCK_MONOTONIC`: the middle of the look.
    pub at_ns: u64,
    /// What it said.
    pub value: Value,
}

/// What a meter says.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Counters of energy as they stand, microjoules, one for each domain.
    Energy(Vec<u64>),
    /// Power now.
    Power {
        /// Watts.
        power_w: f64,
        /// Volts.
        voltage_v: Option<f64>,
        /// Amperes.
        current_a: Option<f64>,
    },
    /// What is left in a battery.
    Left {
        /// Microampere hours, where the gauge counts charge.
        charge_uah: Option<i64>,
        /// Microwatt hours, where it counts energy.
        energy_uwh: Option<i64>,
        /// Volts.
        voltage_v: Option<f64>,
    },
}

/// There is none of a kind.
pub(super) fn absent(reason: impl Into<String>, mend: impl Into<String>) -> MeterError {
    MeterError::Absent { reason: reason.into(), mend: mend.into() }
}

/// There is one that cannot be used.
pub(super) fn unusable(
    meter: impl Into<String>,
    reason: impl Into<String>,
    mend: impl Into<String>,
) -> MeterError {
    MeterError::Unusable { meter: meter.into(), reason: reason.into(), mend: mend.into() }
}
