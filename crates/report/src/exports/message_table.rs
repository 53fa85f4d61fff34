//! The record of single messages of all trials as CSV (RFC 4180), for tools that read no Parquet.

use std::io;

use weigh_model::event::Event;
use weigh_model::message::MessageRow;

use super::csv_error::csv_into_io;
use super::message_files;
use crate::journal::{RecordError, RunFolder};
use crate::summary::Summary;

/// Writes a line for each message; unknown values are empty. Memory holds at most one group of
/// rows.
///
/// # Errors
/// If there is no record of messages, it cannot be read, or `out` cannot be written.
pub fn write(
    out: impl io::Write,
    folder: &RunFolder,
    summary: &Summary,
    events: &[Event],
) -> Result<(), RecordError> {
    let mut rows = csv::Writer::from_writer(out);
    let failed = |problem| RecordError::new(folder.path(), problem);
    let into_io = |error: csv::Error| failed(csv_into_io(error));
    rows.write_record(HEADING).map_err(into_io)?;
    for recorded in message_files::trials(folder, summary, events)? {
        let recorded = recorded?;
        let (cell, repetition) = (recorded.cell, recorded.trial.repetition.to_string());
        recorded.messages.each(|row| {
            let fields = fields(row);
            let start = [cell, &repetition, &recorded.trial.trial];
            let all = start.into_iter().chain(fields.iter().map(String::as_str));
            rows.write_record(all).map_err(into_io)
        })?;
    }
    rows.flush().map_err(failed)
}

fn fields(row: &MessageRow) -> [String; 11] {
    fn text<T: ToString>(value: Option<T>) -> String {
        value.map_or_else(String::new, |value| value.to_string())
    }
    [
        text(row.producer),
        text(row.sequence),
        text(row.connection),
        text(row.consumer),
        text(row.due_ns),
        text(row.sent_ns),
        text(row.confirmed_ns),
        text(row.delivered_ns),
        row.state.name().to_owned(),
        text(row.cause.map(|cause| cause.name())),
        text(row.body_bytes),
    ]
}

const HEADING: [&str; 14] = [
    "cell",
    "repetition",
    "trial",
    "producer",
    "sequence",
    "connection",
    "consumer",
    "due_ns",
    "sent_ns",
    "confirmed_ns",
    "delivered_ns",
    "state",
    "cause",
    "body_bytes",
];
