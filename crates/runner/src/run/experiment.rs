//! A whole run, begun or resumed: trials in their sequence, a journal that is written as they go,
//! and the results from it.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use weigh_model::calibration::Calibration;
use weigh_model::event::{Event, JOURNAL_SCHEMA, RunResumed, RunStarted, Setup};
use weigh_model::modelled::EnergyBasis;
use weigh_model::plan::Plan;
use weigh_report::journal::rfc3339;
use weigh_report::summary::Answer;
use weigh_report::{RunFolder, Summary};
use weigh_sequence::{Sequence, Step};
use weigh_stage::catalogue::Catalogue;
use weigh_stage::pinning::{CoreSet, Pinning};

use crate::case::Case;
use crate::exit::{Exit, Stop};
use crate::interrupts::Interrupts;
use crate::probes::emulated;
use crate::probes::metering::Metering;
use crate::probes::outside;
use crate::probes::pulses;
use crate::run::chronicle::{Chronicle, not_recorded};
use crate::run::null_path::{Bench, Kind, NullPaths};
use crate::run::resumption::Begun;
use crate::run::run_record::RunRecord;
use crate::run::sitting::Sitting;
use crate::search::trials as limit_search;
use crate::targets::stage::Footing;
use crate::targets::watching::Lookouts;
use crate::trial::identity::Trials;
use crate::trial::measure as trial_run;
use crate::watcher::Watch;

/// Everything a run is made of.
pub struct Experiment<'e> {
    /// What was asked, resolved.
    pub plan: Plan,
    /// What is weighed: the plan's cases, index by index.
    pub cases: Vec<Case>,
    /// The real servers that can be started.
    pub catalogue: &'e Catalogue,
    /// Who runs where.
    pub pinning: Pinning,
    /// Threads of the generator and of reference servers.
    pub shards: u32,
    /// What else it takes to resume the run, see [`crate::run::resumption::setup`].
    pub setup: Setup,
    /// Where its folder is made.
    pub place: Place<'e>,
    /// Signals that may end it early.
    pub interrupts: Arc<Interrupts>,
    /// Whether generator and target can be hosts.
    pub footing: Footing,
    /// Says nothing on the way.
    pub is_quiet: bool,
    /// Who is told how it goes.
    pub watch: Watch,
    /// What this machine and this build can do at most, once it is known.
    pub null_paths: NullPaths,
    /// How energy is measured, once it is known.
    pub metering: Metering,
    /// What is watched of targets that somebody else runs, once it is known to be there.
    pub lookouts: Lookouts,
    /// What modelled figures of energy rest on, where they were asked for.
    pub energy: Option<Box<EnergyBasis>>,
}

/// What a run is carried out under, whatever it weighs.
pub struct Circumstances<'e> {
    /// The real servers that can be started.
    pub catalogue: &'e Catalogue,
    /// Where its folder is made.
    pub place: Place<'e>,
    /// Signals that may end it early.
    pub interrupts: Arc<Interrupts>,
    /// Whether generator and target can be hosts.
    pub footing: Footing,
    /// Says nothing on the way.
    pub is_quiet: bool,
    /// Who is told how it goes.
    pub watch: Watch,
}

