//! Measurement of an energy meter during a trial, as it is in the journal.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::warnings::WarningRecord;

/// The energy of one trial, or why there is none. Times are nanoseconds since 1970 on a clock that
/// is not corrected during a run: the monotonic clock, shifted once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EnergyMeasured {
    /// The trial's id.
    pub trial: String,
    /// The meter: `rapl package-0 package-1`, `ina226 at hwmon3`.
    pub meter: String,
    /// Parts that it measures: `processor packages, without memory and board`.
    pub covers: String,
    /// The measured window.
    pub window: Span,
    /// Idle phase of the machine before the trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_before: Option<IdlePhase>,
    /// And after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_after: Option<IdlePhase>,
    /// Joules in the window; absent if [`EnergyMeasured::absent`] gives a reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_j: Option<f64>,
    /// Joules above idle consumption in that window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above_idle_j: Option<f64>,
    /// Charge drawn in the window, milliampere hours, at [`EnergyMeasured::voltage_v`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charge_mah: Option<f64>,
    /// Mean voltage in the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voltage_v: Option<f64>,
    /// Joules in the window by domain, if the meter has several. They overlap: a package includes
    /// its cores.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub domains: BTreeMap<String, f64>,
    /// Readings in the window.
    pub readings: u64,
    /// Causes of the uncertainty of the joules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub budget: Vec<EnergyBudgetLine>,
    /// Metrics made from it, by the names of `trial_finished`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, f64>,
    /// Reason for which there is no energy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<String>,
    /// Warnings on this measurement.
    #[serde(rename = "doubts", default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<WarningRecord>,
}

impl EnergyMeasured {
    /// Adds the uncertainty of aligning a log's clock with the run's: both ends of the window may
    /// be off by `bound_ns`, independently (a rectangular distribution).
    pub fn add_alignment(&mut self, bound_ns: u64) {
        let Some(energy_j) = self.energy_j else { return };
        let ends = bound_ns as f64 / 1e9 * (2.0_f64 / 3.0).sqrt() / self.window.seconds();
        self.budget.push(EnergyBudgetLine {
            source: "alignment".to_owned(),
            energy_j: energy_j * ends,
            above_idle_j: self.above_idle_j.unwrap_or(0.0).abs() * ends,
            is_systematic: false,
            basis: "the bound of the log's clock, at both ends".to_owned(),
        });
    }
}

/// From one moment to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Begin.
    pub from_ns: u64,
    /// End.
    pub to_ns: u64,
}

impl Span {
    /// From one moment to another.
    pub fn of(from_ns: u64, to_ns: u64) -> Span {
        Span { from_ns, to_ns }
    }

    /// Duration in seconds.
    pub fn seconds(&self) -> f64 {
        self.to_ns.saturating_sub(self.from_ns) as f64 / 1e9
    }
}

/// A time in which the machine was idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IdlePhase {
    /// Time of the phase.
    pub span: Span,
    /// Its mean power, watts; absent if the meter gave no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_w: Option<f64>,
}

/// One line of an uncertainty budget (JCGM 100, clause 4): standard uncertainties in joules.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EnergyBudgetLine {
    /// Source of the uncertainty: `meter gain`, `sampling`.
    pub source: String,
    /// Uncertainty of the joules in the window.
    pub energy_j: f64,
    /// Uncertainty of the joules above idle.
    pub above_idle_j: f64,
    /// True if it is the same in every trial with this meter, so that repetitions do not reduce it.
    pub is_systematic: bool,
    /// Source of its size.
    pub basis: String,
}

/// The meter of a run, once it has begun.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeterChosen {
    /// The value of `--meter`.
    pub asked: String,
    /// The meter that was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meter: Option<String>,
    /// Parts that it measures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub covers: Option<String>,
    /// Reason for which there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<String>,
    /// True if the plan asks for energy.
    pub is_asked: bool,
}

/// The warning of a trial without energy.
pub const ENERGY_ABSENT: &str = "energy-absent";

/// Load made so that the log of an external meter can be aligned with the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadPulses {
    /// Times in which every core was busy; in between they were idle.
    pub pulses: Vec<Span>,
}

/// Alignment of the log of an external meter with the run's clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LogAligned {
    /// The log's file.
    pub file: String,
    /// Rows it has.
    pub rows: u64,
    /// Nanoseconds to add to its times to get those of the run, at its first pulses.
    pub offset_ns: i64,
    /// Rate of its clock minus that of the run's, parts per million.
    pub drift_ppm: f64,
    /// Largest error of a moment between the pulses, nanoseconds.
    pub bound_ns: u64,
    /// Quality of the pulses: 1 if power follows only them.
    pub correlation: f64,
    /// Reason for which it could not be aligned, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}
