//! What to hold against the study's own run: doubts of its cells, what was skipped, damaged figures
//! of the paper; and what the paper's figures say of themselves.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use weigh_report::page::document::escape;

use super::method::run_link;
use super::prose::{prose, series, shorter, with_times};
use crate::outcome::{DoubtShown, Outcome, RunOutcome};
use crate::study::Study;

/// Runs that were skipped with the mend, doubts by code, damaged figures.
pub(super) fn section(study: &Study, outcome: &Outcome) -> String {
    let runs = distinct(outcome);
    limits(study) + &skipped(&runs) + &doubts(&runs) + &flags(study)
}

/// What those who made the replay say that it does not show.
fn limits(study: &Study) -> String {
    if study.limits.is_empty() {
        return String::new();
    }
    let items: String =
        study.limits.iter().map(|text| format!("<li>{}</li>", prose(text))).collect();
    format!("<h3>What this replay does not say</h3>\n<ul>{items}</ul>\n")
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
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for run in runs {
        let Some(reason) = &run.skipped else { continue };
        let name = escape(&run.name);
        match reasons.iter_mut().find(|(known, _)| known == reason) {
            Some((_, names)) => names.push(name),
            None => reasons.push((reason, vec![name])),
        }
    }
    if reasons.is_empty() {
        return "<p>No plan was skipped.</p>\n".to_owned();
    }
    let mut html = "<h3>Skipped</h3>\n<ul>".to_owned();
    for (reason, names) in reasons {
        let _ = write!(html, "<li>{} <span>{}</span></li>", escape(reason), names.join(", "));
    }
    html + "</ul>\n"
}

/// Doubts of all runs together: a code once, what is seen first and where else.
fn doubts(runs: &[&RunOutcome]) -> String {
    let mut codes: Vec<Vec<(&RunOutcome, &DoubtShown)>> = Vec::new();
    for run in runs {
        for doubt in &run.doubts {
            match codes.iter_mut().find(|code| code[0].1.code == doubt.code) {
                Some(code) => code.push((run, doubt)),
                None => codes.push(vec![(run, doubt)]),
            }
        }
    }
    if codes.is_empty() {
        return "<p>No rule was broken in any of the runs.</p>\n".to_owned();
    }
    let is_taken =
        |code: &[(&RunOutcome, &DoubtShown)]| code.iter().any(|(_, doubt)| !doubt.takes.is_empty());
    codes.sort_by_key(|code| (!is_taken(code), std::cmp::Reverse(code.len())));
    let mut html = "<h3>Doubts of the runs</h3>\n<dl>\n".to_owned();
    for code in &codes {
        let class = if is_taken(code) { " class=\"invalid\"" } else { "" };
        let takes: BTreeSet<&str> = code.iter().map(|(_, doubt)| doubt.takes.as_str()).collect();
        let takes: Vec<&str> = takes.into_iter().filter(|takes| !takes.is_empty()).collect();
        let takes = match takes.is_empty() {
            true => String::new(),
            false => format!(" takes away {}", takes.join(" and ")),
        };
        let _ = write!(
            html,
            "<dt{class}><code>{}</code>{takes}</dt><dd><p><b>{}</b></p><ul>",
            escape(&code[0].1.code),
            escape(&code[0].1.advice),
        );
        let items = seen(code);
        let first = items.len().min(SHOWN_MAX);
        html += &items[..first].concat();
        html += "</ul>";
        if items.len() > first {
            let _ = write!(
                html,
                "<details class=\"paper\"><summary>{} more of this</summary><ul>{}</ul></details>",
                items.len() - first,
                items[first..].concat()
            );
        }
        html += "</dd>\n";
    }
    html + "</dl>\n"
}

/// What was seen and in which runs: the same words once.
fn seen(code: &[(&RunOutcome, &DoubtShown)]) -> Vec<String> {
    let mut texts: Vec<(&str, Vec<String>)> = Vec::new();
    for (run, doubt) in code {
        let cells = match doubt.cells.len() {
            1 => escape(&shorter(&doubt.cells[0])),
            number => format!("{number} of {} cells", run.cells),
        };
        let place = format!("{} ({cells})", run_link(run));
        match texts.iter_mut().find(|(text, _)| *text == doubt.text) {
            Some((_, places)) => places.push(place),
            None => texts.push((&doubt.text, vec![place])),
        }
    }
    let item = |(text, places): (&str, Vec<String>)| {
        format!("<li>{} <span>{}</span></li>", escape(&with_times(text)), places.join(", "))
    };
    texts.into_iter().map(item).collect()
}

/// Figures of the paper whose printed form is damaged or doubtful.
fn flags(study: &Study) -> String {
    if study.flags.is_empty() {
        return String::new();
    }
    let mut html = "<h3>Damaged figures of the paper</h3>\n<details class=\"paper\"><summary>What \
                    is printed and what it was read as</summary>\n<ul>"
        .to_owned();
    for flag in &study.flags {
        let at = [flag.table.clone(), series(&flag.series), flag.x.clone()];
        let at: Vec<&str> = at.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        let _ = writeln!(
            html,
            "<li>{}: printed {}, read as {}: {} <span>({})</span></li>",
            escape(&at.join(", ")),
            escape(&flag.printed),
            escape(&flag.used),
            escape(&flag.reason),
            escape(&flag.confidence),
        );
    }
    html + "</ul></details>\n"
}

/// The rules that the paper's own figures break, before any run.
pub(super) fn audit(study: &Study) -> String {
    if study.audit.findings.is_empty() {
        return String::new();
    }
    let mut html = format!(
        "<p>These need no run: they are arithmetic on the printed figures and on what is known of \
         how they came about. <code>weigh audit --study {} --page audit.html</code> shows all of \
         them.</p>\n<dl>\n",
        escape(&study.name)
    );
    for rule in study.audit.rules() {
        let _ = write!(
            html,
            "<dt id=\"rule-{rule}\"><code>{rule}</code> {}</dt><dd><ul>",
            escape(rule.title())
        );
        for finding in study.audit.findings.iter().filter(|finding| finding.rule == rule) {
            let more = match finding.also.len() {
                0 => String::new(),
                also => format!(" (and {also} more in this table)"),
            };
            let _ = write!(
                html,
                "<li>{}{more} <span>({})</span></li>",
                escape(&finding.seen),
                escape(&finding.place.table)
            );
        }
        html += "</ul></dd>\n";
    }
    html + "</dl>\n"
}

/// Of so many sightings of one doubt the text stands there; further ones are behind a fold.
const SHOWN_MAX: usize = 4;
