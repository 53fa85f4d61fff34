//! The comparison of two runs as a table, the worst first, with notes below it.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement};

use super::answer;
use super::digits::{figure_text, plus_minus};
use super::document::{Diff, Effect, Holds, Row};
use super::rows;
use crate::summary::Verdict;
use crate::terminal::{Style, drawn, ruled, to_ascii, wrap};

/// The answer, the table and its notes: other differences, what could not be compared and why, and
/// the results of the conditions.
pub fn render(diff: &Diff, style: Style) -> String {
    let mut text = wrap(&answer::sentence(diff), style);
    text.push('\n');
    for line in heads(diff) {
        text.push_str(&wrap(&line, style));
    }
    if !diff.rows.is_empty() {
        text.push('\n');
        text.push_str(&table(diff, style));
    }
    let blocks = [legend(diff), only(diff), warnings(diff), refusals(diff), judgements(diff)];
    for block in blocks.iter().filter(|block| !block.is_empty()) {
        text.push('\n');
        block.iter().for_each(|line| text.push_str(&wrap(line, style)));
    }
    if style.is_ascii { to_ascii(&text) } else { text }
}

fn heads(diff: &Diff) -> Vec<String> {
    let line = |name: &str, head: &super::document::RunHead| {
        format!("{name}: {} ({}, weigh {})", head.id, head.started, head.version)
    };
    vec![line("A", &diff.a), line("B", &diff.b)]
}

/// One row for each figure, if that fits; otherwise each in the line below its cell.
fn table(diff: &Diff, style: Style) -> String {
    let rows: Vec<[String; 7]> = diff.rows.iter().map(columns).collect();
    let mut whole = ruled(style);
    whole.set_content_arrangement(ContentArrangement::Disabled);
    whole.set_header(["case", "metric", "A", "B", "times A", "verdict", "ranks p"]);
    whole.add_rows(&rows);
    align(&mut whole, 2..=4);
    let one = drawn(whole, style);
    let fits = one.lines().all(|line| line.chars().count() <= style.width.into());
    let text = if style.is_markdown || fits { one } else { stacked(rows, style) };
    if style.is_markdown {
        return text;
    }
    text.lines().map(|line| colour(line, style) + "\n").collect()
}

