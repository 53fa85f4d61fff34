//! This host's `CLOCK_MONOTONIC`, which `Instant` reads, as nanoseconds.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds on `CLOCK_MONOTONIC`.
pub fn now_ns() -> i64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// The moment at which the clock showed `at_ns`; `None` if that is before the clock began.
pub fn instant(at_ns: i64) -> Option<Instant> {
    // The reading between two others is the nearest to both.
    let (now, read) = (Instant::now(), now_ns());
    let apart = Duration::from_nanos(read.abs_diff(at_ns));
    if at_ns > read { now.checked_add(apart) } else { now.checked_sub(apart) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_the_reading_of_the_same_clock() {
        let at = now_ns() - 5_000_000_000;
        let since = instant(at).unwrap().elapsed().as_nanos() as i64;
        let by_clock = now_ns() - at;
        // Two clocks cannot be read at one moment.
        let apart = since.abs_diff(by_clock);
        assert!(since >= 5_000_000_000 && apart < 1_000_000_000, "{since} {by_clock}");
    }
}
