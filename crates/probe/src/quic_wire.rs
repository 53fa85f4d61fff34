//! What is below each connection of QUIC: its socket, and the layer around its clients.

use std::net::UdpSocket;
use std::sync::Arc;

use weigh_engine::layer::quic::{Congestion, Tuning, secure_dial};
use weigh_engine::layer::tls::{ClientChoice, Tally};
use weigh_model::protocol::Dial;

use crate::reach::{Reach, Trouble};

/// Puts these clients inside QUIC, for the protocol of this name (ALPN).
pub(crate) fn secured(
    reach: &Reach,
    dial: Dial,
    alpn: &[u8],
    tally: &Arc<Tally>,
) -> Result<Dial, Trouble> {
    let choice = reach.tls.clone().ok_or_else(|| {
        Trouble::Inapplicable("QUIC needs choices for its certificates".to_owned())
    })?;
    let choice = ClientChoice { alpn: vec![alpn.to_vec()], ..choice };
    let tuning = Tuning {
        congestion: Congestion::Cubic,
        datagram_bytes: DATAGRAM_BYTES,
        is_cut_by_kernel: false,
    };
    secure_dial(dial, &choice, &tuning, tally)
        .map_err(|error| Trouble::Foreign(format!("QUIC did not come about: {error}")))
}

/// A socket that hears only the server.
pub(crate) fn bound(reach: &Reach) -> Result<UdpSocket, Trouble> {
    let any = if reach.address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).and_then(|socket| {
        socket.connect(reach.address)?;
        Ok(socket)
    });
    socket.map_err(|error| Trouble::Unreachable(error.to_string()))
}

/// Datagrams that every path takes (RFC 9000, section 14).
const DATAGRAM_BYTES: u16 = 1_200;
