//! Facts about this machine that the doctor needs, read at the time of the call.

use std::collections::BTreeSet;
use std::fs;
use std::num::NonZeroU64;
use std::path::PathBuf;

use rustix::event::{Timespec, epoll};
use rustix::thread::UnshareFlags;
use weigh_model::event::HostFacts;

use crate::descriptors::{DescriptorLimit, limit};
use crate::find::{find, fix};
use crate::hosts::tuning::PORTS;
use crate::pinning::CoreSet;
use crate::target::Target;

/// Everything with which the doctor compares a demand.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// The machine, as recorded with every run.
    pub host: HostFacts,
    /// Physical cores behind those this process may use; `None` if unknown.
    pub physical_cores: Option<u32>,
    /// Descriptor limits of this process.
    pub descriptors: DescriptorLimit,
    /// Whether a thread may have its own descriptor table (unshare(2), CLONE_FILES). Filters of
    /// container runtimes usually forbid it.
    pub own_tables: bool,
    /// Open files that the system as a whole still allows (`fs.file-max` less those of
    /// `fs.file-nr`); `u64::MAX` if unknown.
    pub files_free: u64,
    /// Connections that the kernel's connection tracking has room for
    /// (`nf_conntrack_max` less `nf_conntrack_count`); `None` where it is not loaded.
    pub tracked_free: Option<u64>,
    /// Pages that all TCP sockets together may account for: above the first number the kernel saves
    /// memory, above the second it drops connections (`net.ipv4.tcp_mem`, second and third
    /// number); `None` if unknown.
    pub tcp_pages: Option<(u64, u64)>,
    /// First and last port that the kernel assigns to connections
    /// (`/proc/sys/net/ipv4/ip_local_port_range`).
    pub port_range: (u16, u16),
    /// Ports of the range that are set aside (`ip_local_reserved_ports`).
    pub reserved_ports: u32,
    /// Closed connections that still hold their port (`tw` of `/proc/net/sockstat`).
    pub time_wait: u64,
    /// `tcp_tw_reuse`: 0 never, 1 always, 2 on loopback.
    pub time_wait_reuse: u32,
    /// `net.core.somaxconn`: most connections that may wait to be accepted.
    pub backlog: u64,
    /// Memory available without swapping (`MemAvailable`), bytes; 0 if unknown.
    pub memory_available_bytes: u64,
    /// Mean number of running threads in the last minute.
    pub load: f64,
    /// Whether the kernel can wait with nanosecond timeouts (`epoll_pwait2`, Linux 5.11).
    pub precise_waiting: bool,
    /// How late the kernel may wake a thread that requested 1 ns, nanoseconds.
    pub timer_slack_ns: Option<u64>,
    /// The targets of the catalogue.
    pub targets: Vec<TargetFact>,
}

/// Whether one target is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetFact {
    /// Its name in options and plans.
    pub name: String,
    /// Its official name.
    pub title: String,
    /// Its version; `None` if it is not installed.
    pub version: Option<String>,
    /// The command that installs it.
    pub install: String,
}

impl Facts {
    /// Reads the facts of this machine and of these targets: each that is installed is started to
    /// ask for its version. `host` was read by the caller.
    pub fn gather<'t>(host: HostFacts, targets: impl IntoIterator<Item = &'t Target>) -> Facts {
        let targets = targets.into_iter().map(target_fact).collect();
        Facts { targets, ..Facts::of_machine(host) }
    }

    /// Reads the facts of this machine without those of any target.
    pub fn of_machine(host: HostFacts) -> Facts {
        let port_range = port_range(&net_setting("ip_local_port_range"));
        let reserved = net_setting("ip_local_reserved_ports");
        Facts {
            host,
            physical_cores: physical_cores(),
            descriptors: limit(),
            own_tables: may_have_own_table(),
            files_free: files_free(&text("/proc/sys/fs/file-nr")),
            tracked_free: tracked_free(),
            tcp_pages: tcp_pages(),
            port_range,
            reserved_ports: reserved_within(&reserved, port_range),
            time_wait: time_wait(&text("/proc/net/sockstat")),
            time_wait_reuse: net_setting("tcp_tw_reuse").parse().unwrap_or(0),
            backlog: text("/proc/sys/net/core/somaxconn").parse().unwrap_or(DEFAULT_BACKLOG),
            memory_available_bytes: memory_available(&text("/proc/meminfo")),
            load: load(&text("/proc/loadavg")),
            precise_waiting: waits_precisely(),
            timer_slack_ns: least_timer_slack_ns(),
            targets: Vec::new(),
        }
    }

    /// The same machine as seen from an emulated host on it: without other processes' connections,
    /// and
    /// with the settings that a load test needs ([`crate::hosts`]).
    pub fn on_a_host(&self) -> Facts {
        let (port_range, reserved_ports) = (PORTS, 0);
        Facts { port_range, reserved_ports, time_wait: 0, time_wait_reuse: 1, ..self.clone() }
    }

    /// Connections that one source address can have to one address and port of a target.
    pub fn ports(&self) -> u64 {
        let (first, last) = self.port_range;
        let range = u64::from(last.saturating_sub(first)) + 1;
        range.saturating_sub(u64::from(self.reserved_ports))
    }
}

/// `net.core.somaxconn` before Linux 5.4, if the kernel does not report it.
const DEFAULT_BACKLOG: u64 = 128;
/// Default of Linux (ip-sysctl, `ip_local_port_range`).
const DEFAULT_PORTS: (u16, u16) = (32768, 60999);

