//! The results of a run in the formats of other programs.

pub mod cells;
mod csv_error;
pub mod intervals;
pub mod jtl;
pub mod message_files;
pub mod message_reader;
pub mod message_table;
pub mod message_writer;
pub mod openmetrics;
mod openmetrics_names;
pub mod packets;
pub(crate) mod recorded_times;
