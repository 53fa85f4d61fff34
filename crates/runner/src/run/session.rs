//! One session of a run: trials one after another, until none is left, the time budget is used, or
//! a signal ends it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::{Duration, Instant};

use crate::scheduler::{Next, Step};
use weigh_model::event::Event;
use weigh_model::{Nanos, Trial};
use weigh_report::RunFolder;
use weigh_report::summary::NOT_TRIED;

use crate::case::Case;
use crate::exit::{Exit, Stop};
use crate::interrupts::Interrupts;
use crate::run::experiment::Experiment;
use crate::run::history::RunHistory;
use crate::targets::pool::Targets;
use crate::trial::identity::Trials;
use crate::trial::trial_runner::TrialRunner;
use crate::watcher::Standing;

/// A session of a run.
pub struct Session<'s> {
    scales: TrialRunner<'s>,
    chronicle: &'s mut RunHistory,
    trials: Trials,
    targets: Targets,
    began: Instant,
    /// The run's clock at the start of the session.
    before: Nanos,
    first_failure: Option<Stop>,
    /// Cases with a recorded packet-by-packet session.
    shown: BTreeSet<usize>,
    /// Errors of the cases whose external server refused the first session.
    refused: BTreeMap<usize, String>,
    /// Cases with a finished trial.
    measured: BTreeSet<usize>,
}

