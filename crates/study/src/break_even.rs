//! The value of an unknown at which the answer to a condition turns.

use crate::conditions::finite;
use crate::evidence::{Asked, Evidence};
use crate::figures::number;
use crate::outcome::BreakEvenShown;
use crate::study::{BreakEven, Claim};

/// Solves the condition for its unknown.
pub(crate) fn solve(asked: &BreakEven, claim: &Claim, evidence: &Evidence<'_>) -> BreakEvenShown {
    let BreakEven { vary, unit, what, within, condition } = asked;
    let mut shown = BreakEvenShown {
        what: what.clone(),
        unit: unit.clone(),
        value: None,
        low: None,
        high: None,
        sentence: String::new(),
    };
    let mut sighted = Vec::new();
    for name in condition.names().iter().filter(|name| *name != vary) {
        match evidence.look(name, &claim.quantities[name]) {
            Ok(found) => sighted.push(found),
            Err(absent) => {
                shown.sentence = format!("The break-even is unknown: {}.", absent.reason);
                return shown;
            }
        }
    }
    let at = condition.names().iter().position(|name| name == vary).unwrap_or(0);
    // A draw that does not turn has no value, and widens the interval.
    let turn = |known: &[f64]| {
        let mut values = known.to_vec();
        values.insert(at, 0.0);
        let found = turning(*within, |unknown| {
            values[at] = unknown;
            condition.bound().holds(condition.expression().value(&values))
        });
        found.unwrap_or(f64::NAN)
    };
    let name = format!("{} for {vary}", condition.expression());
    let of = Asked { name: &name, value: &turn, draws: DRAWS, cores_min: 0 };
    let valued = match evidence.evaluate(&of, &sighted) {
        Ok(valued) => valued,
        Err(reason) => {
            shown.sentence = format!("The break-even is unknown: {reason}.");
            return shown;
        }
    };
    let (low, high) = valued.ends;
    let is_exact = low == high;
    shown.value = finite(valued.estimate);
    if shown.value.is_some() && !is_exact {
        (shown.low, shown.high) = (finite(low), finite(high));
    }
    shown.sentence = sentence(asked, &shown, is_exact);
    shown
}

fn sentence(asked: &BreakEven, shown: &BreakEvenShown, is_exact: bool) -> String {
    let BreakEven { unit, what, within, .. } = asked;
    let unit = if unit == "1" { String::new() } else { format!(" {unit}") };
    match (shown.value, shown.low.zip(shown.high)) {
        (None, _) => format!(
            "The answer is the same for all values of {what} from {} to {}{unit}.",
            number(within.0),
            number(within.1)
        ),
        (Some(value), Some((low, high))) => format!(
            "The answer changes at {}{unit} of {what} (95 % CI {} to {}).",
            number(value),
            number(low),
            number(high)
        ),
        (Some(value), None) if is_exact => {
            format!("The answer changes at {}{unit} of {what}.", number(value))
        }
        (Some(value), None) => format!(
            "The answer changes at about {}{unit} of {what}; its interval leaves the searched \
             range.",
            number(value)
        ),
    }
}

/// The first value of the range at which the answer is another one than at its beginning.
fn turning((low, high): (f64, f64), mut holds: impl FnMut(f64) -> bool) -> Option<f64> {
    let at = |step: usize| low + (high - low) * step as f64 / STEPS as f64;
    let first = holds(low);
    let step = (1..=STEPS).find(|step| holds(at(*step)) != first)?;
    let (mut before, mut after) = (at(step - 1), at(step));
    for _ in 0..HALVINGS {
        let middle = before + (after - before) / 2.0;
        if holds(middle) == first {
            before = middle;
        } else {
            after = middle;
        }
    }
    Some(after)
}

/// Places of the range that are looked at before the turn is narrowed down.
const STEPS: usize = 200;

/// Halvings of a step: to a part in a billion.
const HALVINGS: usize = 30;

/// Draws for the interval: enough for two digits of its ends.
const DRAWS: usize = 2_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_turn_is_where_the_answer_changes_first() {
        let found = turning((0.0, 10_000.0), |header| (500.0 + header) / 741.0 > 1.1).unwrap();
        assert!((found - (741.0 * 1.1 - 500.0)).abs() < 1e-3, "{found}");
        assert_eq!(turning((0.0, 100.0), |header| header > 310.0), None);
        let between = turning((0.0, 100.0), |x| (20.0..=30.0).contains(&x)).unwrap();
        assert!((between - 20.0).abs() < 1e-3, "{between}");
    }
}
