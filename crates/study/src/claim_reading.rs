//! Reads the claims of a study: the published figures they rest on, their conditions, the rows and
//! unknowns beside them, and what the names in all of these stand for.

use std::collections::{BTreeMap, BTreeSet};

use toml::Spanned;
use weigh_plan::kind::nearest;
use weigh_plan::{Problem, Problems};

use crate::expression::{Condition, Expression, WORDS};
use crate::outcome::Role;
use crate::quantity::Quantity;
use crate::quantity_reading;
use crate::slips::{Around, Slip, check_ids, no_cell, tell};
use crate::study::{Asked, BreakEven, Claim, Compare, Experiment, Parameter, ReplayAsked};
use crate::written::{BreakEvenFile, ClaimFile, CompareFile, ParameterFile, StudyFile, text_of};

pub(crate) fn read(
    file: &StudyFile,
    experiments: &[Experiment],
    around: &Around<'_>,
    wrong: &mut Problems,
) -> Vec<Claim> {
    check_ids(file.claim.iter().map(|claim| &claim.id), "claim", wrong);
    file.claim.iter().map(|written| claim(written, experiments, around, wrong)).collect()
}

/// The published figures that are settings.
pub(crate) fn parameters(
    file: &StudyFile,
    around: &Around<'_>,
    wrong: &mut Problems,
) -> Vec<Parameter> {
    let mut parameters = Vec::new();
    for written in &file.parameter {
        let ParameterFile { table, series, x, why } = written.get_ref();
        let x = text_of(x.as_ref());
        let cells = around.published.matching(table, series, &x);
        if cells.is_empty() {
            tell(wrong, written.span(), no_cell(table, series, &x));
        }
        parameters.push(Parameter { cells, why: why.clone() });
    }
    parameters
}

fn claim(
    written: &ClaimFile,
    experiments: &[Experiment],
    around: &Around<'_>,
    wrong: &mut Problems,
) -> Claim {
    for id in &written.experiments {
        if !experiments.iter().any(|experiment| experiment.id == *id.get_ref()) {
            let text = format!("unknown experiment {:?}", id.get_ref());
            let near = nearest(id.get_ref(), experiments.iter().map(|one| one.id.as_str()));
            let help = near.map(|near| format!("did you mean {near}?")).unwrap_or_default();
            tell(wrong, id.span(), (text, help));
        }
    }
    let mut cells = Vec::new();
    for cell in &written.cells {
        let own = cell.get_ref();
        let x = text_of(own.x.as_ref());
        let found = around.published.matching(&own.table, &own.series, &x);
        if found.is_empty() {
            tell(wrong, cell.span(), no_cell(&own.table, &own.series, &x));
        }
        cells.extend(found.into_iter().filter(|at| !cells.contains(at)).collect::<Vec<_>>());
    }
    let placed = conditions(written, wrong);
    check_lists(written, wrong);
    let needs_full = written.scale.is_some();
    let quantities = quantities(written, around, needs_full, wrong);
    let compares = compares(written, &quantities, wrong);
    let break_even = break_evens(written, wrong);
    check_names(written, &placed, &compares, &break_even, wrong);
    check_evidence(&placed, &quantities, wrong);
    let own = ReplayAsked {
        on: written.same.as_ref().or(written.stand_in.as_ref()).cloned().unwrap_or_default(),
        is_same: written.same.is_some(),
    };
    let named = written.named.iter();
    let named = named.map(|named| ReplayAsked { on: named.same.clone(), is_same: true });
    Claim {
        id: written.id.get_ref().clone(),
        section: written.section.clone(),
        says: written.says.clone(),
        is_finding: written.finding,
        experiments: written.experiments.iter().map(|id| id.get_ref().clone()).collect(),
        cells,
        not_replayed: written.not_replayed.as_ref().map(|text| text.get_ref().clone()),
        replays: [own].into_iter().chain(named).collect(),
        because: written.because.clone(),
        remark: written.remark.clone(),
        needs_full,
        cores_min: written.needs.map_or(0, |needs| needs.cores),
        conditions: placed.into_iter().map(|(asked, _)| asked).collect(),
        compares,
        break_even,
        quantities,
    }
}

type Placed<'c> = (Asked, &'c Spanned<String>);

