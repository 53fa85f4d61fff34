//! The forwarder's clock: monotonic, since the machine started.

use rustix::time::{ClockId, clock_gettime};
use weigh_model::units::Nanos;

/// Returns the current time.
pub(crate) fn now() -> Nanos {
    read(ClockId::Monotonic)
}

/// Processor time of the calling thread.
pub(crate) fn thread_cpu() -> Nanos {
    read(ClockId::ThreadCPUTime)
}

/// What to subtract from a time stamp of the kernel's wall clock to get one of this clock.
pub(crate) fn wall_ahead_by() -> i128 {
    i128::from(read(ClockId::Realtime).0) - i128::from(now().0)
}

fn read(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
