//! How a gateway is set up.

use std::path::PathBuf;

use weigh_model::Endpoint;

use crate::queue::Gathering;

/// How a gateway is set up.
#[derive(Clone, Debug)]
pub struct GatewaySettings {
    /// The broker, with the credentials for it.
    pub broker: Endpoint,
    /// The api (`http`) or the store (`grpc`).
    pub to: Endpoint,
    /// What it subscribes to.
    pub filter: String,
    /// Highest QoS it asks for: 0, 1 or 2.
    pub qos: u8,
    /// Names its session at the broker, which outlives the gateway.
    pub client_id: String,
    /// Readings that go on in one call.
    pub gathering: Gathering,
    /// The file for its hops.
    pub hops: Option<PathBuf>,
}