fn target_fact(target: &Target) -> TargetFact {
    TargetFact {
        name: target.name.clone(),
        title: target.title.clone(),
        version: find(target).map(|found| found.version),
        install: fix(target).to_owned(),
    }
}

/// Hardware threads of one core name the same siblings
/// (`/sys/devices/system/cpu/cpuN/topology/thread_siblings_list`).
fn physical_cores() -> Option<u32> {
    let root = std::env::var_os("WEIGH_SYSFS").filter(|path| !path.is_empty());
    let root = PathBuf::from(root.unwrap_or_else(|| "/sys".into())).join("devices/system/cpu");
    let mut siblings = BTreeSet::new();
    for core in CoreSet::allowed().ok()?.cores() {
        let path = root.join(format!("cpu{core}/topology/thread_siblings_list"));
        siblings.insert(fs::read_to_string(path).ok()?);
    }
    u32::try_from(siblings.len()).ok()
}

fn net_setting(name: &str) -> String {
    text(&format!("/proc/sys/net/ipv4/{name}"))
}

fn text(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

fn port_range(text: &str) -> (u16, u16) {
    let mut numbers = text.split_ascii_whitespace().map(|number| number.parse::<u16>());
    match (numbers.next(), numbers.next()) {
        (Some(Ok(first)), Some(Ok(last))) if first <= last => (first, last),
        _ => DEFAULT_PORTS,
    }
}

/// The list holds ports and ranges with commas: `8080,9148-9150`.
fn reserved_within(list: &str, (first, last): (u16, u16)) -> u32 {
    let inside = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to): (u16, u16) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
        let (from, to) = (from.max(first), to.min(last));
        (from <= to).then(|| u32::from(to - from) + 1)
    };
    list.split(',').filter_map(inside).sum()
}

fn time_wait(sockstat: &str) -> u64 {
    let tcp = sockstat.lines().find_map(|line| line.strip_prefix("TCP:")).unwrap_or_default();
    let mut words = tcp.split_ascii_whitespace().skip_while(|word| *word != "tw");
    words.nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Tries it in a separate thread, whose table ends with it.
fn may_have_own_table() -> bool {
    #[expect(unsafe_code, reason = "unshare is marked unsafe because of this very flag")]
    // SAFETY: the thread uses no descriptor, neither before nor after.
    let tried = || unsafe { rustix::thread::unshare_unsafe(UnshareFlags::FILES) }.is_ok();
    std::thread::spawn(tried).join().unwrap_or(false)
}

/// Allocated, free (always 0), and the limit: proc_sys_fs(5).
fn files_free(file_nr: &str) -> u64 {
    let numbers: Vec<u64> =
        file_nr.split_ascii_whitespace().filter_map(|number| number.parse().ok()).collect();
    match numbers[..] {
        [open, _, most] => most.saturating_sub(open),
        _ => u64::MAX,
    }
}

fn tracked_free() -> Option<u64> {
    let number = |name: &str| text(&format!("/proc/sys/net/netfilter/{name}")).parse::<u64>().ok();
    Some(number("nf_conntrack_max")?.saturating_sub(number("nf_conntrack_count")?))
}

fn tcp_pages() -> Option<(u64, u64)> {
    let text = text("/proc/sys/net/ipv4/tcp_mem");
    let mut numbers = text.split_ascii_whitespace().skip(1).map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

fn memory_available(text: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let number = line.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    number.unwrap_or(0) * 1024
}

fn load(text: &str) -> f64 {
    text.split_ascii_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

fn waits_precisely() -> bool {
    let Ok(epoll) = epoll::create(epoll::CreateFlags::CLOEXEC) else { return false };
    let mut events =
        [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }];
    let nothing = Timespec { tv_sec: 0, tv_nsec: 1 };
    epoll::wait(&epoll, &mut events[..], Some(&nothing)).is_ok()
}

/// Requests 1 ns in a separate thread, since the setting belongs to a thread (prctl(2),
/// PR_SET_TIMERSLACK).
fn least_timer_slack_ns() -> Option<u64> {
    let ask = || {
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1)).ok()?;
        rustix::thread::current_timer_slack().ok()
    };
    std::thread::spawn(ask).join().ok()?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Catalogue;

    #[test]
    fn this_machine_has_facts() {
        let catalogue = Catalogue::load(None).unwrap();
        let facts = Facts::gather(HostFacts::default(), catalogue.targets());
        assert!(facts.ports() > 0 && facts.backlog > 0, "{facts:?}");
        assert!(facts.memory_available_bytes > 0 && facts.precise_waiting, "{facts:?}");
        assert_eq!(facts.targets.len(), catalogue.targets().len());
    }

    #[test]
    fn texts_of_the_kernel_are_read() {
        assert_eq!(port_range("1024\t65535"), (1024, 65535));
        assert_eq!(port_range(""), DEFAULT_PORTS);
        assert_eq!(reserved_within("80,1000-1009,2000", (1005, 1999)), 5);
        assert_eq!(reserved_within("", (1, 2)), 0);
        assert_eq!((files_free("1000\t0\t5000"), files_free("")), (4_000, u64::MAX));
        assert_eq!(time_wait("sockets: used 1\nTCP: inuse 3 orphan 0 tw 17 alloc 3 mem 0"), 17);
        assert_eq!(memory_available("MemAvailable:   2 kB"), 2048);
        assert_eq!(load("0.83 0.32 0.14 1/99 1"), 0.83);
    }
}
