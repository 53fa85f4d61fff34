//! One trial while somebody watches: it runs, and its time series is put together beside it.

use std::sync::mpsc::{self, Receiver};

use weigh_engine::job::Progress;
use weigh_model::event::{Event, Interval, TrialFinished};
use weigh_model::headroom::Observed;
use weigh_model::{Condition, Trial};
use weigh_report::summary::quantiles;
use weigh_report::{RecordError, RunFolder, exports};
use weigh_stage::pinning::{CoreSet, Pinning};

use crate::case::Case;
use crate::exit::Stop;
use crate::interrupts::Interrupts;
use crate::probes::background;
use crate::run::experiment::Experiment;
use crate::run::null_path::Bench;
use crate::targets::kept::Targets;
use crate::targets::stage::Stage;
use crate::trial::measure::{self as trial_run, Surroundings, Weighed};
use crate::trial::series::Series;
use crate::watcher::Watcher;

/// Where trials are weighed: what stays the same from one to the next.
pub struct Scales<'s> {
    /// What the run is made of.
    pub experiment: &'s Experiment<'s>,
    /// Where it leaves what it measures.
    pub folder: &'s RunFolder,
    /// Signals that may end a trial early.
    pub interrupts: &'s Interrupts,
    /// Who watches.
    pub display: Box<dyn Watcher>,
}

/// A trial that is over.
pub struct Followed {
    /// Its time series.
    pub intervals: Vec<Interval>,
    /// What was heard of its wire.
    pub told: Vec<Event>,
    /// Its result.
    pub finished: TrialFinished,
    /// Why its single messages could not be kept.
    pub unwritten: Option<RecordError>,
    /// How much of what ends was used at the window's end.
    pub observed: Observed,
}

impl Scales<'_> {
    /// Weighs one trial of `case` on a target that `targets` starts or has kept. Where it
    /// `shows_session`, and its wire is listened on, one session is told packet by packet.
    ///
    /// # Errors
    /// If it could not be done.
    pub fn weigh(
        &self,
        case: &Case,
        trial: Trial,
        targets: &mut Targets<'_>,
        shows_session: bool,
    ) -> Result<Followed, Stop> {
        let observe = &self.experiment.plan.observe;
        let (progress, heard) = mpsc::channel();
        let id = trial.id.clone();
        let every = trial_run::interval(&trial.load, observe.every);
        let messages =
            observe.messages.then(|| exports::message_files::path(self.folder, &trial.id));
        let pinning = self.pinning(case)?;
        let around = Surroundings {
            pinning: &pinning,
            shards: self.experiment.shards,
            every: observe.every,
            interrupts: self.interrupts,
            progress,
            messages,
            stage: Stage {
                footing: self.experiment.footing.clone(),
                path: case.path.clone(),
                has_relay: case.has_relay,
                offloads: case.offloads,
                has_subscribers: case.load.delivers(),
                is_heard: observe.wire || observe.pcap,
                file: observe
                    .pcap
                    .then(|| self.folder.path().join("pcap").join(format!("{id}.pcapng"))),
                share: case.share,
                shows_session,
            },
            metering: &self.experiment.metering,
            lookouts: &self.experiment.lookouts,
            say: &|text| self.display.note(text),
            emulate: &observe.emulate,
            background: case.background.as_deref().map(|own| background::Asked {
                case: own,
                catalogue: self.experiment.catalogue,
                folder: self.folder.path().join("targets").join(format!("{id}-background")),
            }),
        };
        let (result, mut intervals) = std::thread::scope(|scope| {
            let series = Series::new(trial_run::told_every(every), every);
            let follower = scope.spawn(move || follow(&*self.display, heard, series));
            let result = trial_run::run(&case.lane, trial, &case.material, &around, targets);
            drop(around);
            (result, follower.join().unwrap_or_default())
        });
        let Weighed { mut finished, mut told, watched, unwritten, observed, .. } = result?;
        told.extend(self.null_path(case, &mut finished));
        let plan = &self.experiment.plan;
        let until = plan.repeat.until.iter().map(|own| format!("{} > +0%", own.metric));
        let until: Vec<Condition> = until.filter_map(|text| text.parse().ok()).collect();
        let asked = plan.thresholds.iter().chain(plan.stop.values().flatten()).chain(&until);
        quantiles::add(&mut finished, asked);
        for interval in &mut intervals {
            interval.trial.clone_from(&id);
            if let Some(watched) = &watched {
                watched.tell(interval);
            }
        }
        Ok(Followed { intervals, told, finished, unwritten, observed })
    }

    /// Holds a result against the null path; what was measured again for it is an event.
    fn null_path(&self, case: &Case, finished: &mut TrialFinished) -> Option<Event> {
        let Experiment { pinning, shards, null_paths, .. } = self.experiment;
        let bench = Bench { pinning, shards: *shards, interrupts: self.interrupts };
        let again = null_paths.mark(case, finished, &bench)?;
        self.display
            .say(&format!("a trial passed the null path, measured again: {}", again.words()));
        Some(Event::Calibrated(again))
    }

    /// Who runs where in the trials of a case.
    fn pinning(&self, case: &Case) -> Result<Pinning, Stop> {
        if !case.share.is_asked() {
            return Ok(self.experiment.pinning.clone());
        }
        Ok(case.share.pinning(&CoreSet::allowed()?, self.experiment.shards))
    }
}

/// Hands on what the shards tell until all of them are done; its intervals, put together.
fn follow(
    watcher: &dyn Watcher,
    heard: Receiver<(u32, Progress)>,
    mut series: Series,
) -> Vec<Interval> {
    for (shard, told) in heard {
        watcher.progress(shard, &told);
        if let Progress::Interval(own) = told {
            series.add(shard, *own);
        }
    }
    series.finish()
}
