//! Exchanges and messages as CSV: whole nanoseconds, and a header that names the columns.

use std::io::{Read, Write};

use crate::clocks::pair::Exchange;
use serde::{Deserialize, Serialize};

/// A message from one host to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// When it left, nanoseconds on its sender's clock.
    pub sent_ns: i64,
    /// When it arrived, nanoseconds on the other clock; `None` if it never did.
    pub received_ns: Option<i64>,
}

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordsError {
    /// A column is missing.
    #[error("line 1: column {column} is missing: the header must name {}", .known.join(","))]
    NoColumn {
        /// The missing column.
        column: &'static str,
        /// The expected columns.
        known: Vec<&'static str>,
    },
    /// A value is not a time.
    #[error("line {line}, column {column}: expected nanoseconds since 1970, found {text:?}")]
    NoTime {
        /// The line, from 1.
        line: u64,
        /// The column's name.
        column: &'static str,
        /// The text found.
        text: String,
    },
    /// The file has no rows.
    #[error("no rows below the header")]
    Empty,
    /// It cannot be read as CSV.
    #[error("{0}")]
    Csv(#[from] csv::Error),
}

/// A row of exchanges.
#[derive(Serialize, Deserialize)]
struct Row {
    sent_ns: i64,
    reached_ns: i64,
    answered_ns: i64,
    received_ns: i64,
}

/// Reads `sent_ns,reached_ns,answered_ns,received_ns`; further columns are ignored.
///
/// # Errors
/// If a column is missing, or a value is not a time.
pub fn read_exchanges(file: impl Read) -> Result<Vec<Exchange>, RecordsError> {
    let rows = read(file, &EXCHANGE_COLUMNS)?;
    rows.into_iter()
        .map(|row| {
            let at = |index: usize| row.time(index, EXCHANGE_COLUMNS[index]);
            Ok(Exchange { sent: at(0)?, reached: at(1)?, answered: at(2)?, received: at(3)? })
        })
        .collect()
}

/// Reads `sent_ns,received_ns`; an empty second column is a message that never arrived.
///
/// # Errors
/// If a column is missing, or a value is not a time.
pub fn read_messages(file: impl Read) -> Result<Vec<Message>, RecordsError> {
    let rows = read(file, &MESSAGE_COLUMNS)?;
    rows.into_iter()
        .map(|row| {
            let is_lost = row.texts[1].is_empty();
            let received = (!is_lost).then(|| row.time(1, MESSAGE_COLUMNS[1])).transpose()?;
            Ok(Message { sent_ns: row.time(0, MESSAGE_COLUMNS[0])?, received_ns: received })
        })
        .collect()
}

/// Writes exchanges to a file as they arrive.
pub struct ExchangeFile<W: Write>(csv::Writer<W>);

impl<W: Write> ExchangeFile<W> {
    /// Begins the file; its header is written with the first exchange.
    pub fn new(file: W) -> ExchangeFile<W> {
        ExchangeFile(csv::Writer::from_writer(file))
    }

    /// Writes one exchange.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn put(&mut self, exchange: &Exchange) -> csv::Result<()> {
        self.0.serialize(Row {
            sent_ns: exchange.sent,
            reached_ns: exchange.reached,
            answered_ns: exchange.answered,
            received_ns: exchange.received,
        })?;
        Ok(self.0.flush()?)
    }
}

/// A line, in the order of the requested columns.
struct Line {
    number: u64,
    texts: Vec<String>,
}

impl Line {
    fn time(&self, index: usize, column: &'static str) -> Result<i64, RecordsError> {
        let text = &self.texts[index];
        text.parse().map_err(|_| RecordsError::NoTime {
            line: self.number,
            column,
            text: text.clone(),
        })
    }
}

fn read(file: impl Read, columns: &[&'static str]) -> Result<Vec<Line>, RecordsError> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(file);
    let header = reader.headers()?.clone();
    let place = |column: &&'static str| {
        header
            .iter()
            .position(|name| name == *column)
            .ok_or_else(|| RecordsError::NoColumn { column, known: columns.to_vec() })
    };
    let places = columns.iter().map(place).collect::<Result<Vec<_>, _>>()?;
    let mut lines = Vec::new();
    for record in reader.records() {
        let record = record?;
        let number = record.position().map_or(0, csv::Position::line);
        let text = |place: &usize| record.get(*place).unwrap_or_default().to_owned();
        lines.push(Line { number, texts: places.iter().map(text).collect() });
    }
    if lines.is_empty() { Err(RecordsError::Empty) } else { Ok(lines) }
}

const EXCHANGE_COLUMNS: [&str; 4] = ["sent_ns", "reached_ns", "answered_ns", "received_ns"];

const MESSAGE_COLUMNS: [&str; 2] = ["sent_ns", "received_ns"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let exchange = Exchange { sent: 1, reached: -5, answered: -4, received: 3 };
        let mut bytes = Vec::new();
        ExchangeFile::new(&mut bytes).put(&exchange).unwrap();
        assert_eq!(read_exchanges(&*bytes).unwrap(), [exchange]);
    }

    #[test]
    fn columns_may_stand_anywhere_and_errors_name_their_place() {
        let messages = read_messages("id,received_ns,sent_ns\na, 7 ,5\nb,,6\n".as_bytes()).unwrap();
        let expected = [(5, Some(7)), (6, None)];
        let read: Vec<_> = messages.iter().map(|own| (own.sent_ns, own.received_ns)).collect();
        assert_eq!(read, expected);
        for (text, part) in [
            ("sent_ns\n5\n", "column received_ns is missing"),
            (
                "sent_ns,received_ns\n5,6\n5,1.5\n",
                "line 3, column received_ns: expected nanoseconds since 1970, found \"1.5\"",
            ),
            (
                "sent_ns,received_ns\n,6\n",
                "line 2, column sent_ns: expected nanoseconds since 1970, found \"\"",
            ),
            ("sent_ns,received_ns\n", "no rows below the header"),
            ("", "column sent_ns is missing"),
        ] {
            let error = read_messages(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
