//! One trial from start to end: the target is started and observed, the load is made, the record is
//! assembled. Observations come from a list of probes, called phase by phase.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

use weigh_engine::generator::TrialObserver;
use weigh_engine::job::{Failure, Job, Progress};
use weigh_engine::object::ObjectFile;
use weigh_engine::outcome::Outcome;
use weigh_engine::pace;
use weigh_engine::record::{self, Observations};
use weigh_engine::rendezvous::one_process::OneProcess;
use weigh_model::event::{Event, TrialFinished};
use weigh_model::headroom::Observed;
use weigh_model::{Arrival, Endpoint, Nanos, Topology, Trial, Warning};
use weigh_report::RecordError;
use weigh_testbed::link::urgency;
use weigh_testbed::pinning::Pinning;

use crate::case::lanes::Lane;
use crate::case::material::{self, Material, composer};
use crate::exit::{Exit, Stop};
use crate::fleet::work::{Generated, Work};
use crate::probe::{Edge, Entry, Phase, Probes};
use crate::probes::PROBES;
use crate::targets::addresses::{resolve, sources};
use crate::targets::hosts;
use crate::targets::pool::{Counted, Lease, Targets};
use crate::trial::context::{Client, Clock, Findings, TrialContext, TrialOptions, Window};
use crate::trial::generate::LoadPlace;
use crate::trial::news::TrialNews;
use crate::trial::series::reported_every;
use crate::trial::unanswered::{check_answered, failure, unreached};

/// Results of a trial.
pub struct Weighed {
    /// Its result.
    pub finished: TrialFinished,
    /// Events of its probes: its connections, one session packet by packet, TCP figures of the path
    /// over time, its background, its energy.
    pub told: Vec<Event>,
    /// Reason for which its single messages could not be recorded.
    pub unwritten: Option<RecordError>,
    /// Use of resources that can run out, at the end of the window.
    pub observed: Observed,
    /// The trial's time 0 on the monotonic clock, nanoseconds.
    pub epoch_ns: u64,
}

/// Runs one trial on a target that `targets` starts or has kept, with all probes.
///
/// # Errors
/// A trial that could not run, or has no result.
pub fn run(
    lane: &Lane,
    trial: Trial,
    material: &Material,
    options: &TrialOptions<'_>,
    targets: &mut Targets,
) -> Result<Weighed, Stop> {
    run_with(PROBES, lane, trial, material, options, targets)
}

/// Runs one trial with the probes of a list.
///
/// # Errors
/// A trial that could not run, or has no result.
pub fn run_with(
    entries: &[Entry],
    lane: &Lane,
    mut trial: Trial,
    material: &Material,
    options: &TrialOptions<'_>,
    targets: &mut Targets,
) -> Result<Weighed, Stop> {
    let cores = &options.pinning.target;
    let mut lease = targets.lease(lane, &options.stage, cores, &trial.id)?;
    let probes = Probes::of(entries);
    let weighed = locate(lane, &lease).and_then(|endpoint| {
        trial.endpoint = Some(endpoint);
        let context = context(lane, &trial, options, targets, &mut lease)?;
        weigh(context, material, &probes)
    });
    // After a failure, probes end before the target.
    drop(probes);
    let (weighed, counted) = match weighed {
        Ok((weighed, counted)) => (Ok(weighed), counted),
        Err(stop) => (Err(stop), None),
    };
    targets.give_back(lease, counted);
    weighed
}

/// Address of the target, and credentials of the clients.
fn locate(lane: &Lane, lease: &Lease) -> Result<Endpoint, Stop> {
    let mut endpoint = lease.target.running.endpoint().clone();
    endpoint.address = match &lease.target.relay {
        // The host that clients name stays the same; the relay only forwards.
        Some(relay) => Some(relay.address()),
        None => Some(resolve(&endpoint)?),
    };
    endpoint.credentials = lane.credentials().or(endpoint.credentials);
    Ok(endpoint)
}

