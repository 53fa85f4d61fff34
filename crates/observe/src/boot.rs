//! Identity and age of the current boot of the machine.

use std::fs;

use rustix::time::{ClockId, clock_gettime};

use crate::cpu::nanoseconds;

/// ID that the kernel makes at every boot (`random(4)`, `boot_id`); `None` if it reports none.
pub fn id() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned()).filter(|id| !id.is_empty())
}

/// Nanoseconds on `CLOCK_BOOTTIME`: it cannot be set, and it counts while the machine sleeps.
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
