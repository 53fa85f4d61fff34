//! Tables of runs, and of a metric over all of them.

use std::collections::BTreeMap;

use crate::show::terminal::width;
use serde::Serialize;
use serde_json::json;
use weigh_model::metrics::unit_of;
use weigh_model::visible::visible_line;
use weigh_report::StudyFolder;
use weigh_report::figures::{bytes, three_digits, time};
use weigh_report::history::{FigureEntry, RunEntry};
use weigh_report::terminal::columns;
use weigh_report::terminal::fold::{shortened, shown_width};
use weigh_study::Replayed;
use weigh_study::outcome::ClaimOutcome;
use weigh_study::outcome::Outcome;

/// Entry of a study's run in the list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StudyEntry {
    /// Name of its folder.
    pub id: String,
    /// Start, in RFC 3339.
    pub started: String,
    /// Outcome of the run.
    pub outcome: String,
    /// Name of the study.
    pub name: String,
    /// Part of the study that was run.
    pub scale: String,
    /// Question of the study.
    pub question: String,
    /// Version of Weighbridge.
    pub version: String,
    /// Number of claims by the answer of the replay; null if an older version has judged.
    pub replayed: Option<BTreeMap<&'static str, usize>>,
}

impl StudyEntry {
    /// Returns the entry of a folder from its `study.json`.
    pub fn of(folder: &StudyFolder, found: &Outcome) -> StudyEntry {
        let outcome = match found.state.as_str() {
            "running" if folder.is_in_progress() => "in progress",
            "running" => "crashed",
            state => state,
        };
        let is_so = |answer| {
            move |claim: &&ClaimOutcome| {
                claim.replays.first().is_some_and(|replay| replay.answer == answer)
            }
        };
        let count = |answer: Replayed| found.claims.iter().filter(is_so(answer)).count();
        StudyEntry {
            id: folder.id().to_owned(),
            started: found.started.clone(),
            outcome: outcome.to_owned(),
            name: found.study.clone(),
            scale: found.scale.name().to_owned(),
            question: found.question.clone(),
            version: found.version.clone(),
            replayed: (!found.occasions.is_empty())
                .then(|| Replayed::ALL.map(|answer| (answer.name(), count(answer))).into()),
        }
    }
}

/// Returns the table of single runs, and below it the table of studies.
pub fn tables(entries: &[&RunEntry], studies: &[StudyEntry]) -> String {
    let mut text = if entries.is_empty() { String::new() } else { table(entries) };
    if studies.is_empty() {
        return text;
    }
    if !text.is_empty() {
        text.push('\n');
    }
    let mut heading = vec!["study run", "started", "outcome", "scale"];
    heading.extend(Replayed::ALL.map(Replayed::name));
    heading.extend(["weigh", "study"]);
    let row = |entry: &StudyEntry| {
        let mut row =
            [&entry.id, &entry.started, &entry.outcome, &entry.scale].map(String::clone).to_vec();
        let count = |answer: Replayed| match &entry.replayed {
            Some(counts) => counts[answer.name()].to_string(),
            None => "–".to_owned(),
        };
        row.extend(Replayed::ALL.map(count));
        row.extend([&entry.version, &entry.name].map(String::clone));
        row
    };
    text + &aligned(&heading, &studies.iter().map(row).collect::<Vec<_>>(), 4..=7)
}

/// Returns the list as JSON: single runs, then runs of studies, which have answers.
///
/// # Errors
/// An entry that JSON cannot hold.
pub fn entries_json(
    entries: &[&RunEntry],
    studies: &[StudyEntry],
) -> Result<String, serde_json::Error> {
    let mut all = Vec::new();
    for entry in entries {
        all.push(serde_json::to_value(entry)?);
    }
    for entry in studies {
        all.push(serde_json::to_value(entry)?);
    }
    serde_json::to_string_pretty(&all)
}

/// Returns one line for each run, the oldest first.
fn table(entries: &[&RunEntry]) -> String {
    let rows = entries.iter().map(|entry| {
        vec![
            entry.id.clone(),
            entry.started.clone(),
            measured(entry),
            entry.cells.to_string(),
            entry.trials.to_string(),
            entry.failures.to_string(),
            worst(entry),
            entry.version.clone(),
            entry.name.clone(),
            entry.question.clone().unwrap_or_default(),
        ]
    });
    let heading = [
        "id",
        "started",
        "outcome",
        "cases",
        "trials",
        "failed",
        "worst warning",
        "weigh",
        "name",
        "question",
    ];
    aligned(&heading, &rows.collect::<Vec<_>>(), 3..=5)
}

