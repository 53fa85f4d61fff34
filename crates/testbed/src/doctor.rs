//! Checks before a run: what cannot work, what will disturb the results, and what to type. Pure:
//! the same demand and facts give the same findings.

use serde::Serialize;
use weigh_model::Nanos;
use weigh_model::numbers::{bytes, count, exact};

use crate::facts::{Facts, TargetFact};

/// Resources that a trial will need.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand {
    /// Connections of producers that are open at the same time.
    pub connections: u64,
    /// Connections of subscribers that are open at the same time.
    pub subscribers: u64,
    /// Threads of the generator, each with its own table of descriptors.
    pub shards: u32,
    /// Threads of the target with a table each; 1 for a server that is one process.
    pub target_shards: u32,
    /// Number of messages, if that is the limit.
    pub messages: Option<u64>,
    /// Duration, if time is the limit.
    pub duration: Option<Nanos>,
    /// Messages per second of all connections, if a rate is given.
    pub rate_per_s: Option<f64>,
    /// Every message opens a connection of its own and closes it.
    pub connection_per_message: bool,
    /// Source addresses on this machine.
    pub source_addresses: u32,
    /// The target is on this machine.
    pub local: bool,
    /// Names of managed targets the plan uses.
    pub targets: Vec<String>,
}

/// One thread and no load: for `weigh doctor` without a plan.
impl Default for Demand {
    fn default() -> Demand {
        Demand {
            connections: 0,
            subscribers: 0,
            shards: 1,
            target_shards: 1,
            messages: None,
            duration: None,
            rate_per_s: None,
            connection_per_message: false,
            source_addresses: 1,
            local: true,
            targets: Vec::new(),
        }
    }
}

impl Demand {
    /// Connections that are open at the same time.
    fn standing(&self) -> u64 {
        self.connections.saturating_add(self.subscribers)
    }
}

/// Number of generator threads at which each has descriptors for its share of `standing`
/// connections, when `hard` are allowed per table.
pub fn shards_needed(standing: u64, hard: u64) -> u32 {
    let per_shard = hard.saturating_sub(DESCRIPTORS_SPARED).max(1);
    standing.div_ceil(per_shard).clamp(1, SHARDS_MAX) as u32
}

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// No problem.
    Ok,
    /// The trial works, but disturbs other work or is disturbed by it.
    Warning,
    /// The trial cannot work: nothing may be started.
    Fatal,
}

/// Result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Name of the check, in kebab-case.
    pub check: &'static str,
    /// Its severity.
    pub level: Level,
    /// What was found.
    pub text: String,
    /// What to type; empty where no fix is needed.
    pub fix: String,
}

/// Runs all checks. Returns at least one finding for each check, in a fixed order.
pub fn examine(demand: &Demand, facts: &Facts) -> Vec<Finding> {
    let mut findings = vec![
        kernel(facts),
        timers(facts),
        clock_source(facts),
        cores(demand, facts),
        governor(facts),
        load(facts),
        memory(demand, facts),
        descriptors(demand, facts),
    ];
    if demand.local {
        findings.push(target_descriptors(demand, facts));
    }
    findings.push(files(demand, facts));
    findings.extend(facts.tracked_free.map(|free| tracking(demand, free)));
    findings.extend(facts.tcp_pages.map(|pages| tcp_memory(demand, pages)));
    findings.push(ports(demand, facts));
    if demand.connection_per_message {
        findings.push(port_turnover(demand, facts));
    }
    findings.push(backlog(demand, facts));
    findings.push(congestion_control(facts));
    findings.extend(facts.targets.iter().map(|target| installed(demand, target)));
    // One program may be several targets, one for each of its protocols.
    findings.dedup();
    findings
}

/// Whether any finding forbids the start.
pub fn forbids(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.level == Level::Fatal)
}

/// Descriptors that a process needs besides its connections: log, journal, epoll, pipes.
const OWN_DESCRIPTORS: u64 = 64;
/// Time for which a closed connection keeps its port (`TCP_TIMEWAIT_LEN` of the kernel's `tcp.h`).
const TIME_WAIT_S: f64 = 60.0;
/// Time after which a port may be reused with `tcp_tw_reuse` (ip-sysctl).
const TIME_WAIT_REUSE_S: f64 = 1.0;
/// Descriptors that a table keeps free when the number of shards is chosen: the target shares
/// the number, and the kernel does not spread connections over its shards quite evenly.
const DESCRIPTORS_SPARED: u64 = 500;
/// Largest number of shards chosen automatically.
const SHARDS_MAX: u64 = 64;
/// Estimate of the memory of the kernel and both ends for an idle connection on one machine.
/// Measured
/// with 100,000 over loopback (Linux 6.18): 8 KiB of kernel memory for both sockets, 0.25 KiB in
/// the generator, 0.55 KiB in the reference broker; other servers hold several KiB more.
const CONNECTION_BYTES: u64 = 16 << 10;
/// Connections that one thread of the generator opens at the same time.
const OPENING_AT_ONCE: u64 = 128;
/// Estimate of the memory of the ledger and the recorder for each message, bytes.
const MESSAGE_BYTES: u64 = 32;

