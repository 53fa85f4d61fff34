//! The answer to the question of a run: a title and at most [`LINES_MAX`] lines, made from the
//! verdicts and never stronger than these. Terminal, page, Markdown and `summary.json` share it.

mod battery;
mod contests;
mod ends;
mod losses;
mod one_case;
mod question;
mod ranking;
mod search;
mod undecided;
mod validity;
mod words;

pub use question::question;

use crate::figures::spoken;
use crate::summary::headlines::headline_metric;
use crate::summary::{AnswerKind, AnswerLine, Matrix, Summary};
use crate::view::interference;
use crate::view::meeting::{Lanes, Meeting};

/// The lines of the answer, the most important first.
pub fn lines(summary: &Summary) -> Vec<AnswerLine> {
    if !summary.limits.is_empty() {
        return search::lines(summary, LINES_MAX);
    }
    let mut lines = validity::lines(summary);
    if summary.cells.is_empty() {
        return lines;
    }
    let matrix = Matrix::new(&summary.cells);
    let lanes = Lanes::of(summary, &matrix);
    let mut add = |kind: AnswerKind, text: Option<String>| {
        lines.extend(text.map(|text| AnswerLine { kind, text: words::sentence(&text) }));
    };
    add(AnswerKind::Background, interference::answer(summary));
    for text in ends::sentences(summary, &matrix) {
        add(AnswerKind::Axis, Some(text));
    }
    add(AnswerKind::Loss, Some(losses::line(summary, &matrix)));
    if let [cell] = &summary.cells[..] {
        for (kind, text) in one_case::lines(cell) {
            add(kind, Some(text));
        }
        add(AnswerKind::Battery, battery::line(summary, &matrix));
        return limited(lines);
    }
    for kind in [AnswerKind::Cpu, AnswerKind::Bytes, AnswerKind::Time] {
        add(kind, ranking::line(summary, &lanes, kind));
    }
    add(AnswerKind::Battery, battery::line(summary, &matrix));
    add(AnswerKind::Axis, course(summary, &lanes));
    add(AnswerKind::Undecided, undecided::line(summary, &lanes));
    limited(lines)
}

/// The course of single lanes along an axis, if no lane was compared with another.
fn course(summary: &Summary, lanes: &Lanes) -> Option<String> {
    let metric = headline_metric(summary)?;
    if lanes.meetings(summary, metric, true).iter().any(Meeting::is_compared) {
        return None;
    }
    let steps = lanes.meetings(summary, metric, false);
    let steps: Vec<String> =
        steps.iter().filter(|step| step.is_compared()).map(Meeting::steps).collect();
    let more = match steps.len().saturating_sub(STEPS_MAX) {
        0 => String::new(),
        more => format!("; {more} more in the verdicts"),
    };
    let shown = steps.get(..STEPS_MAX.min(steps.len()))?.join("; ");
    (!steps.is_empty()).then(|| format!("{}: {shown}{more}", spoken(metric)))
}

/// At most [`LINES_MAX`] lines, in their order.
fn limited(mut lines: Vec<AnswerLine>) -> Vec<AnswerLine> {
    for kind in DROPPED {
        if lines.len() > LINES_MAX {
            let last = lines.iter().rposition(|line| line.kind == kind);
            last.map(|at| lines.remove(at));
        }
    }
    lines.truncate(LINES_MAX);
    lines
}

/// More lines are not read as an answer.
pub const LINES_MAX: usize = 6;

/// Kinds that give way if there are too many lines, the first one first.
const DROPPED: [AnswerKind; 3] = [AnswerKind::Axis, AnswerKind::Undecided, AnswerKind::Bytes];

/// Lanes whose course along an axis fits into a line.
const STEPS_MAX: usize = 2;

#[cfg(test)]
mod tests;
