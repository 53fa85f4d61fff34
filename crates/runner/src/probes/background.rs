//! Runs the background of a trial: a second generator in its own process, up before the measurement
//! starts and stopped after it ends. Records proof that it ran.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{ChildStdin, ChildStdout};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use weigh_engine::outcome::Outcome;
use weigh_model::background::{self, BackgroundRan, Sent, Sought, TargetCores};
use weigh_model::endpoint::Credentials;
use weigh_model::energy::Span;
use weigh_model::event::{Event, Interval, TrialFinished};
use weigh_model::ledger::Cause;
use weigh_model::plan::{Observe, Plan, Repeat, TargetLife};
use weigh_model::{Endpoint, Load, Nanos, Trial, Warning, tls};
use weigh_observe::cpu::monotonic_ns;
use weigh_observe::sampler::{Sampler, Usage};
use weigh_plan::matrix;
use weigh_testbed::doctor::shards_needed;
use weigh_testbed::pinning::CoreSet;
use weigh_testbed::process::{ManagedProcess, Start};
use weigh_testbed::reference::ReferenceServer;

use crate::case::background::BackgroundCase;
use crate::exit::{Exit, Stop};
use crate::interrupts::Interrupts;
use crate::probe::Probe;
use crate::probes::background_record::{BackgroundEnd, absence, troubles};
use crate::targets::hosts::Stage;
use crate::targets::pool::{Lease, Targets};
use crate::targets::running::{READY_WITHIN, Running};
use crate::targets::tls::CertificateFiles;
use crate::trial::context::{TrialContext, TrialOptions};

/// Report of the generator of a background to the process that started it.
#[derive(Serialize, Deserialize)]
pub struct BackgroundReport {
    /// The monotonic clock at the generator's time 0, nanoseconds.
    pub epoch_ns: u64,
    /// Its time series.
    pub intervals: Vec<Interval>,
    /// Its record.
    pub finished: TrialFinished,
}

/// Starts the background before the clock of the trial, and ends it when the trial is over.
#[derive(Default)]
pub struct BackgroundLoad {
    underway: Option<Underway>,
    over: Option<BackgroundEnd>,
}

impl Probe for BackgroundLoad {
    fn prepare(&mut self, trial: &mut TrialContext<'_>) -> Result<(), Stop> {
        let Some(case) = &trial.options.background else { return Ok(()) };
        let place = format!("{}-background", trial.trial.id);
        let folder = trial.targets.folder().join(place);
        let begun =
            Asked { case: Arc::clone(case), program: trial.targets.program().to_owned(), folder }
                .begin(trial);
        let begun = begun.map_err(|stop| Stop::new(stop.exit(), format!("the background: {stop}")));
        self.underway = Some(begun?);
        Ok(())
    }

    fn leave(&mut self, trial: &mut TrialContext<'_>, _outcome: &mut Outcome) {
        self.over = self.underway.take().map(|own| own.end(trial.trial, trial.span()));
        trial.found.aside_cpu_ns += self.over.as_ref().map_or(0, |over| over.cpu_ns);
    }

    fn amend(&mut self, trial: &mut TrialContext<'_>, finished: &mut TrialFinished) {
        let ran = self.over.take().map(|over| over.tell(finished));
        trial.found.events.extend(ran.map(|ran| Event::BackgroundRan(Box::new(ran))));
    }
}

/// Requirements of the background to start.
struct Asked {
    case: Arc<BackgroundCase>,
    /// The program `weigh`, which is its generator.
    program: PathBuf,
    /// Folder of its files while it runs.
    folder: PathBuf,
}

/// A running background. Dropping it ends it.
struct Underway {
    asked: Asked,
    process: ManagedProcess,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Samplers of its generator and of its own target.
    samplers: [Option<Sampler>; 2],
    /// Its own target, if it has one.
    own: Option<(Targets, Lease)>,
    shares_core: bool,
}

