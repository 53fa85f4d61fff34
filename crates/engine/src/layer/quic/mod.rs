//! QUIC version 1 (RFC 9000) as a layer over datagrams, by the state machine of `quinn-proto`:
//! protocols over [`weigh_model::protocol::Transport::Streams`] get it by having their
//! [`weigh_model::protocol::Dial`] or [`weigh_model::protocol::Host`] wrapped.
//!
//! The library gets the trial's time with every call. Its timers (loss, pacing, acknowledgements,
//! idle time) are wake-ups of the connection, and so is sending: what the protocol inside says in
//! one turn of the loop leaves together at its end, in as few datagrams as it fits into. There is
//! neither 0-RTT nor migration nor discovery of the path's MTU (docs/decisions, page on QUIC). The
//! library makes each datagram by itself; whether the kernel cuts and joins runs of them is a
//! choice for the sockets ([`Tuning::is_cut_by_kernel`]).

mod choice;
mod credit;
mod line;
mod reasons;
mod session;
mod waiting;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use weigh_model::protocol::{Dial, Host, Transport};

use super::datagrams::{client, server};
use super::one_stream;
use super::tls::{ClientChoice, ServerChoice, Tally, TlsError};

use choice::Streams;
pub use choice::{Congestion, Tuning};

/// Puts these clients inside QUIC; those of a protocol for TCP onto one stream of it.
///
/// # Errors
/// Files that cannot be read, are not certificates or keys, or do not belong together.
pub fn secure_dial(
    dial: Dial,
    choice: &ClientChoice,
    tuning: &Tuning,
    tally: &Arc<Tally>,
) -> Result<Dial, TlsError> {
    let (dial, streams) = match dial.transport {
        Transport::Stream => (one_stream::wrap_dial(dial), Streams::One),
        _ => (dial, Streams::Many),
    };
    let secured = client::secured(dial, choice::client(choice, streams, tuning, tally)?);
    Ok(Dial { transport: tuning.transport(), ..secured })
}

/// Puts this server inside QUIC, one of a protocol for TCP onto one stream of each connection. Its
/// shards share certificates and the key of stateless resets.
///
/// # Errors
/// Those of [`secure_dial`].
pub fn secure_host(
    host: Host,
    choice: &ServerChoice,
    tuning: &Tuning,
    tally: &Arc<Tally>,
) -> Result<Host, TlsError> {
    let (host, streams) = match host.transport {
        Transport::Stream => (one_stream::wrap_host(host), Streams::One),
        _ => (host, Streams::Many),
    };
    let secured = server::secured(host, choice::server(choice, streams, tuning, tally)?);
    Ok(Host { transport: tuning.transport(), ..secured })
}
