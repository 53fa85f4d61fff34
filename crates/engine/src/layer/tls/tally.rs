//! Cost of the TLS connections of a trial, counted at one end.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use hdrhistogram::Histogram;
use weigh_model::Nanos;
use weigh_model::metrics::QUANTILES;

/// Counts of all connections that share it. Locked once per handshake, never per message.
#[derive(Debug, Default)]
pub struct Tally {
    handshakes: Mutex<Handshakes>,
    sent: Bytes,
    received: Bytes,
}

#[derive(Debug, Default)]
struct Handshakes {
    full: u64,
    resumed: u64,
    sent_bytes: u64,
    received_bytes: u64,
    times: Option<Histogram<u64>>,
    /// Times at which the first and the last handshake ended.
    span: Option<(Nanos, Nanos)>,
    negotiated: Option<String>,
    unchecked: Option<String>,
}

/// Bytes of one direction after handshakes.
#[derive(Debug, Default)]
struct Bytes {
    /// In records.
    wire: AtomicU64,
    /// Bytes of the inner protocol in them.
    plain: AtomicU64,
}

/// A handshake that was finished.
pub(in crate::layer) struct Finished {
    pub(in crate::layer) resumed: bool,
    pub(in crate::layer) time: Nanos,
    pub(in crate::layer) now: Nanos,
    pub(in crate::layer) sent_bytes: u64,
    pub(in crate::layer) received_bytes: u64,
    pub(in crate::layer) negotiated: String,
}

/// Counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Handshakes with certificates.
    pub full: u64,
    /// Handshakes that resumed a session.
    pub resumed: u64,
    /// Bytes sent in handshakes, record headers included, tickets not.
    pub handshake_sent_bytes: u64,
    /// Bytes received in them.
    pub handshake_received_bytes: u64,
    /// From the transport standing to the handshake finished at this end, in nanoseconds: parts
    /// of the distribution by name (`mean`, `max`, `p50`, `p90`, `p95`, `p99`, `p999`); empty
    /// without handshakes.
    pub handshake_time_ns: Vec<(&'static str, f64)>,
    /// Handshakes per second between the first and the last; unknown for fewer than two.
    pub handshakes_per_s: Option<f64>,
    /// Bytes sent that records, tickets and close_notify added to those of the inner protocol.
    pub record_sent_bytes: u64,
    /// Bytes received that records, tickets and close_notify added to those of the inner protocol.
    pub record_received_bytes: u64,
    /// Version, suite and protocol of the last handshake: `TLSv1_3 TLS13_AES_256_GCM_SHA384 mqtt`.
    pub negotiated: Option<String>,
    /// Reason for which a certificate that was not checked would have been refused.
    pub unchecked: Option<String>,
}

impl Tally {
    /// Returns the counts so far; connections add their bytes when they end.
    pub fn figures(&self) -> Figures {
        let Ok(shakes) = self.handshakes.lock() else { return Figures::default() };
        let times = shakes.times.as_ref().map_or_else(Vec::new, |times| {
            let at = |quantile| times.value_at_quantile(quantile) as f64;
            let mut named = vec![("mean", times.mean()), ("max", times.max() as f64)];
            named.extend(QUANTILES.map(|(name, quantile)| (name, at(quantile))));
            named
        });
        Figures {
            full: shakes.full,
            resumed: shakes.resumed,
            handshake_sent_bytes: shakes.sent_bytes,
            handshake_received_bytes: shakes.received_bytes,
            handshake_time_ns: times,
            handshakes_per_s: shakes.span.filter(|(first, last)| last > first).map(|span| {
                (shakes.full + shakes.resumed - 1) as f64 * 1e9 / (span.1 - span.0).0 as f64
            }),
            record_sent_bytes: self.sent.added(),
            record_received_bytes: self.received.added(),
            negotiated: shakes.negotiated.clone(),
            unchecked: shakes.unchecked.clone(),
        }
    }

    pub(in crate::layer) fn finished(&self, finished: Finished) {
        let Ok(mut shakes) = self.handshakes.lock() else { return };
        shakes.full += u64::from(!finished.resumed);
        shakes.resumed += u64::from(finished.resumed);
        let first = shakes.span.map_or(finished.now, |(first, _)| first.min(finished.now));
        let last = shakes.span.map_or(finished.now, |(_, last)| last.max(finished.now));
        shakes.span = Some((first, last));
        shakes.sent_bytes += finished.sent_bytes;
        shakes.received_bytes += finished.received_bytes;
        shakes.negotiated = Some(finished.negotiated);
        if shakes.times.is_none() {
            shakes.times = Histogram::new(DIGITS).ok();
        }
        if let Some(times) = &mut shakes.times {
            // It grows as it must: only lack of memory could refuse.
            let _ = times.record(finished.time.0);
        }
    }

    pub(in crate::layer) fn moved(&self, sent: (u64, u64), received: (u64, u64)) {
        for (bytes, (wire, plain)) in [(&self.sent, sent), (&self.received, received)] {
            bytes.wire.fetch_add(wire, Ordering::Relaxed);
            bytes.plain.fetch_add(plain, Ordering::Relaxed);
        }
    }

    pub(super) fn note_unchecked(&self, why: String) {
        if let Ok(mut shakes) = self.handshakes.lock() {
            shakes.unchecked.get_or_insert(why);
        }
    }
}

impl Bytes {
    fn added(&self) -> u64 {
        let (wire, plain) = (self.wire.load(Ordering::Relaxed), self.plain.load(Ordering::Relaxed));
        wire.saturating_sub(plain)
    }
}

/// Significant digits of recorded times.
const DIGITS: u8 = 3;