impl Asked {
    /// Starts its target and its generator, and waits until its connections are open, its first
    /// message was sent and its lead time has passed.
    ///
    /// # Errors
    /// The reason why it does not start.
    fn begin(self, trial: &TrialContext<'_>) -> Result<Underway, Stop> {
        let options = trial.options;
        let own = self.own_target(trial)?;
        let (endpoint, vault) = match &own {
            Some((targets, lease)) => (lease.target.running.endpoint().clone(), targets.vault()),
            None => {
                let scheme = self.case.lane.protocol.scheme();
                let running = &trial.lease.target.running;
                (running.endpoint_for(scheme).clone(), trial.targets.vault())
            }
        };
        let cores = &options.pinning.aside;
        let shares_core =
            options.pinning.generator.cores().iter().any(|core| cores.cores().contains(core));
        let plan = self.write_plan(trial.trial, &endpoint, vault)?;
        let credentials = self.case.lane.credentials().or(endpoint.credentials);
        let mut process = self.generator(plan, (cores, shares_core), credentials)?;
        let stdin = process.take_stdin();
        let no_stdout = || Stop::new(Exit::Internal, "its generator has no stdout");
        let lines = read_lines(process.take_stdout().ok_or_else(no_stdout)?)?;
        let pid = own.as_ref().and_then(|(_, lease)| lease.target.running.pids().first().copied());
        let watch = |pid: u32, cores: u32| Sampler::start(pid, cores, LOOK_EVERY).ok();
        let samplers = [
            watch(process.pid(), 1),
            pid.and_then(|pid| watch(pid, self.target_cores(options).count())),
        ];
        let mut underway =
            Underway { asked: self, process, stdin, lines, samplers, own, shares_core };
        underway.wait_until_up(options.interrupts)?;
        Ok(underway)
    }

    /// The cores of its own target.
    fn target_cores<'s>(&self, options: &'s TrialOptions<'_>) -> &'s CoreSet {
        match self.case.asked.target_cores {
            TargetCores::Target => &options.pinning.target,
            TargetCores::Apart => &options.pinning.aside,
        }
    }

    fn own_target(&self, trial: &TrialContext<'_>) -> Result<Option<(Targets, Lease)>, Stop> {
        if self.case.asked.is_at_same() {
            return Ok(None);
        }
        let (catalogue, shards) = (trial.targets.catalogue(), trial.options.shards);
        let folder = self.folder.clone();
        let mut targets = Targets::new(TargetLife::Fresh, catalogue, shards, folder, &self.program);
        let cores = self.target_cores(trial.options);
        let lease = targets.lease(&self.case.lane, &Stage::default(), cores, "target")?;
        Ok(Some((targets, lease)))
    }

    /// Writes the generator's plan: one case, with the target's present address.
    fn write_plan(
        &self,
        trial: &Trial,
        endpoint: &Endpoint,
        vault: &CertificateFiles,
    ) -> Result<PathBuf, Stop> {
        let mut lane = self.case.lane.found_at(endpoint);
        if let Some(authority) = vault.authority().filter(|_| tls::is_on(&lane.settings)) {
            lane.given.insert("tls_ca".to_owned(), authority.display().to_string());
        }
        let asked = &self.case.asked.load;
        let duration = asked.messages.is_none().then_some(LASTING);
        let load = Load { duration, ..asked.clone() };
        let (load, cases) = matrix::matrix(&[lane.with(load)])?;
        let plan = Plan {
            name: "background".to_owned(),
            question: None,
            seed: background_seed(trial),
            thresholds: Vec::new(),
            load,
            repeat: Repeat::exactly(1),
            stop: BTreeMap::new(),
            observe: Observe::default(),
            energy: None,
            background: None,
            cases,
        };
        let text = plan.to_toml().map_err(|error| Stop::new(Exit::Internal, error))?;
        let path = self.folder.join("plan.toml");
        let written =
            std::fs::create_dir_all(&self.folder).and_then(|()| std::fs::write(&path, text));
        written.map_err(|error| Stop::unwritten(&path, &error))?;
        std::path::absolute(path).map_err(Stop::from)
    }

    fn generator(
        &self,
        plan: PathBuf,
        (cores, shares_core): (&CoreSet, bool),
        credentials: Option<Credentials>,
    ) -> Result<ManagedProcess, Stop> {
        let load = &self.case.asked.load;
        let standing = u64::from(load.connections) + u64::from(load.subscribers);
        let shards = shards_needed(standing, weigh_engine::io::descriptors::limits().hard);
        let mut arguments = vec!["background".into(), plan.clone().into_os_string()];
        arguments.extend(["--shards".into(), shards.to_string().into()]);
        arguments.extend(shares_core.then(|| "--shares-core".into()));
        let mut environment = Vec::new();
        if let Some(own) = credentials {
            arguments.extend(["--user".into(), own.user.into()]);
            environment.push(("WEIGH_PASSWORD".into(), own.password.into()));
        }
        let started = ManagedProcess::start(&Start {
            program: self.program.clone(),
            arguments,
            environment,
            // Files of bodies are relative to the current folder.
            folder: std::env::current_dir()?,
            log: Some(plan.with_extension("log")),
            cores: Some(cores.clone()),
            piped: true,
            door: None,
            enclosure: None,
        });
        started.map_err(|error| Stop::new(Exit::Target, error))
    }
}

