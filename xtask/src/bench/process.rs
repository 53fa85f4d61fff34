//! What the kernel tells of processes and cores, read from /proc.

use std::fs;
use std::process::Command;

/// The cores that generator and target run on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cores {
    /// The generator's.
    pub(crate) generator: usize,
    /// The target's.
    pub(crate) target: usize,
    /// Both go ahead of everybody else's work on these cores: for a machine that is never quiet.
    pub(crate) is_ahead: bool,
}

/// Time of one core since boot, in clock ticks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CoreTime {
    /// Ticks in which it was not idle.
    pub(crate) busy: u64,
    /// All ticks.
    pub(crate) total: u64,
}

/// Reads the time of the core number `core`.
pub(crate) fn core_time(core: usize) -> CoreTime {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let name = format!("cpu{core} ");
    let Some(line) = stat.lines().find(|line| line.starts_with(&name)) else {
        return CoreTime::default();
    };
    let ticks: Vec<u64> =
        line.split_whitespace().skip(1).take(8).filter_map(|field| field.parse().ok()).collect();
    let total = ticks.iter().sum();
    let idle: u64 = ticks.iter().skip(3).take(2).sum();
    CoreTime { busy: total - idle, total }
}

/// User and system ticks of a process and of all its children that it has waited for. Works for
/// a process that has ended as long as nobody has reaped it.
pub(crate) fn cpu_ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name stands in parentheses and may hold anything; the fields are counted behind it.
    let Some((_, fields)) = stat.rsplit_once(')') else { return 0 };
    fields.split_whitespace().skip(11).take(4).filter_map(|f| f.parse::<u64>().ok()).sum()
}

/// How long the first thread of a process has stood ready to run without running, nanoseconds: the
/// second number of schedstat (Documentation/scheduler/sched-stats.rst of the kernel).
pub(crate) fn waited_ns(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// The load average of the last minute.
pub(crate) fn load_average() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0.0)
}

/// A command to be completed with a program, pinned to `core`. If it `is_ahead` it goes before all
/// other work there: with nice -20, in a session of its own, whose scheduling group has that
/// niceness too (sched(7), "The autogroup feature").
pub(crate) fn on_core(core: usize, is_ahead: bool) -> Command {
    let core = core.to_string();
    if is_ahead {
        let mut command = Command::new("setsid");
        command.args(["sh", "-c", AHEAD, core.as_str()]);
        return command;
    }
    let mut command = Command::new("taskset");
    command.args(["-c", core.as_str()]);
    command
}

/// The core stands in $0.
const AHEAD: &str = "echo -20 >/proc/self/autogroup 2>/dev/null; \
                     exec nice -n -20 taskset -c \"$0\" \"$@\"";

/// Clock ticks in a second.
pub(crate) fn ticks_per_second() -> f64 {
    rustix::param::clock_ticks_per_second() as f64
}

/// A process and all that descend from it, itself first.
pub(crate) fn tree(pid: u32) -> Vec<u32> {
    let mut found = vec![pid];
    let mut next = 0;
    while next < found.len() {
        let tasks = fs::read_dir(format!("/proc/{}/task", found[next])).into_iter().flatten();
        for task in tasks.flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            found.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
        next += 1;
    }
    found
}

/// Bytes of anonymous memory that are resident: heap and stacks, neither code nor files.
pub(crate) fn anonymous_bytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let kibibytes = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|number| number.parse::<u64>().ok());
    kibibytes.unwrap_or(0) * 1024
}

/// True if the process was started with this word among its arguments.
pub(crate) fn has_argument(pid: u32, word: &str) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes())
}

/// TCP sockets in use in this network namespace.
pub(crate) fn sockets_in_use() -> u64 {
    let stat = fs::read_to_string("/proc/net/sockstat").unwrap_or_default();
    stat.lines()
        .find_map(|line| line.strip_prefix("TCP: inuse "))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

/// The path of a program on PATH.
pub(crate) fn program(name: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let extra = ["/usr/sbin", "/usr/local/sbin"].map(std::path::PathBuf::from);
    std::env::split_paths(&path).chain(extra).map(|folder| folder.join(name)).find(|p| p.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_process_is_read() {
        let pid = std::process::id();
        let mut child = Command::new("sleep").arg("5").spawn().unwrap();
        assert_eq!(tree(pid)[0], pid);
        assert!(tree(pid).contains(&child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(anonymous_bytes(pid) > 0);
        assert!(core_time(0).total > 0);
        assert!(program("sh").is_some());
    }
}
