//! Kafka's protocol as bytes, used by both ends: frames, primitive types and record batches, by
//! the protocol guide (<https://kafka.apache.org/protocol>) and the message definitions of Kafka.

pub mod answers;
pub mod batch;
pub mod configs;
pub mod embedded;
pub mod frame;
pub mod groups;
pub mod requests;

mod crc;
mod flaw;
mod put;
mod reader;

pub use crc::crc32c;
pub use flaw::Flaw;
pub use put::{
    put_bytes, put_count, put_i8, put_i16, put_i32, put_i64, put_null_bytes, put_null_string,
    put_string, put_unsigned_varint, put_varlong, set_i32, varlong_bytes,
};
pub use reader::Reader;
