//! Judges a condition: the expression's value, its interval, and on which side of the bound all of
//! the interval lies.

use weigh_stats::propagation::DRAWS;

use crate::evidence::{self, Evidence, Sighted, Valued};
use crate::figures::{between, number};
use crate::measuring::Absent;
use crate::outcome::{Answer, Judged, QuantityShown};
use crate::quantity::Quantity;
use crate::study::{Asked, Claim};

/// Judgement of a condition of a claim.
pub(crate) fn judge(asked: &Asked, claim: &Claim, evidence: &Evidence<'_>) -> Judged {
    let Asked { role, lane, condition } = asked;
    let mut judged = Judged {
        role: *role,
        lane: *lane,
        text: condition.to_string(),
        words: condition.words().to_owned(),
        estimate: None,
        low: None,
        high: None,
        n: None,
        shown: String::new(),
        answer: Answer::Undecided,
        is_without_runs: false,
        reasons: Vec::new(),
        quantities: Vec::new(),
    };
    let (mut sighted, mut of_runs, mut without) = (Vec::new(), 0, 0);
    for name in condition.names() {
        let quantity = &claim.quantities[name];
        of_runs += usize::from(quantity.run().is_some());
        match evidence.look(name, quantity) {
            Ok(found) => {
                judged.quantities.push(shown(name, quantity, &found, evidence));
                let notes = found.notes();
                judged.reasons.extend(notes.iter().map(|note| format!("{name}: {note}")));
                sighted.push(found);
            }
            Err(Absent { reason, links, is_without_run }) => {
                without += usize::from(is_without_run);
                judged.quantities.push(QuantityShown { links, ..unknown(name, quantity) });
                if !judged.reasons.contains(&reason) {
                    judged.reasons.push(reason);
                }
            }
        }
    }
    judged.is_without_runs = of_runs > 0 && without == of_runs;
    if sighted.len() == condition.names().len() {
        decide(&mut judged, asked, claim, &sighted, evidence);
    }
    judged
}

fn decide(
    judged: &mut Judged,
    asked: &Asked,
    claim: &Claim,
    sighted: &[Sighted<'_>],
    evidence: &Evidence<'_>,
) {
    let expression = asked.condition.expression();
    let value = |values: &[f64]| expression.value(values);
    let of = evidence::Asked {
        name: &expression.to_string(),
        value: &value,
        draws: DRAWS,
        cores_min: claim.cores_min,
    };
    let Valued { estimate, ends, n, mut openings, left_out } = match evidence.evaluate(&of, sighted)
    {
        Ok(valued) => valued,
        Err(reason) => return judged.reasons.push(reason),
    };
    judged.reasons.extend(left_out.iter().map(|run| format!("left out: {run}")));
    judged.estimate = finite(estimate);
    (judged.low, judged.high) = (finite(ends.0), finite(ends.1));
    judged.n = n;
    if estimate.is_nan() {
        judged.reasons.push(format!("{expression} has no value"));
        return;
    }
    judged.shown = between(estimate, ends);
    judged.answer = match asked.condition.bound() {
        bound if bound.holds_of_all(ends) => Answer::Yes,
        bound if bound.holds_of_none(ends) => Answer::No,
        bound => {
            let (low, high) = (number(ends.0), number(ends.1));
            judged.reasons.push(format!("{low} to {high} {}", bound.astride()));
            Answer::Undecided
        }
    };
    if !openings.is_empty() && judged.answer != Answer::Undecided {
        judged.answer = Answer::Undecided;
        openings.retain(|reason| !judged.reasons.contains(reason));
        judged.reasons.extend(openings);
    }
}

fn shown(
    name: &str,
    quantity: &Quantity,
    sighted: &Sighted<'_>,
    evidence: &Evidence<'_>,
) -> QuantityShown {
    let links = sighted.links();
    let unit = sighted.unit();
    let plain = QuantityShown { unit, links, ..unknown(name, quantity) };
    match evidence.plain(sighted) {
        Ok(Valued { estimate, ends: (low, high), n, .. }) => {
            let is_exact = low == high;
            QuantityShown {
                value: finite(estimate),
                low: finite(low).filter(|_| !is_exact),
                high: finite(high).filter(|_| !is_exact),
                n,
                ..plain
            }
        }
        Err(_) => plain,
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

pub(crate) fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}
