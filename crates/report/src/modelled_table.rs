//! Modelled energy in the terminal: a table of its own, below what was measured, with what it rests
//! on and what it hangs on.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement};

use crate::comparisons::Verdict;
use crate::figures::{between, three_digits};
use crate::modelled::{Contribution, Modelled, ModelledRatio};
use crate::ruled_table::{drawn, ruled};
use crate::summary::{Cell, Summary};
use crate::table::{Style, ends};

/// The table and the lines below it; empty where nothing was modelled.
pub(crate) fn render(summary: &Summary, style: Style) -> String {
    let Some(modelled) = &summary.modelled else { return String::new() };
    let heading = format!("modelled, not measured: {}", modelled.title);
    let mut text = match style.is_markdown {
        true => format!("\n**{heading}**\n\n"),
        false => format!("\n{heading}\n"),
    };
    if modelled.cells.iter().any(|cell| cell.absent.is_none()) {
        text += &table(summary, modelled, style);
    }
    for line in lines(modelled) {
        text += &crate::notes::wrap(&line, style);
    }
    text
}

/// Headings of the table, and the metric that stands below each.
pub(crate) fn columns(modelled: &Modelled) -> Vec<(String, &'static str)> {
    let every = span(modelled.every_s);
    let duty = |what: &str| format!("one each {every}:\n{what}");
    vec![
        ("modelled\nJ/message".to_owned(), "modelled_energy_j_per_message"),
        ("modelled\nmAh/session".to_owned(), "modelled_energy_mah_per_session"),
        ("sessions\nper charge".to_owned(), "modelled_sessions_per_charge"),
        ("messages\nper charge".to_owned(), MESSAGES),
        ("charge\nlasts".to_owned(), LIFETIME),
        (duty("J/message"), "modelled_wake_j_per_message"),
        (duty("days"), "modelled_days_per_charge"),
    ]
}

/// A figure as it stands in the table.
pub(crate) fn shown(cell: &Cell, metric: &str) -> Option<String> {
    let own = cell.metrics.get(metric)?;
    let value = own.value?;
    if metric != LIFETIME {
        return Some(between(value, ends(own)));
    }
    let (divisor, unit) = unit(value);
    let ends = ends(own).map(|(low, high)| (low / divisor, high / divisor));
    Some(format!("{} {unit}", between(value / divisor, ends)))
}

/// What the figures rest on and hang on, line by line.
pub(crate) fn lines(modelled: &Modelled) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(modelled.battery.iter().map(|battery| format!("  battery: {battery}")));
    lines.push(
        "  charge lasts (as weighed): the device sends without a pause, as the trial did, until \
         the battery is empty"
            .to_owned(),
    );
    lines.push(format!(
        "  one each {}: the device sleeps, sends one message, and sleeps again; on a connection \
         that is kept (with the keep-alives that it needs), or on a new one where each message has \
         its own; J/message is beyond sleeping; producers only",
        span(modelled.every_s)
    ));
    lines.push(format!(
        "  \u{b1} at 95 %: {} draws of the coefficients (seed {}) and the spread from run to run; \
         no interval holds what the model leaves out, and a ratio is of one model; the sources: \
         weigh devices",
        crate::figures::count(modelled.draws),
        modelled.seed
    ));
    let budget = |title: &str, cell: &str, shares: &[Contribution]| {
        let first: Vec<String> = shares
            .iter()
            .filter(|own| own.share >= SHARE_MIN)
            .take(NAMED)
            .map(contribution)
            .collect();
        (!first.is_empty()).then(|| format!("  {cell}, {title} hangs on: {}", first.join(", ")))
    };
    for cell in &modelled.cells {
        lines.extend(cell.keep_alives.iter().map(|text| format!("  {}: {text}", cell.cell)));
        if let Some(reason) = &cell.absent {
            lines.push(format!("  {}: not modelled: {reason}", cell.cell));
        }
        lines.extend(budget("as weighed", &cell.cell, &cell.weighed_budget));
        lines.extend(budget("a message after a pause", &cell.cell, &cell.duty_budget));
    }
    let shown = modelled.comparisons.iter().take(LINES_MAX).map(ratio);
    lines.extend(shown);
    let rest = modelled.comparisons.len().saturating_sub(LINES_MAX);
    if rest > 0 {
        lines.push(format!("  {rest} more ratios: summary.json has them"));
    }
    lines
}

