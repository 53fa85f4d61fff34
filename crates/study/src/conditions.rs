//! Judges a condition: the expression's value, its interval, and on which side of the bound all of
//! the interval lies.

use weigh_stats::propagation::{self, DRAWS};

use crate::expression::Condition;
use crate::figures::number;
use crate::measuring::{Absent, Measured, Measuring};
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
        estimate: None,
        low: None,
        high: None,
        n: None,
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
    let estimates: Vec<f64> = measured.iter().map(|one| one.estimate).collect();
    let estimate = condition.value(&estimates);
    let ends = match measured.iter().any(|one| one.draws.is_some()) {
        true => propagation::interval(draws(condition, measured)),
        false => (estimate, estimate),
    };
    judged.estimate = finite(estimate);
    (judged.low, judged.high) = (finite(ends.0), finite(ends.1));
    judged.n = measured.iter().filter_map(|one| one.n).min();
    if estimate.is_nan() {
        judged.reasons.push(format!("{} has no value", condition.expression()));
        return;
    }
    judged.answer = match condition.bound() {
        bound if bound.holds_of_all(ends) => Answer::Yes,
        bound if bound.holds_of_none(ends) => Answer::No,
        bound => {
            let (low, high) = (number(ends.0), number(ends.1));
            judged.reasons.push(format!(
                "{low} to {high} lies on both sides of {bound}: more repetitions would narrow it"
            ));
            Answer::Undecided
        }
    };
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
