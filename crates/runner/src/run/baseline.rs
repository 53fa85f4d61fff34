//! Baselines: the rate of each kind of load that this machine and this build reach against the
//! built-in server, measured briefly before a run, so that results close to them are marked. A
//! baseline is kept for the machine and the build, so the next run need not measure it. It is
//! measured again if other programs disturbed it, or if a trial exceeds it.

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use weigh_engine::generator::{Generator, TrialObserver};
use weigh_engine::job::{Failure, Job, Progress};
use weigh_engine::rendezvous::one_process::OneProcess;
use weigh_engine::serving::Serving;
use weigh_model::calibration::Calibration;
use weigh_model::event::TrialFinished;
use weigh_model::units::Bytes;
use weigh_model::{Arrival, Endpoint, Load, Nanos, Pattern, Trial, Warning};
use weigh_model::{tls, websocket};
use weigh_observe::cpu::{HostCpu, monotonic_ns, own_process_ns};
use weigh_report::journal::rfc3339;
use weigh_testbed::cache;
use weigh_testbed::pinning::Pinning;

use crate::case::Case;
use crate::case::grpc;
use crate::case::lanes::{Against, Lane};
use crate::case::material::{Shelf, composer};
use crate::exit::{Exit, Stop};
use crate::interrupts::Interrupts;

/// Setup to measure baselines.
pub struct Bench<'b> {
    /// Cores of server and generator.
    pub pinning: &'b Pinning,
    /// Threads of the generator and of the server.
    pub shards: u32,
    /// Signals that may end it early.
    pub interrupts: &'b Interrupts,
}

/// A kind of load: the properties that decide what rate a generator can reach.
#[derive(Clone)]
pub struct Kind {
    lane: Lane,
    pattern: Pattern,
}

impl Kind {
    /// The kind of a case; `None` if connections are idle, encrypted or WebSockets, if consumers
    /// poll by their own schedule, or if messages are sent in batches.
    pub fn of(case: &Case) -> Option<Kind> {
        Kind::new(&case.lane, case.load.pattern)
    }

    /// The kind that compares hosts with each other: requests over TCP without a protocol that
    /// costs more.
    pub fn of_hosts() -> Option<Kind> {
        let protocol = weigh_protocols::find("tcp").ok()?;
        Kind::plain(&Lane::new(protocol, Against::Reference, BTreeMap::new()).ok()?)
    }

    /// The kind of a lane with its protocol's own pattern.
    pub fn plain(lane: &Lane) -> Option<Kind> {
        Kind::new(lane, lane.patterns()[0])
    }

    fn new(lane: &Lane, pattern: Pattern) -> Option<Kind> {
        // The reference server does not have the settings of other targets.
        let mut given = lane.given.clone();
        grpc::without_other_services(lane.protocol, &mut given);
        let lane = Lane::new(lane.protocol, Against::Reference, given).ok()?;
        let has_layers = tls::is_on(&lane.settings) || websocket::is_on(&lane.settings);
        let is_apart = matches!(pattern, Pattern::Hold | Pattern::Poll | Pattern::Batch);
        (!has_layers && !is_apart).then_some(Kind { lane, pattern })
    }

    /// Its name in the record.
    pub fn name(&self) -> String {
        let mut name = self.lane.protocol.name().to_owned();
        for (key, value) in self.lane.shown() {
            name += &format!(" {key} {value}");
        }
        format!("{name} {}", self.pattern)
    }

    fn load(&self) -> Load {
        Load {
            subscribers: u32::from(self.pattern == Pattern::Deliver),
            duration: Some(DURATION),
            warmup: WARMUP,
            size: Some(Bytes(BODY_BYTES)),
            timeout: Nanos::from_secs(1),
            ..Load::closed(self.pattern, CONNECTIONS)
        }
    }
}

