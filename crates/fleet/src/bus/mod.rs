//! The connection to the bus: NATS with JetStream.

use std::path::PathBuf;
use std::sync::Arc;

use crate::error::FleetError;

/// Where the bus is, and how to be let in.
#[derive(Clone, Default)]
pub struct BusOptions {
    /// `nats://HOST:PORT`, or `tls://HOST:PORT` to insist on TLS.
    pub url: String,
    /// Name of the fleet: letters, digits, `-` and `_`. Fleets with different names share a bus
    /// without seeing each other. Empty for `default`.
    pub name: String,
    /// File with an nkey seed.
    pub nkey_seed: Option<PathBuf>,
    /// File with credentials (`.creds`): a user JWT and its seed.
    pub creds: Option<PathBuf>,
    /// Token.
    pub token: Option<String>,
    /// Certificates in PEM that the server's is to be signed by; `None` for those of the system.
    pub ca: Option<PathBuf>,
    /// Certificate and key in PEM that the client shows.
    pub client_cert: Option<(PathBuf, PathBuf)>,
}

/// A connection to the bus.
pub struct Bus {}

impl Bus {
    /// Connects, and checks that JetStream is there.
    ///
    /// # Errors
    /// [`FleetError::Bus`] if the server cannot be reached, refuses the credentials or has no
    /// JetStream; [`FleetError::Options`] for options that contradict each other.
    pub fn connect(_options: &BusOptions) -> Result<Arc<Bus>, FleetError> {
        panic!("not there yet")
    }

    /// True if only its two ends can read what is sent: with TLS, or on a loopback address.
    pub fn is_private(&self) -> bool {
        panic!("not there yet")
    }
}
