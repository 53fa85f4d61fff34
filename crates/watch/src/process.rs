//! Open files, ports and memory of the generator, with their limits, as the kernel has them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Use of limited resources by a process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Resources {
    /// Open file descriptors; `None` if the kernel is older than 6.2 and there may be too many to
    /// count.
    pub open_files: Option<u64>,
    /// Their limit (`RLIMIT_NOFILE`, soft).
    pub open_files_max: Option<u64>,
    /// Ports of the range from which the kernel gives them to connections: their number.
    pub ports_max: Option<u64>,
    /// Resident memory, bytes.
    pub memory_bytes: Option<u64>,
    /// CPU time so far, seconds.
    pub cpu_s: Option<f64>,
}

impl Resources {
    /// Reads those of process `pid`.
    pub fn of(pid: u32) -> Resources {
        Resources::below(Path::new("/proc"), pid)
    }

    fn below(proc: &Path, pid: u32) -> Resources {
        let own = proc.join(pid.to_string());
        let status = fs::read_to_string(own.join("status")).unwrap_or_default();
        let limits = fs::read_to_string(own.join("limits")).unwrap_or_default();
        let range = fs::read_to_string(proc.join("sys/net/ipv4/ip_local_port_range"));
        Resources {
            open_files: open_files(&own.join("fd"), &status),
            open_files_max: limits.lines().find_map(|line| {
                line.strip_prefix("Max open files")?.split_whitespace().next()?.parse().ok()
            }),
            ports_max: range.ok().and_then(|range| {
                let mut ends = range.split_whitespace().map(str::parse::<u64>);
                let (low, high) = (ends.next()?.ok()?, ends.next()?.ok()?);
                (high >= low).then(|| high - low + 1)
            }),
            memory_bytes: number(&status, "VmRSS:").map(|kilobytes| kilobytes * 1024),
            cpu_s: fs::read_to_string(own.join("stat")).ok().as_deref().and_then(cpu_s),
        }
    }
}

/// Wall-clock time, milliseconds since 1970.
pub fn unix_ms() -> u64 {
    let passed = SystemTime::now().duration_since(UNIX_EPOCH);
    passed.map_or(0, |passed| passed.as_millis() as u64)
}

/// From Linux 6.2 on the size of the folder is the number of open files (proc(5)). Before, they are
/// counted if the table is small: to count 100,000 takes a tenth of a second.
fn open_files(folder: &PathBuf, status: &str) -> Option<u64> {
    match fs::metadata(folder).ok()?.len() {
        0 if number(status, "FDSize:")? <= COUNTED_MAX => {
            Some(fs::read_dir(folder).ok()?.count() as u64)
        }
        0 => None,
        size => Some(size),
    }
}

/// The number behind a word at the beginning of a line.
fn number(text: &str, word: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(word))?;
    line.split_whitespace().next()?.parse().ok()
}

/// User and system time, from /proc/PID/stat: fields 14 and 15, behind the name in brackets.
fn cpu_s(stat: &str) -> Option<f64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    let sum = ticks()? + ticks()?;
    Some(sum as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// Descriptors that are counted one by one.
const COUNTED_MAX: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn the_resources_of_this_process_are_those_that_it_uses() {
        let pid = std::process::id();
        let before = Resources::of(pid);
        let files: Vec<File> = (0..40).map(|_| File::open("/dev/null").unwrap()).collect();
        let after = Resources::of(pid);
        // Other tests open and close files in the same process.
        let more = after.open_files.unwrap() as i64 - before.open_files.unwrap() as i64;
        assert!((20..60).contains(&more), "{before:?} {after:?}");
        drop(files);
        assert!(after.open_files_max >= after.open_files);
        assert!(after.memory_bytes.unwrap() > 1 << 20);
        assert!(after.ports_max.unwrap() > 1000 && after.cpu_s.is_some());
    }

    #[test]
    fn a_process_that_ended_has_none() {
        let gone = Resources::of(u32::MAX);
        assert_eq!((gone.open_files, gone.memory_bytes, gone.cpu_s), (None, None, None));
    }

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        let stat = "7 (a) b) S 1 1 1 0 -1 4194304 100 0 0 0 250 50 0 0 20 0";
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        assert_eq!(cpu_s(stat), Some(300.0 / ticks));
    }
}