impl Bench<'_> {
    /// The baselines of these kinds, measured if they are unknown. Kinds that exceed the time
    /// limit, or that the built-in server does not support, are left out. With `afresh` all are
    /// measured, without a time limit.
    pub fn calibrate(&self, kinds: &[Kind], afresh: bool) -> Vec<Calibration> {
        let identity = Identity::ours(self.shards);
        let place = place();
        let mut known = Known::load(place.as_deref(), identity);
        if afresh {
            known.kinds.clear();
        }
        let began = Instant::now();
        let mut found: Vec<Calibration> = Vec::new();
        let mut is_new = false;
        for kind in kinds {
            let name = kind.name();
            if found.iter().any(|known| known.load == name) {
                continue;
            }
            let has_time = afresh || began.elapsed().as_nanos() < u128::from(TIME_MAX.0);
            let can_measure = has_time && self.interrupts.exit().is_none();
            let calibration = match known.kinds.get(&name) {
                Some(calibration) if !calibration.is_disturbed() => Some(calibration.clone()),
                disturbed if can_measure => self.measure(kind).or(disturbed.cloned()),
                disturbed => disturbed.cloned(),
            };
            if let Some(calibration) = calibration {
                let before = known.kinds.insert(name, calibration.clone());
                is_new |= before.as_ref() != Some(&calibration);
                found.push(calibration);
            }
        }
        if let (Some(place), true) = (place, is_new) {
            known.save(&place);
        }
        found
    }

    /// The baseline of a kind, from one attempt if it is unknown or was disturbed. `None` if it
    /// cannot be measured.
    pub fn glance(&self, kind: &Kind) -> Option<Calibration> {
        let place = place();
        let mut known = Known::load(place.as_deref(), Identity::ours(self.shards));
        if let Some(own) = known.kinds.get(&kind.name()).filter(|own| !own.is_disturbed()) {
            return Some(own.clone());
        }
        let found = self.attempt(kind)?;
        known.kinds.insert(kind.name(), found.clone());
        if let Some(place) = place {
            known.save(&place);
        }
        Some(found)
    }

    /// Measures a kind that a trial exceeded again, and keeps the higher rate.
    fn repeat(&self, kind: &Kind, passed: &Calibration) -> Calibration {
        let again = self.measure(kind);
        let calibration = again.filter(|again| again.per_s > passed.per_s);
        let calibration = calibration.unwrap_or_else(|| passed.clone());
        if let Some(place) = place() {
            let mut known = Known::load(Some(&place), Identity::ours(self.shards));
            known.kinds.insert(kind.name(), calibration.clone());
            known.save(&place);
        }
        calibration
    }

    /// Deletes a kind, so that the next run measures it.
    fn forget(&self, kind: &Kind) {
        let Some(place) = place() else { return };
        let mut known = Known::load(Some(&place), Identity::ours(self.shards));
        known.kinds.remove(&kind.name());
        known.save(&place);
    }

    /// The highest rate of a few attempts; the first undisturbed one is enough.
    fn measure(&self, kind: &Kind) -> Option<Calibration> {
        let mut best: Option<Calibration> = None;
        for _ in 0..ATTEMPTS {
            let Some(found) = self.attempt(kind) else { break };
            if best.as_ref().is_none_or(|best| found.per_s > best.per_s) {
                best = Some(found.clone());
            }
            if !found.is_disturbed() || self.interrupts.exit().is_some() {
                break;
            }
        }
        best
    }

    fn attempt(&self, kind: &Kind) -> Option<Calibration> {
        let before = (HostCpu::read().ok(), own_process_ns(), monotonic_ns());
        let metrics = self.weigh(kind).ok()?;
        let host = HostCpu::read().ok().zip(before.0).map(|(after, before)| after.since(&before));
        let own_ns = own_process_ns().saturating_sub(before.1);
        let wall_ns = monotonic_ns().saturating_sub(before.2).max(1);
        let foreign_ns = host.map_or(0, |host| host.used_ns(wall_ns).saturating_sub(own_ns));
        let metric = |name: &str| metrics.get(name).copied();
        Some(Calibration {
            load: kind.name(),
            connections: CONNECTIONS,
            per_s: metric("throughput_in_per_s").filter(|rate| *rate > 0.0)?,
            generator_us: metric("generator_cpu_us_per_message")?,
            library: kind.lane.protocol.library(&kind.lane.settings).map(str::to_owned),
            at: rfc3339(SystemTime::now()),
            foreign_cpu_percent: 100.0 * foreign_ns as f64 / wall_ns as f64,
        })
    }

    /// Runs server and generator as threads of this process: nothing that a run would not start
    /// anyway, and nothing remains.
    fn weigh(&self, kind: &Kind) -> Result<BTreeMap<String, f64>, Stop> {
        let Kind { lane, .. } = kind;
        let load = kind.load();
        let material = Shelf::default().fetch(&load, false)?;
        let serving = self.serve(lane)?;
        let mut endpoint = Endpoint::at(lane.protocol.scheme(), serving.address());
        endpoint.credentials = lane.credentials();
        let trial = Trial {
            id: "null-path".to_owned(),
            point: BTreeMap::new(),
            repetition: 0,
            seed: 1,
            protocol: lane.protocol.name().to_owned(),
            target: lane.against.name(),
            endpoint: Some(endpoint),
            load,
            settings: lane.settings.clone(),
        };
        let job = Arc::new(Job {
            dial: lane.protocol.dial(&trial)?,
            composer: composer(&trial, &material, 0)?.0,
            trial,
            address: serving.address(),
            object: None,
            consumers: None,
            sources: Vec::new(),
            trace: Vec::new(),
            shards: self.shards,
            every: DURATION,
            messages: None,
            is_metered: false,
            may_be_cut_off: false,
            rendezvous: Arc::new(OneProcess::new(self.shards)),
        });
        let observer: Arc<dyn TrialObserver> = Arc::new(Pinned(self.pinning.clone()));
        let internal = |failure: Failure| Stop::new(Exit::Internal, failure);
        let generator =
            Generator::start(Arc::clone(&job), 0..job.shards, Instant::now(), &observer)
                .map_err(internal)?;
        self.interrupts.arm(generator.stopper());
        let outcome = generator.finish();
        self.interrupts.disarm();
        Ok(outcome.map_err(internal)?.metrics(job.load()))
    }

    /// The built-in server, on the target's cores, which its threads inherit.
    fn serve(&self, lane: &Lane) -> Result<Serving, Stop> {
        let host = lane.protocol.host(&lane.settings)?;
        let on = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let shards = u16::try_from(self.shards).unwrap_or(u16::MAX);
        let start = || {
            let _ = self.pinning.target.pin_this_thread();
            Serving::start(&host, on, shards)
        };
        let started = std::thread::scope(|scope| scope.spawn(start).join());
        started
            .map_err(|_| Stop::new(Exit::Internal, "the server's thread panicked"))?
            .map_err(|error| Stop::new(Exit::Internal, error))
    }
}

