//! The packets of one session of each cell as CSV (RFC 4180): the data of the report's sequence
//! diagrams.

use std::io;

use weigh_model::event::Event;

use super::csv_error::csv_into_io;
use crate::summary::trials::trials_by_cell;
use crate::summary::wire_bytes::scene_words;
use crate::summary::{Summary, trials};

/// Writes a line for each packet. A gap in a long session is a line whose columns between `trial`
/// and `bytes` are empty except `packets`.
///
/// # Errors
/// If `out` cannot be written.
pub fn write(out: impl io::Write, summary: &Summary, events: &[Event]) -> io::Result<()> {
    let mut rows = csv::Writer::from_writer(out);
    rows.write_record(HEADING).map_err(csv_into_io)?;
    for (cell, session) in trials::by_cell(&trials_by_cell(summary, events), events) {
        let cell = &summary.cells[cell];
        let scene = scene_words(cell).unwrap_or_default();
        let party = |place: u8| session.parties.get(usize::from(place)).cloned();
        for (place, packet) in session.packets.iter().enumerate() {
            if let Some(gap) = session.gap.filter(|gap| gap.before as usize == place) {
                let mut row = vec![cell.name.clone(), session.trial.clone()];
                row.extend(std::iter::repeat_n(String::new(), 3));
                row.extend([gap.packets.to_string(), gap.bytes.to_string()]);
                row.extend(std::iter::repeat_n(String::new(), 5));
                row.push(scene.clone());
                rows.write_record(row).map_err(csv_into_io)?;
            }
            let marks: Vec<&str> = packet.marks.iter().map(|mark| mark.words()).collect();
            rows.write_record([
                cell.name.clone(),
                session.trial.clone(),
                packet.at_ns.to_string(),
                party(packet.from).unwrap_or_default(),
                party(packet.to).unwrap_or_default(),
                packet.segments.unwrap_or(1).to_string(),
                packet.bytes.to_string(),
                packet.stream_bytes.to_string(),
                packet.flags.clone(),
                packet.phase.clone(),
                packet.names.join("; "),
                marks.join("; "),
                scene.clone(),
            ])
            .map_err(csv_into_io)?;
        }
    }
    rows.flush()
}

const HEADING: [&str; 13] = [
    "cell",
    "trial",
    "at_ns",
    "from",
    "to",
    "packets",
    "bytes",
    "stream_bytes",
    "flags",
    "phase",
    "names",
    "marks",
    "scene",
];
