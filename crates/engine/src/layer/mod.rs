//! Layers between a socket's bytes and a connection or server. A layer is a state machine like
//! those below it: bytes in, bytes out, no I/O and no clock, so that it runs on any
//! [`crate::io::Io`].
//! Layers may be put around each other: WebSocket inside TLS is `wss`. DTLS and QUIC are layers
//! over datagrams.

mod client;
#[cfg(any(feature = "dtls", feature = "quic"))]
mod datagrams;
#[cfg(feature = "dtls")]
pub mod dtls;
#[cfg(feature = "quic")]
mod one_stream;
#[cfg(feature = "quic")]
pub mod quic;
mod server;
mod session;
#[cfg(feature = "tls")]
pub mod tls;
pub mod websocket;
