//! One session of a study's run: plan after plan, each an ordinary run with a journal of its own,
//! and at the end the results of the study.

use std::path::Path;
use std::sync::Arc;

use weigh_model::Nanos;
use weigh_model::event::Setup;
use weigh_study::{Outcome, Study};
use weigh_testbed::catalogue::Catalogue;

use crate::case::secrets::Secrets;
use crate::case::{Case, decide};
use crate::exit::{Exit, Stop};
use crate::preflight;
use crate::run::experiment::{Experiment, Finished, Place, RunContext};
use crate::run::resumption::{self, Begun};
use crate::search::trials;
use crate::study::context::{StudyContext, graver};
use crate::study::parts::Part;
use crate::study::server_trials::ServerTrials;
use crate::study::study_run::{DONE, FAILED, INTERRUPTED, RUNNING, StudyRun, has_begun};
use crate::study::tool_parts::ToolPart;
use crate::study::tools::CheckedTool;
use crate::targets::hosts::Privileges;
use crate::watcher::Watcher;

/// Position of a session among all studies.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The study's number, from 1.
    pub study: usize,
    /// Number of studies.
    pub studies: usize,
    /// Minimum duration of the studies after this one.
    pub after: Nanos,
}

/// Result of a session.
pub struct SessionEnd {
    /// Results of the study.
    pub outcome: Outcome,
    /// The exit code.
    pub exit: Exit,
    /// Reason for which not everything could be recorded; the outcome is complete.
    pub unrecorded: Option<Stop>,
}

/// A part of a study, and why it cannot run here, if so.
pub type CheckedPart = (Part, Option<String>);

/// The privileges for all parts. Call it while there is one thread.
///
/// # Errors
/// A process with other threads.
pub fn privileges<'p>(
    parts: impl IntoIterator<Item = &'p Part>,
    tools: impl IntoIterator<Item = &'p ToolPart>,
    watcher: &dyn Watcher,
) -> Result<Privileges, Stop> {
    let cases = parts.into_iter().flat_map(|part| part.cases.clone());
    let cases: Vec<Case> =
        cases.chain(tools.into_iter().filter_map(|tool| tool.case.clone())).collect();
    Privileges::take(&cases, watcher)
}

