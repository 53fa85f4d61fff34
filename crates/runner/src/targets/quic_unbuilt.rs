//! Replaces QUIC in a build without it: asking for it is an error.

use std::sync::Arc;

use weigh_engine::layer::tls::{ClientChoice, ServerChoice, Tally};
use weigh_model::protocol::{Dial, Host};
use weigh_model::trial::Settings;

use crate::exit::Stop;

/// False: this program has no QUIC.
pub const IS_BUILT: bool = false;

/// Rejects QUIC.
///
/// # Errors
/// Always.
pub fn dial(
    _dial: Dial,
    _settings: &Settings,
    _choice: &ClientChoice,
    _tally: &Arc<Tally>,
) -> Result<Dial, Stop> {
    Err(Stop::usage(super::tls::NO_QUIC))
}

/// Rejects QUIC.
///
/// # Errors
/// Always.
pub fn host(_host: Host, _settings: &Settings, _choice: &ServerChoice) -> Result<Host, Stop> {
    Err(Stop::usage(super::tls::NO_QUIC))
}