/// Returns a heading for every cell, and one line for each run that has it.
pub fn history(metric: &str, entries: &[&RunEntry], figures: &[&FigureEntry]) -> String {
    let unit = unit_of(metric);
    let mut text = String::new();
    for cell in by_cell(figures) {
        let newest = cell.last().map_or("", |figure| figure.cell.as_str());
        text += &format!("{}{newest}: {metric}\n", if text.is_empty() { "" } else { "\n" });
        let rows: Vec<Vec<String>> = cell
            .iter()
            .map(|figure| {
                let entry = entries.iter().find(|entry| entry.id == figure.run);
                let of = |part: fn(&RunEntry) -> &String| entry.map_or("", |e| part(e)).to_owned();
                let bounds = figure.low.zip(figure.high).map_or(String::new(), |(low, high)| {
                    format!("{} to {}", in_unit(low, unit), in_unit(high, unit))
                });
                vec![
                    of(|entry| &entry.started),
                    figure.value.map_or("infinite".to_owned(), |value| in_unit(value, unit)),
                    bounds,
                    figure.n.to_string(),
                    if figure.valid { String::new() } else { "invalid".to_owned() },
                    of(|entry| &entry.version),
                    figure.run.clone(),
                ]
            })
            .collect();
        text += &aligned(&["started", "value", "interval", "n", "", "weigh", "run"], &rows, 1..=3);
    }
    text += "\nweigh diff RUN RUN compares two of them\n";
    text
}

/// Returns the history as JSON: runs, and for every cell its figures.
///
/// # Errors
/// A figure that JSON cannot hold.
pub fn figures_json(
    entries: &[&RunEntry],
    figures: &[&FigureEntry],
) -> Result<String, serde_json::Error> {
    let cells: Vec<serde_json::Value> = by_cell(figures)
        .iter()
        .map(|figures| {
            let point = figures.first().and_then(|f| serde_json::from_str(&f.point).ok());
            json!({"point": point.unwrap_or(serde_json::Value::Null), "figures": figures})
        })
        .collect();
    serde_json::to_string_pretty(&json!({"runs": entries, "cells": cells}))
}

/// Groups figures by cell, in the order of the runs; cells in the order of their first occurrence.
fn by_cell<'f>(figures: &[&'f FigureEntry]) -> Vec<Vec<&'f FigureEntry>> {
    let mut cells: Vec<Vec<&FigureEntry>> = Vec::new();
    for figure in figures {
        match cells.iter_mut().find(|cell| cell[0].point == figure.point) {
            Some(cell) => cell.push(figure),
            None => cells.push(vec![figure]),
        }
    }
    cells
}

/// A run that is to be removed.
pub struct RemovedRow {
    /// Its ID.
    pub id: String,
    /// When it started, RFC 3339.
    pub started: String,
    /// How it ended.
    pub outcome: String,
    /// Bytes on disk.
    pub bytes: u64,
}

/// Runs that are to be removed, with their sizes.
pub fn removed(rows: &[RemovedRow]) -> String {
    let row = |row: &RemovedRow| {
        vec![bytes(row.bytes as f64), row.started.clone(), row.outcome.clone(), row.id.clone()]
    };
    let rows: Vec<Vec<String>> = rows.iter().map(row).collect();
    aligned(&["size", "started", "outcome", "id"], &rows, 0..=0)
}

/// How a run ended, in words.
pub fn outcome(entry: &RunEntry) -> &str {
    match (entry.outcome.as_str(), entry.in_progress) {
        ("unfinished", true) => "in progress",
        ("unfinished", false) => "crashed",
        (outcome, _) => outcome,
    }
}

/// The outcome, and whether no message succeeded in some of the cases.
fn measured(entry: &RunEntry) -> String {
    let outcome = outcome(entry);
    match entry.unmeasured {
        0 if entry.cells == 0 && outcome == "done" => "done, nothing measured".to_owned(),
        0 => outcome.to_owned(),
        all if all == entry.cells => format!("{outcome}, nothing measured"),
        some => format!("{outcome}, {some} without result"),
    }
}

