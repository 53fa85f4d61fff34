//! Counts of a trial by the target itself: the report of a reference server, the counters of a real
//! server.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use weigh_engine::outcome::Outcome;
use weigh_model::event::TrialFinished;
use weigh_model::server::{ServerReport, StoreCounts};
use weigh_model::{Nanos, Trial, Warning};
use weigh_testbed::reference::ReferenceServer;

use crate::exit::Stop;
use crate::probe::{Edge, Probe};
use crate::probes::received::{Asking, ReceivedCount};
use crate::targets::counter_watch::Expected;
use crate::targets::counters;
use crate::targets::pool::Counted;
use crate::targets::running::{READY_WITHIN, Running};
use crate::trial::context::TrialContext;

/// Reads the target's counts before and after a trial, and those of a reference server also at the
/// end of the load.
#[derive(Default)]
pub struct Counters {
    asking: Option<Asking>,
    taken: Option<ReceivedCount>,
}

impl Probe for Counters {
    fn prepare(&mut self, trial: &mut TrialContext<'_>) -> Result<(), Stop> {
        trial.targets.ask_before(trial.lane, trial.trial, trial.options.say)
    }

    fn begin(&mut self, trial: &mut TrialContext<'_>) -> Result<(), Stop> {
        let load = trial.load();
        let is_counted = !trial.confirms() && !load.delivers() && load.arrival.is_open();
        let Running::Reference(server) = &trial.lease.target.running else { return Ok(()) };
        if is_counted {
            self.asking = Some(Asking::start(server.asker())?);
        }
        Ok(())
    }

    fn window(&mut self, edge: Edge, _now: Nanos) {
        if let Some(asking) = self.asking.as_mut().filter(|_| edge != Edge::Began) {
            asking.load_ended();
        }
    }

    fn end(&mut self, _trial: &mut TrialContext<'_>, _outcome: Option<&mut Outcome>) {
        self.taken = self.asking.take().and_then(Asking::finish);
    }

    fn leave(&mut self, trial: &mut TrialContext<'_>, outcome: &mut Outcome) {
        let is_urgent = trial.options.interrupts.are_urgent();
        if trial.lane.is_foreign() && !is_urgent {
            let say = trial.options.say;
            trial.lease.told = trial.targets.ask_after(trial.lane, trial.trial, outcome, say);
        }
        // After an urgent interrupt, no server is awaited.
        trial.found.counted = if is_urgent { None } else { count(trial, outcome) };
        trial.observed.taken_within = self.taken_within(trial, outcome);
    }

    fn record(&mut self, trial: &mut TrialContext<'_>, finished: &mut TrialFinished) {
        let words = std::mem::take(&mut trial.lease.told.words);
        if !words.is_empty() {
            finished.scene.insert(weigh_report::summary::COUNTERS_ASKED.to_owned(), words);
        }
    }

    fn amend(&mut self, trial: &mut TrialContext<'_>, finished: &mut TrialFinished) {
        let restarted = trial.lease.restarted.clone().map(Warning::TargetRestarted);
        finished.warnings.extend(restarted.map(|warning| warning.record()));
    }
}

impl Counters {
    fn taken_within(&self, trial: &TrialContext<'_>, outcome: &Outcome) -> Option<u64> {
        let all = trial.observed.server.as_ref()?.unique;
        let (begin, end) = outcome.window_between()?;
        let at = |moment: Nanos| Nanos(trial.monotonic_ns(moment));
        self.taken.as_ref()?.within(&trial.lease.before.report, (at(begin), at(end)), all)
    }
}

/// Adds the target's counts over the trial to the outcome. Returns its counts since its start, if
/// known.
fn count(trial: &mut TrialContext<'_>, outcome: &Outcome) -> Option<Counted> {
    let awaits_counters = trial.lease.awaits_counters(&outcome.ledger);
    // Counts of a target that serves a background too are of both loads.
    let is_mixed = trial.options.mixed().is_some();
    let lease = &mut *trial.lease;
    match &mut lease.target.running {
        Running::Reference(running) => {
            let report = settled_report(running, trial.trial, outcome, &lease.before.report);
            let own = report.as_ref().filter(|_| !is_mixed);
            trial.observed.server = own.map(|report| report.since(&lease.before.report));
            let store = trial.observed.server.as_ref().and_then(|server| server.store);
            trial.observed.counters = store.map_or_else(BTreeMap::new, counters_of);
            report.map(|report| Counted { report, ..Counted::default() })
        }
        // Without losses nothing was dropped, so a search need not wait for the counters.
        Running::Managed(_) if !awaits_counters => Some(Counted::default()),
        Running::Managed(running) => {
            let scene = lease.target.scene.as_ref();
            let expected = expected(outcome, is_mixed, &lease.before.counters);
            let (own, say) = ((&trial.trial.load, expected), trial.options.say);
            let all = counters::read_settled(running, own, scene, trial.targets.vault(), say);
            let is_known = running.counters().iter().all(|own| all.contains_key(&own.name));
            if !is_mixed {
                trial.observed.counters = counters::since(running, &all, &lease.before.counters);
            }
            is_known.then(|| Counted { counters: all, ..Counted::default() })
        }
        // Its stages report arrivals themselves.
        Running::Pipeline(_) => Some(Counted::default()),
        Running::Foreign(_) => {
            trial.observed.counters = std::mem::take(&mut lease.told.counters);
            Some(Counted::default())
        }
    }
}

/// Counters of a reference server's store: calls of write(2) and fdatasync(2), and the time in
/// them.
fn counters_of(store: StoreCounts) -> BTreeMap<String, f64> {
    let counters = [
        ("store_records", store.records),
        ("store_bytes", store.bytes),
        ("store_writes", store.writes),
        ("store_syncs", store.syncs),
        ("store_write_ns", store.write_ns),
        ("store_sync_ns", store.sync_ns),
    ];
    counters.into_iter().map(|(name, value)| (name.to_owned(), value as f64)).collect()
}

/// Counts that a broker must reach once the trial is in its counters, including those before the
/// trial. What another client sent to it is unknown.
fn expected(outcome: &Outcome, is_mixed: bool, before: &BTreeMap<String, f64>) -> Expected {
    let producers = outcome.shards.accounts.producers.iter();
    let sent: u64 = producers.map(|one| one.sent + one.warmup_sent).sum();
    let base = |name: &str| before.get(name).copied().unwrap_or(0.0);
    let received = if is_mixed { f64::INFINITY } else { base("received") + sent as f64 };
    Expected { received, forwarded: base("forwarded") + outcome.ledger.received as f64 }
}

/// The reference server's count once it is stable: unconfirmed messages may still be in transit.
/// `before` is its count before the trial.
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
