//! One trial in the surroundings of its run: it is carried out, and followed meanwhile.

use std::sync::mpsc;

use weigh_model::event::{Event, Interval, TrialFinished};
use weigh_model::headroom::Observed;
use weigh_model::{Condition, Trial};
use weigh_report::summary::quantiles;
use weigh_report::{RecordError, RunFolder, exports};
use weigh_testbed::pinning::{CoreSet, Pinning};

use crate::case::Case;
use crate::exit::{Exit, Stop};
use crate::interrupts::Interrupts;
use crate::run::chronicle::{Chronicle, not_recorded};
use crate::run::experiment::Experiment;
use crate::run::null_path::Bench;
use crate::targets::kept::Targets;
use crate::targets::stage::Stage;
use crate::trial::context::TrialOptions;
use crate::trial::live::{Heard, Live};
use crate::trial::measure::{self, Weighed};
use crate::trial::series::Series;
use crate::trial::ticks::Ticks;
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
    pub display: &'s dyn Watcher,
}

/// A trial that is over.
pub struct Followed {
    /// Its time series, which is in the run's record.
    pub intervals: Vec<Interval>,
    /// Why a part of the series is not.
    pub unwritten_interval: Option<Stop>,
    /// What was heard of its wire.
    pub told: Vec<Event>,
    /// Its result.
    pub finished: TrialFinished,
    /// Why its single messages could not be kept.
    pub unwritten: Option<RecordError>,
    /// How much of what ends was used at the window's end.
    pub observed: Observed,
}

impl Followed {
    /// Hands all that is told of it to the record, the result last; its intervals are there. Where
    /// something cannot be written the rest is handed over all the same, for a full disk takes
    /// nothing from the result.
    ///
    /// # Errors
    /// The first thing that could not be written.
    pub fn write(self, mut note: impl FnMut(Event) -> Result<(), Stop>) -> Result<(), Stop> {
        let mut written = self.unwritten_interval.map_or(Ok(()), Err);
        for event in self.told {
            written = written.and(note(event));
        }
        written.and(note(Event::TrialFinished(Box::new(self.finished))))?;
        self.unwritten.map_or(Ok(()), |error| Err(not_recorded(error)))
    }
}

impl Scales<'_> {
    /// Weighs one trial of `case` on a target that `targets` starts or has kept. Where it
    /// `shows_session`, and its wire is listened on, one session is told packet by packet. Its
    /// intervals go to the chronicle while it runs; what else is told of it is left to the caller.
    ///
    /// # Errors
    /// If it could not be done.
    pub fn weigh(
        &self,
        case: &Case,
        trial: Trial,
        targets: &mut Targets,
        shows_session: bool,
        chronicle: &mut Chronicle,
    ) -> Result<Followed, Stop> {
        let observe = &self.experiment.plan.observe;
        let (progress, heard) = mpsc::channel();
        let id = trial.id.clone();
        let messages =
            observe.messages.then(|| exports::message_files::path(self.folder, &trial.id));
        let pinning = self.pinning(case)?;
        let options = TrialOptions {
            pinning: &pinning,
            shards: self.experiment.shards,
            every: observe.every,
            interrupts: self.interrupts,
            progress,
            messages,
            stage: Stage {
                privileges: self.experiment.privileges.clone(),
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
            background: case.background.clone(),
        };
        let mut sink = |interval| chronicle.note_interval(interval);
        let live = Live {
            trial: id,
            watcher: self.display,
            sink: &mut sink,
            ticks: Ticks::new(self.experiment.shards),
            series: Series::new(&trial.load, observe.every),
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
        told.extend(self.null_path(case, &mut finished));
        let plan = &self.experiment.plan;
        let until = plan.repeat.until.iter().map(|own| format!("{} > +0%", own.metric));
        let until: Vec<Condition> = until.filter_map(|text| text.parse().ok()).collect();
        let asked = plan.thresholds.iter().chain(plan.stop.values().flatten()).chain(&until);
        quantiles::add(&mut finished, asked);
        let Heard { intervals, unwritten: unwritten_interval } = followed?;
        Ok(Followed { intervals, unwritten_interval, told, finished, unwritten, observed })
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
