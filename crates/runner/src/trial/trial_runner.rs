//! Runs one trial of a run, and follows it.

use std::sync::mpsc;
use std::time::Instant;

use weigh_model::event::{Event, Interval, TrialFinished};
use weigh_model::headroom::Observed;
use weigh_model::{Condition, Nanos, Trial};
use weigh_report::summary::quantiles;
use weigh_report::{RecordError, RunFolder, exports};
use weigh_testbed::pinning::{CoreSet, Pinning};

use crate::case::Case;
use crate::exit::{Exit, Stop};
use crate::fleet::hosts::Hosts;
use crate::interrupts::Interrupts;
use crate::probes::AFTERWARDS;
use crate::run::baseline::Bench;
use crate::run::experiment::Experiment;
use crate::run::history::{RunHistory, not_recorded};
use crate::targets::hosts::Stage;
use crate::targets::pool::Targets;
use crate::trial::context::{FleetPart, TrialOptions};
use crate::trial::live::{Heard, Live};
use crate::trial::measure::{self, Weighed};
use crate::trial::news::TrialNews;
use crate::trial::series::Series;
use crate::trial::ticks::Ticks;
use crate::watcher::Watcher;

/// Context of trials: what stays the same from one to the next.
pub struct TrialRunner<'s> {
    /// The run's inputs.
    pub experiment: &'s Experiment<'s>,
    /// The run's folder.
    pub folder: &'s RunFolder,
    /// Signals that may end a trial early.
    pub interrupts: &'s Interrupts,
    /// Receives progress.
    pub display: &'s dyn Watcher,
}

/// A finished trial.
pub struct TrialOutcome {
    /// Its time series, which is in the run's record.
    pub intervals: Vec<Interval>,
    /// Reason for which a part of the series is missing there.
    pub unwritten_interval: Option<Stop>,
    /// Events of its probes.
    pub told: Vec<Event>,
    /// Its result.
    pub finished: TrialFinished,
    /// Reason for which its single messages could not be recorded.
    pub unwritten: Option<RecordError>,
    /// Use of limited resources at the end of the window.
    pub observed: Observed,
}

/// What is around a trial, and is not the same for all.
struct Around<'t> {
    pinning: &'t Pinning,
    say: &'t (dyn Fn(&str) + Sync),
    progress: mpsc::Sender<TrialNews>,
    shows_session: bool,
    fleet: Option<FleetPart<'t>>,
}

impl TrialOutcome {
    /// Passes its events to the record, the result last; its intervals are there already. After a
    /// failure the rest is passed too, because a full disk must not affect the result.
    ///
    /// # Errors
    /// The first event that could not be written.
    pub fn write(self, mut note: impl FnMut(Event) -> Result<(), Stop>) -> Result<(), Stop> {
        let mut written = self.unwritten_interval.map_or(Ok(()), Err);
        for event in self.told {
            written = written.and(note(event));
        }
        written.and(note(Event::TrialFinished(Box::new(self.finished))))?;
        self.unwritten.map_or(Ok(()), |error| Err(not_recorded(error)))
    }
}