/// A ratio in a line; where the model cannot tell the sides apart, that and the interval alone.
fn ratio(own: &ModelledRatio) -> String {
    let ModelledRatio { metric, left, right, ratio, verdict } = own;
    match (verdict, ratio.low.zip(ratio.high)) {
        (_, None) => format!("  {metric}: {left} and {right}: fewer than 3 repetitions, no ratio"),
        (Verdict::Lower | Verdict::Higher, Some((low, high))) => format!(
            "  {metric}: {left} over {right}: {:.2} ({low:.2} to {high:.2}): {}",
            ratio.value,
            verdict.name()
        ),
        (_, Some((low, high))) => format!(
            "  {metric}: the model cannot tell {left} and {right} apart here: {low:.2} to {high:.2}"
        ),
    }
}

fn contribution(own: &Contribution) -> String {
    format!("{} {:.0} %", own.name, own.share * 100.0)
}

fn table(summary: &Summary, modelled: &Modelled, style: Style) -> String {
    let columns: Vec<(String, &str)> = columns(modelled)
        .into_iter()
        .filter(|(_, metric)| summary.cells.iter().any(|cell| shown(cell, metric).is_some()))
        .collect();
    let repeated = summary.cells.iter().all(|cell| {
        let value = |name: &str| cell.metrics.get(name).and_then(|own| own.value);
        value("modelled_sessions_per_charge") == value(MESSAGES)
    });
    // Where each message has a session of its own, one column says it.
    let columns: Vec<(String, &str)> =
        columns.into_iter().filter(|(_, name)| !(repeated && *name == MESSAGES)).collect();
    let mut table = ruled(style);
    table.set_content_arrangement(match style.is_markdown {
        true => ContentArrangement::Disabled,
        false => ContentArrangement::Dynamic,
    });
    table.set_width(style.width);
    let heading =
        |text: &String| if style.is_markdown { text.replace('\n', " ") } else { text.clone() };
    let mut headings = vec!["protocol, target".to_owned()];
    headings.extend(columns.iter().map(|(text, _)| heading(text)));
    table.set_header(headings);
    let is_modelled = |cell: &&Cell| columns.iter().any(|(_, name)| shown(cell, name).is_some());
    for cell in summary.cells.iter().filter(is_modelled).take(ROWS_MAX) {
        let mark = if cell.valid { " " } else { crate::table::INVALID_MARK };
        let name = cell.name.strip_suffix(" on reference").unwrap_or(&cell.name);
        let mut row = vec![format!("{mark}{name}")];
        let figure = |metric: &str| shown(cell, metric).unwrap_or_else(|| ABSENT.to_owned());
        row.extend(columns.iter().map(|(_, metric)| figure(metric)));
        table.add_row(row);
    }
    for index in 1..=columns.len() {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    drawn(table, style)
}

/// A span as people say it: `1 min`, `12.9 h`.
fn span(seconds: f64) -> String {
    let (divisor, unit) = unit(seconds);
    format!("{} {unit}", three_digits(seconds / divisor).trim_end_matches(".00"))
}

fn unit(seconds: f64) -> (f64, &'static str) {
    match seconds {
        short if short < 60.0 => (1.0, "s"),
        medium if medium < 36_000.0 => (60.0, "min"),
        long if long < 3.0 * 86_400.0 => (3600.0, "h"),
        _ => (86_400.0, "days"),
    }
}

const LIFETIME: &str = "modelled_lifetime_s";
const MESSAGES: &str = "modelled_messages_per_charge";
const ABSENT: &str = "\u{2013}";

/// Sources of variance that are named.
const NAMED: usize = 3;

/// A smaller share would be told as 0 %.
const SHARE_MIN: f64 = 0.005;

/// Ratios that are told.
const LINES_MAX: usize = 12;

/// As many rows as the table of what was measured shows.
const ROWS_MAX: usize = 40;
