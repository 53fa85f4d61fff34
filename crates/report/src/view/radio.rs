//! The bytes of a wire as a radio would carry them, below the table: the capture itself is of
//! Ethernet.

use crate::figures::three_digits;
use crate::summary::{Cell, Summary};

/// A sentence for each cell whose path is a radio.
pub(crate) fn lines(summary: &Summary) -> Vec<String> {
    let line = |cell: &Cell| {
        let of = |name: &str| cell.metrics.get(name).and_then(|metric| metric.value);
        let (message, session) = (of(MESSAGE)?, of(SESSION)?);
        let link = cell.scene.get("path.link").map_or("its link layer", String::as_str);
        Some(format!(
            "{}: on the air {} B/msg, {} B/session, with the radio's headers ({link}). The wire \
             columns have 14 B of Ethernet per packet instead",
            cell.name,
            three_digits(message),
            three_digits(session)
        ))
    };
    summary.cells.iter().filter_map(line).collect()
}

const MESSAGE: &str = "wire.radio.bytes_per_message";

const SESSION: &str = "wire.radio.bytes_per_session";
