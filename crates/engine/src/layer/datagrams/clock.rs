//! The trial's clock for libraries that want the time as an instant of the standard library.

use std::time::{Duration, Instant};

use weigh_model::Nanos;

/// The library's time at the begin of the trial's clock: it is only ever added to.
#[derive(Clone, Copy, Debug)]
pub(in crate::layer) struct Clock(Instant);

impl Clock {
    pub(in crate::layer) fn start() -> Clock {
        Clock(Instant::now())
    }

    pub(in crate::layer) fn at(self, now: Nanos) -> Instant {
        self.0 + Duration::from_nanos(now.0)
    }

    pub(in crate::layer) fn nanos(self, at: Instant) -> Nanos {
        let since = at.saturating_duration_since(self.0);
        Nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }
}
