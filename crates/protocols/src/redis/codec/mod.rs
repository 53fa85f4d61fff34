//! RESP, versions 2 and 3 (redis.io, "Redis serialization protocol specification"): values of a
//! server, requests of a client, and how both are written.

mod flaw;
mod id;
mod put;
mod request;
mod token;

pub use flaw::Flaw;
pub use id::Id;
pub use put::{
    put_array, put_bulk, put_bulk_head, put_decimal, put_error, put_integer, put_map, put_null,
    put_push, put_simple,
};
pub use request::{RequestMax, read_request};
pub use token::{Reply, Token, Values, read_reply, read_token};

/// Longest line of a value, and longest inline request: Redis's limit (PROTO_INLINE_MAX_SIZE).
pub const LINE_BYTES_MAX: usize = 64 * 1024;

/// Most elements of a request or of a reply: Redis's limit for requests.
pub const ELEMENTS_MAX: u64 = 1024 * 1024;
