//! Whether the result may be used: thresholds, invalid cases, trials that are missing.

use std::collections::BTreeMap;

use weigh_model::warnings::{Severity, WarningRecord};

use super::words::{counted, sentence};
use crate::summary::cell_name::point_name;
use crate::summary::{AnswerKind, AnswerLine, Cell, Summary};
use crate::view::thresholds::verdict;

/// The thresholds, if the plan has any, and what restricts the use of the result.
pub(super) fn lines(summary: &Summary) -> Vec<AnswerLine> {
    let line = |kind: AnswerKind, text: &str| AnswerLine { kind, text: sentence(text) };
    let mut lines: Vec<AnswerLine> =
        verdict(summary).map(|text| line(AnswerKind::Thresholds, &text)).into_iter().collect();
    let restricted: Vec<String> =
        [outcome(summary), unmeasured(summary), invalid(summary), late(summary), failures(summary)]
            .into_iter()
            .flatten()
            .collect();
    if !restricted.is_empty() {
        lines.push(line(AnswerKind::Validity, &restricted.join(". ")));
    } else if lines.is_empty() {
        lines.push(line(AnswerKind::Validity, &usable(summary)));
    }
    lines
}

/// The run ended early, or has no result.
fn outcome(summary: &Summary) -> Option<String> {
    let outcome = summary.run.outcome.as_str();
    match (outcome, summary.cells.is_empty()) {
        ("done", true) => Some("Nothing was measured".to_owned()),
        ("done", false) => None,
        (_, true) => Some(format!("The run is {outcome}: nothing was measured")),
        (_, false) => Some(format!("The run is {outcome}: these are its results so far")),
    }
}

/// Cases in which no message succeeded, with the reason of the first.
fn unmeasured(summary: &Summary) -> Option<String> {
    let empty = summary.unmeasured();
    let why = &empty.first()?.why;
    Some(match (empty.len(), summary.cells.len()) {
        (1, 1) => format!("Nothing was measured: {why}"),
        (number, all) if number == all => {
            format!("Nothing was measured in any of {all} cases, the first: {why}")
        }
        (number, all) => {
            let first = &empty[0].cell;
            let first = if number == 1 { first.clone() } else { format!("the first is {first}") };
            format!("Nothing was measured in {number} of {all} cases, {first}: {why}")
        }
    })
}

/// Cases whose result must not be used, with the advice of most of them.
fn invalid(summary: &Summary) -> Option<String> {
    let invalid: Vec<&Cell> = summary.cells.iter().filter(|cell| !cell.valid).collect();
    let is_cause = |warning: &&WarningRecord| warning.severity == Severity::Invalid;
    let mut causes: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
    for cell in &invalid {
        // A cell counts once, for its first cause.
        if let Some(warning) = cell.warnings.iter().find(is_cause) {
            let of_code = causes.entry(&warning.code).or_insert((0, &warning.advice));
            of_code.0 += 1;
        }
    }
    let cause = causes.into_iter().max_by_key(|(_, (number, _))| *number);
    let because = cause.map_or(String::new(), |(code, (_, advice))| format!(" ({code}): {advice}"));
    match (invalid.len(), summary.cells.len()) {
        (0, _) => None,
        (1, 1) => Some(format!("Do not use this result, it is invalid{because}")),
        (number, all) if number == all => {
            Some(format!("Do not use this result: all {all} cases are invalid{because}"))
        }
        (number, all) => {
            let are = if number == 1 { "is" } else { "are" };
            Some(format!("{number} of {all} cases {are} invalid and not compared{because}"))
        }
    }
}

/// Cases whose times from the due time are not reported.
fn late(summary: &Summary) -> Option<String> {
    let is_late = |cell: &&Cell| {
        cell.valid && cell.warnings.iter().any(|own| own.severity == Severity::InvalidTimes)
    };
    let number = summary.cells.iter().filter(is_late).count();
    (number > 0).then(|| {
        format!(
            "Response times of {} of {} are invalid: the generator was late",
            number,
            counted(summary.cells.len(), "case")
        )
    })
}

/// Trials that could not be done, with the first reason.
fn failures(summary: &Summary) -> Option<String> {
    let failure = summary.failures.first()?;
    let error = failure.error.lines().next().unwrap_or_default();
    let of = point_name(&failure.point);
    Some(match summary.failures.len() {
        1 => format!("1 trial could not be done, {of}: {error}"),
        number => format!("{number} trials could not be done, the first is {of}: {error}"),
    })
}

fn usable(summary: &Summary) -> String {
    let codes: std::collections::BTreeSet<&str> =
        summary.cells.iter().flat_map(|cell| &cell.warnings).map(|own| own.code.as_str()).collect();
    let care = match codes.len() {
        0 => String::new(),
        number if codes.contains("disturbed") => {
            let what = if summary.cells.len() == 1 { "it" } else { "them" };
            format!(
                ", but other programs disturbed {what}; read {} first",
                counted(number, "warning")
            )
        }
        number => format!("; read {} first", counted(number, "warning")),
    };
    match summary.cells.len() {
        1 => format!("The result is valid{care}"),
        2 => format!("Both cases are valid{care}"),
        number => format!("All {number} cases are valid{care}"),
    }
}
