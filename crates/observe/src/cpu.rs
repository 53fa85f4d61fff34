//! Processor time: of a process tree, of threads, of the host.
//!
//! The kernel accounts running time in nanoseconds per thread (`sum_exec_runtime`, first number
//! of `/proc/PID/task/TID/schedstat`), and in clock ticks per process with its ended threads and
//! its waited-for children (`/proc/PID/stat`). Neither is complete alone, so both are read: the
//! first for resolution, the second for threads that came and went between two samples.

use std::collections::BTreeMap;
use std::fs;

use rustix::time::{ClockId, Timespec, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::ObserveError;
use crate::process::{ProcessStat, Tree};

/// Source of a processor time, finest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Accounting {
    /// `CLOCK_PROCESS_CPUTIME_ID`: this process itself, to the nanosecond.
    ProcessClock,
    /// Sum of `/proc/PID/task/*/schedstat`: nanoseconds, behind by at most a scheduler tick for
    /// a thread that is running at the moment.
    ThreadSchedule,
    /// The account of a control group, behind by at most a scheduler tick for what is running.
    Group,
    /// `/proc/PID/stat`: whole clock ticks, because this kernel keeps no schedstat.
    Ticks,
}

impl Accounting {
    /// The source in words.
    pub fn name(self) -> &'static str {
        match self {
            Accounting::ProcessClock => "process clock",
            Accounting::ThreadSchedule => "schedstat of every thread",
            Accounting::Group => "control group",
            Accounting::Ticks => "clock ticks",
        }
    }
}

/// Processor time of a tree since the first sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuReading {
    /// User and system time together, nanoseconds; never falls from one reading to the next.
    pub cpu_ns: u64,
    /// Number of processes now.
    pub processes: u32,
    /// Number of threads now.
    pub threads: u32,
    /// The coarsest source that was used.
    pub accounting: Accounting,
}

/// Processor time of a process and of everything that descends from it.
#[derive(Debug)]
pub struct CpuTree {
    tree: Tree,
    processes: BTreeMap<u32, ProcessTime>,
    /// Time of members that have ended, as last seen.
    ended_ns: u64,
    /// Time that the members had used before the first sample.
    base_ns: u64,
    /// Waited-for time at the last sample, and how much it has grown in total. It falls when a
    /// member ends for which no process in the tree waits.
    waited_last_ns: u64,
    waited_grown_ns: u64,
    highest_ns: u64,
}

impl CpuTree {
    /// Begins with what the tree has used up to now as 0. For a child that was just started,
    /// what it used before is start-up.
    ///
    /// # Errors
    /// [`ObserveError::NoProcess`] if the process is not there.
    pub fn new(root: u32) -> Result<CpuTree, ObserveError> {
        CpuTree::of(&[root])
    }

    /// Begins with several processes and all their descendants.
    ///
    /// # Errors
    /// [`ObserveError::NoProcess`] if one of them is not there.
    pub fn of(roots: &[u32]) -> Result<CpuTree, ObserveError> {
        let mut tree = CpuTree {
            tree: Tree::of(roots)?,
            processes: BTreeMap::new(),
            ended_ns: 0,
            base_ns: 0,
            waited_last_ns: 0,
            waited_grown_ns: 0,
            highest_ns: 0,
        };
        let (members, _) = tree.look();
        tree.base_ns = tree.alive_ns();
        tree.waited_last_ns = waited_ns(&members);
        Ok(tree)
    }

    /// The process ID of the first root.
    pub fn root(&self) -> u32 {
        self.tree.root()
    }

    /// Reads the whole tree.
    pub fn read(&mut self) -> CpuReading {
        self.read_with_members().0
    }

