//! Whether the loads of a plan are such that the tools could have made them whose figures it asks
//! for. A plan may hold loads of several kinds, so one is enough.

use weigh_model::Emulation;

use crate::case::Case;
use crate::document::Document;
use crate::problem::{Problem, Problems};

/// Says which tool could have made none of these loads, and what the first one lacks for it.
pub(crate) fn check(document: &Document, cases: &[Case], problems: &mut Problems) {
    let place = || document.emulate_place.clone();
    let asked = &document.observe.emulate;
    for (number, own) in asked.iter().enumerate() {
        if asked[..number].contains(own) {
            let text = format!("observe.emulate: {own} was given before");
            problems.add(Problem::at(place(), text, "leave one of them out"));
        }
        if let Some(problem) = lacking(*own, cases) {
            problems.add(Problem { place: Some(place()), ..problem });
        }
    }
}

fn lacking(own: Emulation, cases: &[Case]) -> Option<Problem> {
    let mut lacks = cases.iter().map(|case| own.needs(&case.load).err());
    let first = lacks.next()??;
    if !lacks.all(|lacking| lacking.is_some()) {
        return None;
    }
    let text = format!("observe.emulate: {own}, {}: {}", first.key, first.text);
    Some(Problem::missing(text, first.mend))
}