impl Underway {
    fn wait_until_up(&mut self, interrupts: &Interrupts) -> Result<(), Stop> {
        let deadline = Instant::now() + UP_WITHIN;
        loop {
            if interrupts.exit().is_some() {
                return Err(Stop::new(Exit::Interrupted, "interrupted while it started"));
            }
            match self.lines.recv_timeout(LOOK_EVERY) {
                Ok(line) if line == UP => break,
                Ok(line) => {
                    let why = line.strip_prefix(FAILED).unwrap_or(&line);
                    return Err(Stop::new(Exit::Target, why));
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() < deadline => {}
                Err(RecvTimeoutError::Timeout) => {
                    let text = format!(
                        "it sent no message within {} s: type a higher rate, or check \
                         its target",
                        UP_WITHIN.as_secs()
                    );
                    return Err(Stop::new(Exit::Target, text));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let log = self.process.log_tail(LOG_LINES);
                    return Err(Stop::new(Exit::Internal, format!("its generator ended: {log}")));
                }
            }
        }
        let lead = Instant::now() + Duration::from_nanos(self.asked.case.asked.lead.0);
        while Instant::now() < lead && interrupts.exit().is_none() {
            std::thread::sleep(lead.saturating_duration_since(Instant::now()).min(LOOK_EVERY));
        }
        Ok(())
    }

    /// Ends it after the trial with this window.
    fn end(mut self, trial: &Trial, window: Span) -> BackgroundEnd {
        self.samplers.iter().flatten().for_each(|sampler| drop(sampler.sample()));
        // Its sends after the window are reported with the last interval in it.
        std::thread::sleep(Duration::from_nanos(INTERVAL.0));
        let stopped_ns = monotonic_ns();
        drop(self.stdin.take());
        let told = self.last_words();
        let usages = std::mem::take(&mut self.samplers).map(|sampler| used(sampler, window));
        let asked = &self.asked.case.asked;
        let mut warnings = Vec::new();
        let mut target = "the measured target".to_owned();
        let mut counted = None;
        if let Some((mut targets, mut lease)) = self.own.take() {
            target = lease.target.running.title(&self.asked.case.lane);
            if let Some(ended) = lease.target.running.ended() {
                warnings.push(Warning::Background(
                    "background-target-died",
                    format!("the background's target ended before the trial: {ended}"),
                    "read its log in the run folder, below background",
                ));
            }
            if let (Ok(told), Running::Reference(server)) = (&told, &mut lease.target.running) {
                counted = settled(server, told.finished.ledger.sent);
            }
            targets.give_back(lease, None);
        }
        let (told, error) = match told {
            Ok(told) => (Some(told), None),
            Err(error) => (None, Some(error)),
        };
        let window_ns = window.to_ns.saturating_sub(window.from_ns);
        let intervals = told.as_ref();
        let intervals = intervals.map_or_else(Vec::new, |told| sent(told, window, stopped_ns));
        let offered_per_s = asked.offered_per_s();
        let seconds = (window_ns as f64 / 1e9).max(f64::MIN_POSITIVE);
        let (mut ledger, metrics) = told.map_or_else(Default::default, |told| {
            warnings.extend(troubles(&told.finished));
            (told.finished.ledger, told.finished.metrics)
        });
        if let Some(unique) = counted.filter(|_| ledger.delivered.is_none()) {
            let lost = ledger.sent.saturating_sub(unique);
            (ledger.delivered, ledger.lost) = (Some(ledger.sent - lost), Some(lost));
            ledger.causes.extend((lost > 0).then_some((Cause::Unknown, lost)));
        }
        let ran = BackgroundRan {
            trial: trial.id.clone(),
            point: trial.point.clone(),
            words: asked.words(),
            target,
            overlap_ratio: background::overlap(&intervals, window_ns, Sought::of(asked)),
            window_ns,
            offered_per_s,
            sent_per_s: background::sent_within(&intervals, window_ns) / seconds,
            shares_core: self.shares_core,
            ledger,
            metrics,
            intervals,
        };
        warnings.extend(absence(&ran, error));
        let cpu_ns = usages.iter().flatten().map(|usage| usage.cpu_ns).sum();
        let percent = usages.map(|usage| usage.map(|usage| usage.percent_mean));
        BackgroundEnd { ran, warnings, percent, cpu_ns, is_at_same: asked.is_at_same() }
    }

    /// Reads the generator's report; otherwise the reason why there is none.
    fn last_words(&mut self) -> Result<BackgroundReport, String> {
        let timeout = Duration::from_nanos(self.asked.case.asked.load.timeout.0);
        let deadline = Instant::now() + timeout + END_WITHIN;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    if let Some(json) = line.strip_prefix(RAN) {
                        return serde_json::from_str(json).map_err(|error| error.to_string());
                    }
                    if let Some(why) = line.strip_prefix(FAILED) {
                        return Err(why.to_owned());
                    }
                }
                Err(RecvTimeoutError::Timeout) => return Err("it did not end".to_owned()),
                Err(RecvTimeoutError::Disconnected) => {
                    self.process.wait_ended(END_WITHIN);
                    let how = self.process.ended();
                    return Err(
                        how.map_or("it closed its output".to_owned(), |how| how.to_string())
                    );
                }
            }
        }
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        drop(self.stdin.take());
        if let Some((mut targets, lease)) = self.own.take() {
            targets.give_back(lease, None);
        }
    }
}