fn conditions<'c>(written: &'c ClaimFile, wrong: &mut Problems) -> Vec<Placed<'c>> {
    let own = [
        (Role::Printed, 0, &written.printed),
        (Role::Possible, 0, &written.possible),
        (Role::Replayed, 0, &written.replayed),
        (Role::Why, 0, &written.why),
    ];
    let named = written.named.iter().enumerate();
    let named = named.map(|(at, named)| (Role::Named, at + 1, &named.replayed));
    let mut conditions = Vec::new();
    for (role, lane, list) in own.into_iter().chain(named) {
        for text in list {
            match Condition::read(text.get_ref()) {
                Ok(condition) => conditions.push((Asked { role, lane, condition }, text)),
                Err(said) => tell(wrong, text.span(), halves(&said)),
            }
        }
    }
    conditions
}

/// What is wrong and what to type, of a message that holds both.
fn halves(said: &str) -> Slip {
    let (text, help) = said.rsplit_once(": ").unwrap_or((said, ""));
    (text.to_owned(), help.to_owned())
}

/// Every list must be able to come to an answer.
fn check_lists(written: &ClaimFile, wrong: &mut Problems) {
    let ClaimFile { id, replayed, stand_in, same, not_replayed, why, because, named, .. } = written;
    let is_replayed = !replayed.is_empty();
    let slip = match (not_replayed.is_some(), stand_in.is_some(), same.is_some()) {
        (true, _, _) if is_replayed => {
            Some(("it has both not_replayed and conditions", "remove one"))
        }
        (false, _, _) if !is_replayed => Some((
            "it has neither replayed nor not_replayed",
            "add replayed, or write why not: not_replayed = \"...\"",
        )),
        (_, true, true) => Some(("it has both stand_in and same", "remove one")),
        (_, false, false) if is_replayed => Some((
            "it does not name the software of its replay",
            "add stand_in = \"...\", or same = \"...\" where that is what the paper names",
        )),
        _ if !why.is_empty() && because.is_none() => {
            Some(("it has conditions on a cause that it does not name", "name it in because"))
        }
        _ if named.iter().any(|named| named.replayed.is_empty()) => {
            Some(("a named replay has no conditions", "give it replayed = [\"...\"]"))
        }
        _ => None,
    };
    if let Some((text, help)) = slip {
        let text = format!("the claim {}: {text}", id.get_ref());
        wrong.add(Problem::at(id.span(), text, help));
    }
}

fn quantities(
    written: &ClaimFile,
    around: &Around<'_>,
    needs_full: bool,
    wrong: &mut Problems,
) -> BTreeMap<String, Quantity> {
    let mut quantities = BTreeMap::new();
    for (name, quantity) in &written.quantities {
        if WORDS.contains(&name.get_ref().as_str()) || !is_name(name.get_ref()) {
            let text = format!("{:?} is not a valid name of a quantity", name.get_ref());
            let help = "use a letter, then letters, digits and _; not a word of expressions";
            tell(wrong, name.span(), (text, help.to_owned()));
        }
        match quantity_reading::read(quantity.get_ref(), around, needs_full) {
            Ok(quantity) => drop(quantities.insert(name.get_ref().clone(), quantity)),
            Err((text, help)) => {
                tell(wrong, quantity.span(), (format!("{}: {text}", name.get_ref()), help));
            }
        }
    }
    quantities
}

/// The rows of the claim: on the left published figures alone, on the right measured ones.
fn compares(
    written: &ClaimFile,
    quantities: &BTreeMap<String, Quantity>,
    wrong: &mut Problems,
) -> Vec<Compare> {
    let mut compares = Vec::new();
    for row in &written.compare {
        let CompareFile { what, theirs, here, unit } = row.get_ref();
        let mut read = |text: &Option<String>, is_published: bool| {
            let expression = match Expression::read(text.as_deref()?) {
                Ok(expression) => expression,
                Err(said) => {
                    tell(wrong, row.span(), halves(&said));
                    return None;
                }
            };
            let is_wrong = |name: &&String| {
                let of = quantities.get(*name);
                of.is_some_and(|quantity| quantity.run().is_none() != is_published)
            };
            if let Some(name) = expression.names().iter().find(is_wrong) {
                let (side, kind) = match is_published {
                    true => ("theirs", "published"),
                    false => ("here", "measured"),
                };
                let text = format!("{side} = {expression}: {name} is not a {kind} quantity");
                let help = "write published quantities in `theirs`, measured ones in `here`";
                tell(wrong, row.span(), (text, help.to_owned()));
            }
            Some(expression)
        };
        let (theirs, here) = (read(theirs, true), read(here, false));
        if theirs.is_none() && here.is_none() {
            let text = format!("the row {what:?} has no quantities");
            tell(wrong, row.span(), (text, "add `theirs`, `here`, or both".to_owned()));
        }
        compares.push(Compare { what: what.clone(), theirs, here, unit: unit.clone() });
    }
    compares
}

