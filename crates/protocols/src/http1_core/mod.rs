//! HTTP/1.1 (RFC 9112), as far as `http1` and the protocols on a kept answer share it: heads and
//! framing of both ends, chunks, the client's request, and the connection that sends it.

pub mod answer;
pub mod chunked;

pub(crate) mod caller;
pub(crate) mod framing;
pub(crate) mod head;
pub(crate) mod names;
pub(crate) mod reply;
pub(crate) mod template;