fn finding(check: &'static str, level: Level, text: String, fix: impl Into<String>) -> Finding {
    Finding { check, level, text, fix: fix.into() }
}

fn fine(check: &'static str, text: String) -> Finding {
    finding(check, Level::Ok, text, "")
}

fn kernel(facts: &Facts) -> Finding {
    let release = &facts.host.kernel;
    if facts.precise_waiting {
        return fine("kernel", format!("Linux {release}, waits with nanosecond timeouts"));
    }
    let text = format!("Linux {release} has no epoll_pwait2, or a sandbox forbids it");
    let fix = "every wait takes a second system call, and --path does not work: use Linux 5.11 or \
    newer, and allow epoll_pwait2";
    finding("kernel", Level::Warning, text, fix)
}

fn timers(facts: &Facts) -> Finding {
    match facts.timer_slack_ns {
        Some(slack) if slack <= 1 => fine("timer-slack", Nanos(slack).to_string()),
        slack => {
            let seen = slack.map_or_else(|| "unknown".to_owned(), |own| Nanos(own).to_string());
            let text = format!("the timer slack stays at {seen} although 1 ns was requested");
            finding(
                "timer-slack",
                Level::Warning,
                text,
                "read the send lag of the result: messages may start late by this time",
            )
        }
    }
}

fn clock_source(facts: &Facts) -> Finding {
    let source = facts.host.clock_source.as_str();
    match source {
        "hpet" | "acpi_pm" | "jiffies" | "refined-jiffies" | "pit" => finding(
            "clock-source",
            Level::Warning,
            format!("{source}: reading the clock costs a system call or is coarse"),
            "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource",
        ),
        "" => fine("clock-source", "not reported by this kernel".to_owned()),
        _ => fine("clock-source", source.to_owned()),
    }
}

fn cores(demand: &Demand, facts: &Facts) -> Finding {
    let cores = facts.host.cores;
    if cores < 2 {
        let text = "one core: generator and target will share it".to_owned();
        return finding("cores", Level::Warning, text, "use a machine with two cores or more");
    }
    if facts.physical_cores == Some(1) {
        let text = format!("the {cores} cores are threads of one core: they slow each other down");
        return finding("cores", Level::Warning, text, "use a machine with two physical cores");
    }
    let others = if demand.local { cores - 1 } else { cores };
    if demand.shards > others {
        let text = format!("{} generator threads on {others} cores", demand.shards);
        let fix = format!("use at most {others} threads: more threads wait for each other");
        return finding("cores", Level::Warning, text, fix);
    }
    fine("cores", format!("{cores} cores available"))
}

fn governor(facts: &Facts) -> Finding {
    match facts.host.governor.as_str() {
        "" => fine("governor", "the frequency is not visible on this machine".to_owned()),
        "performance" => fine("governor", "performance".to_owned()),
        other => finding(
            "governor",
            Level::Warning,
            format!("{other}: the frequency changes with the load, and with it the results"),
            "cpupower frequency-set -g performance",
        ),
    }
}

fn load(facts: &Facts) -> Finding {
    let text = format!("load average {} on {} cores", exact(facts.load), facts.host.cores);
    if facts.load > f64::from(facts.host.cores.max(1)) * 0.5 {
        return finding(
            "load",
            Level::Warning,
            text,
            "stop other programs, or wait until they end",
        );
    }
    fine("load", text)
}

fn memory(demand: &Demand, facts: &Facts) -> Finding {
    let available = facts.memory_available_bytes;
    let messages = demand.messages.unwrap_or(0).saturating_mul(MESSAGE_BYTES);
    let needed = demand.standing().saturating_mul(CONNECTION_BYTES).saturating_add(messages);
    let text =
        format!("about {} needed, {} available", bytes(needed as f64), bytes(available as f64));
    let fix = "use fewer connections or messages, or stop other programs that hold memory";
    match available {
        0 => fine("memory", "not reported by this kernel".to_owned()),
        _ if needed > available => finding("memory", Level::Fatal, text, fix),
        _ if needed > available / 2 => finding("memory", Level::Warning, text, fix),
        _ => fine("memory", text),
    }
}

