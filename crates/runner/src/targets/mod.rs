//! Targets: servers that are started, kept, observed and read for their own counts, and their
//! hosts.

pub mod addresses;
#[cfg_attr(not(feature = "tls"), path = "agents_unbuilt.rs")]
pub mod agents;
pub mod counter_watch;
pub mod counters;
#[cfg(feature = "tls")]
#[cfg_attr(not(feature = "dtls"), path = "dtls_unbuilt.rs")]
mod dtls;
pub mod external_counters;
pub mod handshakes;
pub mod hosts;
pub mod http_counters;
mod info_counters;
pub mod layers;
pub mod observers;
pub mod oscore;
pub mod pool;
#[cfg(feature = "tls")]
#[cfg_attr(not(feature = "quic"), path = "quic_unbuilt.rs")]
mod quic;
pub mod relay;
pub mod running;
#[cfg_attr(not(feature = "tls"), path = "tls_unbuilt.rs")]
pub mod tls;
