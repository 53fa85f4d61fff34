//! Pauses between the openings of connections that time their handshakes: QUIC learns the round
//! trip from it (RFC 9002, section 5), in the program. Handshakes that begin together are computed
//! one after the other, so each would take the computing time of all for a part of the path.

use weigh_model::Nanos;

/// When the next connection may be opened before the load begins.
#[derive(Debug, Default)]
pub(super) struct Spacing {
    not_before: Nanos,
    /// The sum of all pauses.
    total: Nanos,
    /// When the first connection was opened.
    began: Option<Nanos>,
    /// The time in which the first connection came to stand.
    first: Option<Nanos>,
}

impl Spacing {
    /// A connection was opened that times its handshake.
    pub(super) fn note_opening(&mut self, now: Nanos) {
        self.began.get_or_insert(now);
        let pause = pause(self.first);
        self.not_before = now + pause;
        self.total = self.total + pause;
    }

    /// At least one connection stands.
    pub(super) fn note_standing(&mut self, now: Nanos) {
        if let (Some(began), None) = (self.began, self.first) {
            self.first = Some(now - began);
        }
    }

    /// Returns the time before which no other connection may be opened.
    pub(super) fn not_before(&self) -> Nanos {
        self.not_before
    }

    /// Returns how much longer opening may take because of the pauses.
    pub(super) fn total(&self) -> Nanos {
        self.total
    }
}

/// Returns the pause after an opening, if the first connection stood after this time. Where
/// handshakes are quick, so are their timers: pauses of 5 ms would only take time.
fn pause(first: Option<Nanos>) -> Nanos {
    first.map_or(PAUSE_MAX, |time| Nanos(time.0 / OPENING_AT_ONCE).min(PAUSE_MAX))
}

/// More than a handshake takes of a core.
const PAUSE_MAX: Nanos = Nanos::from_millis(5);

/// Handshakes that may be under way together, if all take as long as the first.
const OPENING_AT_ONCE: u64 = 32;
