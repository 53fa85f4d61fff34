//! One trial from beginning to end: the target is started and watched, the load is made, the
//! record is put together.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use weigh_engine::generator::{Attendant, Generator};
use weigh_engine::job::{Failure, Job, Progress, Shared, interval_length};
use weigh_engine::message_log::MessageLog;
use weigh_engine::outcome::{Outcome, SILENCE};
use weigh_model::event::{Interval, TrialFinished};
use weigh_model::ledger::Cause;
use weigh_model::protocol::Invalid;
use weigh_model::{Doubt, Endpoint, Load, Nanos, Pattern, Trial};
use weigh_observe::cpu::monotonic_ns;
use weigh_observe::sampler::{Recording, Sampler, Usage};
use weigh_report::RecordError;
use weigh_stage::pinning::Pinning;

use crate::exit::{Exit, Stop};
use crate::planning::lanes::{Against, Lane};
use crate::planning::material::{Material, composer};
use crate::run::interrupts::Interrupts;
use crate::run::kept::{Lease, Targets};
use crate::run::messages::{MessageRecording, Recorded};
use crate::run::record;
use crate::run::target::Running;

/// What a trial needs from its surroundings.
pub struct Surroundings<'s> {
    /// Who runs where.
    pub pinning: &'s Pinning,
    /// Shards of the generator.
    pub shards: u32,
    /// How long the plan wants the intervals of the time series to be.
    pub every: Option<Nanos>,
    /// Signals that may end it early.
    pub interrupts: &'s Interrupts,
    /// Who hears how it goes.
    pub progress: Sender<(u32, Progress)>,
    /// The file that keeps every single message, where that is asked for.
    pub messages: Option<PathBuf>,
}

/// What a trial came to.
pub struct Weighed {
    /// Its result.
    pub finished: TrialFinished,
    /// What was seen of the target while it ran; unknown for a server that somebody else runs.
    pub watched: Option<Watched>,
    /// Why its single messages could not be kept.
    pub unwritten: Option<RecordError>,
}

/// What was seen of a target while a trial ran.
pub struct Watched {
    recording: Recording,
    /// What its clock showed when the trial's stood at 0.
    epoch_ns: u64,
    /// What resident memory exceeded proportional memory by: frequent samples know only the
    /// former, and a report that shows both must not contradict itself.
    shared_bytes: u64,
}

impl Watched {
    fn new(recording: Recording, epoch_ns: u64) -> Watched {
        let known = recording.samples.iter().filter(|sample| sample.memory.pss_bytes.is_some());
        let shared = known.map(|s| s.memory.rss_bytes.saturating_sub(s.memory.bytes())).min();
        Watched { shared_bytes: shared.unwrap_or(0), recording, epoch_ns }
    }

    /// Puts the target's load and memory into an interval.
    pub fn tell(&self, interval: &mut Interval) {
        let to = self.epoch_ns + interval.at_ns;
        let from = to.saturating_sub(interval.length_ns.unwrap_or(0));
        if let Some(usage) = self.recording.window(from, to) {
            interval.target_cpu_percent = Some(usage.percent_mean);
            let bytes = usage.rss_bytes_max.saturating_sub(self.shared_bytes);
            interval.target_memory_bytes = (usage.rss_bytes_max > 0).then_some(bytes);
        }
    }
}

/// Checks what can be checked of a trial without starting anything.
pub fn check(lane: &Lane, trial: &Trial, material: &Material, shards: u32) -> Result<(), Stop> {
    let is_marked = composer(trial, material, 0)?.is_marked();
    if !is_marked && shards > 1 && trial.load.pattern == Pattern::Deliver {
        return Err(Stop::usage(format!(
            "--shards {shards}: bodies too small for a mark are told apart by connection and \
             order, which one thread must see; type --shards 1 or -s 64B"
        )));
    }
    Ok(check_protocol(lane, trial)?)
}

/// Asks the protocol whether it can do the trial.
pub fn check_protocol(lane: &Lane, trial: &Trial) -> Result<(), Invalid> {
    let mut trial = trial.clone();
    let unspecified = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    trial.endpoint = Some(match &lane.against {
        Against::Foreign(endpoint) => endpoint.clone(),
        _ => Endpoint::at(lane.protocol.scheme(), unspecified),
    });
    lane.protocol.dial(&trial)?;
    if matches!(lane.against, Against::Reference) {
        lane.protocol.host(&lane.settings)?;
    }
    Ok(())
}

