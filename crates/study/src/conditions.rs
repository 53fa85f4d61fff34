//! Judges a condition: the expression's value, its interval, and on which side of the bound all of
//! the interval lies.

use weigh_stats::propagation::{self, DRAWS, Known};

use crate::expression::Condition;
use crate::figures::{between, number};
use crate::measuring::{Absent, Measured, Measuring, Repeated};
use crate::outcome::{Answer, Judged, QuantityShown, Role};
use crate::quantity::Quantity;
use crate::study::Claim;

pub(crate) fn judge(
    role: Role,
    condition: &Condition,
    claim: &Claim,
    measuring: &Measuring<'_>,
) -> Judged {
    let mut judged = Judged {
        role,
        text: condition.to_string(),
        words: condition.words().to_owned(),
        estimate: None,
        low: None,
        high: None,
        n: None,
        shown: String::new(),
        answer: Answer::Undecided,
        reasons: Vec::new(),
        quantities: Vec::new(),
    };
    let mut measured = Vec::new();
    for name in condition.names() {
        let quantity = &claim.quantities[name];
        match measuring.measure(quantity) {
            Ok(found) => {
                judged.quantities.push(shown(name, quantity, &found));
                judged.reasons.extend(found.note.iter().map(|note| format!("{name}: {note}")));
                measured.push(found);
            }
            Err(Absent { reason, links }) => {
                judged.quantities.push(QuantityShown { links, ..unknown(name, quantity) });
                if !judged.reasons.contains(&reason) {
                    judged.reasons.push(reason);
                }
            }
        }
    }
    if measured.len() == condition.names().len() {
        decide(&mut judged, condition, &measured);
    }
    judged
}

fn decide(judged: &mut Judged, condition: &Condition, measured: &[Measured]) {
    let (estimate, ends) = by_repetition(condition, measured).unwrap_or_else(|| {
        let estimates: Vec<f64> = measured.iter().map(|one| one.estimate).collect();
        let estimate = condition.value(&estimates);
        match measured.iter().any(|one| one.draws.is_some()) {
            true => (estimate, propagation::interval(draws(condition, measured))),
            false => (estimate, (estimate, estimate)),
        }
    });
    judged.estimate = finite(estimate);
    (judged.low, judged.high) = (finite(ends.0), finite(ends.1));
    judged.n = measured.iter().filter_map(|one| one.n).min();
    if estimate.is_nan() {
        judged.reasons.push(format!("{} has no value", condition.expression()));
        return;
    }
    judged.shown = between(estimate, ends);
    judged.answer = match condition.bound() {
        bound if bound.holds_of_all(ends) => Answer::Yes,
        bound if bound.holds_of_none(ends) => Answer::No,
        bound => {
            let (low, high) = (number(ends.0), number(ends.1));
            judged.reasons.push(format!("{low} to {high} {}{NARROWER}", bound.astride()));
            Answer::Undecided
        }
    };
}

/// What would decide what an interval leaves open.
pub(crate) const NARROWER: &str = ": more repetitions would narrow it";

/// The mean of the expression over repetitions and its t interval, where all that is uncertain in
/// it was measured in the same trials: two figures of one trial vary together, and taken apart
/// their ratio would be told wider or narrower than it is. `None` where that is not so, and for one
/// quantity alone, whose draws know what is possible.
fn by_repetition(condition: &Condition, measured: &[Measured]) -> Option<(f64, (f64, f64))> {
    let uncertain = measured.iter().filter(|one| one.draws.is_some());
    let repeated: Vec<&Repeated> =
        uncertain.map(|one| one.repeated.as_ref()).collect::<Option<_>>()?;
    let first = repeated.first()?;
    let is_one_cell = repeated.iter().all(|own| own.place == first.place);
    let are_two = repeated.iter().any(|own| own.values != first.values);
    if !is_one_cell || !are_two {
        return None;
    }
    let value = |repetition: usize| {
        let of = |one: &Measured| match &one.repeated {
            Some(own) if one.draws.is_some() => own.values[repetition],
            _ => one.estimate,
        };
        condition.value(&measured.iter().map(of).collect::<Vec<f64>>())
    };
    let values: Vec<f64> = (0..first.values.len()).map(value).collect();
    let known = Known::mean_of(&values)?;
    Some((known.estimate(), known.student_interval()?))
}

/// The values of the expression with draws of what is uncertain in it.
fn draws(condition: &Condition, measured: &[Measured]) -> Vec<f64> {
    let mut values = vec![0.0; measured.len()];
    let at = |draw: usize| {
        for (value, one) in values.iter_mut().zip(measured) {
            *value = one.draws.as_ref().map_or(one.estimate, |draws| draws[draw]);
        }
        condition.value(&values)
    };
    (0..DRAWS).map(at).collect()
}

fn shown(name: &str, quantity: &Quantity, measured: &Measured) -> QuantityShown {
    let ends = measured.draws.as_ref().map(|draws| propagation::interval(draws.to_vec()));
    QuantityShown {
        value: finite(measured.estimate),
        low: ends.and_then(|ends| finite(ends.0)),
        high: ends.and_then(|ends| finite(ends.1)),
        unit: measured.unit.clone(),
        n: measured.n,
        links: measured.links.clone(),
        ..unknown(name, quantity)
    }
}

fn unknown(name: &str, quantity: &Quantity) -> QuantityShown {
    QuantityShown {
        name: name.to_owned(),
        text: quantity.to_string(),
        value: None,
        low: None,
        high: None,
        unit: "1".to_owned(),
        n: None,
        links: Vec::new(),
    }
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}
