//! The look of every table of the terminal: rules above, below its heading and at its end; or
//! Markdown.

use std::ops::Range;

use comfy_table::{ContentArrangement, Table, presets};

use super::fold::shown_width;
use super::style::Style;

/// An empty table in this style.
pub(crate) fn ruled(style: Style) -> Table {
    let mut table = Table::new();
    table.load_style(match (style.is_markdown, style.is_ascii) {
        (true, _) => presets::ASCII_MARKDOWN,
        (false, true) => presets::ASCII_HORIZONTAL_ONLY,
        (false, false) => presets::UTF8_HORIZONTAL_ONLY,
    });
    table
}

/// Tables of `count` columns of figures, drawn by `draw`: all side by side if they fit, else as
/// many as fit, and the others below.
pub(crate) fn in_parts(
    count: usize,
    style: Style,
    draw: impl Fn(Range<usize>, ContentArrangement) -> String,
) -> Vec<String> {
    let fits = |text: &str| {
        let is_narrow = |line| shown_width(line) <= usize::from(style.width);
        style.is_markdown || text.lines().all(is_narrow)
    };
    let mut parts = Vec::new();
    let mut first = 0;
    while first < count {
        let mut last = count;
        let mut part = draw(first..last, ContentArrangement::Disabled);
        while last > first + 1 && !fits(&part) {
            last -= 1;
            part = draw(first..last, ContentArrangement::Disabled);
        }
        if !fits(&part) {
            // The names are too long for one column of figures: they are broken.
            part = draw(first..last, ContentArrangement::Dynamic);
        }
        parts.push(part);
        first = last;
    }
    parts
}

/// The table as lines of text.
pub(crate) fn drawn(mut table: Table, style: Style) -> String {
    if !style.is_markdown {
        table.column_iter_mut().for_each(|column| {
            column.set_padding((0, 1));
        });
    }
    let rows = match style.is_markdown {
        true => table.lines().collect(),
        false => without_rules_between_rows(table.lines()),
    };
    rows.iter().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// The horizontal styles have a rule after every row: keep those around the heading and at the end.
fn without_rules_between_rows(lines: impl Iterator<Item = String>) -> Vec<String> {
    let lines: Vec<String> = lines.collect();
    let is_rule = |line: &String| line.chars().all(|c| "─═-=+".contains(c)) && !line.is_empty();
    let header_end =
        lines.iter().enumerate().filter(|(_, line)| is_rule(line)).map(|(i, _)| i).nth(1);
    let last = lines.len().saturating_sub(1);
    let keeps = |index: usize| index == last || header_end.is_none_or(|end| index <= end);
    lines
        .into_iter()
        .enumerate()
        .filter(|(index, line)| !is_rule(line) || keeps(*index))
        .map(|(_, line)| line)
        .collect()
}
