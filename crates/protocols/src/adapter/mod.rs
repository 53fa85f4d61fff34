//! Adapter for protocols implemented by a library, without the socket, the clock and the thread
//! that it would otherwise own. The library reads and writes a stream in memory, and its futures
//! are polled when bytes arrive, so that the engine sees a connection or a server like any other.

pub mod client;
pub mod http2;
mod hyper;
pub mod server;
pub mod stream;
pub mod tasks;
