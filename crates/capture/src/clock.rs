//! Processor time of a thread, and wall-clock time.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Processor time of the calling thread in nanoseconds (`CLOCK_THREAD_CPUTIME_ID`,
/// clock_gettime(2)).
pub fn own_thread_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
}

/// Nanoseconds since 1970.
pub fn now_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Realtime))
}

fn nanoseconds(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
