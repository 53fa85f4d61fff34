//! Messages that arrived after the timeout: their own column, and the timeout with which they would
//! have counted as delivered.

use crate::figures::{count, time};
use crate::summary::{Cell, Summary};

/// The metric of the slowest late message of a repetition.
const SLOWEST: &str = "late_time_ns.max";

/// Whether any message was late.
pub(crate) fn is_any(summary: &Summary) -> bool {
    summary.cells.iter().any(|cell| cell.ledger.late > 0)
}

/// Number of a cell's late messages, with the timeout to type: `9 of 12 messages arrived late,
/// ...`; `None` if there were none.
pub(crate) fn sentence(cell: &Cell, is_ascii: bool) -> Option<String> {
    let late = cell.ledger.late;
    if late == 0 {
        return None;
    }
    let (late, sent) = (count(late), count(cell.ledger.sent));
    let start = format!("{late} of {sent} messages arrived late (after the timeout)");
    Some(match slowest_ns(cell) {
        Some(slowest) => format!(
            "{start}, the slowest after {}: type --timeout {}s to count them as delivered",
            time(slowest, is_ascii),
            timeout_s(slowest)
        ),
        None => format!("{start}: type a longer --timeout to count them as delivered"),
    })
}

/// The slowest late message of all repetitions; `None` in a journal that is older than this figure.
fn slowest_ns(cell: &Cell) -> Option<f64> {
    let values = &cell.metrics.get(SLOWEST)?.values;
    values.iter().flatten().copied().reduce(f64::max).filter(|slowest| *slowest > 0.0)
}

/// Twice the slowest, rounded up to 1, 2 or 5 times a power of ten seconds.
fn timeout_s(slowest_ns: f64) -> u64 {
    let needed = 2.0 * slowest_ns / 1e9;
    let mut decade = 1;
    loop {
        if let Some(found) =
            [1, 2, 5].map(|step| step * decade).into_iter().find(|own| *own as f64 >= needed)
        {
            return found;
        }
        decade *= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_to_type_is_twice_the_slowest_as_a_round_number() {
        for (slowest_s, typed) in [(0.3, 1), (8.1, 20), (2.4, 5), (26.0, 100), (0.5, 1)] {
            assert_eq!(timeout_s(slowest_s * 1e9), typed, "{slowest_s}");
        }
    }
}
