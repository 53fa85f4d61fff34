//! Settings of a gateway.

use std::path::PathBuf;

use weigh_model::Endpoint;

use crate::queue::Gathering;

/// Settings of a gateway.
#[derive(Clone, Debug)]
pub struct GatewaySettings {
    /// The broker, with credentials.
    pub broker: Endpoint,
    /// The API (`http`) or the store (`grpc`).
    pub to: Endpoint,
    /// Its topic filter.
    pub filter: String,
    /// The QoS that it requests: 0, 1 or 2.
    pub qos: u8,
    /// Client ID of its session at the broker, which survives the gateway.
    pub client_id: String,
    /// Batches of readings for the next stage.
    pub gathering: Gathering,
    /// The file for its hops.
    pub hops: Option<PathBuf>,
}
