//! The published figures of a study: `published.csv` with the columns study, table, series, x,
//! x_unit, y, y_unit.

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
    /// Its value, as written.
    pub printed: String,
    /// Its unit.
    pub unit: String,
    /// Its line in the file, from 1.
    pub line: u64,
}
