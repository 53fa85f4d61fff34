//! Makes the record of a trial from what was measured: metrics, ledger, warnings.

use std::collections::BTreeMap;

use weigh_model::event::TrialFinished;
use weigh_model::ledger::Cause;
use weigh_model::metrics::QUANTILES;
use weigh_model::protocol::Guarantee;
use weigh_model::server::{RECEIVE_QUEUE_FULL, SUBSCRIBER_DISCONNECTED, ServerReport};
use weigh_model::{Durability, Load, Pattern, Protocol, Trial, Warning};
use weigh_stats::histogram::Histogram;
use weigh_stats::quantile;

pub use crate::accounts::{attribute_queue_drops, attribute_server_drops};
use crate::lag_share;
use crate::outcome::Outcome;
use crate::pace;
use crate::trace::Piece;

/// Observations in addition to the generator's own record.
#[derive(Clone, Debug)]
pub struct Observations {
    /// Guarantee of the protocol under the trial's settings.
    pub guarantee: Guarantee,
    /// What a confirmation means on the target, if it is recorded.
    pub durability: Option<Durability>,
    /// Name and version of the target.
    pub target: String,
    /// False if operations bring the server no message that it could count.
    pub carries: bool,
    /// True if the protocol confirms messages.
    pub confirms: bool,
    /// True if generator and target shared cores.
    pub shared_cores: bool,
    /// End of the target, if it ended before the trial.
    pub target_ended: Option<String>,
    /// Resources that the target used; unknown for an external server.
    pub usage: Option<TargetUse>,
    /// Processor time of Weighbridge's threads that generate no load: those that write single
    /// messages to the log, carry packets over a path, or capture packets.
    pub aside_cpu_ns: u64,
    /// The reference server's own count.
    pub server: Option<ServerReport>,
    /// Messages that the reference server had received when the measured window ended, if no client
    /// knows what arrived.
    pub taken_within: Option<u64>,
    /// A real server's own counters over the trial.
    pub counters: BTreeMap<String, f64>,
    /// Terms that the clients asked for, by the names under which the server grants them.
    pub asked_terms: Vec<(&'static str, u64)>,
    /// Growth of the generator's memory, bytes, to the end of the window.
    pub generator_bytes: Option<u64>,
    /// Memory of the target before the first connection and at the end of the window, bytes.
    pub target_bytes: Option<(u64, u64)>,
}

impl Observations {
    /// Creates empty observations: a target whose processor, memory and counts were not observed.
    pub fn unwatched(guarantee: Guarantee, target: &str) -> Observations {
        Observations {
            guarantee,
            durability: None,
            target: target.to_owned(),
            carries: true,
            confirms: true,
            shared_cores: false,
            target_ended: None,
            usage: None,
            aside_cpu_ns: 0,
            server: None,
            taken_within: None,
            counters: BTreeMap::new(),
            asked_terms: Vec::new(),
            generator_bytes: None,
            target_bytes: None,
        }
    }
}

/// Resources that the target used in the measured window and until all was settled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TargetUse {
    /// Processor time of all its processes, until all was settled.
    pub cpu_ns: u64,
    /// Length of what was watched.
    pub wall_ns: u64,
    /// Mean load of the cores that it was given, within the measured window.
    pub percent_mean: f64,
    /// The highest load of them, likewise.
    pub percent_max: f64,
    /// The most memory it had.
    pub memory_bytes_max: u64,
    /// Processor time that the whole host used until all was settled, without the kernel's samples:
    /// the time of all cores in which they did not idle.
    pub host_used_ns: u64,
    /// Resources that the whole host used within the measured window.
    pub host_within: HostUse,
    /// True if that is another host than the generator's.
    pub is_elsewhere: bool,
}

/// Processor time of a whole host, over all its cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostUse {
    /// All but idling and waiting.
    pub busy_ns: u64,
    /// Soft interrupts: the network's receive path, charged to no process.
    pub softirq_ns: u64,
    /// Taken by a hypervisor for others.
    pub steal_ns: u64,
    /// Busy or not.
    pub all_ns: u64,
}

