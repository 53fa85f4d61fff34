//! The cells of a run as CSV: the same table as `cells.csv` in its folder.

use crate::cells_csv;
use crate::summary::Summary;

/// The table with its heading (RFC 4180).
pub fn csv(summary: &Summary) -> Vec<u8> {
    cells_csv::table(summary)
}