fn worst(entry: &RunEntry) -> String {
    let Some(worst) = &entry.worst_warning else { return "–".to_owned() };
    let more = if entry.warnings > 1 { format!(" +{}", entry.warnings - 1) } else { String::new() };
    format!("{}{}{more}", if worst.is_invalid { "INVALID " } else { "" }, worst.code)
}

fn in_unit(value: f64, unit: &str) -> String {
    match unit {
        "ns" => time(value, false),
        "1" => three_digits(value),
        unit => format!("{} {unit}", three_digits(value)),
    }
}

/// Aligns columns with two blanks between them; those in `right` end under the end of their
/// heading. Leaves out columns that do not fit the terminal.
fn aligned(
    heading: &[&str],
    rows: &[Vec<String>],
    right: std::ops::RangeInclusive<usize>,
) -> String {
    aligned_within(heading, rows, right, width())
}

fn aligned_within(
    heading: &[&str],
    rows: &[Vec<String>],
    right: std::ops::RangeInclusive<usize>,
    most: usize,
) -> String {
    let heading: Vec<String> = heading.iter().map(|word| (*word).to_owned()).collect();
    // A question of several lines would look like several runs.
    let shown = |cell: &String| visible_line(cell).into_owned();
    let rows = rows.iter().map(|row| row.iter().map(shown).collect());
    let mut lines: Vec<Vec<String>> = std::iter::once(heading).chain(rows).collect();
    shorten_questions(&mut lines, most);
    let mut right: Vec<bool> = (0..lines[0].len()).map(|column| right.contains(&column)).collect();
    for name in LEFT_OUT_FIRST {
        if total(&lines) <= most {
            break;
        }
        if let Some(column) = lines[0].iter().position(|own| own == name) {
            lines.iter_mut().for_each(|line| drop(line.remove(column)));
            right.remove(column);
        }
    }
    let first = right.iter().position(|own| *own).unwrap_or(usize::MAX);
    let last = right.iter().rposition(|own| *own).unwrap_or(usize::MAX);
    columns(&lines, &(first..=last), most)
}

/// Columns that the lines take.
fn total(lines: &[Vec<String>]) -> usize {
    widths(lines).iter().map(|width| width + 2).sum::<usize>().saturating_sub(2)
}

fn widths(lines: &[Vec<String>]) -> Vec<usize> {
    let widest = |at: usize| lines.iter().map(|line| shown_width(&line[at])).max().unwrap_or(0);
    (0..lines[0].len()).map(widest).collect()
}

/// Cuts questions to the room that there is, as long as enough words of them are left.
fn shorten_questions(lines: &mut [Vec<String>], most: usize) {
    let last = lines[0].len() - 1;
    if lines[0][last] != "question" {
        return;
    }
    let room = (most + widths(lines)[last]).saturating_sub(total(lines));
    if room >= ROOM_MIN {
        lines.iter_mut().for_each(|line| line[last] = shortened(&line[last], room));
    }
}

/// Fewest columns of the last column that are worth showing.
const ROOM_MIN: usize = 20;

/// Columns in the order in which a narrow terminal loses them; `--json` has all.
const LEFT_OUT_FIRST: [&str; 8] =
    ["question", "weigh", "started", "failed", "trials", "scale", "name", "study"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_terminal_loses_columns_and_no_part_of_a_word() {
        let heading = ["id", "started", "cases", "weigh", "question"];
        let row = ["run-1", "2026-11-01T12:00:00Z", "4", "0.1.0", "How fast?"];
        let rows = [row.map(str::to_owned).to_vec()];
        let within = |most| aligned_within(&heading, &rows, 2..=2, most);
        assert_eq!(
            within(80).lines().next(),
            Some("id     started               cases  weigh  question")
        );
        assert_eq!(within(45).lines().next(), Some("id     started               cases  weigh"));
        assert_eq!(within(20), "id     cases\nrun-1      4\n");
        let asked = [["a", "How fast is it, and what of it is lost?"].map(str::to_owned).to_vec()];
        let cut = aligned_within(&["id", "question"], &asked, 9..=9, 30);
        assert_eq!(cut.lines().nth(1), Some("a   How fast is it, and ..."));
    }
}