/// The record of a trial with `protocol`.
pub fn put_together(
    trial: &Trial,
    mut outcome: Outcome,
    observed: Observations,
    protocol: &dyn Protocol,
) -> TrialFinished {
    let load = &trial.load;
    let mut warnings = Vec::new();
    reconcile(&mut outcome, &observed, trial, &mut warnings);
    warnings.extend(observed.target_ended.clone().map(Warning::TargetDied));
    warnings.extend(outcome.warnings(load, observed.confirms, &|code| protocol.error(code)));
    if observed.shared_cores {
        warnings.push(Warning::SharedCores);
    }
    let of_server = observed.server.as_ref().map_or(0, |server| server.uncut_sockets);
    let uncut = outcome.shards.accounts.uncut_sockets + of_server;
    warnings.extend((uncut > 0).then_some(Warning::Uncut(uncut)));
    let mut metrics = outcome.metrics(load);
    add_usage(&mut metrics, observed.usage.as_ref(), &outcome, load.copies());
    warnings.extend(disturbance(&outcome, &observed));
    add_connection_memory(&mut metrics, &observed, &outcome, (trial, protocol));
    if outcome.shards.recorder.late_ns_max > 0 {
        metrics.insert("late_time_ns.max".to_owned(), outcome.shards.recorder.late_ns_max as f64);
    }
    add_stall(&mut metrics, &observed, load);
    let counters = observed.counters.iter();
    metrics.extend(counters.map(|(name, value)| (format!("counter.{name}"), *value)));
    let (mut samples, mut histograms) = (BTreeMap::new(), BTreeMap::new());
    let mut quantile_warnings = Vec::new();
    let none = Histogram::new();
    let times = outcome.shards.recorder.times();
    let without_any = without_any(&times, &outcome, load, observed.confirms);
    for (name, times) in times.into_iter().chain(without_any.into_iter().map(|name| (name, &none)))
    {
        add_times(&mut metrics, &mut quantile_warnings, (name, times), &outcome, load);
        samples.insert(name.to_owned(), times.count());
        histograms.insert(name.to_owned(), times.to_base64());
    }
    metrics.extend(lag_share::of(&outcome, load));
    warnings.extend(worst_quantiles(quantile_warnings));
    for (what, asked) in &observed.asked_terms {
        if let Some(granted) =
            outcome.shards.granted.get(*what).filter(|granted| **granted < *asked)
        {
            warnings.push(Warning::Granted((*what).to_owned(), *asked, *granted));
        }
    }
    let mut finished = TrialFinished {
        trial: trial.id.clone(),
        point: trial.point.clone(),
        repetition: trial.repetition,
        seed: trial.seed,
        guarantee: observed.guarantee,
        durability: observed.durability,
        target: observed.target,
        metrics,
        samples,
        ledger: outcome.ledger,
        warnings: warnings.iter().map(Warning::record).collect(),
        granted: outcome.shards.granted,
        server: observed.server,
        counters: observed.counters,
        scene: BTreeMap::new(),
        histograms,
    };
    pace::diagnose(&mut finished, load);
    finished
}

/// Compares the server's own counts with the ledger: an unconfirmed publish becomes known, losses
/// without a cause get one, and a difference becomes a warning.
fn reconcile(
    outcome: &mut Outcome,
    observed: &Observations,
    trial: &Trial,
    warnings: &mut Vec<Warning>,
) {
    let ledger = &mut outcome.ledger;
    if let Some(report) = &observed.server {
        let counts_identities =
            outcome.is_marked && trial.load.pattern != Pattern::Hold && observed.carries;
        if ledger.delivered.is_none() && counts_identities {
            let lost = ledger.sent.saturating_sub(report.unique);
            outcome.delivered_within = observed.taken_within;
            outcome.delivered_since = Some(report.unique);
            ledger.delivered = Some(report.unique);
            ledger.lost = Some(lost);
            (ledger.duplicates, ledger.corrupt) = (report.duplicates, report.corrupt);
            ledger.foreign = report.foreign;
            ledger.received = report.unique + report.duplicates + report.corrupt + report.foreign;
            if lost > 0 {
                ledger.causes.insert(Cause::Unknown, lost);
            }
        } else if counts_identities {
            let copies = trial.load.copies();
            let (confirmed, sent) = (ledger.acknowledged / copies, ledger.sent / copies);
            if report.unique < confirmed {
                warnings.push(Warning::ServerCountDiffers(report.unique, confirmed));
            } else if report.unique > sent {
                warnings.push(Warning::ServerCountDiffers(report.unique, sent));
            }
        }
        let unseen = report.dropped.get(RECEIVE_QUEUE_FULL).copied().unwrap_or(0);
        // What waited for a subscriber until we closed its connection has its cause by identity.
        let closed = report.dropped.get(SUBSCRIBER_DISCONNECTED).copied().unwrap_or(0);
        attribute_server_drops(ledger, report.dropped.values().sum::<u64>() - unseen - closed);
        attribute_queue_drops(ledger, unseen);
    }
    if let Some(dropped) = observed.counters.get("dropped") {
        attribute_server_drops(ledger, *dropped as u64);
    }
}