/// Where the folder of a run is made.
#[derive(Clone, Copy, Debug)]
pub enum Place<'e> {
    /// Below this one, called by the time and the plan.
    Below(&'e Path),
    /// It is this one: the run is a part of a study.
    At(&'e Path),
}

/// What a run came to.
pub struct Finished {
    /// The result.
    pub summary: Summary,
    /// Where it lies.
    pub folder: RunFolder,
    /// The first reason why a trial could not be done.
    pub first_failure: Option<Stop>,
    /// Why not everything could be recorded; the summary holds it all the same.
    pub unrecorded: Option<Stop>,
    /// The exit code that a signal asked for.
    pub interrupted: Option<Exit>,
}

impl Finished {
    /// A run with these results. What failed in an earlier sitting has failed all the same.
    fn of(folder: RunFolder, summary: Summary) -> Finished {
        let first_failure =
            summary.failures.first().map(|failure| Stop::new(Exit::Target, &failure.error));
        Finished { summary, folder, first_failure, unrecorded: None, interrupted: None }
    }

    /// How a program ends that did nothing else. What could not be recorded comes before all.
    pub fn exit(&self) -> Exit {
        match (&self.unrecorded, self.interrupted, &self.first_failure) {
            (Some(stop), ..) => stop.exit(),
            (None, Some(exit), _) => exit,
            (None, None, Some(stop))
                if self.summary.cells.is_empty() || stop.exit() == Exit::Target =>
            {
                stop.exit()
            }
            (None, None, Some(_)) => Exit::Internal,
            (None, None, None) => match self.summary.answer() {
                Answer::Failed => Exit::Finding,
                Answer::Undecided => Exit::Undecided,
                // Nothing measured is no pass.
                Answer::Holds if !self.summary.unmeasured().is_empty() => Exit::Undecided,
                Answer::Holds => Exit::Done,
            },
        }
    }
}

/// Does the trials of a run and writes them down; returns why the first that could not be done was
/// not.
pub trait Work:
    FnOnce(&Experiment<'_>, &RunFolder, &Interrupts, &mut Chronicle) -> Result<Option<Stop>, Stop>
{
}

impl<F> Work for F where
    F: FnOnce(
        &Experiment<'_>,
        &RunFolder,
        &Interrupts,
        &mut Chronicle,
    ) -> Result<Option<Stop>, Stop>
{
}

fn follow_the_plan(
    experiment: &Experiment<'_>,
    folder: &RunFolder,
    interrupts: &Interrupts,
    chronicle: &mut Chronicle,
) -> Result<Option<Stop>, Stop> {
    Sitting::new(experiment, folder, interrupts, chronicle).run()
}

impl<'e> Experiment<'e> {
    /// Of a plan with its cases, decided and looked at, under these circumstances.
    ///
    /// # Errors
    /// If the system does not say on which cores the program may run.
    pub fn new(
        plan: Plan,
        cases: Vec<Case>,
        setup: Setup,
        around: Circumstances<'e>,
    ) -> Result<Experiment<'e>, Stop> {
        let Circumstances { catalogue, place, interrupts, footing, is_quiet, watch } = around;
        let (shards, allowed) = (setup.shards, CoreSet::allowed()?);
        let pinning = Pinning::divide(&allowed, 1, shards as usize);
        Ok(Experiment {
            plan,
            cases,
            catalogue,
            pinning,
            shards,
            setup,
            place,
            interrupts,
            footing,
            is_quiet,
            watch,
            null_paths: NullPaths::default(),
            metering: Metering::default(),
            lookouts: Lookouts::default(),
            energy: None,
        })
    }
}

impl Experiment<'_> {
    /// Runs all trials. What was measured is on the disk whatever happens.
    pub fn run(self) -> Result<Finished, Stop> {
        self.run_with(follow_the_plan)
    }

    /// Begins a run whose trials `work` chooses.
    pub fn run_with(mut self, work: impl Work) -> Result<Finished, Stop> {
        self.check()?;
        self.metering = Metering::open(&self.plan.observe)?;
        self.lookouts = Lookouts::open(&self.plan.observe.target, &self.cases)?;
        let interrupts = Arc::clone(&self.interrupts);
        let started = SystemTime::now();
        let folder = match self.place {
            Place::Below(runs) => RunFolder::create(runs, &self.plan.name, started),
            Place::At(path) => RunFolder::create_at(path),
        };
        let folder = folder.map_err(not_recorded)?;
        folder.write_plan(&self.plan).map_err(not_recorded)?;
        let journal = folder.create_journal().map_err(not_recorded)?;
        let mut chronicle = Chronicle::new(RunRecord::new(journal, &[]), Sequence::new(&self.plan));
        self.null_paths = NullPaths::new(self.calibrate(&interrupts));
        chronicle.note(Event::RunStarted(Box::new(RunStarted {
            schema: JOURNAL_SCHEMA.to_owned(),
            id: folder.id().to_owned(),
            started: rfc3339(started),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            host: weigh_observe::host::facts(),
            plan: self.plan.clone(),
            setup: self.setup.clone(),
            null_path: self.null_paths.calibrations(),
            energy: self.energy.clone(),
        })))?;
        self.carry_out(folder, chronicle, &interrupts, work)
    }

    /// What this machine and this build can do at most of what is to be weighed.
    fn calibrate(&self, interrupts: &Interrupts) -> Vec<Calibration> {
        // On hosts of their own generator and target no longer share this loopback.
        if !matches!(self.footing, Footing::Loopback) {
            return Vec::new();
        }
        let kinds: Vec<Kind> = self.cases.iter().filter_map(Kind::of).collect();
        let bench = Bench { pinning: &self.pinning, shards: self.shards, interrupts };
        let found = bench.calibrate(&kinds, false);
        // A study says it of every plan: once is in the record, and enough.
        if !self.is_quiet && matches!(self.place, Place::Below(_)) {
            found.iter().for_each(|calibration| eprintln!("weigh: {}", calibration.words()));
        }
        found
    }

    /// Does what a run that ended early has left to do, and nothing twice.
    pub fn resume(mut self, begun: Begun) -> Result<Finished, Stop> {
        self.check()?;
        let interrupts = Arc::clone(&self.interrupts);
        let Begun { folder, journal, events, started, .. } = begun;
        self.null_paths = NullPaths::new(started.null_path);
        let (mut sequence, untold) = Sequence::resume(&self.plan, &events);
        let is_search = events.iter().any(|event| matches!(event, Event::SearchBegun { .. }));
        let is_done =
            matches!(events.last(), Some(Event::RunFinished { outcome }) if outcome == "done");
        let is_over = match is_search {
            true => limit_search::is_done(&self, &events)?,
            false => sequence.next(sequence.elapsed()) == Step::Done,
        };
        if is_done && is_over {
            if matches!(self.place, Place::Below(_)) {
                eprintln!("weigh: {} is done: nothing is left to do", folder.id());
            }
            let summary = folder.write_results(&events).map_err(not_recorded)?;
            let finished = Finished::of(folder, summary);
            let record = RunRecord::new(journal, &events);
            clear_targets(
                &finished.folder,
                finished.first_failure.is_some() || record.has_suspect_targets(),
            );
            return Ok(finished);
        }
        self.metering = Metering::open(&self.plan.observe)?;
        self.lookouts = Lookouts::open(&self.plan.observe.target, &self.cases)?;
        let mut chronicle = Chronicle::new(RunRecord::new(journal, &events), sequence);
        chronicle.put_down(Event::RunResumed(Box::new(RunResumed {
            at: rfc3339(SystemTime::now()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            host: weigh_observe::host::facts(),
            boot: weigh_observe::boot::id(),
        })))?;
        for decision in untold {
            chronicle.put_down(decision)?;
        }
        match is_search {
            true => self.carry_out(folder, chronicle, &interrupts, limit_search::go_on),
            false => self.carry_out(folder, chronicle, &interrupts, follow_the_plan),
        }
    }

    fn check(&self) -> Result<(), Stop> {
        emulated::check(&self.plan.observe.emulate, &self.cases)?;
        let trials = Trials::new(&self.plan, &self.cases);
        self.cases.iter().enumerate().try_for_each(|(index, case)| {
            let trial = trials.trial(index, case, 0);
            trial_run::check(&case.lane, &trial, &case.material, self.shards).map(|_| ())
        })
    }

    /// Does the work with a meter beside it, and reads the log of one outside when it is done.
    fn metered<T>(
        &self,
        interrupts: &Interrupts,
        chronicle: &mut Chronicle,
        work: impl FnOnce(&mut Chronicle) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        if let Some(complaint) = self.metering.complaint() {
            eprintln!("weigh: {complaint}");
        }
        if let Some(notice) = self.metering.notice().filter(|_| !self.is_quiet) {
            eprintln!("weigh: {notice}");
        }
        if let Some(event) = self.metering.told() {
            chronicle.put_down(event)?;
        }
        let Some((file, voltage_v)) = self.metering.log() else { return work(chronicle) };
        chronicle.put_down(Event::LoadPulses(pulses::make(&self.metering, interrupts)))?;
        let done = work(chronicle)?;
        chronicle.put_down(Event::LoadPulses(pulses::make(&self.metering, interrupts)))?;
        let told = outside::settle(&chronicle.events()?, (file, voltage_v), LOG_WITHIN);
        if let Some(complaint) = outside::complaint(&told) {
            eprintln!(
                "weigh: no energy: {complaint}; once the log is whole type weigh meters --log \
                 {file} --run latest"
            );
        }
        told.into_iter().try_for_each(|event| chronicle.put_down(event))?;
        Ok(done)
    }

    fn carry_out(
        &self,
        folder: RunFolder,
        mut chronicle: Chronicle,
        interrupts: &Interrupts,
        work: impl Work,
    ) -> Result<Finished, Stop> {
        let result = self.metered(interrupts, &mut chronicle, |chronicle| {
            work(self, &folder, interrupts, chronicle)
        });
        let (first_failure, mut unrecorded) = match result {
            Ok(first_failure) => (first_failure, None),
            Err(stop) if stop.exit() == Exit::Record => (None, Some(stop)),
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
        let summary = match interrupts.reporting(|| folder.write_results(&events)) {
            Ok(summary) => summary,
            Err(error) => {
                unwritten = unwritten.or(Some(not_recorded(error)));
                Summary::from_events(&events).map_err(|error| Stop::new(Exit::Internal, error))?
            }
        };
        unrecorded = unrecorded.or(unwritten);
        clear_targets(&folder, first_failure.is_some() || chronicle.has_suspect_targets());
        let earlier = Finished::of(folder, summary);
        let first_failure = first_failure.or(earlier.first_failure);
        Ok(Finished { first_failure, unrecorded, interrupted, ..earlier })
    }
}

/// How long the program of a meter outside may take to write down the last pulses.
const LOG_WITHIN: Duration = Duration::from_secs(10);

/// Takes away what targets left, unless somebody may want to read their logs.
fn clear_targets(folder: &RunFolder, has_suspects: bool) {
    if !has_suspects {
        let _ = std::fs::remove_dir_all(folder.path().join("targets"));
    }
}
