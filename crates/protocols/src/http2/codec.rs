//! Names of HTTP/2; its requests, frames and HPACK are in `http2_core`.

use crate::http2_core::head::Naming;

/// First part of its keys, and scheme of its URLs with TLS.
pub(super) const NAMING: Naming = Naming { key: "http2", secure: "h2" };
