//! The look of every table of the terminal: rules above, below its heading and at its end; or
//! Markdown.

use comfy_table::{Table, presets};

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