fn break_evens(written: &ClaimFile, wrong: &mut Problems) -> Vec<BreakEven> {
    let mut read = Vec::new();
    for one in &written.break_even {
        let BreakEvenFile { vary, unit, what, within, condition } = one.get_ref();
        let is_known = written.quantities.keys().any(|name| name.get_ref() == vary);
        let slip = match Condition::read(condition) {
            Err(said) => Some(halves(&said)),
            Ok(_) if is_known => Some((
                format!("{vary} is a quantity of this claim and cannot be varied"),
                "give the unknown a name of its own".to_owned(),
            )),
            Ok(found) if !found.names().contains(vary) => Some((
                format!("{vary} is not in {found}"),
                "write the condition over it".to_owned(),
            )),
            Ok(_) if !(within.0 < within.1 && within.0.is_finite() && within.1.is_finite()) => {
                let text = format!("within = [{}, {}] is not a range", within.0, within.1);
                Some((text, "write the smaller end first".to_owned()))
            }
            Ok(condition) => {
                let (vary, unit, what) = (vary.clone(), unit.clone(), what.clone());
                read.push(BreakEven { vary, unit, what, within: *within, condition });
                None
            }
        };
        if let Some(slip) = slip {
            tell(wrong, one.span(), slip);
        }
    }
    read
}

/// Every name of an expression stands for a quantity, and every quantity stands in one.
fn check_names(
    written: &ClaimFile,
    conditions: &[Placed<'_>],
    compares: &[Compare],
    break_even: &[BreakEven],
    wrong: &mut Problems,
) {
    let known: BTreeSet<&String> = written.quantities.keys().map(Spanned::get_ref).collect();
    let mut used = BTreeSet::new();
    let mut check = |name: &String, place: std::ops::Range<usize>, wrong: &mut Problems| {
        if !known.contains(name) {
            let text = format!("{name} is not a quantity");
            let near = nearest(name, known.iter().map(|name| name.as_str()));
            let help = near.map(|near| format!("did you mean {near}?"));
            let help =
                help.unwrap_or_else(|| format!("write {name} = {{ ... }} below [claim.let]"));
            tell(wrong, place, (text, help));
        }
        used.insert(name.clone());
    };
    for (asked, place) in conditions {
        if asked.condition.names().is_empty() {
            let text = format!("{} does not depend on any quantity", asked.condition);
            let help = "write a condition over the names below [claim.let]".to_owned();
            tell(wrong, place.span(), (text, help));
        }
        asked.condition.names().iter().for_each(|name| check(name, place.span(), wrong));
    }
    for row in compares {
        let names = row.theirs.iter().chain(&row.here).flat_map(Expression::names);
        names.for_each(|name| check(name, written.id.span(), wrong));
    }
    for one in break_even {
        let names = one.condition.names().iter().filter(|name| **name != one.vary);
        names.for_each(|name| check(name, written.id.span(), wrong));
    }
    for name in written.quantities.keys().filter(|name| !used.contains(name.get_ref())) {
        let text = format!("nothing uses {}", name.get_ref());
        tell(wrong, name.span(), (text, "remove it, or write a condition with it".to_owned()));
    }
}

/// What is asked of the paper rests on published figures alone, and a replay on a run.
fn check_evidence(
    conditions: &[Placed<'_>],
    quantities: &BTreeMap<String, Quantity>,
    wrong: &mut Problems,
) {
    for (asked, place) in conditions {
        let names = asked.condition.names().iter();
        let mut runs = names.filter_map(|name| quantities.get(name)?.run()).peekable();
        let slip = match (asked.role.is_by_paper(), runs.peek()) {
            (true, Some(run)) => Some((
                format!("{} uses the run {run}", asked.condition),
                "printed and possible may use published figures and audit findings only",
            )),
            (false, None) if asked.role != Role::Why => Some((
                format!("{} uses no run", asked.condition),
                "move it to printed, since it uses published figures only",
            )),
            _ => None,
        };
        let is_read = asked.condition.names().iter().all(|name| quantities.contains_key(name));
        if let Some((text, help)) = slip.filter(|_| is_read && !asked.condition.names().is_empty())
        {
            tell(wrong, place.span(), (text, help.to_owned()));
        }
    }
}

fn is_name(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(is_part)
}