fn add_usage(
    metrics: &mut BTreeMap<String, f64>,
    usage: Option<&TargetUse>,
    outcome: &Outcome,
    copies: u64,
) {
    let Some(usage) = usage else { return };
    metrics.insert("target_cpu_percent.mean".to_owned(), usage.percent_mean);
    metrics.insert("target_cpu_percent.max".to_owned(), usage.percent_max);
    // No process works without memory: a kernel that does not account for it reports 0.
    if usage.memory_bytes_max > 0 {
        metrics.insert("target_memory_bytes.max".to_owned(), usage.memory_bytes_max as f64);
    }
    let host = &usage.host_within;
    for (name, part_ns) in
        [("cpu", host.busy_ns), ("softirq", host.softirq_ns), ("steal", host.steal_ns)]
    {
        if host.all_ns > 0 {
            let percent = 100.0 * part_ns as f64 / host.all_ns as f64;
            metrics.insert(format!("host_{name}_percent.mean"), percent);
        }
    }
    // Both terms from the begin of the window until all is settled.
    let messages = outcome.settled_messages(copies);
    if messages > 0 {
        let per_message = usage.cpu_ns as f64 / 1e3 / messages as f64;
        metrics.insert("target_cpu_us_per_message".to_owned(), per_message);
    }
}

/// Adds the memory of a connection: in the pattern hold of those that are held; under another load
/// of those that stay open, if they are many enough that the rest of a server does not count.
fn add_connection_memory(
    metrics: &mut BTreeMap<String, f64>,
    observed: &Observations,
    outcome: &Outcome,
    (trial, protocol): (&Trial, &dyn Protocol),
) {
    let load = &trial.load;
    let is_hold = load.pattern == Pattern::Hold;
    let are_kept = load.pattern != Pattern::Session && !protocol.renews(&trial.settings);
    let consumers = if load.delivers() { load.subscribers } else { 0 };
    let open = match is_hold {
        true => outcome.shards.held,
        false if are_kept => u64::from(load.connections + consumers),
        false => 0,
    };
    if open == 0 || (!is_hold && open < CONNECTIONS_MIN) {
        return;
    }
    if let Some((before, end)) = observed.target_bytes {
        // Below 0 if the kernel took back more: without it, the mean of small growths is too high.
        let each = (end as f64 - before as f64) / open as f64;
        metrics.insert("target_memory_bytes_per_connection".to_owned(), each);
    }
    if let Some(grown) = observed.generator_bytes.filter(|_| is_hold) {
        let each = grown as f64 / open as f64;
        metrics.insert("generator_memory_bytes_per_connection".to_owned(), each);
    }
}

/// Fewest connections under a load among which a server's growth is divided.
const CONNECTIONS_MIN: u64 = 100;

/// Adds how long subscribers read nothing, and the memory of the target before that.
fn add_stall(metrics: &mut BTreeMap<String, f64>, observed: &Observations, load: &Load) {
    let Some(lasts) = load.stall else { return };
    metrics.insert("subscriber_stall_s".to_owned(), lasts.as_secs_f64());
    if let Some((before, _)) = observed.target_bytes {
        metrics.insert("target_memory_bytes.before".to_owned(), before as f64);
    }
}

