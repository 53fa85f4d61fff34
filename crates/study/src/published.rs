//! The published figures of a study: `published.csv` with the columns study, table, series, x,
//! x_unit, y, y_unit and, where a value does not stand in y as it is printed, printed.

use std::collections::BTreeMap;
use std::ops::Range;

use weigh_plan::{Problem, Problems};

/// The published figures of a study, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Published {
    /// Each of them.
    pub cells: Vec<Cell>,
}

/// A published figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The study it is from.
    pub study: String,
    /// The table it stands in.
    pub table: String,
    /// Its series.
    pub series: String,
    /// Where in the series, as written; empty where there is no such thing.
    pub x: String,
    /// The unit of `x`; empty where there is none.
    pub x_unit: String,
    /// Its value.
    pub value: f64,
    /// Its value as printed in the paper, all digits kept: `28.00`.
    pub printed: String,
    /// Its unit.
    pub unit: String,
    /// Its line in the file, from 1.
    pub line: u64,
}

impl Published {
    /// Reads the file. `source` is what the column study begins with.
    ///
    /// # Errors
    /// Every row that says nothing, twice the same, or a value without a unit.
    pub fn read(text: &str, source: &str) -> Result<Published, Problems> {
        let mut problems = Problems::default();
        let mut reader = csv::ReaderBuilder::new().from_reader(text.as_bytes());
        let head = reader.headers().cloned().unwrap_or_default();
        let columns = crate::audit::COLUMNS.into_iter();
        if head.iter().ne(columns.clone()) && head.iter().ne(columns.chain([PRINTED])) {
            let columns = crate::audit::COLUMNS.join(",");
            let fix = format!("begin the file with {columns}, and {PRINTED} if you have it");
            problems.add(Problem::at(line_at(text, 0), "wrong columns", fix));
            return Err(problems);
        }
        let mut published = Published::default();
        let mut seen: BTreeMap<(String, String, String), u64> = BTreeMap::new();
        for record in reader.records() {
            let record = match record {
                Ok(record) => record,
                Err(error) => {
                    let at = error.position().map_or(0, csv::Position::byte) as usize;
                    let fix = "write the columns of the first line in every line, and quotes \
                                around those with commas";
                    problems.add(Problem::at(line_at(text, at), error.to_string(), fix));
                    continue;
                }
            };
            let position = record.position();
            let place = line_at(text, position.map_or(0, csv::Position::byte) as usize);
            let line = position.map_or(0, csv::Position::line);
            match cell(&record, line, source) {
                Ok(cell) => {
                    let key = (cell.table.clone(), cell.series.clone(), cell.x.clone());
                    if let Some(before) = seen.insert(key, line) {
                        let text = format!("line {before} has this table, series and x already");
                        problems.add(Problem::at(place, text, "give each its own series"));
                    }
                    published.cells.push(cell);
                }
                Err((wrong, fix)) => problems.add(Problem::at(place, wrong, fix)),
            }
        }
        if published.cells.is_empty() && problems.is_empty() {
            problems.add(Problem::missing("no published figures", "add at least one row"));
        }
        if problems.is_empty() { Ok(published) } else { Err(problems) }
    }

    /// The index of a cell.
    pub fn find(&self, table: &str, series: &str, x: &str) -> Option<usize> {
        self.cells.iter().position(|cell| cell.is(table, series, x))
    }

    /// The indices of all figures of a table and a series, in both of which `*` stands for any
    /// text, at `x`; of the whole series where `x` is empty or `*`.
    pub fn matching(&self, table: &str, series: &str, x: &str) -> Vec<usize> {
        let is_any = x.is_empty() || x == "*";
        let is_meant = |cell: &Cell| {
            is_like(&cell.table, table)
                && is_like(&cell.series, series)
                && (is_any || cell.is(&cell.table, &cell.series, x))
        };
        let all = self.cells.iter().enumerate();
        all.filter(|(_, cell)| is_meant(cell)).map(|(at, _)| at).collect()
    }

    /// The indices of a series that has numbers along, in their order. The first `*` in its name
    /// stands for any text without a semicolon.
    pub fn along(&self, table: &str, series: &str) -> Vec<usize> {
        let of = |cell: &Cell| cell.table == table && is_named(&cell.series, series);
        let found = self.cells.iter().enumerate().filter(|(_, cell)| of(cell));
        let mut found: Vec<(usize, f64)> =
            found.filter_map(|(at, cell)| Some((at, cell.x_value()?))).collect();
        found.sort_by(|left, right| left.1.total_cmp(&right.1));
        found.into_iter().map(|(at, _)| at).collect()
    }
}

/// Whether `text` is `pattern`, in which each `*` stands for any text.
fn is_like(text: &str, pattern: &str) -> bool {
    let Some((begin, rest)) = pattern.split_once('*') else { return text == pattern };
    let Some(text) = text.strip_prefix(begin) else { return false };
    let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    ends.into_iter().any(|at| is_like(&text[at..], rest))
}

