//! What the target itself counts of a trial: a reference server by its report, a real server by its
//! counters.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use weigh_engine::outcome::Outcome;
use weigh_model::event::TrialFinished;
use weigh_model::server::ServerReport;
use weigh_model::{Doubt, Nanos, Trial};
use weigh_testbed::reference::ReferenceServer;

use crate::exit::Stop;
use crate::probe::{Edge, Probe};
use crate::probes::taken::{Asking, Taken};
use crate::targets::counter_watch::Expected;
use crate::targets::counters;
use crate::targets::kept::Counted;
use crate::targets::running::{READY_WITHIN, Running};
use crate::trial::context::TrialContext;

/// Asks the target for its counts before and after a trial, and a reference server also when the
/// load ends.
#[derive(Default)]
pub struct Counters {
    asking: Option<Asking>,
    taken: Option<Taken>,
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
        // In a hurry no server is waited for until it has settled.
        trial.found.counted = if is_urgent { None } else { count(trial, outcome) };
        trial.beside.taken_within = self.taken_within(trial, outcome);
    }

    fn record(&mut self, trial: &mut TrialContext<'_>, finished: &mut TrialFinished) {
        let words = std::mem::take(&mut trial.lease.told.words);
        if !words.is_empty() {
            finished.scene.insert(weigh_report::summary::COUNTERS_ASKED.to_owned(), words);
        }
    }

    fn amend(&mut self, trial: &mut TrialContext<'_>, finished: &mut TrialFinished) {
        let restarted = trial.lease.restarted.clone().map(Doubt::TargetRestarted);
        finished.doubts.extend(restarted.map(|doubt| doubt.record()));
    }
}

impl Counters {
    fn taken_within(&self, trial: &TrialContext<'_>, outcome: &Outcome) -> Option<u64> {
        let all = trial.beside.server.as_ref()?.unique;
        let (begin, end) = outcome.window_between()?;
        let at = |moment: Nanos| Nanos(trial.monotonic_ns(moment));
        self.taken.as_ref()?.within(&trial.lease.before.report, (at(begin), at(end)), all)
    }
}

/// Puts what the target has counted over the trial into what the engine needs. Returns what it has
/// counted since it was started, where that is known.
fn count(trial: &mut TrialContext<'_>, outcome: &Outcome) -> Option<Counted> {
    let awaits_counters = trial.lease.awaits_counters(&outcome.ledger);
    // Counts of a target that works for a background too are of both.
    let is_mixed = trial.options.mixed().is_some();
    let lease = &mut *trial.lease;
    match &mut lease.target.running {
        Running::Reference(running) => {
            let report = settled_report(running, trial.trial, outcome, &lease.before.report);
            let own = report.as_ref().filter(|_| !is_mixed);
            trial.beside.server = own.map(|report| report.since(&lease.before.report));
            report.map(|report| Counted { report, ..Counted::default() })
        }
        // Where nothing was lost, nothing was dropped: a search need not wait for that.
        Running::Managed(_) if !awaits_counters => Some(Counted::default()),
        Running::Managed(running) => {
            let scene = lease.target.scene.as_ref();
            let expected = expected(outcome, is_mixed, &lease.before.counters);
            let (own, say) = ((&trial.trial.load, expected), trial.options.say);
            let all = counters::read_settled(running, own, scene, trial.targets.vault(), say);
            let is_known = running.counters().iter().all(|own| all.contains_key(&own.name));
            if !is_mixed {
                trial.beside.counters = counters::since(running, &all, &lease.before.counters);
            }
            is_known.then(|| Counted { counters: all, ..Counted::default() })
        }
        // Its own stages report what arrived.
        Running::Pipeline(_) => Some(Counted::default()),
        Running::Foreign(_) => {
            trial.beside.counters = std::mem::take(&mut lease.told.counters);
            Some(Counted::default())
        }
    }
}

/// What a broker must have counted once the trial is in its counters, those before included. What
/// another client sent to it is not known.
fn expected(outcome: &Outcome, is_mixed: bool, before: &BTreeMap<String, f64>) -> Expected {
    let producers = outcome.shards.accounts.producers.iter();
    let sent: u64 = producers.map(|one| one.sent + one.warmup_sent).sum();
    let base = |name: &str| before.get(name).copied().unwrap_or(0.0);
    let received = if is_mixed { f64::INFINITY } else { base("received") + sent as f64 };
    Expected { received, forwarded: base("forwarded") + outcome.ledger.received as f64 }
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
