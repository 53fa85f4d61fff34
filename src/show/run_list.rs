//! Runs as a table, and a metric's way through them.

use serde_json::json;
use weigh_history::{FigureEntry, RunEntry};
use weigh_report::figures::{three_digits, time};
use weigh_report::summary::unit_of;

/// One line a run, the oldest first.
pub fn table(entries: &[&RunEntry]) -> String {
    let rows = entries.iter().map(|entry| {
        vec![
            entry.id.clone(),
            entry.started.clone(),
            outcome(entry).to_owned(),
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
        "cells",
        "trials",
        "failed",
        "worst doubt",
        "weigh",
        "name",
        "question",
    ];
    aligned(&heading, &rows.collect::<Vec<_>>(), 3..=5)
}

/// For every cell a heading and one line a run that has it.
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
    text += "\nweigh diff RUN RUN says whether two of them differ\n";
    text
}

/// The history as JSON: runs, and for every cell its figures.
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

/// The figures of each cell, in the order of the runs; cells as they first occur.
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

fn outcome(entry: &RunEntry) -> &str {
    match (entry.outcome.as_str(), entry.in_progress) {
        ("unfinished", true) => "in progress",
        ("unfinished", false) => "crashed",
        (outcome, _) => outcome,
    }
}

fn worst(entry: &RunEntry) -> String {
    let Some(worst) = &entry.worst_doubt else { return "–".to_owned() };
    let more = if entry.doubts > 1 { format!(" +{}", entry.doubts - 1) } else { String::new() };
    format!("{}{}{more}", if worst.is_invalid { "INVALID " } else { "" }, worst.code)
}

fn in_unit(value: f64, unit: &str) -> String {
    match unit {
        "ns" => time(value, false),
        "1" => three_digits(value),
        unit => format!("{} {unit}", three_digits(value)),
    }
}

/// Columns with two blanks between them; those in `right` end where their headings end.
fn aligned(
    heading: &[&str],
    rows: &[Vec<String>],
    right: std::ops::RangeInclusive<usize>,
) -> String {
    let heading: Vec<String> = heading.iter().map(|word| (*word).to_owned()).collect();
    let lines = || std::iter::once(&heading).chain(rows);
    let width = |column: usize| lines().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..heading.len()).map(width).collect();
    let mut text = String::new();
    for line in lines() {
        let cells: Vec<String> = line
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(column, (cell, width))| {
                if right.contains(&column) {
                    format!("{cell:>width$}")
                } else {
                    format!("{cell:<width$}")
                }
            })
            .collect();
        text += cells.join("  ").trim_end();
        text.push('\n');
    }
    text
}
