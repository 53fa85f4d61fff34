//! Forecast of a search: trials, time, and messages for its quantiles.

use std::fmt::Write;
use weigh_model::numbers::{count, exact, rough};

use serde::Serialize;
use weigh_limit::{Remaining, Search, Selector};
use weigh_model::Nanos;

/// Range of what a search needs, over all positions of its limit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Needs {
    /// The fewest and the most trials.
    pub trials: (usize, usize),
    /// The shortest and the longest time that they take, seconds.
    pub time_s: (f64, f64),
    /// Messages that a trial needs for the quantiles of the goals; absent without quantiles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
}

/// Forecast with this overhead of each trial. The search is simulated for limits over its whole
/// axis, in virtual time.
pub fn of(search: &Search, overhead: Nanos) -> Option<Needs> {
    let selector = Selector::new(search.clone()).ok()?;
    let (min, max) = (search.axis.min(), search.axis.max());
    let limit = |place: u32| min * (max / min).powf(f64::from(place) / f64::from(PLACES));
    let predicted: Vec<Remaining> =
        (0..=PLACES).map(|place| selector.forecast(limit(place), overhead)).collect();
    let trials = || predicted.iter().map(|own| own.trials);
    let seconds = || predicted.iter().map(|own| own.time.as_secs_f64());
    Some(Needs {
        trials: (trials().min()?, trials().max()?),
        time_s: (seconds().reduce(f64::min)?, seconds().reduce(f64::max)?),
        messages: search.quantity.map(|own| own.messages).filter(|messages| *messages > 1),
    })
}

/// The forecast as text.
pub fn text(search: &Search, overhead: Nanos) -> String {
    let mut text = String::new();
    let Some(needs) = of(search, overhead) else { return text };
    let (fewest, most) = needs.trials;
    let (shortest, longest) = needs.time_s;
    let _ = writeln!(
        text,
        "  needs {fewest} to {most} trials, {} to {}, depending on the limit (an estimate)",
        rough(shortest),
        rough(longest)
    );
    if let (Some(quantity), Some(messages)) = (search.quantity, needs.messages) {
        let first = quantity.duration(search.axis.min());
        let (min, unit) = (search.axis.min(), search.axis.kind().unit());
        let _ = writeln!(
            text,
            "  the goal's quantile needs {} messages in a trial: at {}{unit} a trial lasts at \
             least {first}",
            count(messages),
            exact(min)
        );
    }
    let _ = match search.budget {
        Some(budget) => writeln!(text, "  ends after {budget} at the latest (--budget)"),
        None => writeln!(text, "  no --budget: ends once every goal is proven"),
    };
    text
}

/// Number of limits that are simulated, from end to end of the axis.
const PLACES: u32 = 12;

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_limit::{Axis, AxisKind, Goal, Quantity};

    #[test]
    fn what_a_search_needs_is_said_before() {
        let axis = Axis::new(AxisKind::Rate, 100.0, 1e6, 1.0).unwrap();
        let quantity = Some(Quantity { messages: 368, per_s: 0.0, per_s_of_load: 1.0 });
        let search = Search { quantity, ..Search::new(axis, vec![Goal::minute()]) };
        let said = text(&search, Nanos::from_millis(600));
        assert!(said.contains(" trials, ") && said.contains("368 messages"), "{said}");
        assert!(said.contains("at 100/s a trial lasts at least 3.764 s"), "{said}");
        assert!(said.contains("no --budget: ends once every goal is proven"), "{said}");
        let needs = of(&search, Nanos::from_millis(600)).unwrap();
        assert!(needs.trials.0 >= 2 && needs.trials.1 < 60, "{needs:?}");
        assert!(needs.time_s.1 < 90.0, "{needs:?}");
    }
}