fn descriptors(demand: &Demand, facts: &Facts) -> Finding {
    let shards = tables(demand.shards, facts);
    let needed = demand.standing().div_ceil(shards).saturating_add(OWN_DESCRIPTORS);
    let (soft, hard) = (facts.descriptors.soft, facts.descriptors.hard);
    if needed > hard {
        let text = format!(
            "each generator thread needs {} descriptors, {} are allowed",
            count(needed),
            count(hard)
        );
        let free = hard.saturating_sub(OWN_DESCRIPTORS);
        let more = match free {
            0 => String::new(),
            _ if !facts.own_tables => "; or let threads have descriptor tables of their own \
                                        (Docker: --security-opt seccomp=unconfined)"
                .to_owned(),
            _ => {
                let threads = demand.standing().div_ceil(free);
                format!("; or use at least {threads} generator threads (--shards {threads})")
            }
        };
        let fix = format!(
            "as root: ulimit -Hn {needed} before starting; or use at most {} connections{more}",
            count(free.saturating_mul(shards))
        );
        return finding("descriptors", Level::Fatal, text, fix);
    }
    let raised = if needed > soft { ", raised by weigh" } else { "" };
    let (needed, soft, hard) = (count(needed), limit(soft), limit(hard));
    fine("descriptors", format!("{needed} needed, {soft} (hard limit {hard}){raised}"))
}

/// Number of descriptor tables of this number of threads.
fn tables(shards: u32, facts: &Facts) -> u64 {
    if facts.own_tables { u64::from(shards.max(1)) } else { 1 }
}

/// The whole system has a limit on open files too.
fn files(demand: &Demand, facts: &Facts) -> Finding {
    let ends = if demand.local { 2 } else { 1 };
    let needed = demand.standing().saturating_mul(ends).saturating_add(OWN_DESCRIPTORS);
    let free = facts.files_free;
    if needed > free {
        let text =
            format!("{} open files needed, the system has {} left", count(needed), count(free));
        let fix = format!(
            "sysctl -w fs.file-max=$(($(cut -f1 /proc/sys/fs/file-nr) + {needed})), or at most {} \
             connections",
            count(free.saturating_sub(OWN_DESCRIPTORS) / ends)
        );
        return finding("files", Level::Fatal, text, fix);
    }
    let (needed, free) = (count(needed), limit(free));
    fine("files", format!("{needed} open files needed, {free} left in the system"))
}

/// With connection tracking, the kernel drops packets of connections that do not fit its table.
fn tracking(demand: &Demand, free: u64) -> Finding {
    let needed = demand.standing();
    let text = format!(
        "the kernel must track {} connections and has room for {}",
        count(needed),
        count(free)
    );
    if needed > free {
        let fix = format!(
            "sysctl -w net.netfilter.nf_conntrack_max=$(($(cat \
             /proc/sys/net/netfilter/nf_conntrack_count) + {needed})), or at most {} \
             connections",
            count(free)
        );
        return finding("connection-tracking", Level::Fatal, text, fix);
    }
    fine("connection-tracking", text)
}

/// A socket that has received something keeps a page in the account of `tcp_mem`
/// (`sk_forward_alloc`), empty or not: 652,566 sockets of idle MQTT connections had 589,424 pages
/// on Linux 6.18, and above the limit the kernel dropped connections as fast as they were made.
fn tcp_memory(demand: &Demand, (pressure, most): (u64, u64)) -> Finding {
    let ends = if demand.local { 2 } else { 1 };
    let needed = demand.standing().saturating_mul(ends);
    let text = format!(
        "about {} pages of TCP memory needed, {} allowed; above {} the kernel shrinks buffers",
        count(needed),
        count(most),
        count(pressure)
    );
    if needed <= pressure {
        return fine("tcp-memory", text);
    }
    let level = if needed > most { Level::Fatal } else { Level::Warning };
    let fix = format!(
        "sysctl -w net.ipv4.tcp_mem=\"{} {} {}\", or at most {} connections",
        needed,
        needed.saturating_mul(3) / 2,
        needed.saturating_mul(2),
        count(pressure / ends)
    );
    finding("tcp-memory", level, text, fix)
}

fn target_descriptors(demand: &Demand, facts: &Facts) -> Finding {
    let shards = tables(demand.target_shards, facts);
    let needed = demand.standing().div_ceil(shards).saturating_add(OWN_DESCRIPTORS);
    let hard = facts.descriptors.hard;
    if needed > hard {
        let text = format!(
            "each target thread needs {} descriptors, {} are allowed",
            count(needed),
            count(hard)
        );
        let free = hard.saturating_sub(OWN_DESCRIPTORS).saturating_mul(shards);
        let fix = format!(
            "as root: ulimit -Hn {needed} before starting; or at most {} connections",
            count(free)
        );
        return finding("target-descriptors", Level::Fatal, text, fix);
    }
    let (needed, hard) = (count(needed), limit(hard));
    fine("target-descriptors", format!("{needed} needed by the target, {hard} allowed"))
}