/// Puts the generator's threads on the cores that a run gives them.
struct Pinned(Pinning);

impl TrialObserver for Pinned {
    fn thread_started(&self, shard: u32) {
        let _ = self.0.generator_core(shard as usize).pin_this_thread();
    }

    fn progress(&self, _shard: u32, _progress: Progress) {}
}

/// The baselines that a run knows.
#[derive(Debug, Default)]
pub struct Baselines(Mutex<Vec<Baseline>>);

#[derive(Debug)]
struct Baseline {
    calibration: Calibration,
    /// True once it was measured again in this run.
    is_repeated: bool,
}

impl Baselines {
    /// Baselines measured or known before the run.
    pub fn new(calibrations: Vec<Calibration>) -> Baselines {
        let of = |calibration| Baseline { calibration, is_repeated: false };
        Baselines(Mutex::new(calibrations.into_iter().map(of).collect()))
    }

    /// The calibrations for the record.
    pub fn calibrations(&self) -> Vec<Calibration> {
        let Ok(known) = self.0.lock() else { return Vec::new() };
        known.iter().map(|own| own.calibration.clone()).collect()
    }

    /// Marks a result that is close to its baseline. If the trial exceeds the baseline, it is
    /// measured again, once in a run, and returned. If the trial exceeds even that by far, the
    /// baseline does not apply to this load. A closed loop against the built-in server is the
    /// baseline itself.
    pub fn mark(
        &self,
        case: &Case,
        finished: &mut TrialFinished,
        bench: &Bench<'_>,
    ) -> Option<Calibration> {
        let is_baseline = matches!(case.lane.against, Against::Reference)
            && matches!(case.load.arrival, Arrival::Closed | Arrival::Ramp(_));
        // A burst fills its writes as no closed loop does, and exceeds the baseline.
        let is_other = case.load.arrival == Arrival::Burst;
        let kind = Kind::of(case).filter(|_| !is_baseline && !is_other)?;
        let metric = |name: &str| finished.metrics.get(name).copied();
        let taken_in = metric("throughput_in_per_s")?;
        // A send rate above the delivery rate only fills queues; the delivery rate counts.
        let out = metric("throughput_out_per_s").map(|out| out / case.load.copies() as f64);
        let per_s = taken_in.min(out.unwrap_or(f64::INFINITY));
        let warnings = &mut finished.warnings;
        let (repeated, warning) =
            self.hold(&kind.name(), per_s, |passed| bench.repeat(&kind, passed))?;
        if warning.is_none() && repeated.is_some() {
            bench.forget(&kind);
        }
        warnings.extend(warning.map(|warning| warning.record()));
        repeated
    }

