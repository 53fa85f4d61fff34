//! Runs a plan from start to end, or resumes it: trials in sequence, a journal written as they run,
//! and the results.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::scheduler::{Sequence, Step};
use weigh_model::calibration::Calibration;
use weigh_model::event::{Event, JOURNAL_SCHEMA, RunResumed, RunStarted};
use weigh_report::journal::rfc3339;
use weigh_report::{RunFolder, Summary};

use crate::case::check::check_trial;
use crate::exit::{Exit, Stop};
use crate::interrupts::Interrupts;
use crate::preflight::reach;
use crate::probe::Probes;
use crate::probes::metering::Metering;
use crate::probes::{PROBES, alignment_load, external_meter};
use crate::run::baseline::{Baselines, Bench, Kind};
use crate::run::experiment::{Experiment, Finished, Place};
use crate::run::history::{RunHistory, not_recorded};
use crate::run::live_file::{self, LiveFile};
use crate::run::resumption::Begun;
use crate::run::run_record::RunRecord;
use crate::run::session::Session;
use crate::search::trials;
use crate::targets::hosts::Privileges;
use crate::targets::observers::Observers;
use crate::trial::identity::Trials;
use crate::watcher::Silent;

/// Runs the trials of a run and records them; returns the first failure of a trial.
pub trait Work:
    FnOnce(&Experiment<'_>, &RunFolder, &Interrupts, &mut RunHistory) -> Result<Option<Stop>, Stop>
{
}

impl<F> Work for F where
    F: FnOnce(
        &Experiment<'_>,
        &RunFolder,
        &Interrupts,
        &mut RunHistory,
    ) -> Result<Option<Stop>, Stop>
{
}

fn follow_the_plan(
    experiment: &Experiment<'_>,
    folder: &RunFolder,
    interrupts: &Interrupts,
    chronicle: &mut RunHistory,
) -> Result<Option<Stop>, Stop> {
    Session::new(experiment, folder, interrupts, chronicle).run()
}

impl Experiment<'_> {
    /// Runs all trials. Results so far are on disk, even after an error.
    ///
    /// # Errors
    /// A run that cannot start or be recorded.
    pub fn run(self) -> Result<Finished, Stop> {
        self.run_with(follow_the_plan)
    }

    /// Starts a run whose trials `work` chooses.
    ///
    /// # Errors
    /// A run that cannot start or be recorded.
    pub fn run_with(mut self, work: impl Work) -> Result<Finished, Stop> {
        self.check()?;
        self.metering = Metering::open(&self.plan.observe)?;
        self.lookouts = Observers::open(&self.plan.observe.target, &self.cases)?;
        if matches!(self.place, Place::Below(_)) {
            // Experiments of a study report a server that is gone one by one.
            reach::check(&self.cases)?;
        }
        let interrupts = Arc::clone(&self.interrupts);
        let started = SystemTime::now();
        let folder = match self.place {
            Place::Below(runs) => RunFolder::create(runs, &self.plan.name, started),
            Place::At(path) => RunFolder::create_at(path),
        };
        let folder = folder.map_err(not_recorded)?;
        folder.write_plan(&self.plan).map_err(not_recorded)?;
        let journal = folder.create_journal().map_err(not_recorded)?;
        self.show_live(&folder);
        let mut chronicle =
            RunHistory::new(RunRecord::new(journal, &[]), Sequence::new(&self.plan));
        self.baselines = Baselines::new(self.calibrate(&interrupts));
        chronicle.note(Event::RunStarted(Box::new(RunStarted {
            schema: JOURNAL_SCHEMA.to_owned(),
            id: folder.id().to_owned(),
            started: rfc3339(started),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            host: weigh_observe::host::facts(),
            plan: self.plan.clone(),
            setup: self.setup.clone(),
            baseline: self.baselines.calibrations(),
            energy: self.energy.clone(),
        })))?;
        self.note_hosts(&mut chronicle)?;
        self.carry_out(folder, chronicle, &interrupts, work)
    }

    /// The baselines of the kinds of load in this run, on this machine and build.
    fn calibrate(&self, interrupts: &Interrupts) -> Vec<Calibration> {
        // In network namespaces, generator and target no longer share this loopback.
        // What this machine reaches is no measure of a fleet.
        if !matches!(self.privileges, Privileges::Loopback) || self.fleet.is_some() {
            return Vec::new();
        }
        let kinds: Vec<Kind> = self.cases.iter().filter_map(Kind::of).collect();
        let bench = Bench { pinning: &self.pinning, shards: self.shards, interrupts };
        let found = bench.calibrate(&kinds, false);
        // In a study, the message would repeat for every plan; the record has it.
        if !self.is_quiet && matches!(self.place, Place::Below(_)) {
            found.iter().for_each(|calibration| self.watcher.say(&calibration.words()));
        }
        found
    }

    /// Runs the trials that a run that ended early has left.
    ///
    /// # Errors
    /// A run that cannot be resumed or recorded.
    pub fn resume(mut self, begun: Begun) -> Result<Finished, Stop> {
        self.check()?;
        let interrupts = Arc::clone(&self.interrupts);
        let Begun { folder, journal, events, started, .. } = begun;
        self.baselines = Baselines::new(started.baseline);
        let (mut sequence, untold) = Sequence::resume(&self.plan, &events);
        let is_search = events.iter().any(|event| matches!(event, Event::SearchBegun { .. }));
        let is_done =
            matches!(events.last(), Some(Event::RunFinished { outcome }) if outcome == "done");
        let is_over = match is_search {
            true => trials::is_done(&self, &events)?,
            false => sequence.next(sequence.elapsed()) == Step::Done,
        };
        if is_done && is_over {
            if matches!(self.place, Place::Below(_)) {
                self.watcher.say(&format!("{} is done: nothing is left to do", folder.id()));
            }
            live_file::clear(folder.path());
            let summary = folder.write_results(&events).map_err(not_recorded)?;
            let finished = finished(folder, summary);
            let record = RunRecord::new(journal, &events);
            clear_targets(
                &finished.folder,
                finished.first_failure.is_some() || record.has_suspect_targets(),
            );
            return Ok(finished);
        }
        self.metering = Metering::open(&self.plan.observe)?;
        self.lookouts = Observers::open(&self.plan.observe.target, &self.cases)?;
        self.show_live(&folder);
        let mut chronicle =
            RunHistory::new(RunRecord::new(journal, &events), sequence).after(&events);
        chronicle.put_down(Event::RunResumed(Box::new(RunResumed {
            at: rfc3339(SystemTime::now()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            host: weigh_observe::host::facts(),
            boot: weigh_observe::boot::id(),
        })))?;
        for decision in untold {
            chronicle.put_down(decision)?;
        }
        self.note_hosts(&mut chronicle)?;
        if let Some(hosts) = &self.fleet {
            // A search repeats its trial; a plan may take it over.
            hosts.discard(folder.id(), chronicle.open().filter(|_| !is_search));
        }
        match is_search {
            true => self.carry_out(folder, chronicle, &interrupts, trials::go_on),
            false => self.carry_out(folder, chronicle, &interrupts, follow_the_plan),
        }
    }

    /// Records the hosts of the fleet, if there is one.
    fn note_hosts(&self, chronicle: &mut RunHistory) -> Result<(), Stop> {
        let Some(fleet) = &self.fleet else { return Ok(()) };
        chronicle.put_down(Event::FleetPlaced(Box::new(fleet.placed(self.shards)?)))
    }

    /// Writes every second of the run to its live file from now on.
    fn show_live(&mut self, folder: &RunFolder) {
        let shown = std::mem::replace(&mut self.watcher, Box::new(Silent));
        shown.begun(folder.path());
        self.watcher = Box::new(LiveFile::begin(folder.path(), shown));
    }

    fn check(&self) -> Result<(), Stop> {
        Probes::of(PROBES).check(&self.plan, &self.cases)?;
        let trials = Trials::new(&self.plan, &self.cases);
        self.cases.iter().enumerate().try_for_each(|(index, case)| {
            let trial = trials.trial(index, case, 0);
            check_trial(&case.lane, &trial, &case.material, self.shards).map(|_| ())
        })
    }

    /// Runs `work` with a meter, and reads an external meter's log afterwards.
    fn metered<T>(
        &self,
        interrupts: &Interrupts,
        chronicle: &mut RunHistory,
        work: impl FnOnce(&mut RunHistory) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        if let Some(complaint) = self.metering.complaint() {
            self.watcher.say(&complaint);
        }
        if let Some(notice) = self.metering.notice().filter(|_| !self.is_quiet) {
            self.watcher.say(&notice);
        }
        if let Some(event) = self.metering.told() {
            chronicle.put_down(event)?;
        }
        let Some((file, voltage_v)) = self.metering.log() else { return work(chronicle) };
        chronicle.put_down(Event::LoadPulses(alignment_load::make(&self.metering, interrupts)))?;
        let done = work(chronicle)?;
        chronicle.put_down(Event::LoadPulses(alignment_load::make(&self.metering, interrupts)))?;
        let told = external_meter::settle(&chronicle.events()?, (file, voltage_v), LOG_WITHIN);
        if let Some(complaint) = external_meter::complaint(&told) {
            self.watcher.say(&format!(
                "no energy: {complaint}; once the log is complete type weigh energy meters --log \
                 {file} --run latest"
            ));
        }
        told.into_iter().try_for_each(|event| chronicle.put_down(event))?;
        Ok(done)
    }

    fn carry_out(
        &self,
        folder: RunFolder,
        mut chronicle: RunHistory,
        interrupts: &Interrupts,
        work: impl Work,
    ) -> Result<Finished, Stop> {
        let result = self.metered(interrupts, &mut chronicle, |chronicle| {
            work(self, &folder, interrupts, chronicle)
        });
        let (first_failure, mut unrecorded) = match result {
            Ok(first_failure) => (first_failure, None),
            Err(stop) if matches!(stop.exit(), Exit::Record | Exit::Generator) => {
                (None, Some(stop))
            }
            Err(stop) => return Err(stop),
        };
        let interrupted = interrupts.exit();
        let outcome = match (&unrecorded, interrupted) {
            (Some(_), _) => "failed",
            (None, Some(_)) => "interrupted",
            (None, None) => "done",
        };
        let mut unwritten =
            chronicle.note(Event::RunFinished { outcome: outcome.to_owned() }).err();
        let events = chronicle.events()?;
        self.watcher.recorded();
        let summary = match interrupts.reporting(|| folder.write_results(&events)) {
            Ok(summary) => summary,
            Err(error) => {
                unwritten = unwritten.or(Some(not_recorded(error)));
                Summary::from_events(&events).map_err(|error| Stop::new(Exit::Internal, error))?
            }
        };
        unrecorded = unrecorded.or(unwritten);
        clear_targets(&folder, first_failure.is_some() || chronicle.has_suspect_targets());
        let earlier = finished(folder, summary);
        let first_failure = first_failure.or(earlier.first_failure);
        Ok(Finished { first_failure, unrecorded, interrupted, ..earlier })
    }
}

/// Time for the program of an external meter to write the last pulses.
const LOG_WITHIN: Duration = Duration::from_secs(10);

/// Deletes files of targets, unless their logs may be needed.
fn clear_targets(folder: &RunFolder, has_suspects: bool) {
    if !has_suspects {
        let _ = std::fs::remove_dir_all(folder.path().join("targets"));
    }
}

/// A run with these results, including failures of earlier sessions.
fn finished(folder: RunFolder, summary: Summary) -> Finished {
    let first_failure =
        summary.failures.first().map(|failure| Stop::new(Exit::Target, &failure.error));
    Finished { summary, folder, first_failure, unrecorded: None, interrupted: None }
}
