//! The stages of a pipeline in the terminal: a table for each cell, below the figures of the whole.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement};

use crate::summary::{Cell, Summary};
use crate::terminal::{Style, drawn, in_parts, ruled};
use crate::view::stages;
use crate::view::stages::{HEADINGS, LEGEND};

/// The tables and their legend; empty if no cell has stages.
pub(crate) fn render(summary: &Summary, style: Style) -> String {
    let cells: Vec<&Cell> = summary.cells.iter().filter(|c| !stages::of(c).is_empty()).collect();
    if cells.is_empty() {
        return String::new();
    }
    let mut text = String::new();
    for cell in cells.iter().take(CELLS_MAX) {
        let scene = cell.scene.get("pipeline").map(|words| format!(": {words}"));
        let heading = format!("{}{}", cell.name, scene.unwrap_or_default());
        text += &match style.is_markdown {
            true => format!("\n**{heading}**\n\n"),
            false => format!("\n{heading}\n"),
        };
        text += &table(cell, style);
    }
    if let Some(rest) = cells.len().checked_sub(CELLS_MAX).filter(|rest| *rest > 0) {
        text += &format!("{rest} more: summary.json and report.html have them\n");
    }
    text + &crate::terminal::wrap(LEGEND, style)
}

fn table(cell: &Cell, style: Style) -> String {
    let headings = HEADINGS.map(|heading| match style.is_markdown {
        true => heading.replace('\n', " "),
        false => heading.to_owned(),
    });
    let part = |figures: std::ops::Range<usize>, arrangement: ContentArrangement| {
        let chosen = |row: &[String]| -> Vec<String> {
            std::iter::once(&row[0]).chain(&row[1..][figures.clone()]).cloned().collect()
        };
        let mut table = ruled(style);
        table.set_width(style.width).set_content_arrangement(arrangement);
        table.set_header(chosen(&headings));
        for stage in stages::of(cell) {
            table.add_row(chosen(&stages::row(stage, cell, style.is_ascii)));
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
        drawn(table, style)
    };
    in_parts(HEADINGS.len() - 1, style, part).concat()
}

/// Cells whose stages are shown one by one.
const CELLS_MAX: usize = 12;
