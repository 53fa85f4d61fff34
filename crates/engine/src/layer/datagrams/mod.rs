//! Layers between a socket's datagrams and a connection or server: what DTLS and QUIC share.

pub(super) mod client;
mod clock;
pub(super) mod server;
mod session;

pub(super) use clock::Clock;
pub(super) use session::{Begin, DatagramSession};
