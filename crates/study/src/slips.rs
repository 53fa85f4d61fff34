//! Errors in a study's files, and the parts of a study that are checked against each other.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::audit::Audit;
use toml::{Spanned, Value};
use weigh_plan::keys::Keys;
use weigh_plan::kind::nearest;
use weigh_plan::{Problem, Problems};

use crate::plans::StudyPlan;
use crate::published::Published;
use crate::tools::Tool;

/// What a study's own file may speak of.
pub(crate) struct Around<'a> {
    pub(crate) plans: &'a [StudyPlan],
    pub(crate) tools: &'a [Tool],
    pub(crate) published: &'a Published,
    pub(crate) audit: &'a Audit,
    pub(crate) keys: &'a Keys,
}

/// What is wrong, and what to write instead.
pub(crate) type Slip = (String, String);

/// Says no to ids that are there twice.
pub(crate) fn check_ids<'i>(
    ids: impl Iterator<Item = &'i Spanned<String>>,
    what: &str,
    wrong: &mut Problems,
) {
    let mut seen = BTreeSet::new();
    for id in ids {
        if !seen.insert(id.get_ref()) {
            let text = format!("duplicate {what} {:?}", id.get_ref());
            wrong.add(Problem::at(id.span(), text, "give it another id"));
        }
    }
}

/// Message for a published figure that does not exist.
pub(crate) fn no_cell(table: &str, series: &str, x: &str) -> Slip {
    let at = if x.is_empty() { String::new() } else { format!(" at x {x}") };
    let text = format!("published.csv has no figure in {table:?}, series {series:?}{at}");
    (text, "write table, series and x as in the file".to_owned())
}

/// Adds what is wrong with something that stands at `place`.
pub(crate) fn tell(wrong: &mut Problems, place: Range<usize>, slip: Slip) {
    wrong.add(Problem::at(place, slip.0, slip.1));
}

/// Keys and values as they pick cells.
pub(crate) type At = BTreeMap<String, Value>;

/// The message about a figure that a tool does not have.
pub(crate) fn no_figure(tool: &Tool, figure: &str) -> (String, String) {
    let figures = tool.figures();
    let near = nearest(figure, figures.iter().map(String::as_str));
    let fix = match near {
        Some(near) => format!("did you mean {near}?"),
        None => format!("expected one of {}", figures.join(", ")),
    };
    (format!("{} has no figure {figure:?}", tool.name), fix)
}
