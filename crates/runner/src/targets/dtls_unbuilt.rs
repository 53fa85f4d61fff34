//! Replaces DTLS in a build without it: asking for it is an error.

use std::sync::Arc;

use weigh_engine::layer::tls::{ClientChoice, ServerChoice, Tally, TlsError};
use weigh_model::protocol::{Dial, Host, Invalid, Protocol};
use weigh_model::tls;
use weigh_model::trial::Settings;

use crate::exit::Stop;

/// False: this program has no DTLS.
pub const IS_BUILT: bool = false;

/// True if the protocol has the keys of DTLS.
pub fn is_over_datagrams(protocol: &'static dyn Protocol) -> bool {
    protocol.has_setting(tls::PSK)
}

/// The error of a program without DTLS.
pub fn refused(place: String) -> Invalid {
    Invalid::new(place, "this program was built without DTLS", "build it with --features dtls")
}

/// Rejects a pre-shared key.
///
/// # Errors
/// Always.
pub fn check_psk(protocol: &str, _settings: &Settings) -> Result<(), Invalid> {
    Err(refused(format!("{protocol}.tls")))
}

/// Rejects a pre-shared key.
///
/// # Errors
/// Always.
pub fn check_key(protocol: &str, _settings: &Settings) -> Result<(), Invalid> {
    Err(refused(format!("{protocol}.tls")))
}

/// Checks the files as for TLS; [`refused`] comes before.
///
/// # Errors
/// Files that cannot be read.
pub fn check(choice: ClientChoice) -> Result<(), TlsError> {
    choice.check()
}

/// Rejects DTLS.
///
/// # Errors
/// Always.
pub fn dial(
    _dial: Dial,
    _settings: &Settings,
    _choice: ClientChoice,
    _tally: &Arc<Tally>,
) -> Result<Dial, Stop> {
    Err(refused("tls".to_owned()).into())
}

/// Rejects DTLS.
///
/// # Errors
/// Always.
pub fn host(_host: Host, _choice: ServerChoice) -> Result<Host, Stop> {
    Err(refused("tls".to_owned()).into())
}

/// Rejects DTLS.
///
/// # Errors
/// Always.
pub fn host_with_psk(_host: Host, _settings: &Settings) -> Result<Host, Stop> {
    Err(refused("tls".to_owned()).into())
}
