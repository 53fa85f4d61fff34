//! L10: a limit that was read off a grid.

use weigh_model::numbers::{exact, percent};
use weigh_model::{Rule, Warning};

/// One point of an axis that was raised until something failed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AxisPoint {
    /// Its value on the axis.
    pub value: f64,
    /// Whether the point passed.
    pub is_good: bool,
    /// Number of trials.
    pub trials: u32,
}

/// The warning on the limit between the last good point and the first bad one, if the step between
/// them is more than 5 % of the answer or one of them has a single trial; `axis` is its name. For
/// axes with a stop rule: without one, points are a survey and not a search for a limit.
pub fn warning(axis: &str, points: &[AxisPoint]) -> Option<Warning> {
    let first_bad = points.iter().position(|point| !point.is_good)?;
    let (good, bad) = (points.get(first_bad.checked_sub(1)?)?, points[first_bad]);
    let step = (bad.value - good.value).abs() / bad.value.abs();
    let seen = if step > STEP_MAX {
        format!(
            "{axis}: the limit is between {} and {}, a step of {}",
            exact(good.value),
            exact(bad.value),
            percent(step * 100.0)
        )
    } else if good.trials.min(bad.trials) < TRIALS_MIN {
        let (good, bad) = (exact(good.value), exact(bad.value));
        format!("{axis}: the limit between {good} and {bad} depends on one trial")
    } else {
        return None;
    };
    Some(Warning::Broken(Rule::L10, seen))
}

/// The step of an axis, as a share of the answer.
const STEP_MAX: f64 = 0.05;

/// Trials that a bound needs.
const TRIALS_MIN: u32 = 2;
