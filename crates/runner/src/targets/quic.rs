//! QUIC of a lane: both ends of a protocol over its streams, or over one of them.

use std::sync::Arc;

use weigh_engine::layer::quic::{Congestion, Tuning, secure_dial, secure_host};
use weigh_engine::layer::tls::{ClientChoice, ServerChoice, Tally};
use weigh_model::protocol::{Dial, Host};
use weigh_model::quic::{CONGESTION, DATAGRAM_BYTES, is_cut_by_kernel};
use weigh_model::trial::Settings;

use crate::exit::Stop;

/// True: this program has QUIC.
pub const IS_BUILT: bool = true;

/// Puts a client inside QUIC.
///
/// # Errors
/// Files that cannot be read, or cannot be used.
pub fn dial(
    dial: Dial,
    settings: &Settings,
    choice: &ClientChoice,
    tally: &Arc<Tally>,
) -> Result<Dial, Stop> {
    secure_dial(dial, choice, &tuning(settings), tally).map_err(Stop::usage)
}

/// Puts a server inside QUIC.
///
/// # Errors
/// Files that cannot be read, or cannot be used.
pub fn host(host: Host, settings: &Settings, choice: &ServerChoice) -> Result<Host, Stop> {
    secure_host(host, choice, &tuning(settings), &Arc::default()).map_err(Stop::usage)
}

fn tuning(settings: &Settings) -> Tuning {
    let congestion = match settings.text(CONGESTION.key) {
        "reno" => Congestion::Reno,
        "bbr" => Congestion::Bbr,
        _ => Congestion::Cubic,
    };
    let datagram_bytes = u16::try_from(settings.integer(DATAGRAM_BYTES.key)).unwrap_or(u16::MAX);
    Tuning { congestion, datagram_bytes, is_cut_by_kernel: is_cut_by_kernel(settings) }
}
