//! The record of single messages as a JMeter results file (`.jtl`, CSV), which JMeter's dashboard
//! and related tools read. Columns and their meaning: Apache JMeter user's manual, section
//! "Glossary" and "CSV Log format".

use std::io;

use weigh_model::event::Event;
use weigh_model::message::{MessageRow, MessageState};

use super::csv_error::csv_into_io;
use super::message_files;
use super::message_files::RecordedTrial;
use crate::journal::{RecordError, RunFolder};
use crate::summary::Summary;

/// Messages that this format cannot represent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Messages that were never sent: JMeter does not have them.
    pub not_sent: u64,
    /// Messages whose fate is unknown.
    pub unknown: u64,
}

/// Writes a line for each message that was sent and has an end, and returns how many have none.
///
/// `timeStamp` is the due time, `elapsed` the time from there to its end, in whole milliseconds,
/// the resolution of the format. A lost message took as long as the timeout.
///
/// # Errors
/// If there is no record of messages, it cannot be read, or `out` cannot be written.
pub fn write(
    out: impl io::Write,
    folder: &RunFolder,
    summary: &Summary,
    events: &[Event],
) -> Result<LeftOut, RecordError> {
    let mut rows = csv::Writer::from_writer(out);
    let failed = |problem| RecordError::new(folder.path(), problem);
    let into_io = |error: csv::Error| failed(csv_into_io(error));
    rows.write_record(HEADING).map_err(into_io)?;
    let mut left_out = LeftOut::default();
    for recorded in message_files::trials(folder, summary, events)? {
        let recorded = recorded?;
        let sampling = Sampling::new(&recorded);
        recorded.messages.each(|row| match row.state {
            MessageState::NotSent => {
                left_out.not_sent += 1;
                Ok::<(), RecordError>(())
            }
            MessageState::Sent | MessageState::Unsettled => {
                left_out.unknown += 1;
                Ok(())
            }
            _ => rows.write_record(sampling.fields(row)).map_err(into_io),
        })?;
    }
    rows.flush().map_err(failed)?;
    Ok(left_out)
}

/// What the lines of one trial have in common.
struct Sampling<'r> {
    cell: &'r str,
    target: &'r str,
    threads: String,
    epoch_unix_ns: u64,
    timeout_ns: u64,
}

impl Sampling<'_> {
    fn new<'r>(recorded: &'r RecordedTrial<'r>) -> Sampling<'r> {
        let header = recorded.messages.header();
        let connections = recorded.trial.point.get("load.connections");
        Sampling {
            cell: recorded.cell,
            target: &recorded.trial.target,
            threads: connections.map_or_else(|| "1".to_owned(), ToString::to_string),
            epoch_unix_ns: header.epoch_unix_ns,
            timeout_ns: header.timeout_ns,
        }
    }

    fn fields(&self, row: &MessageRow) -> [String; 17] {
        let due_ns = row.due_ns.unwrap_or_default();
        let is_lost = matches!(row.state, MessageState::Lost);
        let end_ns = row.delivered_ns.or(row.confirmed_ns).filter(|_| !is_lost);
        let elapsed_ns = end_ns.map_or(self.timeout_ns, |end| end.saturating_sub(due_ns));
        let elapsed_ms = ((elapsed_ns + NS_PER_MS / 2) / NS_PER_MS).to_string();
        let (code, message) = match row.state {
            MessageState::Delivered => ("200", "OK"),
            MessageState::Late => ("late", "after the timeout"),
            MessageState::Error => ("error", "error answer"),
            _ => ("lost", "lost"),
        };
        let is_success = row.state == MessageState::Delivered;
        let failure = match row.cause {
            Some(cause) => cause.name(),
            None if is_success => "",
            None => message,
        };
        let producer = row.producer.unwrap_or_default() + 1;
        let body_bytes = row.body_bytes.unwrap_or_default().to_string();
        [
            ((self.epoch_unix_ns + due_ns) / NS_PER_MS).to_string(),
            elapsed_ms.clone(),
            self.cell.to_owned(),
            code.to_owned(),
            message.to_owned(),
            format!("{} 1-{producer}", self.cell),
            "bin".to_owned(),
            is_success.to_string(),
            failure.to_owned(),
            if row.delivered_ns.is_some() { body_bytes.clone() } else { "0".to_owned() },
            body_bytes,
            self.threads.clone(),
            self.threads.clone(),
            self.target.to_owned(),
            elapsed_ms,
            "0".to_owned(),
            "0".to_owned(),
        ]
    }
}

/// The columns that JMeter writes by default since version 5.
const HEADING: [&str; 17] = [
    "timeStamp",
    "elapsed",
    "label",
    "responseCode",
    "responseMessage",
    "threadName",
    "dataType",
    "success",
    "failureMessage",
    "bytes",
    "sentBytes",
    "grpThreads",
    "allThreads",
    "URL",
    "Latency",
    "IdleTime",
    "Connect",
];

const NS_PER_MS: u64 = 1_000_000;
