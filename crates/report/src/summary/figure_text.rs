//! A figure in the unit of its metric.

use weigh_model::condition::LOST;
use weigh_model::metrics::unit_of;

use crate::figures::{bytes, three_digits, time};

/// A figure in the unit of its metric.
pub(crate) fn figure_text(metric: &str, figure: f64, is_ascii: bool) -> String {
    match unit_of(metric) {
        "ns" => time(figure, is_ascii),
        "B" => bytes(figure),
        "1" if metric != LOST => format!("{} %", three_digits(figure * 100.0)),
        "%" => format!("{} %", three_digits(figure)),
        _ => three_digits(figure),
    }
}
