//! The results of a run in the formats of other programs.

pub mod cells;
mod csv_error;
pub mod intervals;
pub mod jtl;
pub mod latex;
pub mod markdown;
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
pub mod openmetrics_text;
pub mod packets;
mod paper_table;
pub(crate) mod recorded_times;
pub mod repetitions;

pub use message_header::{MESSAGES_SCHEMA, MessageHeader};
#[cfg(feature = "parquet")]
pub use message_reader::MessageReader;
#[cfg(not(feature = "parquet"))]
pub use message_unbuilt::{MessageReader, MessageWriter};
#[cfg(feature = "parquet")]
pub use message_writer::{GROUP_ROWS, MessageWriter};

pub use paper_table::column_names;

/// Whether this build can write and read single messages.
pub const HAS_MESSAGES: bool = cfg!(feature = "parquet");
