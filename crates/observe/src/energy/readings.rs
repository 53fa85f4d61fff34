//! Readings of a meter, its properties, and errors of reading.

use std::time::Duration;

use super::accuracy::Accuracy;

/// Why a meter cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MeterError {
    /// There is no meter of this kind.
    #[error("{reason}; {fix}")]
    Absent {
        /// What was looked for.
        reason: String,
        /// What to type.
        fix: String,
    },
    /// There is one, but its figures would not be a measurement.
    #[error("{meter}: {reason}; {fix}")]
    Unusable {
        /// Name of the meter.
        meter: String,
        /// Why its figures cannot be used.
        reason: String,
        /// What to type.
        fix: String,
    },
    /// The meter has vanished.
    #[error("{path}: {reason}")]
    Vanished {
        /// The file that it was read from.
        path: String,
        /// What was found instead of a number.
        reason: String,
    },
}

/// Properties of a meter, known before it is read.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// Its name: `ina226 at hwmon3`.
    pub name: String,
    /// What it measures: `processor packages, without memory and board`.
    pub covers: String,
    /// Recommended time between two readings: about the time until a new value.
    pub period: Duration,
    /// Names of its energy counters, in the order of [`Value::Energy`], and for each of them where
    /// it wraps, microjoules, and whether it is part of the sum.
    pub domains: Vec<Domain>,
    /// Its accuracy.
    pub accuracy: Accuracy,
    /// Plausible range of its mean power, watts. Values outside mean that the unit is not that of
    /// the kernel.
    pub plausible_w: (f64, f64),
}

/// One energy counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// `package-0`.
    pub name: String,
    /// Range in microjoules, after which the counter begins again at 0.
    pub wraps_at_uj: u64,
    /// True if the sum holds it; a part of another domain, or a second view of one, does not
    /// belong there.
    pub is_summed: bool,
}

/// One reading of a meter.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Its time on `CLOCK_MONOTONIC`: the middle of the reading.
    pub at_ns: u64,
    /// Its value.
    pub value: Value,
}

/// Value of a reading.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Energy counters, microjoules, one for each domain.
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
    /// Remaining charge or energy of a battery.
    Left {
        /// Microampere hours, where the gauge counts charge.
        charge_uah: Option<i64>,
        /// Microwatt hours, where it counts energy.
        energy_uwh: Option<i64>,
        /// Volts.
        voltage_v: Option<f64>,
    },
}

/// Error for a missing meter.
pub(super) fn absent(reason: impl Into<String>, fix: impl Into<String>) -> MeterError {
    MeterError::Absent { reason: reason.into(), fix: fix.into() }
}

/// Error for a meter that cannot be used.
pub(super) fn unusable(
    meter: impl Into<String>,
    reason: impl Into<String>,
    fix: impl Into<String>,
) -> MeterError {
    MeterError::Unusable { meter: meter.into(), reason: reason.into(), fix: fix.into() }
}
