//! Counts what a reference server had received at the end of the load, for messages without
//! confirmations and subscribers.

use std::io;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use weigh_model::Nanos;
use weigh_model::server::ServerReport;
use weigh_observe::cpu::monotonic_ns;
use weigh_testbed::reference::Asker;

use crate::targets::running::READY_WITHIN;

/// Reads a reference server's count at the end of the load in a thread of its own, so that the
/// borders of the window do not wait.
pub struct Asking {
    /// Dropped at the end of the load.
    ring: Option<Sender<()>>,
    thread: JoinHandle<Option<ReceivedCount>>,
}

/// A count of the server, and its time.
pub struct ReceivedCount {
    report: ServerReport,
    /// Times of the request and the response, on the monotonic clock.
    between_ns: (u64, u64),
}

impl Asking {
    /// Starts to wait for the end of the load.
    ///
    /// # Errors
    /// A thread that cannot be started.
    pub fn start(asker: Asker) -> io::Result<Asking> {
        let (ring, rings) = channel();
        let ask = move || {
            rings.recv().ok()?;
            let asked_ns = monotonic_ns();
            let report = asker.report(READY_WITHIN)?;
            Some(ReceivedCount { report, between_ns: (asked_ns, monotonic_ns()) })
        };
        let thread = std::thread::Builder::new().name("weigh-taken".to_owned()).spawn(ask)?;
        Ok(Asking { ring: Some(ring), thread })
    }

    /// Signals the end of the load; only the first call counts.
    pub fn load_ended(&mut self) {
        if let Some(ring) = self.ring.take() {
            // The thread may have ended.
            let _ = ring.send(());
        }
    }

    /// The count; `None` if the load never ended or the server did not answer.
    pub fn finish(mut self) -> Option<ReceivedCount> {
        drop(self.ring.take());
        self.thread.join().ok().flatten()
    }
}

impl ReceivedCount {
    /// Messages received in `window` on the monotonic clock, of `all` that were received in the
    /// end. The count comes just after the window and is corrected for that. `None` if the answer
    /// took too long.
    pub fn within(&self, before: &ServerReport, window: (Nanos, Nanos), all: u64) -> Option<u64> {
        let (asked_ns, answered_ns) = self.between_ns;
        let length = (window.1 - window.0).0 as f64;
        let counted = self.report.unique.saturating_sub(before.unique);
        let ended = answered_ns.max(window.1.0);
        if length <= 0.0 || (ended - asked_ns.min(ended)) as f64 > SLACK * length {
            return None;
        }
        if counted >= all {
            return Some(all);
        }
        let watched = answered_ns.saturating_sub(window.0.0) as f64;
        let share = (length / watched.max(1.0)).min(1.0);
        Some((counted as f64 * share).round() as u64)
    }
}

/// Maximum duration of the request, as a share of the window.
const SLACK: f64 = 0.02;

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(unique: u64, between_ns: (u64, u64)) -> ReceivedCount {
        ReceivedCount { report: ServerReport { unique, ..ServerReport::default() }, between_ns }
    }

    /// A server that received 1,000 in 1.01 s received 990 in the window of 1 s; one that had
    /// received all received all; and an answer that comes late gives no count.
    #[test]
    fn a_count_holds_for_the_window_it_was_made_after() {
        let (before, window) = (ServerReport::default(), (Nanos(0), Nanos(1_000_000_000)));
        let soon = (1_000_000_000, 1_010_000_000);
        assert_eq!(taken(1000, soon).within(&before, window, 3000), Some(990));
        assert_eq!(taken(1000, soon).within(&before, window, 1000), Some(1000));
        let late = (1_000_000_000, 1_500_000_000);
        assert_eq!(taken(1000, late).within(&before, window, 3000), None);
        let before = ServerReport { unique: 400, ..ServerReport::default() };
        assert_eq!(taken(1400, soon).within(&before, window, 3000), Some(990));
    }
}
