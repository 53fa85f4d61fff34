//! A run in the formats of other people's tools. Everything is made from the journal and from the
//! record of single messages; `docs/guide/exports.md` says which tool reads what.

pub mod cells;
pub mod intervals;
pub mod jtl;
pub mod message_files;
mod message_header;
#[cfg(feature = "parquet")]
mod message_reader;
pub mod message_table;
#[cfg(not(feature = "parquet"))]
mod message_unbuilt;
#[cfg(feature = "parquet")]
mod message_writer;
pub mod openmetrics;
mod openmetrics_names;
pub mod packets;

pub use message_header::{MESSAGES_SCHEMA, MessageHeader};
#[cfg(feature = "parquet")]
pub use message_reader::MessageReader;
#[cfg(not(feature = "parquet"))]
pub use message_unbuilt::{MessageReader, MessageWriter};
#[cfg(feature = "parquet")]
pub use message_writer::{GROUP_ROWS, MessageWriter};

/// Whether this build can keep and read every single message.
pub const HAS_MESSAGES: bool = cfg!(feature = "parquet");

/// The error of the operating system in `error`, where there is one.
fn csv_into_io(error: csv::Error) -> std::io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => std::io::Error::other(format!("{other:?}")),
    }
}
