//! Checks whether emulated tools could have made the loads of a plan. A plan may hold loads of
//! several kinds, so one suitable load is enough.

use weigh_model::Emulation;

use crate::case::Case;
use crate::document::Document;
use crate::problem::{Problem, Problems};

/// Reports each tool that could have made none of these loads, with the reason for the first load.
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
    Some(Problem::missing(text, first.fix))
}