impl TrialRunner<'_> {
    /// Runs one trial of `case` on a target that `targets` starts or has kept; it began at this
    /// moment of the run's clock. With `shows_session` and a captured wire, one session is recorded
    /// packet by packet. Intervals go to the history while it runs; other events are left to the
    /// caller. If an agent of a fleet is lost, the trial is repeated as often as the user permits.
    ///
    /// # Errors
    /// A trial that could not run.
    pub fn weigh(
        &self,
        (case, began): (&Case, Nanos),
        trial: Trial,
        targets: &mut Targets,
        shows_session: bool,
        chronicle: &mut RunHistory,
    ) -> Result<TrialOutcome, Stop> {
        let clock = Instant::now();
        let mut retries = self.experiment.fleet.as_ref().map_or(0, Hosts::retries);
        loop {
            let done = self.attempt(case, trial.clone(), targets, shows_session, chronicle);
            let Err(stop) = &done else { return done };
            let is_stopped = self.interrupts.exit().is_some() || self.lost_bus().is_some();
            let is_over = retries == 0 || is_stopped;
            if is_over || !stop.is_generator_lost() {
                return done;
            }
            retries -= 1;
            self.display.say(&format!("{}: {stop}; repeating the trial", case.title()));
            chronicle.put_down(Event::TrialFailed {
                trial: trial.id.clone(),
                point: trial.point.clone(),
                error: stop.to_string(),
                is_repeated: true,
            })?;
            let at = began + Nanos(clock.elapsed().as_nanos() as u64);
            let started = chronicle.started(&trial, at, true);
            chronicle.put_down(started)?;
        }
    }

    /// Why no further trial can run, once one has failed.
    pub fn lost_bus(&self) -> Option<Stop> {
        self.experiment.fleet.as_ref().and_then(Hosts::lost_bus)
    }

    /// Makes the result of a trial that agents of a fleet finished after the program was killed
    /// that ran it: without figures of its target, which was not observed. Its events are left to
    /// the caller.
    ///
    /// # Errors
    /// A trial without a result.
    pub fn take_over(
        &self,
        case: &Case,
        trial: Trial,
        targets: &mut Targets,
        attempt: u32,
    ) -> Result<TrialOutcome, Stop> {
        let fleet = self.fleet(attempt, true);
        // There are no shards that could report anything.
        let (progress, _) = mpsc::channel();
        let pinning = self.pinning(case)?;
        let say = |text: &str| self.display.note(text);
        let around = Around { pinning: &pinning, say: &say, progress, shows_session: false, fleet };
        let options = self.options(case, &trial.id, around);
        let (lane, material) = (&case.lane, &case.material);
        let weighed = measure::run_with(AFTERWARDS, lane, trial, material, &options, targets)?;
        let Weighed { mut finished, told, observed, .. } = weighed;
        self.add_quantiles(&mut finished);
        let (intervals, unwritten_interval, unwritten) = (Vec::new(), None, None);
        Ok(TrialOutcome { intervals, unwritten_interval, told, finished, unwritten, observed })
    }

    fn attempt(
        &self,
        case: &Case,
        trial: Trial,
        targets: &mut Targets,
        shows_session: bool,
        chronicle: &mut RunHistory,
    ) -> Result<TrialOutcome, Stop> {
        let (progress, heard) = mpsc::channel();
        let id = trial.id.clone();
        let pinning = self.pinning(case)?;
        let fleet = self.fleet(chronicle.attempt(&id), false);
        let say = |text: &str| self.display.note(text);
        let around = Around { pinning: &pinning, say: &say, progress, shows_session, fleet };
        let options = self.options(case, &id, around);
        let every = self.experiment.plan.observe.every;
        let mut sink = |interval| chronicle.note_interval(interval);
        let live = Live {
            trial: id,
            watcher: self.display,
            sink: &mut sink,
            ticks: Ticks::new(self.experiment.shards),
            series: Series::new(&trial.load, every),
            connections: if trial.load.join.is_some() {
                0
            } else {
                u64::from(trial.load.connections) + u64::from(trial.load.subscribers)
            },
        };
        let (result, followed) = std::thread::scope(|scope| {
            let follower = scope.spawn(move || live.follow(&heard));
            let result = measure::run(&case.lane, trial, &case.material, &options, targets);
            drop(options);
            let followed = follower.join().map_err(|_| {
                Stop::new(Exit::Internal, "the thread that writes a trial's intervals panicked")
            });
            (result, followed)
        });
        let Weighed { mut finished, mut told, unwritten, observed, .. } = result?;
        told.extend(self.baseline(case, &mut finished));
        self.add_quantiles(&mut finished);
        let Heard { intervals, unwritten: unwritten_interval } = followed?;
        Ok(TrialOutcome { intervals, unwritten_interval, told, finished, unwritten, observed })
    }

    /// Options of a trial of this id.
    fn options<'t>(&'t self, case: &Case, id: &str, around: Around<'t>) -> TrialOptions<'t> {
        let Around { pinning, say, progress, shows_session, fleet } = around;
        let Experiment { plan, shards, privileges, metering, lookouts, .. } = self.experiment;
        let observe = &plan.observe;
        let file = || self.folder.path().join("pcap").join(format!("{id}.pcapng"));
        TrialOptions {
            pinning,
            shards: *shards,
            every: observe.every,
            interrupts: self.interrupts,
            progress,
            messages: observe.messages.then(|| exports::message_files::path(self.folder, id)),
            stage: Stage {
                privileges: privileges.clone(),
                path: case.path.clone(),
                has_relay: case.has_relay,
                offloads: case.offloads,
                has_subscribers: case.load.delivers(),
                is_heard: observe.wire || observe.pcap,
                file: observe.pcap.then(file),
                share: case.share,
                shows_session,
            },
            metering,
            lookouts,
            say,
            emulate: &observe.emulate,
            background: case.background.clone(),
            fleet,
        }
    }

    /// The part of the fleet in an attempt of this number.
    fn fleet(&self, attempt: u32, is_taken_over: bool) -> Option<FleetPart<'_>> {
        let hosts = self.experiment.fleet.as_ref()?;
        let (run, attempt) = (self.folder.id(), attempt.max(1));
        Some(FleetPart { hosts, run, attempt, is_taken_over })
    }

    /// Adds quantiles that conditions of the plan name.
    fn add_quantiles(&self, finished: &mut TrialFinished) {
        let plan = &self.experiment.plan;
        let until = plan.repeat.until.iter().map(|own| format!("{} > +0%", own.metric));
        let until: Vec<Condition> = until.filter_map(|text| text.parse().ok()).collect();
        let asked = plan.thresholds.iter().chain(plan.stop.values().flatten()).chain(&until);
        quantiles::add(finished, asked);
    }

    /// Compares a result with its baseline; a baseline that was measured again is an event.
    fn baseline(&self, case: &Case, finished: &mut TrialFinished) -> Option<Event> {
        let Experiment { pinning, shards, baselines, .. } = self.experiment;
        let bench = Bench { pinning, shards: *shards, interrupts: self.interrupts };
        let again = baselines.mark(case, finished, &bench)?;
        let sent = finished.metrics.get("throughput_in_per_s").copied().unwrap_or_default();
        self.display.say(&match sent > again.per_s {
            true => "a trial was faster than the baseline, even after the baseline was measured \
                     again: normal here, because this load has more messages in flight"
                .to_owned(),
            false => {
                format!("a trial was faster than the baseline, measured again: {}", again.words())
            }
        });
        Some(Event::Calibrated(again))
    }

    /// Cores of target and generator in the trials of a case.
    fn pinning(&self, case: &Case) -> Result<Pinning, Stop> {
        if !case.share.is_asked() {
            return Ok(self.experiment.pinning.clone());
        }
        Ok(case.share.pinning(&CoreSet::allowed()?, self.experiment.shards))
    }
}
