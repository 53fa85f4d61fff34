//! Rows that compare a published value with a measured one, with their ratio.

use weigh_stats::propagation::DRAWS;

use crate::conditions::finite;
use crate::evidence::{Asked, Evidence, Sighted, Valued};
use crate::expression::Expression;
use crate::outcome::{ComparedShown, Link};
use crate::quantity::Quantity;
use crate::study::{Claim, Compare, Study};

/// One side of a row.
struct Side {
    valued: Valued,
    /// The unit of its one quantity; `None` where it has several.
    unit: Option<String>,
    links: Vec<Link>,
    notes: Vec<String>,
}

pub(crate) fn row(
    row: &Compare,
    claim: &Claim,
    study: &Study,
    evidence: &Evidence<'_>,
) -> ComparedShown {
    let side = |of: &Option<Expression>| match of {
        Some(expression) => measure(expression, claim, evidence),
        None => Err(String::new()),
    };
    let (theirs, here) = (side(&row.theirs), side(&row.here));
    let units = [&theirs, &here].map(|side| side.as_ref().ok().and_then(|side| side.unit.clone()));
    let unit = row.unit.clone().or_else(|| units.into_iter().flatten().next());
    let published = theirs.as_ref().ok().and_then(|side| finite(side.valued.estimate));
    let mut shown = ComparedShown {
        what: row.what.clone(),
        unit: unit.unwrap_or_else(|| "1".to_owned()),
        theirs: published,
        theirs_printed: row.theirs.as_ref().map_or(String::new(), |one| printed(one, claim, study)),
        here: None,
        low: None,
        high: None,
        ratio: None,
        ratio_low: None,
        ratio_high: None,
        links: Vec::new(),
        reason: String::new(),
    };
    match (theirs, here) {
        (_, Ok(side)) => fill(&mut shown, side, published),
        (_, Err(reason)) if row.here.is_some() => shown.reason = reason,
        (Err(reason), _) => shown.reason = reason,
        (Ok(_), Err(_)) => {}
    }
    shown
}

/// The measured side, and its ratio to the published one.
fn fill(shown: &mut ComparedShown, side: Side, published: Option<f64>) {
    let Valued { estimate, ends: (low, high), openings, .. } = side.valued;
    let is_exact = low == high;
    let interval = |low: f64, high: f64| match is_exact {
        true => (None, None),
        false => (finite(low), finite(high)),
    };
    shown.here = finite(estimate);
    (shown.low, shown.high) = interval(low, high);
    if let Some(published) = published.filter(|published| *published != 0.0) {
        let mut ends = [low / published, high / published];
        ends.sort_by(f64::total_cmp);
        shown.ratio = finite(estimate / published);
        (shown.ratio_low, shown.ratio_high) = interval(ends[0], ends[1]);
    }
    shown.reason = openings.into_iter().chain(side.notes).collect::<Vec<_>>().join("; ");
    shown.links = side.links;
}

/// One side, or why it has no value.
fn measure(
    expression: &Expression,
    claim: &Claim,
    evidence: &Evidence<'_>,
) -> Result<Side, String> {
    let names = expression.names().iter();
    let sighted = names.map(|name| evidence.look(name, &claim.quantities[name]));
    let sighted: Vec<Sighted<'_>> =
        sighted.collect::<Result<_, _>>().map_err(|absent| absent.reason)?;
    let value = |values: &[f64]| expression.value(values);
    let name = expression.to_string();
    let asked = Asked { name: &name, value: &value, draws: DRAWS, cores_min: claim.cores_min };
    let valued = evidence.evaluate(&asked, &sighted)?;
    let unit = match &sighted[..] {
        [one] => Some(one.unit()),
        _ => None,
    };
    let links = sighted.iter().flat_map(Sighted::links).collect();
    let notes = sighted.iter().flat_map(Sighted::notes).collect();
    Ok(Side { valued, unit, links, notes })
}

/// The literal of the paper, where the expression is one published figure.
fn printed(expression: &Expression, claim: &Claim, study: &Study) -> String {
    let [name] = expression.names() else { return String::new() };
    match claim.quantities.get(name) {
        Some(Quantity::Published { cell }) if expression.to_string() == *name => {
            study.published.cells[*cell].printed.clone()
        }
        _ => String::new(),
    }
}