    /// Reads the whole tree, and returns its members.
    pub fn read_with_members(&mut self) -> (CpuReading, Vec<ProcessStat>) {
        let (members, accounting) = self.look();
        // A child that ended is in `ended_ns` up to its last look, and in its parent's waited
        // time once that has waited for it; the larger of the two misses less.
        let waited_ns = waited_ns(&members);
        self.waited_grown_ns += waited_ns.saturating_sub(self.waited_last_ns);
        self.waited_last_ns = waited_ns;
        let used = self.alive_ns() + self.ended_ns.max(self.waited_grown_ns);
        self.highest_ns = self.highest_ns.max(used.saturating_sub(self.base_ns));
        let reading = CpuReading {
            cpu_ns: self.highest_ns,
            processes: u32::try_from(members.len()).unwrap_or(u32::MAX),
            threads: members.iter().map(|stat| stat.threads).sum(),
            accounting,
        };
        (reading, members)
    }

    fn look(&mut self) -> (Vec<ProcessStat>, Accounting) {
        let members = self.tree.look();
        let mut before = std::mem::take(&mut self.processes);
        let mut coarsest = Accounting::ProcessClock;
        for stat in &members {
            let known = before.remove(&stat.pid);
            let known = known.filter(|time| time.started_ticks == stat.started_ticks);
            let mut time = known.unwrap_or_else(|| ProcessTime::new(stat));
            coarsest = coarsest.max(time.update(stat));
            self.processes.insert(stat.pid, time);
        }
        self.ended_ns += before.values().map(|time| time.cpu_ns).sum::<u64>();
        (members, coarsest)
    }

    fn alive_ns(&self) -> u64 {
        self.processes.values().map(|time| time.cpu_ns).sum()
    }
}

/// Processor time of one process.
#[derive(Debug)]
struct ProcessTime {
    started_ticks: u64,
    cpu_ns: u64,
    /// Nanoseconds of every thread at the last sample.
    threads: BTreeMap<u32, u64>,
    ended_threads_ns: u64,
}

impl ProcessTime {
    fn new(stat: &ProcessStat) -> ProcessTime {
        ProcessTime {
            started_ticks: stat.started_ticks,
            cpu_ns: 0,
            threads: BTreeMap::new(),
            ended_threads_ns: 0,
        }
    }

    fn update(&mut self, stat: &ProcessStat) -> Accounting {
        if stat.pid == std::process::id() {
            self.cpu_ns = own_process_ns();
            return Accounting::ProcessClock;
        }
        let ticks_ns = stat.own_ticks.saturating_mul(tick_ns());
        let threads = thread_times(stat.pid);
        let accounting =
            if threads.is_empty() { Accounting::Ticks } else { Accounting::ThreadSchedule };
        for (tid, last) in &self.threads {
            // A thread's number that is used again starts below its last value.
            if threads.get(tid).is_none_or(|now| now < last) {
                self.ended_threads_ns += last;
            }
        }
        self.threads = threads;
        let scheduled = self.threads.values().sum::<u64>() + self.ended_threads_ns;
        // The ticks are the exact time rounded down, with ended threads in it.
        self.cpu_ns = self.cpu_ns.max(scheduled).max(ticks_ns);
        accounting
    }
}

/// Processor time of all cores since the host started, nanoseconds, from the first line of
/// `/proc/stat`. Guest time is part of user time there, and is not repeated here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostCpu {
    /// User mode.
    pub user_ns: u64,
    /// User mode with lowered priority.
    pub nice_ns: u64,
    /// Kernel mode.
    pub system_ns: u64,
    /// Idle.
    pub idle_ns: u64,
    /// Idle while input or output was awaited.
    pub iowait_ns: u64,
    /// Hardware interrupts.
    pub interrupt_ns: u64,
    /// Soft interrupts: the network's receive path runs there and is not charged to a process.
    pub softirq_ns: u64,
    /// Taken by the hypervisor for others.
    pub steal_ns: u64,
    /// Number of cores; 0 from hosts that did not report it.
    #[serde(default)]
    pub cores: u32,
}

impl HostCpu {
    /// Reads the totals.
    ///
    /// # Errors
    /// If `/proc/stat` cannot be read or understood.
    pub fn read() -> Result<HostCpu, ObserveError> {
        let path = "/proc/stat";
        let text = fs::read_to_string(path)
            .map_err(|error| ObserveError::Unreadable { path: path.to_owned(), error })?;
        HostCpu::parse(&text, tick_ns()).ok_or_else(|| ObserveError::Unexpected(path.to_owned()))
    }

