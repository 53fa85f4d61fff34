//! AMQP 0-9-1 as bytes: frames, methods, content headers. Both ends share it. It never panics and
//! allocates nothing that the input asks for.

pub mod code;
mod field;
mod flaw;
mod frame;
mod method;
mod properties;
mod table;

pub use field::{Cursor, Field, Long, SHORT_BYTES_MAX, Short};
pub use flaw::Flaw;
pub use frame::{
    FRAME_END, FRAME_MIN, FRAME_OVERHEAD, Frame, FrameKind, end_frame, put_body, put_frame_head,
    put_heartbeat, read_frame,
};
pub use method::{Method, bits, name as method_name};
pub use properties::{Header, PERSISTENT, Properties, TRANSIENT};
pub use table::{Table, TableWriter, Value};

/// First bytes of a client, and the answer of a server that speaks another version (section
/// 4.2.2).
pub const PROTOCOL_HEADER: [u8; 8] = *b"AMQP\0\0\x09\x01";
