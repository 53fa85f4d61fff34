//! Settings of reference servers, and which settings are secrets.

use weigh_model::{oscore, tls};
use weigh_protocols::fields;

/// True for a setting (without the protocol's name) that is never recorded or shown.
pub fn is_secret(key: &str, value: &str) -> bool {
    match key {
        BROKER_PASSWORD | SERVER_PASSWORD | SERVER_TOKEN | tls::PSK | oscore::SECRET => true,
        own if own == fields::SECRET_HEADERS.key => true,
        own if own == fields::HEADERS.key => fields::has_secret(value),
        _ => false,
    }
}

/// Settings of reference servers; a server that is already running has its own.
pub(super) const OF_SERVERS: [&str; 6] =
    ["overload", "broker_user", BROKER_PASSWORD, "server_user", SERVER_PASSWORD, SERVER_TOKEN];

/// The password that the built-in broker demands.
pub(super) const BROKER_PASSWORD: &str = "broker_password";

/// The password that the built-in servers of NATS and Redis demand.
pub(super) const SERVER_PASSWORD: &str = "server_password";

/// The token that the built-in server of NATS demands.
pub(super) const SERVER_TOKEN: &str = "server_token";