impl<'s> Session<'s> {
    /// Makes a session that continues at `chronicle`.
    pub fn new(
        experiment: &'s Experiment<'s>,
        folder: &'s RunFolder,
        interrupts: &'s Interrupts,
        chronicle: &'s mut RunHistory,
    ) -> Session<'s> {
        Session {
            before: chronicle.sequence.elapsed(),
            chronicle,
            trials: Trials::new(&experiment.plan, &experiment.cases),
            targets: experiment.targets(folder),
            scales: TrialRunner { experiment, folder, interrupts, display: &*experiment.watcher },
            began: Instant::now(),
            first_failure: None,
            shown: BTreeSet::new(),
            refused: BTreeMap::new(),
            measured: BTreeSet::new(),
        }
    }

    /// Runs the trials that are left. Returns the first failure of a trial.
    ///
    /// # Errors
    /// A record that cannot be written.
    pub fn run(mut self) -> Result<Option<Stop>, Stop> {
        let mut last = None;
        while self.scales.interrupts.exit().is_none() {
            let elapsed = self.elapsed();
            match self.chronicle.sequence.next(elapsed) {
                Step::Done => break,
                Step::OutOfTime(left) => {
                    self.scales.display.say(&format!(
                        "the time budget is used: the next trial would end after it, so {} \
                         trials of the plan are not run",
                        left.most
                    ));
                    let (at_ns, left) = (elapsed.0, left.most);
                    self.chronicle.note(Event::BudgetSpent { at_ns, left })?;
                    break;
                }
                Step::Trial(next) if last == Some(next) => {
                    let text = format!("trial {next:?} is done and was scheduled again");
                    return Err(Stop::new(Exit::Internal, text));
                }
                Step::Trial(next) => {
                    self.trial(next)?;
                    last = Some(next);
                }
            }
        }
        Ok(self.first_failure)
    }

    fn elapsed(&self) -> Nanos {
        self.before + Nanos(self.began.elapsed().as_nanos() as u64)
    }

    /// Runs one trial. A failure is recorded and does not end the session.
    fn trial(&mut self, next: Next) -> Result<(), Stop> {
        let experiment = self.scales.experiment;
        let case = &experiment.cases[next.case];
        let trial = self.trials.trial(next.case, case, next.repetition);
        let name = self.name(case, next.repetition);
        let began = self.elapsed();
        let budget = experiment.plan.repeat.budget;
        let budget_left = budget.map(|budget| Nanos(budget.0.saturating_sub(began.0)));
        let refusal = self.refused.get(&next.case).cloned();
        if refusal.is_none() {
            let sequence = &self.chronicle.sequence;
            self.scales.display.trial(Standing::new(&name, &case.load, sequence, budget_left));
            if !self.cool_down() {
                return Ok(());
            }
        }
        if self.take_over((next.case, &name), &trial)? {
            self.measured.insert(next.case);
            return Ok(());
        }
        let (id, point) = (trial.id.clone(), trial.point.clone());
        let started = self.chronicle.started(&trial, began, experiment.fleet.is_some());
        self.chronicle.note(started)?;
        if let Some(error) = refusal {
            let error = format!("{NOT_TRIED}{error}");
            let is_repeated = false;
            return self.chronicle.note(Event::TrialFailed {
                trial: id,
                point,
                error,
                is_repeated,
            });
        }
        let stop = match self.weigh(next.case, trial, began) {
            Ok(()) => {
                self.measured.insert(next.case);
                self.tell_ends();
                self.scales.display.trial_done();
                return Ok(());
            }
            Err(stop) => stop,
        };
        if stop.exit() == Exit::Record {
            return Err(stop);
        }
        if self.scales.interrupts.exit().is_some() {
            self.scales.display.say(&stop.to_string());
            return Ok(());
        }
        self.scales.display.say(&format!("{name}: {stop}"));
        if let Some(gone) = self.scales.lost_bus() {
            // Without a result and without a failure, the trial is run when the run is resumed.
            self.scales.display.trial_done();
            return Err(gone);
        }
        let error = stop.to_string();
        // A server that died later is something else, and may be back at the next repetition.
        let is_first = !self.measured.contains(&next.case) && next.repetition == 0;
        if stop.is_refusal() && is_first && case.lane.is_foreign() {
            self.refused.insert(next.case, error.clone());
            if self.scales.experiment.plan.repeat.most() > 1 {
                let title = case.title();
                self.scales.display.say(&format!("{title}: its other repetitions are not tried"));
            }
        }
        self.chronicle.note(Event::TrialFailed { trial: id, point, error, is_repeated: false })?;
        self.first_failure.get_or_insert(stop);
        self.scales.display.trial_done();
        Ok(())
    }

    /// Takes over a trial that agents of a fleet have finished after the program that ran it was
    /// killed. True if there is a result; false if the trial is to be run. The target must have
    /// outlived that program: one that it had started ended with it.
    fn take_over(&mut self, (place, name): (usize, &str), trial: &Trial) -> Result<bool, Stop> {
        let experiment = self.scales.experiment;
        let (Some(hosts), Some(attempt)) =
            (&experiment.fleet, self.chronicle.open_attempt(&trial.id))
        else {
            return Ok(false);
        };
        let (run, at) = (self.scales.folder.id(), (attempt, experiment.shards));
        let case = &experiment.cases[place];
        if !case.lane.is_foreign() {
            hosts.discard(run, None);
            return Ok(false);
        }
        let display = self.scales.display;
        if let Err(reason) = hosts.take_over(run, &trial.id, at) {
            display.say(&format!("{name}: repeated, because it is not complete: {reason}"));
            return Ok(false);
        }
        match self.scales.take_over(case, trial.clone(), &mut self.targets, attempt) {
            Ok(taken) => {
                taken.write(|event| self.chronicle.note(event))?;
                display.say(&format!(
                    "{name}: the agents finished it without this program; their result is taken"
                ));
                display.trial_done();
                Ok(true)
            }
            Err(stop) if stop.exit() == Exit::Record => Err(stop),
            Err(stop) => {
                display.say(&format!("{name}: repeated, because it has no result: {stop}"));
                Ok(false)
            }
        }
    }

    /// Name of a trial while it runs: its lane, and keys of its load that vary.
    fn name(&self, case: &Case, repetition: u32) -> String {
        let cases = &self.scales.experiment.cases;
        let mut name = case.title();
        for (key, value) in case.point.iter().filter(|(key, _)| key.starts_with("load.")) {
            let is_same = |other: &Case| {
                let is_like = other.point.get("protocol") == case.point.get("protocol");
                !is_like || other.point.get(key) == Some(value)
            };
            if !cases.iter().all(is_same) {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let _ = write!(name, ", {} {value}", key.trim_start_matches("load."));
            }
        }
        let _ = write!(name, ", repetition {}", repetition + 1);
        name
    }

    /// Pauses before a trial; false if a signal ended the pause.
    fn cool_down(&self) -> bool {
        let end =
            Instant::now() + Duration::from_nanos(self.scales.experiment.plan.repeat.cool_down.0);
        while Instant::now() < end && self.scales.interrupts.exit().is_none() {
            std::thread::sleep(end.saturating_duration_since(Instant::now()).min(LOOK_EVERY));
        }
        self.scales.interrupts.exit().is_none()
    }

    fn weigh(&mut self, place: usize, trial: Trial, began: Nanos) -> Result<(), Stop> {
        let case = &self.scales.experiment.cases[place];
        let is_new = !self.shown.contains(&place);
        let followed =
            self.scales.weigh((case, began), trial, &mut self.targets, is_new, self.chronicle)?;
        followed.write(|event| {
            if matches!(event, Event::SessionPackets(_)) {
                self.shown.insert(place);
            }
            self.chronicle.note(event)
        })
    }

    /// Reports axes that ended with the last trial.
    fn tell_ends(&self) {
        for event in self.chronicle.decided() {
            if let Event::AxisEnded(ended) = event {
                self.scales.display.say(&format!(
                    "{} ends at {} here: {} ({})",
                    ended.axis, ended.at, ended.condition, ended.figure
                ));
            }
        }
    }
}

/// Interval at which a pause checks for signals.
const LOOK_EVERY: Duration = Duration::from_millis(50);
