//! The clock that hops are stamped by.

use rustix::time::{ClockId, clock_gettime};
use weigh_model::Nanos;

/// Now, on `CLOCK_MONOTONIC`: the same for all processes of a machine, and that of the engine
/// (`std::time::Instant` on Linux).
pub(crate) fn now() -> Nanos {
    let time = clock_gettime(ClockId::Monotonic);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