fn context<'t>(
    lane: &'t Lane,
    trial: &'t Trial,
    options: &'t TrialOptions<'t>,
    targets: &'t mut Targets,
    lease: &'t mut Lease,
) -> Result<TrialContext<'t>, Stop> {
    let client = Client::of(lane, trial)?;
    let mut observed = Observations::unwatched(lane.protocol.guarantee(&lane.settings), "");
    observed.durability = Some(lane.durability(targets.catalogue()));
    observed.carries = lane.protocol.carries(&lane.settings);
    observed.shared_cores = match options.fleet {
        // Agents on the target's machine run on any of its cores.
        Some(part) => !lane.is_foreign() && part.hosts.are_on_this_machine(),
        None => options.pinning.shared,
    };
    observed.asked_terms = lane.protocol.asks(&lane.settings);
    let window = trial.load.window.map(|window| ("receive_maximum", u64::from(window)));
    observed.asked_terms.extend(window);
    Ok(TrialContext {
        lane,
        trial,
        options,
        targets,
        lease,
        clock: Clock::start(),
        client,
        window: Window::default(),
        observed,
        found: Findings::default(),
    })
}

/// Runs the trial phase by phase; returns its target's counts since its start too.
fn weigh(
    mut trial: TrialContext<'_>,
    material: &Material,
    probes: &Arc<Probes>,
) -> Result<(Weighed, Option<Counted>), Stop> {
    probes.try_each(Phase::Prepare, |probe| probe.prepare(&mut trial))?;
    trial.clock = Clock::start();
    let (composer, sealer) = composer(trial.trial, material, trial.clock.unix_ns)?;
    (trial.client.composer, trial.client.sealer) = (Some(composer), sealer);
    let object = material::object(trial.load())?;
    probes.try_each(Phase::Begin, |probe| probe.begin(&mut trial))?;
    let job = Arc::new(job(&mut trial, material, object)?);
    let watch = Arc::new(Watch::new(&trial, probes));
    let generated = generate(&job, &trial, material, &watch);
    trial.window = watch.window.lock().map(|window| *window).unwrap_or_default();
    let mut outcome = generated.map(|Generated { outcome, hosts }| {
        trial.found.hosts = hosts;
        outcome
    });
    probes.each(Phase::End, |probe| probe.end(&mut trial, outcome.as_mut().ok()));
    let is_of_fleet = trial.options.fleet.is_some();
    let running = &mut trial.lease.target.running;
    let mut outcome = outcome.map_err(|error| {
        let hindrance = trial.found.hindrance.as_deref();
        running.died(trial.lane).unwrap_or_else(|| match error {
            Failure::Ourselves(text) if is_of_fleet => Stop::new(Exit::Generator, text),
            error => unreached(error, trial.lane, hindrance),
        })
    })?;
    if running.ended().is_none() {
        check_answered(&outcome, &job).map_err(|error| failure(error, trial.lane))?;
    }
    probes.try_each(Phase::Settle, |probe| probe.settle(&mut trial, &mut outcome))?;
    probes.each(Phase::Leave, |probe| probe.leave(&mut trial, &mut outcome));
    let finished = put_together(&mut trial, outcome, probes);
    let found = trial.found;
    let weighed = Weighed {
        finished,
        told: found.events,
        unwritten: found.unwritten,
        observed: found.observed,
        epoch_ns: trial.clock.monotonic_ns,
    };
    Ok((weighed, found.counted))
}

/// Assembles the record of the trial: the engine's own, and the probes' findings.
fn put_together(trial: &mut TrialContext<'_>, outcome: Outcome, probes: &Probes) -> TrialFinished {
    let running = &mut trial.lease.target.running;
    let observed = Observations {
        target: running.title(trial.lane),
        target_ended: running.ended(),
        aside_cpu_ns: trial.found.aside_cpu_ns,
        ..trial.observed.clone()
    };
    let mut finished = record::put_together(trial.trial, outcome, observed, trial.lane.protocol);
    probes.each(Phase::Record, |probe| probe.record(trial, &mut finished));
    finished.warnings.extend(trial.found.warnings.iter().map(Warning::record));
    // Only now the load of the path is known.
    pace::diagnose(&mut finished, trial.load());
    let library = trial.lane.protocol.library(&trial.lane.settings);
    finished.scene.extend(library.map(|name| ("library".to_owned(), name.to_owned())));
    probes.each(Phase::Amend, |probe| probe.amend(trial, &mut finished));
    finished
}