    /// Compares a rate with the baseline of its kind; returns a repeated measurement, and a
    /// warning. `None` if the kind has no baseline.
    fn hold(
        &self,
        name: &str,
        per_s: f64,
        repeat: impl FnOnce(&Calibration) -> Calibration,
    ) -> Option<(Option<Calibration>, Option<Warning>)> {
        let mut known = self.0.lock().ok()?;
        let own = known.iter_mut().find(|known| known.calibration.load == name)?;
        let mut repeated = None;
        if per_s > own.calibration.per_s && !own.is_repeated {
            own.is_repeated = true;
            own.calibration = repeat(&own.calibration);
            repeated = Some(own.calibration.clone());
        }
        let percent = own.calibration.percent(per_s);
        let is_near = (NEAR_PERCENT..PASSED_PERCENT).contains(&percent);
        let warning = is_near.then_some(Warning::NearBaseline(per_s, own.calibration.per_s));
        Some((repeated, warning))
    }
}

/// The machine and the build of a calibration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    cpu: String,
    cores: u32,
    kernel: String,
    build: String,
    shards: u32,
}

impl Identity {
    fn ours(shards: u32) -> Identity {
        let host = weigh_observe::host::facts();
        let (cpu, cores, kernel) = (host.cpu, host.cores, host.kernel);
        Identity { cpu, cores, kernel, build: build(), shards }
    }
}

/// Identifies this build: version, size and date of the program.
fn build() -> String {
    let program = std::env::current_exe().and_then(fs::metadata);
    let modified = program.as_ref().ok().and_then(|program| program.modified().ok());
    let since = modified.and_then(|at| at.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    let bytes = program.map(|program| program.len()).unwrap_or_default();
    format!("{} {bytes} {}", env!("CARGO_PKG_VERSION"), since.as_nanos())
}

/// The calibrations of a machine and a build.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Known {
    identity: Identity,
    kinds: BTreeMap<String, Calibration>,
}

impl Known {
    /// Loads the calibrations of `identity`; empty if there are only others.
    fn load(place: Option<&Path>, identity: Identity) -> Known {
        let of_all = place.map(Known::of_all).unwrap_or_default();
        of_all
            .into_iter()
            .find(|known| known.identity == identity)
            .unwrap_or(Known { identity, kinds: BTreeMap::new() })
    }

    /// Loads those of all builds; empty if the file cannot be parsed.
    fn of_all(place: &Path) -> Vec<Known> {
        let text = fs::read_to_string(place).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Saves them; on failure the next run measures again.
    fn save(&self, place: &Path) {
        // Most recently used first, so that builds that alternate keep their baselines.
        let others = Known::of_all(place).into_iter().filter(|own| own.identity != self.identity);
        let all: Vec<Known> =
            std::iter::once(self.clone()).chain(others).take(BUILDS_KEPT).collect();
        let (Some(folder), Ok(text)) = (place.parent(), serde_json::to_string_pretty(&all)) else {
            return;
        };
        let own = folder.join(format!(".null-path.{}", std::process::id()));
        // Two runs may write at once: each has its own file, and the last one stays.
        let is_written = fs::create_dir_all(folder).is_ok() && fs::write(&own, text).is_ok();
        if !is_written || fs::rename(&own, place).is_err() {
            let _ = fs::remove_file(own);
        }
    }
}

/// The file in the user's cache.
fn place() -> Option<PathBuf> {
    Some(cache::folder()?.join("null-path.json"))
}

/// Enough that neither end waits for the other, and few enough to open at once.
const CONNECTIONS: u32 = 64;
const BODY_BYTES: u64 = 64;
/// Some 10,000 messages even if each takes 15 µs.
const DURATION: Nanos = Nanos::from_millis(150);
const WARMUP: Nanos = Nanos::from_millis(30);
/// No further kind is started after this time, to keep the delay of a run short.
const TIME_MAX: Nanos = Nanos::from_millis(1_500);
/// Number of builds whose calibrations are kept.
const BUILDS_KEPT: usize = 8;
/// Percent of the baseline from which on the generator may have been the limit.
const NEAR_PERCENT: f64 = 80.0;
/// Percent of the baseline above which it does not apply to the load.
const PASSED_PERCENT: f64 = 125.0;
/// Attempts for a kind that other programs disturb.
const ATTEMPTS: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn calibration(load: &str, per_s: f64) -> Calibration {
        let at = "2026-01-02T03:04:05Z".to_owned();
        let (load, connections) = (load.to_owned(), CONNECTIONS);
        let (library, foreign_cpu_percent) = (None, 0.0);
        Calibration {
            load,
            connections,
            per_s,
            generator_us: 5.0,
            library,
            at,
            foreign_cpu_percent,
        }
    }