/// Usage that a sampler measured in the window.
fn used(sampler: Option<Sampler>, window: Span) -> Option<Usage> {
    sampler?.stop().ok()?.window(window.from_ns, window.to_ns)
}

/// Number of distinct messages that its own server has counted, once the number is stable:
/// unconfirmed messages may still be in transit.
fn settled(server: &mut ReferenceServer, sent: u64) -> Option<u64> {
    let deadline = Instant::now() + SETTLED_WITHIN;
    loop {
        let unique = server.report(READY_WITHIN).ok()?.unique;
        if unique >= sent || Instant::now() >= deadline {
            return Some(unique);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Intervals on the clock of the measured window, until it was stopped: after that it only waits
/// for answers.
fn sent(told: &BackgroundReport, window: Span, stopped_ns: u64) -> Vec<Sent> {
    let at = |own_ns: u64| (told.epoch_ns + own_ns).min(stopped_ns) as i64 - window.from_ns as i64;
    let interval = |own: &Interval| Sent {
        from_ns: at(own.at_ns.saturating_sub(own.length_ns.unwrap_or(0))),
        to_ns: at(own.at_ns),
        sent: own.sent,
        connections: own.connections,
    };
    told.intervals.iter().map(interval).filter(|own| own.from_ns < own.to_ns).collect()
}

/// A seed of its own: with the trial's seed, marks of both loads would be equal.
fn background_seed(trial: &Trial) -> u64 {
    let tag = |seed: u64| Trial { seed, ..trial.clone() }.tag();
    // TOML holds whole numbers below 2^63.
    let seed = trial.seed >> 2;
    if tag(seed) == trial.tag() { seed + 1 } else { seed }
}

fn read_lines(stdout: ChildStdout) -> Result<Receiver<String>, Stop> {
    let (said, lines) = channel();
    let reader = move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if said.send(line).is_err() {
                break;
            }
        }
    };
    std::thread::Builder::new()
        .name("weigh-background".to_owned())
        .spawn(reader)
        .map_err(|error| Stop::new(Exit::Internal, format!("no thread: {error}")))?;
    Ok(lines)
}

/// Output of a generator whose connections are open and whose first message was sent.
pub const UP: &str = "up";

/// Prefix of its final report.
pub const RAN: &str = "ran ";

/// Prefix of the reason why it does not run.
pub const FAILED: &str = "failed ";

/// Length of its intervals.
pub const INTERVAL: Nanos = Nanos::from_millis(100);

/// Longer than any trial: the background is stopped and never ends on its own.
const LASTING: Nanos = Nanos::from_secs(30 * 86_400);

/// Time limit to start: 1,000 connections with TLS take seconds.
const UP_WITHIN: Duration = Duration::from_secs(60);

/// Time limit of its generator to write its record, after the timeout of messages.
const END_WITHIN: Duration = Duration::from_secs(5);

/// Time limit for unconfirmed messages to reach its server.
const SETTLED_WITHIN: Duration = Duration::from_secs(1);

const LOOK_EVERY: Duration = Duration::from_millis(50);

const LOG_LINES: usize = 5;
