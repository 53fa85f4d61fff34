//! Memory of processes: resident, and their proportional share of shared pages.

use std::fs;

/// Memory of one process or of several together, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Resident set: shared pages count once for every process.
    pub rss_bytes: u64,
    /// Proportional set: a page shared by three counts a third for each. Absent if the
    /// kernel does not show it to this user.
    pub pss_bytes: Option<u64>,
}

impl Memory {
    /// The figure to report: proportional where known, else resident.
    pub fn bytes(&self) -> u64 {
        self.pss_bytes.unwrap_or(self.rss_bytes)
    }
}

/// Resident memory only: cheap, as the kernel keeps count (`VmRSS` of `/proc/PID/status`).
pub fn resident(pids: impl IntoIterator<Item = u32>) -> Memory {
    let rss_bytes = pids
        .into_iter()
        .filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/status")).ok())
        .filter_map(|text| kibibytes(&text, "VmRSS:"))
        .sum();
    Memory { rss_bytes, pss_bytes: None }
}

/// Resident and proportional memory. The kernel walks the page tables of every process for it
/// (`/proc/PID/smaps_rollup`) and holds its map meanwhile: not for the middle of a measurement.
pub fn proportional(pids: impl IntoIterator<Item = u32>) -> Memory {
    let mut sum = Memory { rss_bytes: 0, pss_bytes: Some(0) };
    for pid in pids {
        let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
        match (kibibytes(&rollup, "Rss:"), kibibytes(&rollup, "Pss:")) {
            (Some(rss), Some(pss)) => {
                sum.rss_bytes += rss;
                sum.pss_bytes = sum.pss_bytes.map(|bytes| bytes + pss);
            }
            _ => {
                let rss = resident([pid]).rss_bytes;
                sum.rss_bytes += rss;
                // A zombie holds nothing, so nothing is unknown about it.
                if rss > 0 {
                    sum.pss_bytes = None;
                }
            }
        }
    }
    sum
}

fn kibibytes(text: &str, key: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(key))?;
    let number: u64 = rest.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(number * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_are_read() {
        let text = "Rss:                2188 kB\nPss:                 611 kB\nPss_Dirty:  1 kB\n";
        assert_eq!(kibibytes(text, "Pss:"), Some(611 * 1024));
        assert_eq!(kibibytes(text, "VmRSS:"), None);
    }

    #[test]
    fn what_we_touch_is_seen() {
        let own = std::process::id();
        let before = proportional([own]);
        let block = vec![1u8; 256 << 20];
        let after = proportional([own]);
        // Other tests of this process give some of theirs back meanwhile: 4 MiB were seen.
        assert!(after.rss_bytes >= before.rss_bytes + (240 << 20), "{before:?} {after:?}");
        assert!(resident([own]).rss_bytes >= 240 << 20);
        assert!(after.bytes() <= after.rss_bytes);
        drop(block);
    }

    #[test]
    fn a_process_that_is_gone_holds_nothing() {
        assert_eq!(proportional([u32::MAX]), Memory { rss_bytes: 0, pss_bytes: Some(0) });
    }
}