fn stacked(rows: Vec<[String; 7]>, style: Style) -> String {
    let mut table = ruled(style);
    table.set_width(style.width).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["case, metric", "A", "B", "times A", "verdict"]);
    for [cell, metric, a, b, times, mut verdict, p] in rows {
        if !p.is_empty() {
            verdict += &format!("\nranks p {p}");
        }
        table.add_row([format!("{cell}\n {metric}"), a, b, times, verdict]);
    }
    align(&mut table, 1..=3);
    for index in 1..=3 {
        if let Some(column) = table.column_mut(index) {
            // If it is too wide, names and verdicts are broken, and never figures.
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    drawn(table, style)
}

/// Aligns columns of figures.
fn align(table: &mut comfy_table::Table, figures: std::ops::RangeInclusive<usize>) {
    for index in figures {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

fn columns(row: &Row) -> [String; 7] {
    let ratio = row.ratio.map_or("–".to_owned(), |ratio| {
        let bounds = ratio.low.zip(ratio.high);
        plus_minus(ratio.value, bounds)
    });
    [
        row.cell.strip_suffix(" on reference").unwrap_or(&row.cell).to_owned(),
        row.metric.clone(),
        figure_text(row.a.as_ref(), &row.unit),
        figure_text(row.b.as_ref(), &row.unit),
        ratio,
        verdict(row),
        row.mann_whitney_p.map_or(String::new(), probability),
    ]
}

fn verdict(row: &Row) -> String {
    let is_time = row.unit == "ns" || row.unit == "s";
    let word = match (row.verdict, is_time) {
        (Verdict::Higher, true) => return "slower".to_owned(),
        (Verdict::Lower, true) => return "faster".to_owned(),
        (Verdict::Higher, false) => "higher",
        (Verdict::Lower, false) => "lower",
        (verdict, _) => verdict.name(),
    };
    match row.effect {
        Some(Effect::Worse) => format!("{word}: worse"),
        Some(Effect::Better) => format!("{word}: better"),
        None => word.to_owned(),
    }
}

fn probability(p: f64) -> String {
    if p < 0.0001 { "< 0.0001".to_owned() } else { format!("{p:.4}") }
}

fn colour(line: &str, style: Style) -> String {
    let is_worse = line.contains(" slower") || line.contains(": worse");
    let is_better = line.contains(" faster") || line.contains(": better");
    match (style.has_colour, is_worse, is_better) {
        (true, true, _) => format!("{RED}{line}{RESET}"),
        (true, _, true) => format!("{GREEN}{line}{RESET}"),
        _ => line.to_owned(),
    }
}

fn legend(diff: &Diff) -> Vec<String> {
    if diff.rows.is_empty() {
        return Vec::new();
    }
    let count = |keeps: &dyn Fn(&Row) -> bool| diff.rows.iter().filter(|row| keeps(row)).count();
    let close = count(&|row| row.verdict == Verdict::TooClose);
    let refused = count(&|row| row.verdict == Verdict::Refused);
    let (worse, better) = (
        count(&|row| row.effect == Some(Effect::Worse)),
        count(&|row| row.effect == Some(Effect::Better)),
    );
    let equal = count(&|row| row.verdict == Verdict::PracticallyEqual);
    let has_ranks = diff.rows.iter().any(|row| row.mann_whitney_p.is_some());
    let other = diff.rows.len() - close - equal - refused - worse - better;
    let equal = if equal > 0 { format!(", {equal} practically equal") } else { String::new() };
    let other = if other > 0 { format!(", {other} changed") } else { String::new() };
    vec![
        format!(
            "{} comparisons: {worse} worse, {better} better{other}, {close} too close to \
             call{equal}, {refused} refused; about 1 in 20 equal pairs is called different by \
             chance",
            diff.rows.len()
        ),
        format!(
            "ratios of means over repetitions with their intervals at 95 % ({}){}",
            rows::method(),
            if has_ranks { "; ranks p: Mann-Whitney, two-sided" } else { "" }
        ),
        "drift between runs widens the interval only with several runs per side".to_owned(),
    ]
}

fn only(diff: &Diff) -> Vec<String> {
    let line = |words: &str, cells: &[String]| {
        (!cells.is_empty()).then(|| format!("{words}: {}", cells.join("; ")))
    };
    let all = [
        line("only in A", &diff.only_in_a),
        line("only in B", &diff.only_in_b),
        line("not in every run, so not compared", &diff.not_in_every_run),
    ];
    all.into_iter().flatten().collect()
}

fn warnings(diff: &Diff) -> Vec<String> {
    let line = |warning: &weigh_model::warnings::WarningRecord| {
        format!("  {}: {}; {}", warning.code, warning.text, warning.advice)
    };
    titled("warnings:", diff.warnings.iter().map(line).collect())
}

/// Every reason once, with its metrics and cells.
fn refusals(diff: &Diff) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for row in &diff.rows {
        let Some(reason) = &row.reason else { continue };
        // That every repetition had the same value is not worth a line; a difference due to
        // lateness is.
        if row.verdict == Verdict::TooClose && row.ratio.is_none() {
            continue;
        }
        let about = format!("{} of {}", row.metric, row.cell);
        match reasons.iter_mut().find(|(known, _)| known == reason) {
            Some((_, all)) => all.push(about),
            None => reasons.push((reason, vec![about])),
        }
    }
    let line = |(reason, about): &(&str, Vec<String>)| {
        let shown: Vec<&str> = about.iter().take(REFUSED_SHOWN).map(String::as_str).collect();
        let more = match about.len() - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("  {}{more}: {reason}", shown.join(", "))
    };
    titled("without a ratio, or decided without one:", reasons.iter().map(line).collect())
}

fn judgements(diff: &Diff) -> Vec<String> {
    let word = |holds: Holds| match holds {
        Holds::Yes => "HOLDS",
        Holds::CannotTell => "cannot tell",
        Holds::No => "does not hold",
    };
    let line = |judgement: &super::document::Judgement| {
        let super::document::Judgement { condition, cell, holds, text, .. } = judgement;
        format!("  {}: {condition}: {cell}: {text}", word(*holds))
    };
    titled("conditions:", diff.judgements.iter().map(line).collect())
}

fn titled(title: &str, lines: Vec<String>) -> Vec<String> {
    if lines.is_empty() { lines } else { [vec![title.to_owned()], lines].concat() }
}

const REFUSED_SHOWN: usize = 4;

const RED: &str = "\x1b[31m";

const GREEN: &str = "\x1b[32m";

const RESET: &str = "\x1b[0m";
