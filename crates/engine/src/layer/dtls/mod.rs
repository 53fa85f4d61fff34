//! DTLS 1.2 and 1.3 as a layer over datagrams: whatever protocol is spoken inside, both ends get it
//! by having their [`weigh_model::protocol::Dial`] or [`weigh_model::protocol::Host`] wrapped.
//!
//! Each datagram of the protocol is one record in one datagram. The handshake's retransmissions are
//! timers of the connection; the protocol inside keeps its own.

mod choice;
mod reasons;
mod session;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use weigh_model::protocol::{Dial, Host};

use super::datagrams::{client, server};
use super::tls::{Tally, TlsError};

pub use choice::{ClientProof, PresharedKey, ServerProof};

/// Puts these clients inside DTLS.
///
/// # Errors
/// Files that cannot be read, are not certificates or keys, do not belong together, or have a kind
/// of key that DTLS is not built for.
pub fn secure_dial(dial: Dial, proof: &ClientProof, tally: &Arc<Tally>) -> Result<Dial, TlsError> {
    Ok(client::secured(dial, choice::client(proof, tally)?))
}

/// Puts this server inside DTLS.
///
/// # Errors
/// Those of [`secure_dial`].
pub fn secure_host(host: Host, proof: &ServerProof, tally: &Arc<Tally>) -> Result<Host, TlsError> {
    Ok(server::secured(host, choice::server(proof, tally)?))
}

/// Reports what would be wrong with a client, without connecting.
///
/// # Errors
/// Those of [`secure_dial`].
pub fn check(proof: &ClientProof) -> Result<(), TlsError> {
    choice::client(proof, &Arc::default()).map(|_| ())
}
