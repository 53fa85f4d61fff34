//! Use of limited resources: file descriptors and local ports, and what the kernel dropped because
//! a receiver did not read in time. Every reading is a few files of constant size, however
//! many sockets there are.

use std::fs;
use std::path::Path;

/// Use of a limited resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    /// Number in use.
    pub used: u64,
    /// The limit.
    pub available: u64,
}

impl Used {
    /// The one that is closer to its limit.
    fn fuller(self, other: Used) -> Used {
        let share = |of: &Used| of.used as f64 / of.available.max(1) as f64;
        if share(&other) > share(&self) { other } else { self }
    }
}

/// Descriptors of the process that is closest to its limit (`RLIMIT_NOFILE`, the soft one), of
/// these. Threads with their own table count separately. `None` before Linux 6.2, whose
/// `/proc/PID/fd` does not report their number without a walk through all of them.
pub fn descriptors(pids: impl IntoIterator<Item = u32>) -> Option<Used> {
    pids.into_iter().filter_map(of_process).reduce(Used::fuller)
}

fn of_process(pid: u32) -> Option<Used> {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let available = open_files(&limits)?;
    let open = |thread: &Path| fs::metadata(thread.join("fd")).ok().map(|folder| folder.len());
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?.filter_map(Result::ok);
    let used = threads.filter_map(|thread| open(&thread.path())).max()?;
    (used > 0).then_some(Used { used, available })
}

/// The soft limit of a text like `/proc/PID/limits`, proc(5).
fn open_files(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

/// Counts of the calling thread's network since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// Closed TCP sockets that keep their port for another minute.
    pub waiting: u64,
    /// What the kernel dropped because the receiver had no room: connections that found a full
    /// backlog (`ListenDrops`), segments that found a full one (`TCPBacklogDrop`) or a full buffer
    /// (`TCPRcvQDrop`), Linux `Documentation/networking/snmp_counter.rst`.
    pub drops: u64,
}

/// Reads the network that the calling thread is in.
pub fn network() -> Option<Network> {
    let sockets = fs::read_to_string("/proc/thread-self/net/sockstat").ok()?;
    let counters = fs::read_to_string("/proc/thread-self/net/netstat").ok()?;
    Some(Network { waiting: waiting(&sockets)?, drops: drops(&counters)? })
}

fn waiting(sockets: &str) -> Option<u64> {
    let line = sockets.lines().find_map(|line| line.strip_prefix("TCP:"))?;
    let mut words = line.split_whitespace();
    words.find(|word| *word == "tw")?;
    words.next()?.parse().ok()
}

/// Lines come in pairs: names, then values.
fn drops(counters: &str) -> Option<u64> {
    let mut lines = counters.lines().filter_map(|line| line.strip_prefix("TcpExt:"));
    let (names, values) = (lines.next()?, lines.next()?);
    let pairs = names.split_whitespace().zip(values.split_whitespace());
    let dropped = pairs.filter(|(name, _)| DROPS.contains(name));
    Some(dropped.filter_map(|(_, value)| value.parse::<u64>().ok()).sum())
}

/// Local ports of one local address that the kernel may assign to connections, in the network
/// that the calling thread is in.
pub fn local_ports() -> Option<u64> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut ends = text.split_whitespace().filter_map(|word| word.parse::<u64>().ok());
    let (first, last) = (ends.next()?, ends.next()?);
    Some(last.checked_sub(first)? + 1)
}

const DROPS: [&str; 3] = ["ListenDrops", "TCPBacklogDrop", "TCPRcvQDrop"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_the_kernel_are_read_as_documented() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
                      Max processes             127                  127               processes\n\
                      Max open files            1024                 20000                files\n";
        assert_eq!(open_files(limits), Some(1024));
        assert_eq!(open_files(&limits.replace("1024", "unlimited")), Some(u64::MAX));
        assert_eq!(open_files(""), None);
        let sockets =
            "sockets: used 40\nTCP: inuse 1 orphan 1 tw 17 alloc 2 mem 26\nUDP: inuse 0\n";
        assert_eq!(waiting(sockets), Some(17));
        let counters = "TcpExt: ListenOverflows ListenDrops TCPBacklogDrop TCPRcvQDrop\n\
                        TcpExt: 5 6 30 400\nIpExt: InNoRoutes\nIpExt: 0\n";
        assert_eq!(drops(counters), Some(436));
    }

    /// Files that this test opens are seen, wherever the kernel tells of them.
    #[test]
    fn what_is_open_is_counted() {
        let own = || descriptors([std::process::id()]);
        let Some(before) = own() else {
            println!("SKIPPED: this kernel does not tell how many descriptors there are");
            return;
        };
        let open: Vec<_> = (0..100).map(|_| fs::File::open("/proc/self/stat").unwrap()).collect();
        let after = own().unwrap();
        assert!(after.used >= before.used.min(20) + 50, "{before:?} {after:?}");
        assert!(after.available >= after.used);
        drop(open);
        assert!(network().is_some() && local_ports().is_some_and(|ports| ports > 0));
        let fuller = Used { used: 9, available: 10 };
        assert_eq!(Used { used: 100, available: 1000 }.fuller(fuller), fuller);
    }
}
