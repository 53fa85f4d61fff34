//! L10: a limit that was read off the steps of an axis.

use weigh_model::{Rule, Warning};

/// One point of an axis that was followed until something failed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AxisPoint {
    /// Its value on the axis.
    pub value: f64,
    /// Whether all was well there.
    pub is_good: bool,
    /// How many trials say so.
    pub trials: u32,
}

/// The doubt about the limit between the last good point and the first bad one, if the step
/// between them is more than 5 % of the answer or one of them rests on a single trial; `axis` is
/// its name. For axes with a stop rule: without one, points are a survey and nobody's limit.
pub fn doubt(axis: &str, points: &[AxisPoint]) -> Option<Warning> {
    let first_bad = points.iter().position(|point| !point.is_good)?;
    let (good, bad) = (points.get(first_bad.checked_sub(1)?)?, points[first_bad]);
    let step = (bad.value - good.value).abs() / bad.value.abs();
    let seen = if step > STEP_MAX {
        format!(
            "{axis}: the limit lies between {} and {}, a step of {:.0} %",
            good.value,
            bad.value,
            step * 100.0
        )
    } else if good.trials.min(bad.trials) < TRIALS_MIN {
        format!("{axis}: the limit between {} and {} rests on one trial", good.value, bad.value)
    } else {
        return None;
    };
    Some(Warning::Broken(Rule::L10, seen))
}

/// The step of an axis, as a share of the answer.
const STEP_MAX: f64 = 0.05;

/// Trials that a bound needs.
const TRIALS_MIN: u32 = 2;