fn ports(demand: &Demand, facts: &Facts) -> Finding {
    let addresses = u64::from(demand.source_addresses.max(1));
    let available = facts.ports().saturating_mul(addresses);
    let needed = demand.standing();
    let text = format!(
        "{} connections to one address need as many ports; {} are available ({addresses} source \
         addresses, each with {} ports)",
        count(needed),
        count(available),
        count(facts.ports())
    );
    if needed > available {
        let fix = format!(
            "at most {} connections, or connect from {} addresses (127.0.0.1 and up), or sysctl -w \
             net.ipv4.ip_local_port_range=\"1024 65535\"",
            count(available),
            needed.div_ceil(facts.ports().max(1))
        );
        return finding("ports", Level::Fatal, text, fix);
    }
    if needed.saturating_add(facts.time_wait) > available && !reuses(demand, facts) {
        let closed = count(facts.time_wait);
        let text = format!("{text}; {closed} closed connections may still hold a port");
        return finding("ports", Level::Warning, text, "wait a minute until ports are released");
    }
    fine("ports", text)
}

/// With a connection for every message, a port can be reused only after a while.
fn port_turnover(demand: &Demand, facts: &Facts) -> Finding {
    let wait_s = if reuses(demand, facts) { TIME_WAIT_REUSE_S } else { TIME_WAIT_S };
    let addresses = f64::from(demand.source_addresses.max(1));
    let available = facts.ports() as f64 * addresses;
    let sustained = available / wait_s;
    let duration_s = demand.duration.map(Nanos::as_secs_f64);
    let by_count = demand.messages.map(|messages| messages as f64);
    let by_rate = demand.rate_per_s.map(|rate| {
        let span_s = duration_s.unwrap_or(f64::INFINITY).min(wait_s);
        (rate * span_s).min(by_count.unwrap_or(f64::INFINITY))
    });
    let text = format!(
        "a closed connection keeps its port for {wait_s} s: {} connections per second are \
         sustainable",
        exact(sustained.round())
    );
    let fix = "lower the rate (-R), connect from more addresses, or \
               sysctl -w net.ipv4.tcp_tw_reuse=1";
    match (by_rate, by_count) {
        (Some(used), _) if used > available => {
            let (used, available) = (exact(used.round()), exact(available));
            let text = format!("{text}; {used} of {available} ports would be in use");
            finding("port-turnover", Level::Fatal, text, fix)
        }
        (Some(_), _) => fine("port-turnover", text),
        (None, Some(count)) if count <= available => fine("port-turnover", text),
        // The rate of a closed loop is not known beforehand.
        (None, _) => finding("port-turnover", Level::Warning, text, fix),
    }
}

fn reuses(demand: &Demand, facts: &Facts) -> bool {
    facts.time_wait_reuse == 1 || (facts.time_wait_reuse == 2 && demand.local)
}

fn backlog(demand: &Demand, facts: &Facts) -> Finding {
    let at_once = match demand.connection_per_message {
        true => u64::MAX,
        false => OPENING_AT_ONCE.saturating_mul(u64::from(demand.shards.max(1))),
    };
    let (needed, backlog) = (demand.standing().min(at_once), facts.backlog);
    let text = format!(
        "{} connections opened at once; {} can wait to be accepted",
        count(needed),
        count(backlog)
    );
    if needed > backlog {
        let text = format!("{text}: some would take a second or more to connect");
        let fix = format!(
            "sysctl -w net.core.somaxconn={needed}, or open connections slowly (--arrival ramp)"
        );
        return finding("backlog", Level::Warning, text, fix);
    }
    fine("backlog", text)
}

fn congestion_control(facts: &Facts) -> Finding {
    match facts.host.congestion_control.as_str() {
        "bbr" => finding(
            "congestion-control",
            Level::Warning,
            "bbr paces its packets, which changes latency and processor time".to_owned(),
            "sysctl -w net.ipv4.tcp_congestion_control=cubic, or compare only with bbr",
        ),
        "" => fine("congestion-control", "not reported by this kernel".to_owned()),
        other => fine("congestion-control", other.to_owned()),
    }
}

fn installed(demand: &Demand, target: &TargetFact) -> Finding {
    let fix = target.install.as_str();
    match &target.version {
        Some(version) => fine("installed", format!("{} {version}", target.title)),
        None if demand.targets.contains(&target.name) => {
            finding("installed", Level::Fatal, format!("{} is not installed", target.title), fix)
        }
        None => finding("installed", Level::Ok, format!("{} is not installed", target.title), fix),
    }
}

fn limit(number: u64) -> String {
    if number == u64::MAX { "unlimited".to_owned() } else { count(number) }
}

#[cfg(test)]
mod tests;
