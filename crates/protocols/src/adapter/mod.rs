//! The second door: a library that speaks a protocol, without the socket, the clock and the thread
//! that it would otherwise own. It reads and writes a stream in memory and its futures are polled
//! where bytes come, so that to the engine it is a connection or a server like any other.

pub mod client;
pub mod http2;
mod hyper;
pub mod server;
pub mod stream;
pub mod tasks;
