//! HTTP/2 (RFC 9113) without I/O: the common ground of `http2` and of protocols inside HTTP/2.
//! `http3` shares what does not depend on the version: requests, fields, the intake of the server.
//!
//! ```text
//!  caller (client)      serving (server)      what the engine drives
//!     ├──── exchange       │                  what a protocol adds to a client
//!     │    └─ request      │    └─ answer     blocks made once, and copied
//!     ├──── head           ├──── intake       the request of a trial; the server that counts
//!     ├──── fields ────────┤                  requests, answers, trailers: what is malformed
//!     ├──── events ────────┤                  bytes in, one event a frame
//!     ├──── streams, flow, peer               open streams, windows, the peer's parameters
//!     └──── decoder, encoder ─ table ─ huffman   HPACK (RFC 7541)
//! ```

pub(crate) mod answer;
pub(crate) mod caller;
pub(crate) mod decoder;
pub(crate) mod encoder;
pub(crate) mod events;
pub(crate) mod exchange;
pub(crate) mod fields;
pub(crate) mod flow;
pub(crate) mod frame;
pub(crate) mod head;
pub(crate) mod huffman;
pub(crate) mod intake;
pub(crate) mod peer;
pub(crate) mod recognise;
pub(crate) mod request;
pub(crate) mod serving;
pub(crate) mod stored;
pub(crate) mod streams;
pub(crate) mod table;

#[cfg(test)]
mod hpack_tests;
