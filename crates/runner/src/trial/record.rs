//! Asks the servers for their own counts and hands what was seen to the engine, which makes the
//! record of a trial of it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use weigh_engine::outcome::Outcome;
use weigh_engine::pace;
use weigh_engine::record::{self, Beside, HostUse, TargetUse};
use weigh_model::event::{Event, TrialFinished};
use weigh_model::server::ServerReport;
use weigh_model::{Doubt, Nanos, Trial};
use weigh_observe::cpu::HostCpu;
use weigh_observe::sampler::Usage;
use weigh_stage::reference::ReferenceServer;

use crate::case::lanes::Lane;
use crate::probes::crossing::Carried;
use crate::targets::counter_watch::Expected;
use crate::targets::counters::{self, Say};
use crate::targets::kept::{Counted, Lease};
use crate::targets::running::{READY_WITHIN, Running};
use crate::targets::secured::Vault;
use crate::trial::measure::{Measured, Seen};

/// The record of a trial, what was heard of its wire where it was listened on, and what its target
/// has counted since it was started, where that is known. Where it is urgent, no server is waited
/// for until it has settled.
pub fn put_together(
    lane: &Lane,
    trial: &Trial,
    measured: Measured,
    lease: &mut Lease,
    (vault, is_urgent, say): (&Vault, bool, Say<'_>),
) -> (TrialFinished, Vec<Event>, Option<Counted>) {
    let Measured { mut outcome, mut seen } = measured;
    let crossed = std::mem::take(&mut seen.crossed);
    let (server, counters, counted) =
        count(trial, (&outcome, &seen), lease, (vault, is_urgent, say));
    let mut asked_terms = lane.protocol.asks(&lane.settings);
    asked_terms.extend(trial.load.window.map(|window| ("receive_maximum", u64::from(window))));
    let taken_within = server.as_ref().and_then(|report| {
        let (begin, end) = outcome.window_between()?;
        let window = (Nanos(seen.epoch_ns + begin.0), Nanos(seen.epoch_ns + end.0));
        seen.taken.as_ref()?.within(&lease.before.report, window, report.unique)
    });
    let beside = Beside {
        guarantee: lane.protocol.guarantee(&lane.settings),
        target: lease.target.running.title(lane),
        carries: lane.protocol.carries(&lane.settings),
        confirms: seen.confirms,
        shared_cores: seen.shared_cores,
        target_ended: lease.target.running.ended(),
        usage: seen.usage.as_ref().map(|used| target_use(used, seen.sighted.is_elsewhere)),
        aside_cpu_ns: seen.aside_cpu_ns,
        server,
        taken_within,
        counters,
        asked_terms,
        generator_bytes: seen.generator_bytes,
        // What an earlier trial left free is used again without being seen to grow.
        target_bytes: seen.target_bytes.filter(|_| !lease.is_used),
    };
    let carried = Carried::of(&mut outcome, seen.layers.handshakes());
    let figures = seen.emulated.figures(trial, &outcome);
    let mut finished = record::put_together(trial, outcome, beside);
    finished.metrics.extend(figures);
    seen.emulated.tell(&mut finished);
    seen.layers.tell(&mut finished);
    seen.sighted.tell(&mut finished);
    let told = crossed.tell(&carried, lane, &mut finished);
    if !lease.told.words.is_empty() {
        let words = std::mem::take(&mut lease.told.words);
        finished.scene.insert(weigh_report::summary::COUNTERS_ASKED.to_owned(), words);
    }
    // Only now it is known how full the path was.
    pace::diagnose(&mut finished, &trial.load);
    let restarted = lease.restarted.clone().map(Doubt::TargetRestarted);
    finished.doubts.extend(restarted.map(|doubt| doubt.record()));
    (finished, told, counted)
}

/// What the target itself has counted: over the trial, by name over the trial, and since it was
/// started, where that is known.
fn count(
    trial: &Trial,
    (outcome, seen): (&Outcome, &Seen),
    lease: &mut Lease,
    (vault, is_urgent, say): (&Vault, bool, Say<'_>),
) -> (Option<ServerReport>, BTreeMap<String, f64>, Option<Counted>) {
    let mut counted = Some(Counted::default());
    let awaits_counters = lease.awaits_counters(&outcome.ledger);
    let (mut server, mut counters) = (None, BTreeMap::new());
    match &mut lease.target.running {
        _ if is_urgent => counted = None,
        Running::Reference(running) => {
            let report = settled_report(running, trial, outcome, &lease.before.report);
            let own = report.as_ref().filter(|_| !seen.is_mixed);
            server = own.map(|report| report.since(&lease.before.report));
            counted = report.map(|report| Counted { report, ..Counted::default() });
        }
        // Where nothing was lost, nothing was dropped: a search need not wait for that.
        Running::Managed(_) if !awaits_counters => {}
        Running::Managed(running) => {
            let scene = lease.target.scene.as_ref();
            let own = (&trial.load, expected(outcome, seen, &lease.before.counters));
            let all = counters::read_settled(running, own, scene, vault, say);
            let is_known = running.counters().iter().all(|own| all.contains_key(&own.name));
            if !seen.is_mixed {
                counters = counters::since(running, &all, &lease.before.counters);
            }
            counted = is_known.then(|| Counted { counters: all, ..Counted::default() });
        }
        // Its own stages have told what arrived.
        Running::Pipeline(_) => {}
        Running::Foreign(_) => counters = std::mem::take(&mut lease.told.counters),
    }
    (server, counters, counted)
}

/// What a broker must have counted once the trial is in its counters, those before included. What
/// somebody else sent to it is not known.
fn expected(outcome: &Outcome, seen: &Seen, before: &BTreeMap<String, f64>) -> Expected {
    let producers = outcome.shards.accounts.producers.iter();
    let sent: u64 = producers.map(|one| one.sent + one.warmup_sent).sum();
    let base = |name: &str| before.get(name).copied().unwrap_or(0.0);
    let received = if seen.is_mixed { f64::INFINITY } else { base("received") + sent as f64 };
    Expected { received, forwarded: base("forwarded") + outcome.ledger.received as f64 }
}

fn target_use((usage, within): &(Usage, HostCpu), is_elsewhere: bool) -> TargetUse {
    TargetUse {
        cpu_ns: usage.cpu_ns,
        wall_ns: usage.wall_ns,
        percent_mean: usage.percent_mean,
        percent_max: usage.percent_max,
        memory_bytes_max: usage.memory_bytes_max,
        host: host_use(&usage.host),
        host_within: host_use(within),
        is_elsewhere,
    }
}

fn host_use(host: &HostCpu) -> HostUse {
    HostUse {
        busy_ns: host.busy_ns(),
        softirq_ns: host.softirq_ns,
        steal_ns: host.steal_ns,
        all_ns: host.all_ns(),
    }
}

/// The reference server's count once it stands still: what was sent unconfirmed may still be on
/// its way. `before` is what it had counted before the trial.
fn settled_report(
    server: &mut ReferenceServer,
    trial: &Trial,
    outcome: &Outcome,
    before: &ServerReport,
) -> Option<ServerReport> {
    let mut report = server.report(READY_WITHIN).ok()?;
    let sent = before.unique + outcome.ledger.sent / trial.load.copies().max(1);
    let deadline = Instant::now() + Duration::from_nanos(trial.load.timeout.0);
    while report.unique < sent && Instant::now() < deadline {
        std::thread::sleep(REPORT_EVERY);
        let next = server.report(READY_WITHIN).ok()?;
        if next == report {
            break;
        }
        report = next;
    }
    Some(report)
}

const REPORT_EVERY: Duration = Duration::from_millis(20);
