//! Runs a battery down: endless sessions, with their counts written to storage every second.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::discharges::DischargeLog;
use crate::discharges::entry::{EndReason, Entry, Standing};
use crate::discharges::log::LogError;
use weigh_engine::job::Progress;
use weigh_model::plan::{Plan, TargetLife};
use weigh_model::{Load, Nanos, Trial};
use weigh_observe::{boot, cpu};
use weigh_testbed::catalogue::Catalogue;
use weigh_testbed::pinning::Pinning;

use crate::case::Case;
use crate::exit::{Exit, Stop};
use crate::interrupts::Interrupts;
use crate::probes::battery::Power;
use crate::probes::metering::Metering;
use crate::targets::hosts::Stage;
use crate::targets::observers::Observers;
use crate::targets::pool::Targets;
use crate::trial::context::TrialOptions;
use crate::trial::identity::Trials;
use crate::trial::measure;
use crate::trial::news::TrialNews;
use crate::watcher::Watcher;

/// Inputs of a rundown.
pub struct Rundown<'r> {
    /// The plan.
    pub plan: &'r Plan,
    /// Its cases.
    pub cases: &'r [Case],
    /// Index of the case.
    pub place: usize,
    /// The real servers that can be started.
    pub catalogue: &'r Catalogue,
    /// Cores of target and generator.
    pub pinning: Pinning,
    /// Threads of the generator.
    pub shards: u32,
    /// Ends it after this time, for practice.
    pub lasts: Option<Nanos>,
    /// The power source.
    pub power: Power,
    /// Signals that end it.
    pub interrupts: &'r Interrupts,
    /// Receives notices.
    pub watcher: &'r dyn Watcher,
    /// The program `weigh`, started for reference servers.
    pub program: &'r Path,
}

/// The end of a rundown without a power cut.
pub struct RunDown {
    /// The reason.
    pub reason: EndReason,
    /// The counts at the end.
    pub standing: Standing,
}