impl StudyContext<'_> {
    /// Runs what is left of a study, and returns its results, even if the record cannot be written.
    pub fn sit(
        &self,
        study: &Study,
        (parts, tools): (&[CheckedPart], &[CheckedTool]),
        kept: &mut StudyRun,
        progress: Progress,
    ) -> SessionEnd {
        let carried_out = self.carry_out(study, (parts, tools), kept, progress);
        let interrupted = self.interrupts.exit();
        let (exit, unrecorded) = match carried_out {
            Ok(exit) => (interrupted.unwrap_or(exit), None),
            Err(stop) => (stop.exit(), Some(stop)),
        };
        kept.about.state = match (&unrecorded, interrupted) {
            (Some(_), _) => FAILED,
            (None, Some(_)) => INTERRUPTED,
            (None, None) => DONE,
        }
        .to_owned();
        let mut outcome = kept.outcome(study);
        let unwritten = kept.write(study, &outcome).err();
        if unwritten.is_some() {
            outcome.state = FAILED.to_owned();
        }
        let exit = unwritten.as_ref().map_or(exit, Stop::exit);
        SessionEnd { outcome, exit, unrecorded: unrecorded.or(unwritten) }
    }

    /// Runs plan after plan. A failure is recorded, and does not end the session.
    fn carry_out(
        &self,
        study: &Study,
        (parts, tools): (&[CheckedPart], &[CheckedTool]),
        kept: &mut StudyRun,
        progress: Progress,
    ) -> Result<Exit, Stop> {
        let mut exit = Exit::Done;
        kept.about.state = RUNNING.to_owned();
        let names = parts.iter().map(|(part, _)| &part.name);
        let names = names.chain(tools.iter().map(|(part, _)| &part.tool.name));
        for name in names.filter(|name| !kept.has(name)).collect::<Vec<_>>() {
            kept.skip(name, "it was not started: resume with weigh study run --resume");
        }
        kept.note(study)?;
        let mut tried = ServerTrials::default();
        for (number, (part, obstacle)) in parts.iter().enumerate() {
            if self.interrupts.exit().is_some() {
                break;
            }
            if let Some(why) = obstacle {
                // Results of an earlier session are kept.
                if !kept.take(&part.name)? {
                    kept.skip(&part.name, why);
                }
                continue;
            }
            if !kept.is_done(&part.name) {
                self.announce(study, parts, number, progress);
                let folder = kept.place(&format!("{}-start", part.name));
                if let Some(why) = tried.obstacle(self, part, &folder) {
                    self.say(&format!("{} is not run: {why}", part.name));
                    if !kept.take(&part.name)? {
                        kept.skip(&part.name, &why);
                    }
                    exit = graver(exit, Exit::Target);
                    continue;
                }
            }
            exit = match self.part(study, part, kept) {
                Ok(own) => graver(exit, own),
                Err(stop) if stop.exit() == Exit::Record => {
                    // Partial results count.
                    let _ = kept.take(&part.name);
                    return Err(stop);
                }
                Err(stop) => {
                    self.note_failure(part, kept, &stop);
                    graver(exit, stop.exit())
                }
            };
            kept.note(study)?;
        }
        Ok(graver(exit, self.carry_out_tools(study, tools, kept)?))
    }

    /// Runs one plan, resumes it, or finds it done.
    fn part(&self, study: &Study, part: &Part, kept: &mut StudyRun) -> Result<Exit, Stop> {
        let place = kept.place(&part.name);
        let finished = match self.begun(&place)? {
            Some(begun) => self.go_on(part, begun)?,
            None => self.begin(study, part, &place)?,
        };
        kept.take(&part.name)?;
        let exit = finished.exit();
        finished.unrecorded.map_or(Ok(exit), Err)
    }

    /// The run in this folder, if it was started. A journal without a complete first line is not a
    /// run, and is removed.
    fn begun(&self, place: &Path) -> Result<Option<Begun>, Stop> {
        if !has_begun(place) {
            if place.is_dir() {
                std::fs::remove_dir_all(place).map_err(|error| {
                    let place = place.display();
                    Stop::new(
                        Exit::Record,
                        format!("{place}: cannot be removed: {error}; remove it"),
                    )
                })?;
            }
            return Ok(None);
        }
        let runs = place.parent().unwrap_or(place);
        Begun::open(runs, &place.display().to_string(), &*(self.watch)(self.is_quiet)).map(Some)
    }

    fn begin(&self, study: &Study, part: &Part, place: &Path) -> Result<Finished, Stop> {
        let (shards, data) = (part.shards(), self.ground.data);
        let setup =
            resumption::setup(shards, data, self.commit.as_deref(), &part.secrets, &part.cases)?;
        // The journal has the conditions of its start.
        let setup = Setup { study_hash: Some(study.hash.clone()), ..setup };
        let (plan, cases) = (part.plan.clone(), part.cases.clone());
        let context = self.run_context(part, place);
        let experiment = Experiment::new(plan, cases, setup, context)?;
        let experiment = Experiment { energy: part.energy.clone(), ..experiment };
        let Some(searches) = &part.searches else { return experiment.run() };
        experiment.run_with(|experiment: &_, folder: &_, interrupts: &_, chronicle: &mut _| {
            trials::begin(experiment, searches, false, folder, interrupts, chronicle)
        })
    }

    /// Resumes a plan with the settings in its journal.
    fn go_on(&self, part: &Part, begun: Begun) -> Result<Finished, Stop> {
        let (plan, setup) = (begun.started.plan.clone(), begun.started.setup.clone());
        let secrets = Secrets { settings: part.secrets.settings.clone(), ..Secrets::default() };
        let cases = decide(&plan, self.ground.catalogue, &secrets)?;
        begun.check_material(&cases)?;
        let shards = begun.shards().unwrap_or_else(|| part.shards());
        preflight::examine(self.ground.catalogue, &cases, shards)?;
        let place = begun.folder.path().to_owned();
        let context = self.run_context(part, &place);
        Experiment::new(plan, cases, Setup { shards, ..setup }, context)?.resume(begun)
    }

    fn run_context<'p>(&'p self, part: &Part, place: &'p Path) -> RunContext<'p> {
        let has_hosts = part.cases.iter().any(|case| case.has_hosts);
        let catalogue: &'p Catalogue = self.ground.catalogue;
        RunContext {
            catalogue,
            place: Place::At(place),
            interrupts: Arc::clone(&self.interrupts),
            privileges: if has_hosts { self.privileges.clone() } else { Privileges::Loopback },
            is_quiet: self.is_quiet,
            watch: self.watch,
            program: self.program.clone(),
        }
    }

    /// Records a plan that failed: results in its journal are used; without any, the reason
    /// replaces them.
    fn note_failure(&self, part: &Part, kept: &mut StudyRun, stop: &Stop) {
        self.say(&format!("{}: {stop}", part.name));
        if !kept.take(&part.name).is_ok_and(|is_there| is_there) {
            let fix = "fix that, and resume with weigh study run --resume";
            kept.skip(&part.name, &format!("it could not be run: {stop}; {fix}"));
        }
    }

    fn announce(&self, study: &Study, parts: &[CheckedPart], number: usize, progress: Progress) {
        if self.is_quiet {
            return;
        }
        let left = parts[number..].iter().filter(|(_, obstacle)| obstacle.is_none());
        let left = left.fold(progress.after, |sum, (part, _)| sum + part.time);
        let part = &parts[number].0;
        self.say(&format!(
            "study {} of {} ({}), plan {} of {}: {}, {}; about {} left in all",
            progress.study,
            progress.studies,
            study.name,
            number + 1,
            parts.len(),
            part.name,
            part.length(),
            left.rough(),
        ));
    }
}
