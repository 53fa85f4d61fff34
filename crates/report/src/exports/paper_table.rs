//! The table of a run for a paper: headings, rows in groups, notes; without a format. Columns are
//! those of the terminal's table, or chosen metrics.

use std::collections::BTreeSet;

use crate::summary::{Cell, Summary};
use crate::terminal::Style;
use crate::view::columns::{
    CellGroup, DELIVERY_MARK, INVALID_MARK, LAG_MARK, ONE_WAY_MARK, SERVICE_MARK, columns,
    figure_of, groups, heading_of, lag_shares, ledger_columns,
};
use crate::view::signs;

/// Names that can be columns in this run: its metrics, and the terms of the ledger in the table.
pub fn column_names(summary: &Summary) -> BTreeSet<&str> {
    let metrics = summary.cells.iter().flat_map(|cell| cell.metrics.keys().map(String::as_str));
    let mut names: BTreeSet<&str> = metrics.collect();
    for name in ledger_columns() {
        names.insert(name);
    }
    names
}

/// The table, row by row.
pub(crate) struct PaperTable {
    /// Headings of all columns; the first is that of the names.
    pub(crate) headings: Vec<String>,
    /// Groups of rows that can be compared.
    pub(crate) groups: Vec<Group>,
    /// The meaning of the signs in it.
    pub(crate) notes: Vec<String>,
}

/// Rows with one guarantee.
pub(crate) struct Group {
    /// The guarantee, and whether the targets are reference servers.
    pub(crate) title: String,
    /// Rows, each with one text for every heading.
    pub(crate) rows: Vec<Vec<String>>,
}

impl PaperTable {
    /// The table with these columns; none for those of the terminal's table.
    pub(crate) fn new(summary: &Summary, chosen: &[String]) -> PaperTable {
        let of_table = || columns(summary).skip(1).map(|column| column.name());
        let names: Vec<&str> = match chosen {
            [] => of_table().collect(),
            chosen => chosen.iter().map(String::as_str).collect(),
        };
        let row = |cell: &Cell| -> Vec<String> {
            let figures = names.iter().map(|name| figure_of(cell, name, STYLE));
            std::iter::once(name(cell)).chain(figures).collect()
        };
        let groups: Vec<Group> = groups(summary)
            .into_iter()
            .map(|CellGroup { title, cells }| Group {
                title,
                rows: cells.into_iter().map(row).collect(),
            })
            .collect();
        let headings = names.iter().map(|name| heading_of(name));
        PaperTable {
            headings: std::iter::once(FIRST.to_owned()).chain(headings).collect(),
            notes: notes(summary, &names, &groups),
            groups,
        }
    }
}

/// The name of a row; the group names the reference server.
fn name(cell: &Cell) -> String {
    let name = cell.name.strip_suffix(" on reference").unwrap_or(&cell.name);
    if cell.valid { name.to_owned() } else { format!("{INVALID_MARK} {name}") }
}

/// The meaning of the signs in the table, and what the figures are.
fn notes(summary: &Summary, names: &[&str], groups: &[Group]) -> Vec<String> {
    let texts = || groups.iter().flat_map(|group| group.rows.iter().flatten());
    let has = |sign: &str| texts().any(|text| text.contains(sign));
    let has_mark = |mark: &str| texts().any(|text| signs::has_mark(text, mark));
    let mut notes = vec![repetitions(summary)];
    if has("±") || has("/-") {
        notes.push(INTERVAL.to_owned());
    }
    let is_shown: [(bool, &str); 6] = [
        (summary.cells.iter().any(|cell| !cell.valid), signs::INVALID),
        (has_mark(DELIVERY_MARK), signs::DELIVERY),
        (has_mark(SERVICE_MARK), signs::SERVICE),
        (has_mark(ONE_WAY_MARK), signs::ONE_WAY),
        (has("∞"), signs::INFINITE),
        (has("(≤"), signs::NO_LOSS),
    ];
    notes.extend(is_shown.into_iter().filter(|(is, _)| *is).map(|(_, note)| note.to_owned()));
    if has_mark(LAG_MARK) {
        notes.extend(lateness(summary, names));
    }
    notes
}

/// The figures of which a part is the generator's lateness, as far as they are columns.
fn lateness(summary: &Summary, names: &[&str]) -> Vec<String> {
    let is_column = |share: &String| {
        let part = share.split(' ').next().unwrap_or_default();
        names.iter().any(|name| name.ends_with(&format!(".{part}")))
    };
    let of_cell = |cell: &Cell| {
        let shares: Vec<String> = lag_shares(cell, false).into_iter().filter(is_column).collect();
        (!shares.is_empty()).then(|| format!("{}: {}", name(cell), shares.join("; ")))
    };
    let cells: Vec<String> = summary.cells.iter().filter_map(of_cell).collect();
    vec![format!("{} ({})", signs::LATE, cells.join("; "))]
}

/// What times and rates are means of.
fn repetitions(summary: &Summary) -> String {
    let all = || summary.cells.iter().map(|cell| cell.repetitions);
    match (all().min().unwrap_or(0), all().max().unwrap_or(0)) {
        (2, 2) => {
            "Times and rates are means over 2 repetitions, too few for intervals; messages are \
                   sums."
                .to_owned()
        }
        (0 | 1, 0 | 1) => "One repetition, so there are no intervals.".to_owned(),
        (least, most) if least == most => {
            format!("Times and rates are means over {least} repetitions, messages are sums.")
        }
        (least, most) => {
            format!(
                "Times and rates are means over {least} to {most} repetitions, messages are sums."
            )
        }
    }
}

/// Figures in Unicode, without the limits of a terminal.
const STYLE: Style = Style::plain(u16::MAX);

const FIRST: &str = "protocol, target";

const INTERVAL: &str = "±: 95 % interval of the mean; if its sides differ much, both are given: \
                        +a/-b.";