    /// The difference to an earlier reading.
    pub fn since(&self, earlier: &HostCpu) -> HostCpu {
        HostCpu {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            nice_ns: self.nice_ns.saturating_sub(earlier.nice_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
            idle_ns: self.idle_ns.saturating_sub(earlier.idle_ns),
            iowait_ns: self.iowait_ns.saturating_sub(earlier.iowait_ns),
            interrupt_ns: self.interrupt_ns.saturating_sub(earlier.interrupt_ns),
            softirq_ns: self.softirq_ns.saturating_sub(earlier.softirq_ns),
            steal_ns: self.steal_ns.saturating_sub(earlier.steal_ns),
            cores: self.cores,
        }
    }

    /// Everything but idling and waiting.
    pub fn busy_ns(&self) -> u64 {
        self.user_ns
            + self.nice_ns
            + self.system_ns
            + self.interrupt_ns
            + self.softirq_ns
            + self.steal_ns
    }

    /// What was used in a window of this length: the time of all cores without idling.
    ///
    /// The kernel accounts busy time by looking which task a timer interrupt stops
    /// (`CONFIG_TICK_CPU_ACCOUNTING`): work that timers start is in its sight more often than in
    /// fact, and [`HostCpu::busy_ns`] may be several times too high. Idle time is measured by the
    /// clock (`CONFIG_NO_HZ`).
    pub fn used_ns(&self, wall_ns: u64) -> u64 {
        match u64::from(self.cores) {
            0 => self.busy_ns(),
            cores => (cores * wall_ns).saturating_sub(self.idle_ns + self.iowait_ns),
        }
    }

    /// All time of all cores, idling included: of a window its length times the cores, as far as
    /// the kernel's samples are right.
    pub fn all_ns(&self) -> u64 {
        self.busy_ns() + self.idle_ns + self.iowait_ns
    }

    fn parse(text: &str, tick_ns: u64) -> Option<HostCpu> {
        let is_core = |line: &&str| {
            line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_numeric()))
        };
        let cores = text.lines().filter(is_core).count();
        let sum = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let sum = HostCpu::parse_line(sum, tick_ns)?;
        Some(HostCpu { cores: u32::try_from(cores).ok()?, ..sum })
    }

    /// The sum over these cores, by their numbers.
    ///
    /// # Errors
    /// [`ObserveError::Unexpected`] if the kernel does not report one of them.
    pub fn read_cores(cores: &[usize]) -> Result<HostCpu, ObserveError> {
        let path = "/proc/stat";
        let text = fs::read_to_string(path)
            .map_err(|error| ObserveError::Unreadable { path: path.to_owned(), error })?;
        HostCpu::of_cores(&text, cores, tick_ns())
            .ok_or_else(|| ObserveError::Unexpected(path.to_owned()))
    }

    fn of_cores(text: &str, cores: &[usize], tick_ns: u64) -> Option<HostCpu> {
        let of_core = |core: &usize| {
            let head = format!("cpu{core} ");
            let line = text.lines().find_map(|line| line.strip_prefix(&*head))?;
            HostCpu::parse_line(line, tick_ns)
        };
        cores.iter().map(of_core).try_fold(HostCpu::default(), |sum, one| Some(sum.plus(&one?)))
    }

    fn plus(&self, other: &HostCpu) -> HostCpu {
        HostCpu {
            user_ns: self.user_ns + other.user_ns,
            nice_ns: self.nice_ns + other.nice_ns,
            system_ns: self.system_ns + other.system_ns,
            idle_ns: self.idle_ns + other.idle_ns,
            iowait_ns: self.iowait_ns + other.iowait_ns,
            interrupt_ns: self.interrupt_ns + other.interrupt_ns,
            softirq_ns: self.softirq_ns + other.softirq_ns,
            steal_ns: self.steal_ns + other.steal_ns,
            cores: self.cores + other.cores,
        }
    }

    fn parse_line(line: &str, tick_ns: u64) -> Option<HostCpu> {
        let mut fields = line.split_ascii_whitespace().map(|field| field.parse::<u64>().ok());
        let mut next = || Some(fields.next()??.saturating_mul(tick_ns));
        Some(HostCpu {
            user_ns: next()?,
            nice_ns: next()?,
            system_ns: next()?,
            idle_ns: next()?,
            iowait_ns: next()?,
            interrupt_ns: next()?,
            softirq_ns: next()?,
            steal_ns: next()?,
            cores: 1,
        })
    }
}

