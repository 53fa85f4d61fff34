//! The table of `weigh compare`: one row per cell, grouped by guarantee, reference and real targets
//! separately, with notes below it.

use std::collections::BTreeSet;

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement};

use weigh_model::visible::visible_line;

use super::{axes, emulated, modelled, notes, stages};
use crate::answer;
use crate::exports::markdown::escaped;
use crate::figures::count;
use crate::summary::{AnswerLine, Cell, Matrix, Summary, cell_name};
use crate::terminal::fold::shown_width;
use crate::terminal::{
    BOLD, Extent, RED, RESET, Style, WIDTH_MAX, aligned, drawn, in_parts, ruled, to_ascii, wrap,
};
use crate::view::columns::{
    CellGroup, Column, ELSEWHERE, INVALID_MARK, Part, columns, groups, key_columns, loss_bound,
};

/// The answer, the table and its notes: warnings with advice, loss by cause, failed trials, and the
/// legend.
pub fn render(summary: &Summary, style: Style) -> String {
    let mut text = String::new();
    if !summary.cells.is_empty() {
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
    let text = first(summary, style) + &text;
    if style.is_ascii { to_ascii(&text) } else { text }
}

/// The title and the answer; empty after a search, whose answers have a text of their own.
fn first(summary: &Summary, style: Style) -> String {
    if !summary.limits.is_empty() {
        return String::new();
    }
    let question = answer::question(summary);
    // A user's question may have sequences that a terminal obeys.
    let question = visible_line(&question);
    let title = match (style.is_markdown, style.has_colour) {
        (true, _) => format!("**{}**\n\n", escaped(&question)),
        (false, true) => format!("{BOLD}{question}{RESET}\n"),
        (false, false) => wrap(&question, style),
    };
    let line = |line: &AnswerLine| match style.is_markdown {
        true => format!("- {}\n", escaped(&visible_line(&line.text))),
        false => wrap(&format!("  {}", visible_line(&line.text)), style),
    };
    let lines: String = answer::lines(summary).iter().map(line).collect();
    format!("{title}{lines}\n")
}

fn tables(summary: &Summary, style: Style) -> String {
    let whole: Vec<&Column> = columns(summary).collect();
    if style.extent == Extent::Key && !style.is_markdown {
        return key_table(summary, style);
    }
    let one = draw(summary, &whole, style, ContentArrangement::Disabled);
    let fits = |text: &str| text.lines().all(|line| shown_width(line) <= style.width.into());
    if style.is_markdown || style.extent == Extent::Wide || fits(&one) {
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

/// The table of the key columns: one where it fits, and further ones below for columns that do not.
fn key_table(summary: &Summary, style: Style) -> String {
    let style = Style { width: style.width.min(WIDTH_MAX), ..style };
    let columns = key_columns(summary);
    let Some((name, figures)) = columns.split_first() else { return String::new() };
    let parts = in_parts(figures.len(), style, |range, arrangement| {
        let shown: Vec<&Column> = std::iter::once(name).chain(&figures[range]).copied().collect();
        draw(summary, &shown, style, arrangement)
    });
    let bound = loss_bound(summary, style).map_or(String::new(), |(bound, sent)| {
        let of = count(sent);
        let none = summary
            .cells
            .iter()
            .filter(|cell| cell.ledger.lost == Some(0) && cell.ledger.sent > 0)
            .count();
        let is_equal = summary.cells.iter().all(|cell| cell.ledger.sent == sent);
        let of = match (summary.cells.len(), none) {
            (0 | 1, _) => format!("{of} messages"),
            (all, none) if all == none && is_equal => format!("{of} messages in each case"),
            (all, none) if all == none => format!("at least {of} messages in each case"),
            (_, 1) => format!("{of} messages in 1 case"),
            (_, none) => format!("at least {of} messages in each of {none} cases"),
        };
        format!("lost 0 of {of}: with 95 % confidence the loss rate is {bound}\n")
    });
    let more = format!("all columns: weigh report {} --wide\n", summary.run.id);
    colour(&(parts.join("\n") + &bound + &more), style)
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
    let groups = shown_groups(summary, style);
    let cells: Vec<(&Cell, &str)> = groups.iter().flat_map(|group| group.rows()).collect();
    let figures: Vec<Vec<String>> = columns
        .iter()
        .map(|column| {
            let show = |(cell, pattern): &(&Cell, &str)| match column.part {
                Part::All => column.show(cell, style).replacen(pattern, "", 1),
                _ => column.show(cell, style),
            };
            let texts: Vec<String> = cells.iter().map(show).collect();
            let is_name = column.part == Part::All;
            if is_name || style.is_markdown { texts } else { aligned(&texts) }
        })
        .collect();
    let mut row = 0;
    let mut pattern = "";
    for group in &groups {
        let title = &group.title;
        // A row of its own: with the title it would be wider than the names.
        if group.pattern != pattern {
            pattern = &group.pattern;
            table.add_row([pattern.trim_start()]);
        }
        table.add_row([if style.is_markdown { format!("**{title}**") } else { title.clone() }]);
        for _ in group.rows() {
            table.add_row(figures.iter().map(|column| &column[row]));
            row += 1;
        }
        if group.rest > 0 {
            table.add_row([format!("{} more: {ELSEWHERE}", group.rest)]);
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

/// Rows below one title.
struct Group<'s> {
    title: String,
    cells: Vec<&'s Cell>,
    /// The pattern of all rows, which is in a row above them instead of in each name: ` publish`;
    /// or nothing.
    pattern: String,
    /// Number of rows that are not shown.
    rest: usize,
}

impl Group<'_> {
    fn rows(&self) -> impl Iterator<Item = (&Cell, &str)> {
        self.cells.iter().map(|cell| (*cell, self.pattern.as_str()))
    }
}

/// The groups of the table. In the table of key columns those of each pattern are together, in the
/// order of the plan, because only they are compared.
fn shown_groups(summary: &Summary, style: Style) -> Vec<Group<'_>> {
    let pattern_of = |cell: &Cell| cell.point.get("load.pattern").map(cell_name::plain);
    let mut patterns: Vec<Option<String>> = summary.cells.iter().map(pattern_of).collect();
    let mut seen = BTreeSet::new();
    patterns.retain(|pattern| seen.insert(pattern.clone()));
    let is_split = style.extent == Extent::Key && !style.is_markdown && patterns.len() > 1;
    let patterns = if is_split { patterns } else { vec![None] };
    let mut all = Vec::new();
    for pattern in patterns {
        for CellGroup { title, cells } in groups(summary) {
            let belongs = |cell: &&Cell| !is_split || pattern_of(cell) == pattern;
            let mut cells: Vec<&Cell> = cells.into_iter().filter(belongs).collect();
            let most = if style.is_markdown { cells.len() } else { ROWS_MAX.min(cells.len()) };
            let rest = cells.len() - most;
            cells.truncate(most);
            let pattern = pattern.as_ref().map_or(String::new(), |word| format!(" {word}"));
            if !cells.is_empty() {
                all.push(Group { title, cells, pattern, rest });
            }
        }
    }
    all
}

fn colour(text: &str, style: Style) -> String {
    if !style.has_colour {
        return text.to_owned();
    }
    let paint = |line: &str| match line {
        line if line.contains(" once, ") => {
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