/// Times that a trial should have and of which no message has one: all of them are infinite.
fn without_any(
    times: &[(&'static str, &Histogram)],
    outcome: &Outcome,
    load: &Load,
    confirms: bool,
) -> Vec<&'static str> {
    let ledger = &outcome.ledger;
    let is_unanswered = confirms && ledger.acknowledged == 0;
    // Messages without an identity have no delivery times, though they arrive.
    let is_undelivered = load.delivers() && ledger.delivered == Some(0) && ledger.late == 0;
    let owed = [
        ("response_time_ns", is_unanswered),
        ("service_time_ns", is_unanswered),
        ("delivery_time_ns", is_undelivered),
        ("one_way_time_ns", is_undelivered),
    ];
    let is_missing = |name: &str| times.iter().all(|(own, _)| *own != name);
    let is_infinite = |(name, is_owed): &(&str, bool)| {
        *is_owed
            && is_missing(name)
            && outcome.ledger.infinite(name, load.delivers(), load.copies()) > 0
    };
    let owed = owed.into_iter().filter(|_| load.pattern != Pattern::Hold);
    owed.filter(is_infinite).map(|(name, _)| name).collect()
}

/// Adds the quantiles of a recorded time. Lost messages are infinite delay; quantiles for which
/// there are too few samples are left out, with a warning.
fn add_times(
    metrics: &mut BTreeMap<String, f64>,
    warnings: &mut Vec<Warning>,
    (name, times): (&'static str, &Histogram),
    outcome: &Outcome,
    load: &Load,
) {
    let is_headline = matches!(name, "response_time_ns" | "delivery_time_ns");
    let lost = outcome.ledger.infinite(name, load.delivers(), load.copies());
    let mut put = |part: &str, value: Option<f64>| {
        if let Some(value) = value {
            metrics.insert(format!("{name}.{part}"), value);
        }
    };
    // Lost messages are infinite delay, and so are the mean and the maximum with them. Mean and
    // maximum of service and one-way times describe what was served: Little's law and cost models
    // use them.
    let whole = |value: Option<f64>| match is_headline && lost > 0 {
        true => Some(f64::INFINITY),
        false => value,
    };
    put("mean", whole(times.mean()));
    put("max", whole(times.max().map(|max| max as f64)));
    for (part, quantile) in QUANTILES {
        let samples = times.count() + lost;
        if (samples as f64) < 1.0 / (1.0 - quantile) {
            continue;
        }
        let needed = quantile::values_needed(quantile);
        if is_headline && samples < needed {
            warnings.push(Warning::QuantileBeyondData(part, needed, samples));
        }
        match quantile::quantile_with_loss(times, lost, quantile) {
            Some(value) => put(part, Some(value as f64)),
            None => {
                // The journal writes it as null: infinite, and known to be.
                put(part, Some(f64::INFINITY));
                if is_headline {
                    warnings.push(Warning::QuantileInLoss(name, part));
                }
            }
        }
    }
}

/// Puts the times of a piece of the way through stages into a record. Only messages whose whole way
/// is known have such times, so none of them is lost.
pub fn add_hop_times(finished: &mut TrialFinished, piece: &Piece) {
    let Piece { name, times, .. } = piece;
    let mut put = |part: &str, value: Option<f64>| {
        finished.metrics.extend(value.map(|value| (format!("{name}.{part}"), value)));
    };
    put("mean", piece.mean_ns());
    put("max", times.max().map(|max| max as f64));
    for (part, quantile) in QUANTILES {
        let has_enough = times.count() as f64 >= 1.0 / (1.0 - quantile);
        put(part, times.quantile(quantile).filter(|_| has_enough).map(|value| value as f64));
    }
    finished.samples.insert(name.clone(), times.count());
}

/// Of the quantiles in the lost share only the lowest, and of those with too few samples too:
/// all above them are as bad.
fn worst_quantiles(warnings: Vec<Warning>) -> Vec<Warning> {
    let rank = |name: &str| QUANTILES.iter().position(|(part, _)| *part == name);
    let lost = |warning: &&Warning| matches!(warning, Warning::QuantileInLoss(..));
    let key = |warning: &&Warning| match warning {
        Warning::QuantileInLoss(_, part) | Warning::QuantileBeyondData(part, ..) => rank(part),
        _ => None,
    };
    let in_loss = warnings.iter().filter(lost).min_by_key(key);
    let beyond = warnings.iter().filter(|warning| !lost(warning)).min_by_key(key);
    in_loss.into_iter().chain(beyond).cloned().collect()
}

/// Returns the warning about other processes: they used the processor time that neither target nor
/// generator used.
fn disturbance(outcome: &Outcome, observed: &Observations) -> Option<Warning> {
    let usage = observed.usage.as_ref().filter(|usage| usage.wall_ns >= DISTURBANCE_WALL_NS_MIN)?;
    let ours = if usage.is_elsewhere { 0 } else { outcome.shards.cpu.0 + observed.aside_cpu_ns };
    let own_ns = usage.cpu_ns + ours;
    let foreign_ns = usage.host_used_ns.saturating_sub(own_ns);
    let percent = 100.0 * foreign_ns as f64 / usage.wall_ns as f64;
    (percent > DISTURBANCE_PERCENT_MAX).then_some(Warning::Disturbed(percent))
}

/// Share of a core that others may use before it is said; idle time is reported in ticks of 10 ms,
/// so the share is not better than a few percent.
const DISTURBANCE_PERCENT_MAX: f64 = 15.0;

/// Windows shorter than this hold too few ticks to tell, nanoseconds.
const DISTURBANCE_WALL_NS_MIN: u64 = 500_000_000;
