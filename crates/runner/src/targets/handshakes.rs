//! Counts of TLS handshakes in a trial.

/// Handshakes as rustls counted them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handshakes {
    /// Bytes sent and received, without tickets in TLS 1.3.
    pub bytes: (u64, u64),
    /// Number of completed handshakes.
    pub count: u64,
}