/// Processor time of the calling thread in nanoseconds (`CLOCK_THREAD_CPUTIME_ID`).
pub fn own_thread_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
}

/// Processor time of this process with all its threads in nanoseconds
/// (`CLOCK_PROCESS_CPUTIME_ID`).
pub fn own_process_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ProcessCPUTime))
}

/// Nanoseconds on `CLOCK_MONOTONIC`, with which all samples are stamped.
pub fn monotonic_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// The length of a clock tick in `/proc`, nanoseconds: `sysconf(_SC_CLK_TCK)`.
pub fn tick_ns() -> u64 {
    1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)
}

fn waited_ns(members: &[ProcessStat]) -> u64 {
    members.iter().map(|stat| stat.waited_ticks).sum::<u64>().saturating_mul(tick_ns())
}

/// Running time of every thread of a process, empty if the kernel does not keep it.
fn thread_times(pid: u32) -> BTreeMap<u32, u64> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else { return BTreeMap::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter_map(|tid| {
            let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
            Some((tid, text.split_ascii_whitespace().next()?.parse().ok()?))
        })
        .collect()
}

pub(crate) fn nanoseconds(time: Timespec) -> u64 {
    // Clocks of these kinds never show a time before their zero.
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let rest = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds * 1_000_000_000 + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_totals_are_taken_apart() {
        let text = "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        let host = HostCpu::parse(text, 10).unwrap();
        assert_eq!((host.user_ns, host.softirq_ns, host.steal_ns), (10, 70, 80));
        assert_eq!(host.busy_ns(), 10 + 20 + 30 + 60 + 70 + 80);
        assert_eq!(host.all_ns(), host.busy_ns() + 40 + 50);
        assert_eq!((host.cores, host.used_ns(100)), (1, 100 - 40 - 50));
        assert_eq!(host.used_ns(1), 0, "idle for longer than the window, by rounding");
        assert_eq!(HostCpu { cores: 0, ..host }.used_ns(100), host.busy_ns());
        assert_eq!(HostCpu::parse("cpu  1 2 3", 10), None);
        let text = "cpu  9 9 9 9 9 9 9 9\ncpu0 1 2 3 4 5 6 7 8\ncpu1 0 0 0 5 0 0 1 0\ncpu10 9 9 9";
        let one = HostCpu::of_cores(text, &[1], 10).unwrap();
        assert_eq!((one.busy_ns(), one.all_ns()), (10, 60));
        let both = HostCpu::of_cores(text, &[0, 1], 10).unwrap();
        assert_eq!((both.busy_ns(), both.all_ns()), (280, 420));
        assert_eq!((both.cores, both.used_ns(150)), (2, 300 - 140));
        assert_eq!(HostCpu::of_cores(text, &[2], 10), None, "there is no such core");
        assert!(HostCpu::read().unwrap().busy_ns() > 0);
    }

    #[test]
    fn our_own_clock_is_used_for_ourselves() {
        let mut tree = CpuTree::new(std::process::id()).unwrap();
        let before = tree.read().cpu_ns;
        let from = own_thread_ns();
        while own_thread_ns() - from < 20_000_000 {}
        let reading = tree.read();
        assert!(reading.cpu_ns - before >= 20_000_000, "{reading:?}");
    }

    #[test]
    fn the_finest_source_is_named_and_the_ticks_are_a_floor() {
        let stat = ProcessStat {
            pid: u32::MAX,
            parent: 1,
            own_ticks: 7,
            waited_ticks: 0,
            threads: 1,
            started_ticks: 1,
        };
        let mut time = ProcessTime::new(&stat);
        assert_eq!(time.update(&stat), Accounting::Ticks);
        assert_eq!(time.cpu_ns, 7 * tick_ns());
        assert!(Accounting::ProcessClock < Accounting::Ticks);
    }
}