    #[test]
    fn what_another_build_or_machine_reached_counts_for_nothing() {
        let folder = std::env::temp_dir().join(format!("weigh-known-{}", std::process::id()));
        let place = folder.join("cache/null-path.json");
        let ours = Identity::ours(1);
        let mut known = Known { identity: ours.clone(), kinds: BTreeMap::new() };
        known.kinds.insert("tcp request".to_owned(), calibration("tcp request", 1000.0));
        known.save(&place);
        assert_eq!(Known::load(Some(&place), ours.clone()).kinds, known.kinds);
        for other in [
            Identity { build: "0.0.1 1 1".to_owned(), ..ours.clone() },
            Identity { cpu: "another".to_owned(), ..ours.clone() },
            Identity { shards: 2, ..ours.clone() },
        ] {
            assert!(Known::load(Some(&place), other).kinds.is_empty());
        }
        let another = Identity { build: "0.0.1 1 1".to_owned(), ..ours.clone() };
        Known { identity: another.clone(), kinds: known.kinds.clone() }.save(&place);
        assert_eq!(Known::load(Some(&place), ours.clone()).kinds, known.kinds);
        assert_eq!(Known::load(Some(&place), another).kinds, known.kinds);
        fs::write(&place, "torn").unwrap();
        assert!(Known::load(Some(&place), ours.clone()).kinds.is_empty());
        assert!(Known::load(None, ours).kinds.is_empty());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_calibration_is_told_with_its_day() {
        assert_eq!(
            calibration("mqtt qos 1 publish", 151_000.4).words(),
            "baseline of this machine, to see when the generator is the limit: 151,000/s to \
             the built-in server (mqtt qos 1 publish, one message in flight on each of 64 \
             connections, 5.00 µs of the generator's CPU time per message; measured 2026-01-02)"
        );
        let by_library = Calibration {
            library: Some("hyper 1".to_owned()),
            ..calibration("http2 request", 9.0)
        };
        assert!(by_library.words().ends_with("message; by hyper 1, measured 2026-01-02)"));
        let disturbed =
            Calibration { foreign_cpu_percent: 40.0, ..calibration("tcp request", 9.0) };
        assert!(disturbed.is_disturbed() && disturbed.words().contains("40 % of a core"));
    }

    /// A baseline of 94,221/s from a busy moment, and a trial of 198,436/s.
    #[test]
    fn a_baseline_that_a_trial_exceeds_is_measured_again_and_is_not_a_maximum() {
        let known = || Baselines::new(vec![calibration("tcp request", 94_221.0)]);
        let to = |per_s: f64| move |_: &Calibration| calibration("tcp request", per_s);
        let never = |_: &Calibration| -> Calibration { panic!("it was not passed") };
        let near = Some(Warning::NearBaseline(80_000.0, 94_221.0));
        assert_eq!(known().hold("tcp request", 80_000.0, never), Some((None, near)));
        assert_eq!(known().hold("tcp request", 50_000.0, never), Some((None, None)));
        assert_eq!(known().hold("mqtt publish", 50_000.0, never), None);
        let paths = known();
        let (again, warning) = paths.hold("tcp request", 198_436.0, to(210_000.0)).unwrap();
        assert_eq!(again.unwrap().per_s, 210_000.0);
        assert_eq!(warning, Some(Warning::NearBaseline(198_436.0, 210_000.0)));
        assert_eq!(paths.calibrations()[0].per_s, 210_000.0);
        let (again, warning) = paths.hold("tcp request", 211_000.0, never).unwrap();
        assert!(again.is_none() && warning.is_some(), "once in a run is enough");
        let (again, warning) = known().hold("tcp request", 2_958_359.0, to(110_000.0)).unwrap();
        assert!(again.is_some() && warning.is_none(), "it does not bound this load");
    }
}