impl Rundown<'_> {
    /// Runs until the power goes, or until another reason ends it.
    ///
    /// # Errors
    /// A target that was never reached; a log that cannot be written.
    pub fn run(self, log: DischargeLog) -> Result<RunDown, Stop> {
        let news = News::default();
        let (sender, heard) = channel();
        let scribe = Scribe {
            log,
            standing: Standing::default(),
            began_ns: boot::clock_ns(),
            power: &self.power,
            interrupts: self.interrupts,
            news: &news,
        };
        let folder = scribe.log.folder().join("targets");
        let (made, kept) = std::thread::scope(|scope| {
            let scribe = scope.spawn(move || scribe.keep_to_the_end(&heard));
            // After a panic, the log first records that it was not a power cut.
            let made =
                catch_unwind(AssertUnwindSafe(|| self.make_sessions(&folder, &news, sender)));
            (made, scribe.join())
        });
        // Logs of targets are not needed here.
        let _ = std::fs::remove_dir_all(&folder);
        let internal = || Stop::new(Exit::Internal, "the thread that keeps the log panicked");
        let (mut log, standing, early) = kept.map_err(|_| internal())?;
        let at_ns = standing.at_ns;
        let unreached = made.unwrap_or_else(|panic| {
            log.give_up(at_ns);
            resume_unwind(panic)
        });
        let reason = match early {
            Some(Early::Unwritten(error)) => {
                // The storage may accept a line again.
                log.give_up(at_ns);
                return Err(Stop::new(Exit::Record, error));
            }
            Some(Early::Panicked) => {
                log.give_up(at_ns);
                return Err(internal());
            }
            Some(Early::Charger) => EndReason::Mains,
            None if unreached.is_some() => EndReason::Unreached,
            None => match self.interrupts.exit() {
                Some(Exit::Terminated) => EndReason::Terminated,
                Some(_) => EndReason::Interrupted,
                None => EndReason::TimeOver,
            },
        };
        let ended = log.note(&Entry::Ended { at_ns, reason });
        match unreached {
            Some(stop) => Err(stop),
            None => ended
                .map(|()| RunDown { reason, standing })
                .map_err(|error| Stop::new(Exit::Record, error)),
        }
    }

    /// Runs segment after segment. Returns why the target was never reached, if so.
    fn make_sessions(
        &self,
        folder: &Path,
        news: &News,
        progress: std::sync::mpsc::Sender<TrialNews>,
    ) -> Option<Stop> {
        let case = &self.cases[self.place];
        let trials = Trials::new(self.plan, self.cases);
        let folder = folder.to_owned();
        let mut targets =
            Targets::new(TargetLife::Kept, self.catalogue, self.shards, folder, self.program);
        // The battery is the meter.
        let (unmetered, unwatched) = (Metering::default(), Observers::default());
        let options = TrialOptions {
            pinning: &self.pinning,
            shards: self.shards,
            every: Some(TOLD_EVERY),
            interrupts: self.interrupts,
            progress,
            messages: None,
            metering: &unmetered,
            lookouts: &unwatched,
            stage: Stage { share: case.share, ..Stage::default() },
            say: &|_| {},
            emulate: &[],
            background: None,
            fleet: None,
        };
        let began = Instant::now();
        let mut segment = 0;
        while self.interrupts.exit().is_none() {
            let gone = Nanos(began.elapsed().as_nanos() as u64);
            let length = self.lasts.map_or(SEGMENT, |lasts| lasts.since(gone).min(SEGMENT));
            if length < SEGMENT_MIN {
                break;
            }
            let load = endless(&case.load, length);
            let trial = Trial { load, ..trials.trial(self.place, case, segment) };
            match measure::run(&case.lane, trial, &case.material, &options, &mut targets) {
                Ok(_) => segment += 1,
                Err(stop) if self.interrupts.exit().is_some() => {
                    self.watcher.say(&stop.to_string());
                }
                // Without a single session, an error now is better than an empty battery.
                Err(stop) if news.sessions.load(Ordering::SeqCst) == 0 => return Some(stop),
                Err(stop) => {
                    news.trouble(&stop.to_string());
                    self.pause();
                }
            }
        }
        None
    }

    /// Pauses before the target is tried again.
    fn pause(&self) {
        let end = Instant::now() + TRY_AGAIN_AFTER;
        while Instant::now() < end && self.interrupts.exit().is_none() {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// The load of a segment: without a warm-up, because all of it uses the battery.
fn endless(load: &Load, length: Nanos) -> Load {
    Load { messages: None, duration: Some(length), warmup: Nanos(0), ..load.clone() }
}

/// State shared by the threads of sessions and log.
#[derive(Default)]
struct News {
    /// Messages that the target accepted so far.
    sessions: AtomicU64,
    trouble: Mutex<Option<String>>,
}

impl News {
    fn trouble(&self, reason: &str) {
        if let Ok(mut trouble) = self.trouble.lock() {
            trouble.replace(reason.to_owned());
        }
    }
}

/// Reason for which the log ended before the sessions did.
enum Early {
    Unwritten(LogError),
    Charger,
    Panicked,
}

/// Writes the log.
struct Scribe<'s> {
    log: DischargeLog,
    standing: Standing,
    began_ns: u64,
    power: &'s Power,
    interrupts: &'s Interrupts,
    news: &'s News,
}

impl Scribe<'_> {
    /// Writes the log, and returns it even after a panic: it must record that the power did not go.
    fn keep_to_the_end(
        mut self,
        heard: &Receiver<TrialNews>,
    ) -> (DischargeLog, Standing, Option<Early>) {
        let kept = catch_unwind(AssertUnwindSafe(|| self.keep(heard)));
        let early = kept.unwrap_or_else(|_| {
            self.interrupts.ask();
            // Without a log, the sessions are useless.
            heard.iter().for_each(drop);
            Some(Early::Panicked)
        });
        (self.log, self.standing, early)
    }

    /// Writes the counts until the sessions end.
    fn keep(&mut self, heard: &Receiver<TrialNews>) -> Option<Early> {
        let mut early = None;
        let mut next = Instant::now();
        loop {
            match heard.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(heard) => {
                    self.take(&heard);
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            next = Instant::now() + WRITE_EVERY;
            if early.is_none()
                && let Err(reason) = self.write()
            {
                early = Some(reason);
                self.interrupts.ask();
            }
        }
        if early.is_none() {
            early = self.write().err();
        }
        early
    }

    fn take(&mut self, heard: &TrialNews) {
        let TrialNews::Shard(_, Progress::Interval(told)) = heard else { return };
        let (standing, more) = (&mut self.standing, &told.interval);
        standing.sent += more.sent;
        standing.acknowledged += more.acknowledged;
        standing.delivered += more.delivered;
        standing.errors += more.errors;
        self.news.sessions.fetch_add(more.sent, Ordering::SeqCst);
    }

    fn write(&mut self) -> Result<(), Early> {
        let at_ns = boot::clock_ns().saturating_sub(self.began_ns);
        let reason = self.news.trouble.lock().ok().and_then(|mut trouble| trouble.take());
        if let Some(reason) = reason {
            self.log.note(&Entry::Trouble { at_ns, reason }).map_err(Early::Unwritten)?;
        }
        self.standing.at_ns = at_ns;
        self.standing.cpu_ns = cpu::own_process_ns();
        self.standing.gauge = self.power.gauge();
        self.log.note(&Entry::Standing(self.standing)).map_err(Early::Unwritten)?;
        match self.power.charger() {
            Some(_) => Err(Early::Charger),
            None => Ok(()),
        }
    }
}

/// Interval of shards' reports: at most this much is not yet in a line.
const TOLD_EVERY: Nanos = Nanos::from_millis(150);

/// Together with [`TOLD_EVERY`], and the time that storage takes, a second.
const WRITE_EVERY: Duration = Duration::from_millis(800);

/// A trial's ledger grows with it, so a rundown consists of trials of this length.
const SEGMENT: Nanos = Nanos::from_secs(600);

/// Minimum length of a trial.
const SEGMENT_MIN: Nanos = Nanos::from_millis(10);

const TRY_AGAIN_AFTER: Duration = Duration::from_secs(1);
