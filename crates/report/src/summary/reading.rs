//! The value of a figure in a cell, and whether it may be used: read by thresholds, diff, goals,
//! tables, the page and studies.

use weigh_model::condition::{LOSS_RATIO, LOST};

use super::cell::Cell;
use super::lateness::Lateness;
use crate::figures::time;

/// A figure of a cell, or why there is none to use.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading {
    /// A figure to judge by.
    Known(Figure),
    /// A figure that must not be used, and why.
    Withheld(String),
    /// There is no figure: why.
    Absent(String),
}

/// A figure to judge by, in the unit of its metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// The mean over repetitions; infinite for a quantile in the lost share.
    pub value: f64,
    /// Lower end of its interval at 95 %.
    pub low: Option<f64>,
    /// Upper end of its interval at 95 %.
    pub high: Option<f64>,
    /// The generator's own lateness in `value`, if that is material; else 0. The target's part is
    /// between `value - lag` and `value`.
    pub lag: f64,
}

impl Reading {
    /// Reads `metric` of `cell`: a flat name, or one of the ledger's.
    pub fn of(cell: &Cell, metric: &str) -> Reading {
        if let Some(warning) = cell.invalidated_by(metric) {
            return Reading::Withheld(format!("{}: {}", warning.code, warning.text));
        }
        if metric == LOST || metric == LOSS_RATIO {
            return of_ledger(cell, metric);
        }
        // Warnings of the record do not name quantiles that only a condition uses.
        if let Lateness::Dominant(lag) = Lateness::of(cell, metric) {
            return Reading::Withheld(format!("{} of it is the generator's lag", time(lag, false)));
        }
        match cell.metrics.get(metric) {
            None => Reading::Absent("not measured".to_owned()),
            Some(own) => Reading::Known(Figure {
                value: own.value.unwrap_or(f64::INFINITY),
                low: own.low,
                high: own.high,
                lag: Lateness::of(cell, metric).said_ns(),
            }),
        }
    }
}

/// Losses are from the ledger.
fn of_ledger(cell: &Cell, metric: &str) -> Reading {
    let known = |value| Reading::Known(Figure { value, low: None, high: None, lag: 0.0 });
    match cell.ledger.lost {
        Some(lost) if metric == LOST => known(lost as f64),
        Some(lost) if cell.ledger.sent > 0 => known(lost as f64 / cell.ledger.sent as f64),
        Some(_) => Reading::Absent("nothing was sent".to_owned()),
        None => Reading::Absent("arrivals are not observed".to_owned()),
    }
}
