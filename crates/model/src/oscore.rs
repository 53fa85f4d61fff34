//! The keys by which a protocol of requests and responses uses OSCORE (RFC 8613), as far as other
//! crates know them.

use crate::settings::Settings;

/// Whether OSCORE is used.
pub const ON: &str = "oscore";

/// The master secret.
pub const SECRET: &str = "oscore_secret";

/// Number of the first ID of connections whose IDs are not given.
pub const FIRST_ID: &str = "oscore_first_id";

/// True if these settings ask for OSCORE.
pub fn is_on(settings: &Settings) -> bool {
    settings.text(ON) == "on"
}
