//! A whole run: trials in an order drawn from the seed, a journal that is written as they go,
//! and the results from it.

use std::path::Path;
use std::time::SystemTime;

use weigh_engine::job::interval_length;
use weigh_model::Trial;
use weigh_model::event::{Event, JOURNAL_SCHEMA, RunStarted};
use weigh_model::plan::Plan;
use weigh_model::random::Random;
use weigh_report::Summary;
use weigh_report::exports;
use weigh_report::journal::Writer;
use weigh_report::record_error::RecordError;
use weigh_report::run_folder::{RunFolder, rfc3339};
use weigh_stage::catalogue::Catalogue;
use weigh_stage::pinning::Pinning;

use crate::cases::Case;
use crate::exit::{Exit, Stop};
use crate::interrupts::Interrupts;
use crate::series::Series;
use crate::terminal::Display;
use crate::trial_run::{self, Surroundings, Weighed};

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
    /// Where runs are kept.
    pub runs: &'e Path,
    /// Says nothing on the way.
    pub is_quiet: bool,
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

impl Experiment<'_> {
    /// Runs all trials. What was measured is on the disk whatever happens.
    pub fn run(self) -> Result<Finished, Stop> {
        for case in &self.cases {
            trial_run::check(&case.lane, &self.trial(case, 0), &case.material, self.shards)?;
        }
        let interrupts = Interrupts::listen()?;
        let started = SystemTime::now();
        let folder =
            RunFolder::create(self.runs, &self.plan.name, started).map_err(not_recorded)?;
        folder.write_plan(&self.plan).map_err(not_recorded)?;
        let mut record =
            Record { journal: folder.create_journal().map_err(not_recorded)?, events: Vec::new() };
        record.note(Event::RunStarted(Box::new(RunStarted {
            schema: JOURNAL_SCHEMA.to_owned(),
            id: folder.id().to_owned(),
            started: rfc3339(started),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            host: weigh_observe::host::facts(),
            plan: self.plan.clone(),
        })))?;
        let (first_failure, mut unrecorded) =
            match self.run_trials(&folder, &interrupts, &mut record) {
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
        let mut unwritten = record.note(Event::RunFinished { outcome: outcome.to_owned() }).err();
        let summary = match folder.write_results(&record.events) {
            Ok(summary) => summary,
            Err(error) => {
                unwritten = unwritten.or(Some(not_recorded(error)));
                Summary::from_events(&record.events)
                    .map_err(|error| Stop::new(Exit::Internal, error))?
            }
        };
        unrecorded = unrecorded.or(unwritten);
        if first_failure.is_none() && !record.has_suspect_targets() {
            let _ = std::fs::remove_dir_all(folder.path().join("targets"));
        }
        Ok(Finished { summary, folder, first_failure, unrecorded, interrupted })
    }

    fn run_trials(
        &self,
        folder: &RunFolder,
        interrupts: &Interrupts,
        record: &mut Record,
    ) -> Result<Option<Stop>, Stop> {
        let order = self.order();
        let display = Display::new(order.len() as u64, self.is_quiet);
        let mut first_failure = None;
        for (case, repetition) in order {
            if interrupts.exit().is_some() {
                break;
            }
            let case = &self.cases[case];
            let trial = self.trial(case, repetition);
            let name = format!("{}, repetition {}", case.title(), repetition + 1);
            display.trial(&name, case.load.duration.map(|time| time + case.load.warmup));
            record.note(Event::TrialStarted {
                trial: trial.id.clone(),
                point: trial.point.clone(),
                repetition,
            })?;
            let (id, point) = (trial.id.clone(), trial.point.clone());
            let result = self.one_trial(case, trial, folder, interrupts, &display, &name, record);
            match result {
                Ok(()) => {}
                Err(stop) if stop.exit() == Exit::Record => return Err(stop),
                Err(stop) if interrupts.exit().is_some() => display.say(&stop.to_string()),
                Err(stop) => {
                    display.say(&format!("{name}: {stop}"));
                    let error = stop.to_string();
                    record.note(Event::TrialFailed { trial: id, point, error })?;
                    first_failure.get_or_insert(stop);
                }
            }
            display.trial_done();
        }
        Ok(first_failure)
    }

    #[expect(clippy::too_many_arguments, reason = "the one place where all of them meet")]
    fn one_trial(
        &self,
        case: &Case,
        trial: Trial,
        folder: &RunFolder,
        interrupts: &Interrupts,
        display: &Display,
        name: &str,
        record: &mut Record,
    ) -> Result<(), Stop> {
        let (progress, heard) = std::sync::mpsc::channel();
        let id = trial.id.clone();
        let joined = (trial_run::told_every(&case.load), interval_length(&case.load));
        let messages =
            self.plan.observe.messages.then(|| exports::message_files::path(folder, &trial.id));
        let (result, intervals) = std::thread::scope(|scope| {
            let series = Series::new(joined.0, joined.1);
            let follower = scope.spawn(move || display.follow(name, &heard, series));
            let around = Surroundings {
                catalogue: self.catalogue,
                pinning: &self.pinning,
                shards: self.shards,
                folder: folder.path(),
                interrupts,
                progress,
                messages,
            };
            let result = trial_run::run(&case.lane, trial, &case.material, &around);
            drop(around);
            (result, follower.join().unwrap_or_default())
        });
        let Weighed { finished, watched, unwritten } = result?;
        for mut interval in intervals {
            interval.trial.clone_from(&id);
            if let Some(watched) = &watched {
                watched.tell(&mut interval);
            }
            record.note(Event::Interval(interval))?;
        }
        record.note(Event::TrialFinished(Box::new(finished)))?;
        unwritten.map_or(Ok(()), |error| Err(not_recorded(error)))
    }

    /// All trials, repetition by repetition, each round in an order of its own, so that a drift
    /// of the machine falls on all cases alike.
    fn order(&self) -> Vec<(usize, u32)> {
        let mut random = Random::stream(self.plan.seed, ORDER_STREAM);
        let mut order = Vec::new();
        for repetition in 0..self.plan.repeat.at_least {
            let mut round: Vec<usize> = (0..self.cases.len()).collect();
            for last in (1..round.len()).rev() {
                round.swap(last, random.below(last as u64 + 1) as usize);
            }
            order.extend(round.into_iter().map(|case| (case, repetition)));
        }
        order
    }

    fn trial(&self, case: &Case, repetition: u32) -> Trial {
        let point = case.point.clone();
        // The point's own text decides its seed, so that adding a case changes no other.
        let load = serde_json::to_string(&case.load).unwrap_or_default();
        let text = format!("{point:?}/{load}/{repetition}/{}", self.plan.seed);
        let hash = fnv1a(text.as_bytes());
        Trial {
            id: format!("{hash:016x}"),
            point,
            repetition,
            seed: hash,
            protocol: case.lane.protocol.name().to_owned(),
            target: case.lane.against.name(),
            endpoint: None,
            load: case.load.clone(),
            settings: case.lane.settings.clone(),
        }
    }
}

/// The journal, and what was written to it.
struct Record {
    journal: Writer,
    events: Vec<Event>,
}

impl Record {
    /// Keeps the event in memory too, so that a full disk takes nothing from the result.
    fn note(&mut self, event: Event) -> Result<(), Stop> {
        let written = self.journal.write(&event);
        self.events.push(event);
        written.map_err(not_recorded)
    }

    /// True if a target did something that its log may explain. Otherwise the files and logs of
    /// targets are of no interest after a run.
    fn has_suspect_targets(&self) -> bool {
        self.events.iter().any(|event| match event {
            Event::TrialFinished(trial) => {
                trial.doubts.iter().any(|doubt| SUSPICIOUS.contains(&doubt.code.as_str()))
            }
            _ => false,
        })
    }
}

fn not_recorded(error: RecordError) -> Stop {
    Stop::new(Exit::Record, error)
}

/// FNV-1a, 64 bits (Fowler, Noll, Vo; draft-eastlake-fnv): names trials, guards nothing.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

/// Doubts after which a reader wants to see the log of a target.
const SUSPICIOUS: [&str; 2] = ["target-died", "connections-lost"];

/// The random stream of the order of trials.
const ORDER_STREAM: u64 = 1;
