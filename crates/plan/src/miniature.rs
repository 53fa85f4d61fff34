//! Shortens a plan to seconds, to check that all of it runs, not to measure.

use toml::Value;
use weigh_model::Nanos;
use weigh_model::plan::Repeat;
use weigh_model::units::parse_duration;

use crate::row::{Given, Row};

/// Keeps the first and the last value of an axis.
pub(crate) fn ends(values: &mut Vec<Given>) {
    if values.len() > 2 {
        values.drain(1..values.len() - 1);
    }
}

/// Two repetitions, and trials no longer than a third of a second.
pub(crate) fn shorten(repeat: &mut Repeat, fixed: &mut Row) {
    *repeat = Repeat {
        at_least: repeat.at_least.min(REPETITIONS),
        at_most: None,
        until: Vec::new(),
        budget: repeat.budget,
        cool_down: Nanos(0),
        target: repeat.target,
    };
    for (key, most) in LONGEST {
        let Some(given) = fixed.get_mut(key) else { continue };
        let text = given.value.as_str().unwrap_or_default();
        if parse_duration(text).is_ok_and(|length| length > most) {
            given.value = Value::String(most.recorded());
        }
    }
}

const REPETITIONS: u32 = 2;

/// Maximum lengths of the parts of a trial.
const LONGEST: [(&str, Nanos); 3] = [
    ("load.duration", Nanos::from_millis(300)),
    ("load.warmup", Nanos::from_millis(100)),
    ("load.timeout", Nanos::from_millis(1_000)),
];
