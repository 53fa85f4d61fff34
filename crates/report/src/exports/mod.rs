//! A run in the formats of other people's tools. Everything is made from the journal and from the
//! record of single messages; `docs/guide/exports.md` says which tool reads what.

pub mod cells;
pub mod intervals;
pub mod jtl;
pub mod message_files;
pub mod message_reader;
pub mod message_table;
pub mod message_writer;
pub mod openmetrics;
pub mod packets;

/// The error of the operating system in `error`, where there is one.
fn csv_into_io(error: csv::Error) -> std::io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => std::io::Error::other(format!("{other:?}")),
    }
}
mod openmetrics_names;