/// The work of the shards.
fn job(
    trial: &mut TrialContext<'_>,
    material: &Material,
    object: Option<ObjectFile>,
) -> Result<Job, Stop> {
    let (options, scene) = (trial.options, trial.lease.target.scene.as_ref());
    let client = &mut trial.client;
    let taken = client.dial.take().zip(client.composer.take());
    let (dial, composer) = taken.ok_or_else(|| Stop::new(Exit::Internal, "no client"))?;
    trial.observed.confirms = dial.confirms;
    Ok(Job {
        object,
        sources: sources(trial.trial, client.address),
        consumers: scene.and_then(hosts::subscribers),
        trial: trial.trial.clone(),
        dial,
        composer,
        address: client.address,
        trace: material.trace.clone(),
        shards: options.shards,
        every: reported_every(&trial.trial.load, options.every),
        messages: client.log.clone(),
        is_metered: scene.is_some() && options.stage.is_heard,
        may_be_cut_off: scene.is_some() && options.stage.path.is_some(),
        rendezvous: Arc::new(OneProcess::new(options.shards)),
    })
}

/// Makes the load, here or by a fleet.
fn generate(
    job: &Arc<Job>,
    trial: &TrialContext<'_>,
    material: &Material,
    watch: &Arc<Watch>,
) -> Result<Generated, Failure> {
    let observer: Arc<dyn TrialObserver> = Arc::clone(watch) as Arc<dyn TrialObserver>;
    let fleet = trial.options.fleet;
    let place = match fleet {
        Some(part) if part.is_taken_over => LoadPlace::TakenOver(part.hosts),
        Some(part) => LoadPlace::Fleet(part.hosts),
        None => LoadPlace::Here(trial.lease.target.scene.as_ref()),
    };
    let made = trial.targets.vault().authority();
    let work = Work {
        run: fleet.map_or("", |part| part.run),
        attempt: fleet.map_or(1, |part| part.attempt),
        job,
        body: &material.body,
        authority: made.filter(|_| !trial.lane.is_foreign()),
        epoch_ns: trial.clock.monotonic_ns,
        unix_ns: trial.clock.unix_ns,
        interrupts: trial.options.interrupts,
    };
    place.generate(job, &work, trial.clock.epoch, &observer)
}

/// Hooks in the generator's threads at the borders of the window.
struct Watch {
    pinning: Pinning,
    /// The generator has priority over other processes: it sleeps between messages, on a core that
    /// is not the target's.
    is_urgent: bool,
    /// Response times of intervals end on another host than they begin, and their bound is not
    /// known before the end of the trial.
    has_two_clocks: bool,
    progress: Mutex<Sender<TrialNews>>,
    window: Mutex<Window>,
    probes: Arc<Probes>,
}

impl Watch {
    fn new(trial: &TrialContext<'_>, probes: &Arc<Probes>) -> Watch {
        let (options, arrival) = (trial.options, &trial.load().arrival);
        let sleeps = arrival.is_open() && *arrival != Arrival::Burst;
        let is_delivery = trial.load().delivers() && !trial.observed.confirms;
        let crosses = trial.load().topology != Topology::Pairs;
        let has_hosts = options.fleet.is_some_and(|part| part.hosts.count() > 1);
        Watch {
            has_two_clocks: is_delivery && crosses && has_hosts,
            pinning: options.pinning.clone(),
            is_urgent: sleeps && !options.pinning.shared,
            progress: Mutex::new(options.progress.clone()),
            window: Mutex::default(),
            probes: Arc::clone(probes),
        }
    }

    fn reached(&self, edge: Edge, now: Nanos) {
        self.probes.each(Phase::Window, |probe| probe.window(edge, now));
        if let Ok(mut window) = self.window.lock() {
            match edge {
                Edge::Began => window.from = now,
                Edge::LoadEnded => {}
                Edge::Ended => window.to = now,
            }
        }
    }
}

impl TrialObserver for Watch {
    fn thread_started(&self, shard: u32) {
        // An affinity that cannot be set leaves the thread where the scheduler puts it.
        let _ = self.pinning.generator_core(shard as usize).pin_this_thread();
        if self.is_urgent {
            // Without the right to do so, the lag gate judges the result.
            let _ = urgency::before_others(urgency::Rank::Generator);
        }
    }

    fn window_began(&self, now: Nanos) {
        self.reached(Edge::Began, now);
    }

    fn load_ended(&self, now: Nanos) {
        self.reached(Edge::LoadEnded, now);
    }

    fn window_ended(&self, now: Nanos) {
        self.reached(Edge::Ended, now);
    }

    fn progress(&self, shard: u32, mut progress: Progress) {
        if let Progress::Interval(interval) = &mut progress
            && self.has_two_clocks
        {
            interval.times.forget_response();
        }
        if let Ok(sender) = self.progress.lock() {
            let _ = sender.send(TrialNews::Shard(shard, progress));
        }
    }
}
