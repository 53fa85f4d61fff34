//! Which start of the machine this is, and how long ago it was.

use std::fs;

use rustix::time::{ClockId, clock_gettime};

use crate::cpu::nanoseconds;

/// A name that the kernel makes up at every start (`random(4)`, `boot_id`); `None` where it tells
/// none.
pub fn id() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned()).filter(|id| !id.is_empty())
}

/// Nanoseconds on `CLOCK_BOOTTIME`: nobody sets it, and it goes on while the machine sleeps.
pub fn clock_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Boottime))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_start_has_one_name_and_a_clock_that_goes_on() {
        assert_eq!(id(), id());
        let earlier = clock_ns();
        assert!(earlier > 0 && clock_ns() >= earlier);
    }
}
