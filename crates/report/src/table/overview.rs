//! The table of `weigh compare`: one row per cell, grouped by guarantee, reference and real targets
//! separately, with notes below it.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement};

use super::{axes, emulated, modelled, notes, stages};
use crate::summary::{Matrix, Summary};
use crate::terminal::fold::shown_width;
use crate::terminal::{BOLD, RED, RESET, Style, drawn, in_parts, ruled, to_ascii};
use crate::view::columns::{Column, ELSEWHERE, INVALID_MARK, Part, columns, groups, title};

/// The table with its notes: warnings with advice, loss by cause, failed trials, and the legend.
pub fn render(summary: &Summary, style: Style) -> String {
    let mut text = String::new();
    if summary.cells.is_empty() {
        text.push_str("nothing was measured\n");
    } else {
        let matrix = Matrix::new(&summary.cells);
        let is_large = summary.cells.len() > CELLS_MAX && !style.is_markdown;
        match axes::tables(summary, &matrix, style).filter(|_| is_large) {
            Some(tables) => text.push_str(&tables),
            None => text.push_str(&tables(summary, style)),
        }
    }
    text.push_str(&stages::render(summary, style));
    text.push_str(&emulated::render(summary, style));
    let notes = notes::below(&text, summary, style);
    text.push_str(&notes);
    text.push_str(&modelled::render(summary, style));
    if style.is_ascii { to_ascii(&text) } else { text }
}

fn tables(summary: &Summary, style: Style) -> String {
    let whole: Vec<&Column> = columns(summary).collect();
    let one = draw(summary, &whole, style, ContentArrangement::Disabled);
    let fits = |text: &str| text.lines().all(|line| shown_width(line) <= style.width.into());
    if style.is_markdown || fits(&one) {
        return colour(&one, style);
    }
    let part = |parts: &[Part]| -> Vec<String> {
        let belongs = |column: &&Column| parts.contains(&column.part);
        let figures: Vec<&Column> = columns(summary).filter(belongs).collect();
        let names: Vec<&Column> = columns(summary).filter(|own| own.part == Part::All).collect();
        in_parts(figures.len(), style, |range, arrangement| {
            let shown: Vec<&Column> = names.iter().chain(&figures[range]).copied().collect();
            draw(summary, &shown, style, arrangement)
        })
    };
    let all =
        |parts: &[&[Part]]| -> Vec<Vec<String>> { parts.iter().map(|own| part(own)).collect() };
    let has = |part: Part| columns(summary).any(|column| column.part == part);
    let with_more = |parts: &[&'static [Part]]| -> Vec<&'static [Part]> {
        let apart: [&'static [Part]; 3] = [&[Part::Polls], &[Part::Wire], &[Part::Energy]];
        let more = apart.into_iter().filter(|parts| has(parts[0]));
        parts.iter().copied().chain(more).collect()
    };
    let halves = with_more(&[&[Part::Time, Part::Rate], &[Part::Ledger, Part::Cost]]);
    let two = all(&halves);
    let parts = if two.iter().all(|own| own.len() == 1) {
        two
    } else {
        all(&with_more(&[&[Part::Time], &[Part::Rate], &[Part::Ledger], &[Part::Cost]]))
    };
    colour(&parts.concat().join("\n"), style)
}

/// Draws one table; if it is too wide, names are broken so that the figures stay whole.
fn draw(
    summary: &Summary,
    columns: &[&Column],
    style: Style,
    arrangement: ContentArrangement,
) -> String {
    let mut table = ruled(style);
    table.set_content_arrangement(arrangement);
    table.set_width(style.width);
    let heading = |column: &&Column| {
        if style.is_markdown { column.heading().replace('\n', " ") } else { column.heading() }
    };
    table.set_header(columns.iter().map(heading));
    for (guarantee, is_reference, cells) in groups(summary) {
        let title = title(guarantee, is_reference);
        let title = if style.is_markdown { format!("**{title}**") } else { title };
        table.add_row([title]);
        let shown = if style.is_markdown { cells.len() } else { ROWS_MAX.min(cells.len()) };
        let rest = cells.len() - shown;
        for cell in cells.into_iter().take(shown) {
            table.add_row(columns.iter().map(|column| column.show(cell, style)));
        }
        if rest > 0 {
            table.add_row([format!("{rest} more: {ELSEWHERE}")]);
        }
    }
    for index in 1..columns.len() {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    drawn(table, style)
}

fn colour(text: &str, style: Style) -> String {
    if !style.has_colour {
        return text.to_owned();
    }
    let paint = |line: &str| match line {
        line if line.contains("once, re") => {
            format!("{BOLD}{line}{RESET}\n")
        }
        line if line.trim_start().starts_with(INVALID_MARK) => format!("{RED}{line}{RESET}\n"),
        line => format!("{line}\n"),
    };
    text.lines().map(paint).collect()
}

/// More cells are shown along their axes, metric by metric, if they have any.
const CELLS_MAX: usize = 16;

/// More rows of one guarantee are not readable in a terminal.
const ROWS_MAX: usize = 40;
