//! What is loaded: servers that are started, kept, watched and asked for their own counts, and
//! where they stand.

pub mod addresses;
#[cfg_attr(not(feature = "tls"), path = "agentless.rs")]
pub mod agents;
pub mod behind;
pub mod counter_watch;
pub mod counters;
pub mod handshakes;
pub mod kept;
pub mod layers;
pub mod relayed;
pub mod running;
#[cfg_attr(not(feature = "tls"), path = "unsecured.rs")]
pub mod secured;
pub mod shown;
pub mod stage;
pub mod watching;