/// Runs one trial on a target that `targets` starts or has kept.
pub fn run(
    lane: &Lane,
    mut trial: Trial,
    material: &Material,
    around: &Surroundings<'_>,
    targets: &mut Targets<'_>,
) -> Result<Weighed, Stop> {
    let mut lease = targets.lease(lane, &trial.id)?;
    let result = locate(lane, &lease).and_then(|endpoint| {
        trial.endpoint = Some(endpoint);
        measure(lane, &trial, material, around, &mut lease.running)
    });
    let (measured, watched, recorded) = match result {
        Ok(result) => result,
        Err(stop) => {
            targets.give_back(lease, None);
            return Err(stop);
        }
    };
    let is_urgent = around.interrupts.are_urgent();
    let (mut finished, counted) =
        record::put_together(lane, &trial, measured, &mut lease, is_urgent);
    let Recorded { doubts, unwritten, .. } = recorded;
    finished.doubts.extend(doubts.iter().map(Doubt::record));
    targets.give_back(lease, counted);
    Ok(Weighed { finished, watched, unwritten })
}

/// Where the target listens, and who we are to it.
fn locate(lane: &Lane, lease: &Lease) -> Result<Endpoint, Stop> {
    let mut endpoint = lease.running.endpoint().clone();
    endpoint.address = Some(resolve(&endpoint)?);
    endpoint.credentials = lane.credentials();
    Ok(endpoint)
}

/// What was measured, before it is put together.
pub struct Measured {
    /// What the generator recorded.
    pub outcome: Outcome,
    /// What was seen beside it.
    pub seen: Seen,
}

/// What was seen beside the generator's own record.
pub struct Seen {
    /// What the target used; unknown for a server that somebody else runs.
    pub usage: Option<Usage>,
    /// True if the protocol confirms messages.
    pub confirms: bool,
    /// True if generator and target shared cores.
    pub shared_cores: bool,
    /// How much the generator's memory grew, to the end of the window.
    pub generator_bytes: Option<u64>,
    /// Memory of the target before the first connection and at the end of the window.
    pub target_bytes: Option<(u64, u64)>,
    /// Processor time of the thread that keeps single messages.
    pub messages_cpu_ns: u64,
}

fn measure(
    lane: &Lane,
    trial: &Trial,
    material: &Material,
    around: &Surroundings<'_>,
    target: &mut Running,
) -> Result<(Measured, Option<Watched>, Recorded), Stop> {
    let epoch = Instant::now();
    let epoch_monotonic_ns = monotonic_ns();
    let unix_ns = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let composer = composer(trial, material, unix_ns as u64)?;
    let dial = lane.protocol.dial(trial)?;
    let confirms = dial.confirms;
    let address = trial.endpoint.as_ref().and_then(|endpoint| endpoint.address);
    let address = address.ok_or_else(|| Stop::new(Exit::Internal, "no address"))?;
    let cores = around.pinning.target.count();
    let every = sample_every(&trial.load);
    let sampler = target.pid().map(|pid| Sampler::start(pid, cores, every));
    let sampler = sampler.and_then(Result::ok);
    let before = sampler.as_ref().and_then(|sampler| sampler.sample().ok());
    let own_before = own_resident_bytes();
    let (log, heard) = around.messages.as_ref().map(|_| MessageLog::new()).unzip();
    let job = Arc::new(Job {
        sources: sources(trial, address),
        trial: trial.clone(),
        dial,
        composer,
        address,
        trace: material.trace.clone(),
        shards: around.shards,
        every: told_every(interval(&trial.load, around.every)),
        messages: log,
        shared: Shared::default(),
    });
    let start = |(path, heard)| MessageRecording::start(path, unix_ns as u64, &job, heard);
    let messages = around.messages.as_deref().zip(heard).map(start).transpose()?;
    let watch = Arc::new(Watch {
        pinning: around.pinning.clone(),
        progress: Mutex::new(around.progress.clone()),
        sampler: Mutex::new(sampler),
        window: Mutex::new((Nanos(0), Nanos(0), None, None)),
    });
    let attendant: Arc<dyn Attendant> = Arc::clone(&watch) as Arc<dyn Attendant>;
    let outcome = Generator::start(Arc::clone(&job), epoch, &attendant).and_then(|generator| {
        around.interrupts.arm(generator.stopper());
        let outcome = generator.finish();
        around.interrupts.disarm();
        outcome
    });
    let accounts = outcome.as_ref().ok().map(|outcome| &outcome.accounts);
    let recorded = messages.map(|messages| messages.finish(accounts)).unwrap_or_default();
    let outcome = outcome.map_err(failure)?;
    if target.ended().is_none() {
        check_answered(&outcome, &job).map_err(failure)?;
    }
    let (from, to, at_end, own_end) = watch.window.lock().map(|window| *window).unwrap_or_default();
    let recording = watch.sampler.lock().ok().and_then(|mut sampler| sampler.take());
    let recording = recording.and_then(|sampler| sampler.stop().ok());
    let usage = recording
        .as_ref()
        .and_then(|recording| usage(recording, &outcome, trial, epoch_monotonic_ns, (from, to)));
    let target_bytes = before.zip(at_end).map(|(before, end)| (before.memory.bytes(), end));
    let generator_bytes = own_before.zip(own_end).map(|(before, end)| end.saturating_sub(before));
    let shared_cores = around.pinning.shared;
    let messages_cpu_ns = recorded.cpu_ns;
    let seen =
        Seen { usage, confirms, shared_cores, generator_bytes, target_bytes, messages_cpu_ns };
    let watched = recording.map(|recording| Watched::new(recording, epoch_monotonic_ns));
    Ok((Measured { outcome, seen }, watched, recorded))
}

