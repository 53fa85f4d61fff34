//! A search for a limit, as a study asks for it: the flags of `weigh limit` as keys.

use weigh_limit::{Axis, AxisKind};
use weigh_model::Nanos;

/// What is searched in every lane of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchAsked {
    /// Along what, and between which ends.
    pub axis: Axis,
    /// What must hold, as after `--goal`; empty for the preset's own goal.
    pub goals: Vec<String>,
    /// The preset, as after `--preset`.
    pub preset: String,
    /// How close the bounds must come, as a share of the upper one; `None` for the preset's.
    pub width: Option<f64>,
    /// How long a trial must be to decide a load; `None` for the preset's.
    pub trial: Option<Nanos>,
    /// How much time in trials decides a load; `None` for the preset's.
    pub sum: Option<Nanos>,
    /// No trial begins that would end later; divided equally among the lanes.
    pub budget: Option<Nanos>,
}

impl SearchAsked {
    /// Along what it goes.
    pub fn kind(&self) -> AxisKind {
        self.axis.kind()
    }
}
