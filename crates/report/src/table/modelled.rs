//! Modelled energy in the terminal: a separate table, below the measured figures, with its basis
//! and the main sources of uncertainty.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement};

use crate::summary::modelled::Modelled;
use crate::summary::{Cell, Summary};
use crate::terminal::{Style, drawn, in_parts, ruled};
use crate::view::modelled::{MESSAGES, columns, lines, shown};

/// The table and the lines below it; empty if nothing was modelled.
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
        text += &crate::terminal::wrap(&line, style);
    }
    text
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
    // If each message has its own session, one column is enough.
    let columns: Vec<(String, &str)> =
        columns.into_iter().filter(|(_, name)| !(repeated && *name == MESSAGES)).collect();
    let part = |range: std::ops::Range<usize>, arrangement: ContentArrangement| {
        part(summary, &columns[range], style, arrangement)
    };
    in_parts(columns.len(), style, part).concat()
}

fn part(
    summary: &Summary,
    columns: &[(String, &str)],
    style: Style,
    arrangement: ContentArrangement,
) -> String {
    let mut table = ruled(style);
    table.set_width(style.width).set_content_arrangement(arrangement);
    let heading =
        |text: &String| if style.is_markdown { text.replace('\n', " ") } else { text.clone() };
    let mut headings = vec!["protocol, target".to_owned()];
    headings.extend(columns.iter().map(|(text, _)| heading(text)));
    table.set_header(headings);
    let is_modelled = |cell: &&Cell| columns.iter().any(|(_, name)| shown(cell, name).is_some());
    for cell in summary.cells.iter().filter(is_modelled).take(ROWS_MAX) {
        let mark = if cell.valid { " " } else { crate::view::columns::INVALID_MARK };
        let name = cell.name.strip_suffix(" on reference").unwrap_or(&cell.name);
        let mut row = vec![format!("{mark}{name}")];
        let figure = |metric: &str| shown(cell, metric).unwrap_or_else(|| ABSENT.to_owned());
        row.extend(columns.iter().map(|(_, metric)| figure(metric)));
        table.add_row(row);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
        column.set_constraint(ColumnConstraint::ContentWidth);
    }
    drawn(table, style)
}

const ABSENT: &str = "\u{2013}";

/// As many rows as the table of measured figures.
const ROWS_MAX: usize = 40;