/// What is done in the generator's threads at the borders of the window.
struct Watch {
    pinning: Pinning,
    progress: Mutex<Sender<(u32, Progress)>>,
    sampler: Mutex<Option<Sampler>>,
    window: Mutex<Window>,
}

/// Begin and end of the window on the trial's clock, and the memory of target and generator in
/// bytes at its end.
type Window = (Nanos, Nanos, Option<u64>, Option<u64>);

impl Attendant for Watch {
    fn thread_started(&self, shard: u32) {
        // An affinity that cannot be set leaves the thread where the scheduler puts it.
        let _ = self.pinning.generator_core(shard as usize).pin_this_thread();
    }

    fn window_began(&self, now: Nanos) {
        self.sample();
        if let Ok(mut window) = self.window.lock() {
            window.0 = now;
        }
    }

    fn window_ended(&self, now: Nanos) {
        let memory = self.sample();
        let own = own_resident_bytes();
        if let Ok(mut window) = self.window.lock() {
            (window.1, window.2, window.3) = (now, memory, own);
        }
    }

    fn progress(&self, shard: u32, progress: Progress) {
        if let Ok(sender) = self.progress.lock() {
            let _ = sender.send((shard, progress));
        }
    }
}

impl Watch {
    fn sample(&self) -> Option<u64> {
        let sampler = self.sampler.lock().ok()?;
        sampler.as_ref()?.sample().ok().map(|sample| sample.memory.bytes())
    }
}

/// What the target used: processor time over the whole window, draining included, and load over
/// the part in which there was something to do.
fn usage(
    recording: &Recording,
    outcome: &Outcome,
    trial: &Trial,
    epoch_ns: u64,
    (from, to): (Nanos, Nanos),
) -> Option<Usage> {
    let whole = recording.window(epoch_ns + from.0, epoch_ns + to.0)?;
    let busy_until = match (trial.load.duration, outcome.recorder.last_done) {
        (Some(duration), Some(last)) => last.max(outcome.measure_from + duration).min(to),
        (None, Some(last)) => last,
        _ => to,
    };
    let active = recording.window(epoch_ns + from.0, epoch_ns + busy_until.0);
    let (percent_mean, percent_max) =
        active.map_or((whole.percent_mean, whole.percent_max), |a| (a.percent_mean, a.percent_max));
    Some(Usage { percent_mean, percent_max, ..whole })
}

fn resolve(endpoint: &Endpoint) -> Result<SocketAddr, Stop> {
    if let Some(address) = endpoint.address {
        return Ok(address);
    }
    let found = (endpoint.host.as_str(), endpoint.port).to_socket_addrs().map_err(|error| {
        Stop::new(
            Exit::Target,
            format!("{endpoint}: the host {} is unknown: {error}; check its name", endpoint.host),
        )
    })?;
    let mut found: Vec<SocketAddr> = found.collect();
    found.sort_by_key(|address| address.is_ipv6());
    found
        .first()
        .copied()
        .ok_or_else(|| Stop::new(Exit::Target, format!("{endpoint}: the host has no address")))
}

