//! The clock of hops.

use rustix::time::{ClockId, clock_gettime};
use weigh_model::Nanos;

/// The present time on `CLOCK_MONOTONIC`: the same for all processes of a machine, and for the
/// engine (`std::time::Instant` on Linux).
pub(crate) fn now() -> Nanos {
    let time = clock_gettime(ClockId::Monotonic);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