fn is_named(series: &str, pattern: &str) -> bool {
    let Some((begin, end)) = pattern.split_once('*') else { return series == pattern };
    let rest = series.strip_prefix(begin).and_then(|rest| rest.strip_suffix(end));
    rest.is_some_and(|any| !any.contains(';'))
}

impl Cell {
    /// Its place along the series as a number.
    pub fn x_value(&self) -> Option<f64> {
        self.x.parse().ok()
    }

    fn is(&self, table: &str, series: &str, x: &str) -> bool {
        let same_number = || Some((self.x_value()?, x.parse::<f64>().ok()?));
        let same_x = self.x == x || same_number().is_some_and(|(own, other)| own == other);
        self.table == table && self.series == series && same_x
    }
}

fn cell(
    record: &csv::StringRecord,
    line: u64,
    source: &str,
) -> Result<Cell, (String, &'static str)> {
    let at = |index: usize| record.get(index).unwrap_or_default().trim().to_owned();
    let [study, table, series] = [at(0), at(1), at(2)];
    let [x, x_unit, y, unit, printed] = [at(3), at(4), at(5), at(6), at(7)];
    if !study.starts_with(source) {
        let text = format!("{study:?} does not begin with {source:?}, the source of this study");
        return Err((text, "move the row to its own study"));
    }
    if table.is_empty() || series.is_empty() {
        return Err(("it has no table or no series".into(), "add both"));
    }
    let value = y.parse().ok().filter(|value: &f64| value.is_finite());
    let value = value.ok_or_else(|| {
        (format!("expected a number in y, found {y:?}"), "write numbers with a decimal point")
    })?;
    let printed = if printed.is_empty() { y } else { printed };
    if unit.is_empty() {
        let text = format!("{printed} has no unit");
        return Err((text, "write its unit, or count, or ratio, into the column y_unit"));
    }
    if !x.is_empty() && x_unit.is_empty() {
        return Err((format!("x = {x} has no unit"), "write it into the column x_unit"));
    }
    Ok(Cell { study, table, series, x, x_unit, value, printed, unit, line })
}

/// The line of `text` in which the byte `at` stands.
fn line_at(text: &str, at: usize) -> Range<usize> {
    let at = at.min(text.len());
    let end = text[at..].find('\n').map_or(text.len(), |length| at + length);
    at..end
}

/// The column with the value as printed, where that is not `y`.
const PRINTED: &str = "printed";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_matched_by_patterns_and_printed_digits_are_kept() {
        let rows = "000-x,T 1,a=HTTP;s=p50,10,clients,28,s,28.00\n\
                    000-x,T 1,a=MQTT;s=p50,5,clients,1,s,\n000-x,T 2,b,,,484,s,4840\n";
        let text = format!("{},printed\n{rows}", HEAD.trim());
        let published = Published::read(&text, "000-x").unwrap();
        let printed: Vec<&str> = published.cells.iter().map(|one| one.printed.as_str()).collect();
        assert_eq!(printed, ["28.00", "1", "4840"]);
        assert_eq!(published.matching("T 1", "a=*;s=p50", ""), [0, 1]);
        assert_eq!(published.matching("T *", "*", "*"), [0, 1, 2]);
        assert_eq!(published.matching("T 1", "*p50", "10.0"), [0]);
        assert!(published.matching("T", "*", "").is_empty());
    }

    const HEAD: &str = "study,table,series,x,x_unit,y,y_unit\n";

    fn wrong(rows: &str) -> String {
        let text = format!("{HEAD}{rows}");
        let problems = Published::read(&text, "000-x").unwrap_err();
        problems.render("published.csv", &text, false)
    }

    #[test]
    fn cells_are_found_by_table_series_and_x_as_a_number() {
        let text = format!("{HEAD}000-x,T,s,10,clients,2.50,s\n000-x,T,s,5,clients,1,s\n");
        let published = Published::read(&text, "000-x").unwrap();
        assert_eq!(published.find("T", "s", "10.0"), Some(0));
        assert_eq!(published.find("T", "s", "11"), None);
        assert_eq!(published.along("T", "s"), [1, 0]);
        let cell = &published.cells[0];
        assert_eq!((cell.value, cell.printed.as_str(), cell.line), (2.5, "2.50", 2));
    }

    #[test]
    fn what_is_wrong_with_a_row_is_named_at_its_line() {
        let said = wrong("000-x,T,s,5,clients,1,s\n000-x,T,s,6,clients,3,\n");
        assert!(said.contains("3 has no unit") && said.contains("published.csv:3:"), "{said}");
        assert!(wrong("000-x,T,s,5,,1,s\n").contains("x = 5 has no unit"));
        assert!(wrong("000-x,T,s,5,n,fast,s\n").contains("expected a number"));
        assert!(wrong("001-y,T,s,5,n,1,s\n").contains("does not begin"));
        assert!(wrong("000-x,T,s,5,n,1,s\n000-x,T,s,5,n,2,s\n").contains("line 2 has this"));
        assert!(wrong("").contains("no published figure"));
        let text = "study,table\n";
        assert!(Published::read(text, "0").is_err());
    }
}