/// Local addresses to connect from: on loopback several, where one address has too few ports
/// for the connections of the trial or where every message takes a new one.
fn sources(trial: &Trial, address: SocketAddr) -> Vec<IpAddr> {
    let load = &trial.load;
    let IpAddr::V4(to) = address.ip() else { return Vec::new() };
    let many = load.connections + load.subscribers > PORTS_OF_ONE_SOURCE;
    let renewed = load.pattern == Pattern::Session || !trial.settings.text("keep_alive").eq("true");
    let needs_more =
        many || (trial.protocol == "http1" && renewed) || load.pattern == Pattern::Session;
    if !to.is_loopback() || !needs_more {
        return Vec::new();
    }
    (1..=SOURCES).map(|last| IpAddr::V4(Ipv4Addr::new(127, 0, 0, last))).collect()
}

fn own_resident_bytes() -> Option<u64> {
    Some(weigh_observe::memory::resident([std::process::id()]).bytes())
}

fn failure(failure: Failure) -> Stop {
    let (exit, mend) = match failure {
        Failure::Unreachable { .. } => (Exit::Target, "; start the server, or check host and port"),
        Failure::Session { .. } => {
            (Exit::Target, "; check protocol, port and credentials (--user NAME, WEIGH_PASSWORD)")
        }
        Failure::Ourselves(_) => (Exit::Internal, ""),
    };
    Stop::new(exit, format!("{failure}{mend}"))
}

/// A server that took messages which it should have answered, and never said anything that the
/// protocol knows, was never ready. (Where sessions have a greeting, this was noticed there.)
fn check_answered(outcome: &Outcome, job: &Job) -> Result<(), Failure> {
    let ledger = &outcome.ledger;
    let errors = ledger.causes.get(&Cause::ErrorAnswer).copied().unwrap_or(0);
    let answers = ledger.acknowledged + errors + ledger.delivered.unwrap_or(0) + ledger.late;
    let is_asked = job.dial.confirms && job.load().pattern != Pattern::Hold;
    if !is_asked || answers > 0 || outcome.was_interrupted || ledger.scheduled == 0 {
        return Ok(());
    }
    let reason = outcome.first_loss.clone().unwrap_or_default();
    // Whoever greets and then is silent, and keeps the connection, was ready.
    let was_shut = !reason.is_empty() && reason != SILENCE;
    if outcome.bytes.1 > 0 && !was_shut {
        return Ok(());
    }
    let spoken = &job.trial.protocol;
    let reason = match reason.as_str() {
        "" => format!("took {} {spoken} messages and never answered", ledger.sent),
        _ => format!("never answered {spoken}: {reason}"),
    };
    Err(Failure::Session { address: job.address, reason })
}

/// How long an interval of the time series is: as the plan wants it, at least [`INTERVAL_MIN`], or
/// fitted to the length of the trial. Where that makes too many intervals, neighbours are joined.
pub fn interval(load: &Load, wanted: Option<Nanos>) -> Nanos {
    wanted.map_or_else(|| interval_length(load), |wanted| wanted.max(INTERVAL_MIN))
}

/// How often shards tell of themselves: a whole number of times in each interval of a report, and
/// every second for somebody who watches.
pub fn told_every(interval: Nanos) -> Nanos {
    Nanos(interval.0 / interval.0.div_ceil(1_000_000_000).max(1))
}

/// How often the target is looked at: every 50 ms, in trials longer than half an hour so seldom
/// that there are no more than 36,000 samples.
fn sample_every(load: &Load) -> Duration {
    let whole = load.duration.unwrap_or_default() + load.warmup;
    SAMPLE_EVERY.max(Duration::from_nanos(whole.0 / SAMPLES_MAX))
}

/// Of usual loads a shorter interval holds too few messages to have a quantile.
const INTERVAL_MIN: Nanos = Nanos::from_millis(10);

const SAMPLE_EVERY: Duration = Duration::from_millis(50);

/// Samples of a trial of known length: 130 bytes each, 5 MB.
const SAMPLES_MAX: u64 = 36_000;

/// Connections from one local address that find a free port quickly: the search grows slow once
/// half of the default range of 28,232 is taken.
const PORTS_OF_ONE_SOURCE: u32 = 10_000;

/// Local addresses of loopback to connect from where one is not enough.
const SOURCES: u8 = 16;

/// As many as the doctor may reckon with.
pub const SOURCES_MAX: u32 = SOURCES as u32;
