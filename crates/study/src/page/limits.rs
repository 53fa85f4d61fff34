//! What the replay does not show: its limits, what was not run, what weakens results of its runs,
//! and damaged figures of the paper.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use weigh_report::page::document::escape;

use super::method::run_link;
use super::parts::{fold, list};
use super::prose::{and, counted, prose, series, shorter, upper, with_times};
use crate::outcome::{Outcome, RunOutcome, WarningShown};
use crate::study::Study;

/// Limits, runs that were skipped with what helps, warnings by their kind, damaged figures.
pub(super) fn section(study: &Study, outcome: &Outcome) -> String {
    let runs = distinct(outcome);
    list(study.limits.iter().map(|text| prose(text)))
        + &skipped(&runs)
        + &warnings(&runs)
        + &fold(
            &format!(
                "Damaged figures of the paper ({}), and how they were read",
                study.flags.len()
            ),
            &flags(study),
        )
}

/// Every run once, though several experiments may share it.
fn distinct(outcome: &Outcome) -> Vec<&RunOutcome> {
    let mut runs: Vec<&RunOutcome> = Vec::new();
    for run in outcome.experiments.iter().flat_map(|experiment| &experiment.runs) {
        if !runs.iter().any(|known| known.name == run.name) {
            runs.push(run);
        }
    }
    runs
}

fn skipped(runs: &[&RunOutcome]) -> String {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for run in runs {
        let Some(reason) = &run.skipped else { continue };
        match reasons.iter_mut().find(|(known, _)| known == reason) {
            Some((_, names)) => names.push(&run.name),
            None => reasons.push((reason, vec![&run.name])),
        }
    }
    let items = reasons.into_iter().map(|(reason, names)| {
        let names = and(&names);
        format!("{} <span class=\"muted\">({})</span>", upper(&prose(reason)), escape(&names))
    });
    match list(items) {
        none if none.is_empty() => none,
        items => format!("<h3>Not run</h3>\n{items}"),
    }
}

/// Warnings of all runs together: each kind once, with what is seen first; the rest is folded.
fn warnings(runs: &[&RunOutcome]) -> String {
    let mut kinds: Vec<Vec<(&RunOutcome, &WarningShown)>> = Vec::new();
    for run in runs {
        for warning in &run.warnings {
            match kinds.iter_mut().find(|kind| kind[0].1.code == warning.code) {
                Some(kind) => kind.push((run, warning)),
                None => kinds.push(vec![(run, warning)]),
            }
        }
    }
    if kinds.is_empty() {
        return "<p>No run has a warning.</p>\n".to_owned();
    }
    let is_taken = |kind: &[(&RunOutcome, &WarningShown)]| {
        kind.iter().any(|(_, warning)| !warning.takes.is_empty())
    };
    kinds.sort_by_key(|kind| (!is_taken(kind), std::cmp::Reverse(kind.len())));
    let mut html = "<h3>Warnings of the runs</h3>\n<dl class=\"rules\">\n".to_owned();
    for kind in &kinds {
        let (_, first) = kind[0];
        let takes: BTreeSet<&str> =
            kind.iter().map(|(_, warning)| warning.takes.as_str()).collect();
        let takes: Vec<&str> = takes.into_iter().filter(|takes| !takes.is_empty()).collect();
        let title = match takes.is_empty() {
            true => "Note".to_owned(),
            false => format!("<span class=\"bad\">Not used: {}</span>", and(&takes)),
        };
        let _ = write!(
            html,
            "<div><dt>{title} <span class=\"muted\">{}</span></dt><dd><p>{} <span \
             class=\"muted\">({}; advice: {})</span></p>",
            escape(&first.code),
            upper(&escape(&with_times(&first.text))),
            counted(kind.len(), "run", "runs"),
            escape(&first.advice),
        );
        html += &fold("Where", &list(seen(kind)));
        html += "</dd></div>\n";
    }
    html + "</dl>\n"
}

/// Texts of a warning with the runs of each.
fn seen(kind: &[(&RunOutcome, &WarningShown)]) -> Vec<String> {
    let mut texts: Vec<(&str, Vec<String>)> = Vec::new();
    for (run, warning) in kind {
        let cells = match warning.cells.len() {
            1 => escape(&shorter(&warning.cells[0])),
            number => format!("{number} of {} cells", run.cells),
        };
        let place = format!("{} ({cells})", run_link(run));
        match texts.iter_mut().find(|(text, _)| *text == warning.text) {
            Some((_, places)) => places.push(place),
            None => texts.push((&warning.text, vec![place])),
        }
    }
    let item = |(text, places): (&str, Vec<String>)| {
        format!("{}: {}", escape(&with_times(text)), places.join(", "))
    };
    texts.into_iter().map(item).collect()
}

/// Figures of the paper whose printed form is damaged or questionable.
fn flags(study: &Study) -> String {
    list(study.flags.iter().map(|flag| {
        let at = [flag.table.clone(), series(&flag.series), flag.x.clone()];
        let at: Vec<&str> = at.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        format!(
            "{}: printed {}, read as {}: {} <span class=\"muted\">({})</span>",
            escape(&at.join(", ")),
            escape(&flag.printed),
            escape(&flag.used),
            escape(&flag.reason),
            escape(&flag.confidence),
        )
    }))
}
