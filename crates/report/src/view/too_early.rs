//! Packets that were sent again although nothing was lost: the sender's timer was shorter than the
//! path's round trip.

use crate::figures::three_digits;
use crate::summary::{Cell, Summary};

/// The metric of such packets, of a repetition.
const TOO_EARLY: &str = "wire.too_early_packets";

/// A sentence for each cell that has some.
pub(crate) fn lines(summary: &Summary) -> Vec<String> {
    let line = |cell: &Cell| {
        let packets = cell.metrics.get(TOO_EARLY)?.value.filter(|packets| *packets > 0.0)?;
        Some(format!(
            "{}: on average {} packets per repetition were retransmitted too early; the path \
             dropped none. The sender's timer (1 s for the first packet, RFC 6298) ended before \
             the answer came",
            cell.name,
            three_digits(packets)
        ))
    };
    summary.cells.iter().filter_map(line).collect()
}
