//! One trial from beginning to end: the target is started and watched, the load is made, the
//! record is put together.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use weigh_engine::generator::{Attendant, Generator};
use weigh_engine::job::{Failure, Job, Progress, Shared};
use weigh_engine::message_log::MessageLog;
use weigh_engine::outcome::Outcome;
use weigh_limit::attribution::{Observed, Use};
use weigh_model::background::Background;
use weigh_model::body::Composer;
use weigh_model::energy::Span;
use weigh_model::event::{Event, TrialFinished};
use weigh_model::protocol::{Dial, Invalid};
use weigh_model::{Arrival, Doubt, Emulation, Endpoint, Load, Nanos, Trial};
use weigh_observe::cpu::{HostCpu, monotonic_ns};
use weigh_observe::process::Tree;
use weigh_observe::room;
use weigh_observe::sampler::{Recording, Usage};
use weigh_path::urgency;
use weigh_report::RecordError;
use weigh_stage::hosts::Scene;
use weigh_stage::pinning::Pinning;

use crate::case::lanes::{Against, Lane};
use crate::case::material::{self, Material, composer};
use crate::case::pipeline;
use crate::exit::{Exit, Stop};
use crate::interrupts::Interrupts;
use crate::probes::background;
use crate::probes::crossing::{Crossed, Crossing};
use crate::probes::emulated::{Emulated, Screen};
use crate::probes::layers;
use crate::probes::messages::{MessageRecording, Noted, Recorded};
use crate::probes::metering::{self, MeteredTrial, Metering};
use crate::probes::staged::{self, Arrived, Staged};
use crate::probes::taken::{self, Bell, Taken};
use crate::probes::watched;
use crate::targets::addresses::{resolve, sources};
use crate::targets::kept::{Lease, Targets};
use crate::targets::secured::{self, Vault};
use crate::targets::stage::{self, Stage};
use crate::targets::watching::{Lookouts, Outlook, Sighted};
use crate::trial::news::{TrialNews, Watched};
use crate::trial::record;
use crate::trial::series::reported_every;
use crate::trial::unanswered::{check_answered, failure, unreached};

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
    pub progress: Sender<TrialNews>,
    /// The file that keeps every single message, where that is asked for.
    pub messages: Option<PathBuf>,
    /// What lies between generator and target, and who listens there.
    pub stage: Stage,
    /// How energy is measured.
    pub metering: &'s Metering,
    /// What is watched of targets that somebody else runs.
    pub lookouts: &'s Lookouts,
    /// What a user is told while something is waited for.
    pub say: &'s (dyn Fn(&str) + Sync),
    /// Whose figures are told beside the exact ones.
    pub emulate: &'s [Emulation],
    /// The second workload beneath it.
    pub background: Option<background::Asked<'s>>,
}

/// What a trial came to.
pub struct Weighed {
    /// Its result.
    pub finished: TrialFinished,
    /// What was heard of its wire: its connections, one session packet by packet, and what TCP knew
    /// of the path over time.
    pub told: Vec<Event>,
    /// Why its single messages could not be kept.
    pub unwritten: Option<RecordError>,
    /// How much of what ends was used at the window's end.
    pub observed: Observed,
    /// What the monotonic clock showed when the trial's stood at 0, nanoseconds.
    pub epoch_ns: u64,
}

/// Checks what can be checked of a trial without starting anything.
///
/// # Errors
/// If it cannot work. Otherwise says whether the target confirms its messages.
pub fn check(lane: &Lane, trial: &Trial, material: &Material, shards: u32) -> Result<bool, Stop> {
    let is_marked = composer(trial, material, 0)?.0.is_marked();
    if !is_marked && shards > 1 && trial.load.delivers() {
        return Err(Stop::usage(format!(
            "--shards {shards}: bodies too small for a mark are told apart by connection and \
             order, which one thread must see; type --shards 1 or -s 64B"
        )));
    }
    if lane.stores() {
        pipeline::check_marked(is_marked)?;
    }
    Ok(check_protocol(lane, trial)?)
}

/// Asks the protocol whether it can do the trial; true if the target confirms its messages.
pub fn check_protocol(lane: &Lane, trial: &Trial) -> Result<bool, Invalid> {
    let mut trial = trial.clone();
    let unspecified = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    trial.endpoint = Some(match &lane.against {
        Against::Foreign(endpoint) => endpoint.clone(),
        _ => Endpoint::at(lane.protocol.scheme(), unspecified),
    });
    let dial = lane.protocol.dial(&trial)?;
    if let Some(endpoint) = &trial.endpoint {
        secured::check(lane, endpoint)?;
    }
    if matches!(lane.against, Against::Reference) {
        lane.protocol.host(&lane.settings)?;
    }
    Ok(dial.confirms)
}

/// Runs one trial on a target that `targets` starts or has kept.
pub fn run(
    lane: &Lane,
    mut trial: Trial,
    material: &Material,
    around: &Surroundings<'_>,
    targets: &mut Targets<'_>,
) -> Result<Weighed, Stop> {
    let mut lease = targets.lease(lane, &around.stage, &around.pinning.target, &trial.id)?;
    let result = locate(lane, &lease).and_then(|endpoint| {
        trial.endpoint = Some(endpoint);
        targets.ask_before(lane, &trial, around.say)?;
        metering::rested(around, &trial.load, |metered| {
            let beneath = around.background.as_ref();
            let beneath =
                beneath.map(|own| own.begin(&trial, around, (&lease.target, targets.vault())));
            let beneath = beneath.transpose()?;
            let with = (&mut lease, targets.vault(), metered);
            let measured = measure(lane, &trial, material, around, with)?;
            let window = measured.0.seen.window;
            Ok((measured, beneath.map(|beneath| beneath.end(&trial, window))))
        })
    });
    let (((mut measured, recorded), beneath), metered) = match result {
        Ok(result) => result,
        Err(stop) => {
            targets.give_back(lease, None);
            return Err(stop);
        }
    };
    let observed = std::mem::take(&mut measured.seen.observed);
    let mut told = std::mem::take(&mut measured.seen.told);
    let (window, epoch_ns) = (measured.seen.window, measured.seen.epoch_ns);
    measured.seen.aside_cpu_ns += beneath.as_ref().map_or(0, |over| over.cpu_ns);
    let drawn = metered.as_ref().and_then(|metered| metered.end(&mut measured.seen.aside_cpu_ns));
    let arrived = measured.seen.arrived.take();
    let is_urgent = around.interrupts.are_urgent();
    if lane.is_foreign() && !is_urgent {
        lease.told = targets.ask_after(lane, &trial, &measured.outcome, around.say);
    }
    let beside = (targets.vault(), is_urgent, around.say);
    let (mut finished, heard, counted) =
        record::put_together(lane, &trial, measured, &mut lease, beside);
    if let Some(relay) = &mut lease.target.relay {
        relay.tell(&mut finished);
    }
    arrived.iter().for_each(|arrived| arrived.tell(&mut finished));
    let library = lane.protocol.library(&lane.settings);
    let library = library.map(|name| ("library".to_owned(), name.to_owned()));
    finished.scene.extend(library);
    let Recorded { doubts, unwritten, .. } = recorded;
    finished.doubts.extend(doubts.iter().map(Doubt::record));
    if let Some(enclosure) = &lease.target.enclosure {
        around.stage.share.tell(&around.pinning.target, enclosure, &mut finished);
    }
    targets.give_back(lease, counted);
    told.extend(heard);
    let ran = beneath.map(|over| over.tell(&mut finished));
    told.extend(ran.map(|ran| Event::BackgroundRan(Box::new(ran))));
    told.extend(metered.map(|metered| metered.tell(&trial, window, drawn, &mut finished)));
    Ok(Weighed { finished, told, unwritten, observed, epoch_ns })
}

/// Where the target listens, and who we are to it.
fn locate(lane: &Lane, lease: &Lease) -> Result<Endpoint, Stop> {
    let mut endpoint = lease.target.running.endpoint().clone();
    endpoint.address = match &lease.target.relay {
        // To whom it is said stays the same: the relay only carries it.
        Some(relay) => Some(relay.address()),
        None => Some(resolve(&endpoint)?),
    };
    endpoint.credentials = lane.credentials().or(endpoint.credentials);
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
    /// What the target used; unknown for a server that somebody else runs and nobody watches.
    pub usage: Option<(Usage, HostCpu)>,
    /// Who looked at it, and whether that could be done.
    pub sighted: Sighted,
    /// True if the protocol confirms messages.
    pub confirms: bool,
    /// True if generator and target shared cores.
    pub shared_cores: bool,
    /// How much the generator's memory grew, to the end of the window.
    pub generator_bytes: Option<u64>,
    /// Memory of the target before the first connection and at the end of the window.
    pub target_bytes: Option<(u64, u64)>,
    /// Processor time of threads of ours that make no load.
    pub aside_cpu_ns: u64,
    /// What was heard of its wire while it ran.
    pub told: Vec<Event>,
    /// What the trial did on wire and path.
    pub crossed: Crossed,
    /// What TLS, WebSocket and sealing were counted in.
    pub layers: layers::Counted,
    /// How much of what ends was used at the window's end.
    pub observed: Observed,
    /// The window on the monotonic clock.
    pub window: Span,
    /// What that clock showed when the trial's stood at 0.
    pub epoch_ns: u64,
    /// True if the target worked for somebody else too, so that its own counts are of both.
    pub is_mixed: bool,
    /// What came out of the pipeline, where the target is one.
    pub arrived: Option<Arrived>,
    /// What a reference server had taken in when the load ended, where only it knows.
    pub taken: Option<Taken>,
    /// What other tools would have told of it.
    pub emulated: Emulated,
}

fn measure(
    lane: &Lane,
    trial: &Trial,
    material: &Material,
    around: &Surroundings<'_>,
    (lease, vault, metered): (&mut Lease, &Vault, Option<Arc<MeteredTrial>>),
) -> Result<(Measured, Recorded), Stop> {
    let (target, scene) = (&mut lease.target.running, lease.target.scene.as_ref());
    let screen = Screen::open(around, trial, lane.is_foreign());
    let (epoch, epoch_monotonic_ns) = (Instant::now(), monotonic_ns());
    let unix_ns = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let (composer, sealer) = composer(trial, material, unix_ns as u64)?;
    let dial = lane.protocol.dial(trial)?;
    let (endpoint, address) = located(trial)?;
    let (dial, layers) = layers::dial(lane, dial, (endpoint, trial.seed), vault)?;
    let pids = target.pids();
    let outlook = look_out(lane, around, &pids, &trial.load, epoch_monotonic_ns);
    let staged = Staged::begin(target, trial, (around.pinning, mixed(around)));
    let before = outlook.look();
    let own_before = own_resident_bytes();
    let departures = staged.as_ref().map(|staged| staged.departures(epoch_monotonic_ns));
    let (log, noted) = Noted::open(around.messages.as_deref(), departures);
    let made = (dial, composer, address, log);
    let job = Arc::new(job(trial, material, around, scene, made)?);
    let messages = noted.map(|noted| MessageRecording::start(noted, unix_ns as u64, &job));
    let messages = messages.transpose()?;
    let watch = Arc::new(Watch::new(around, &trial.load, (outlook, &pids), metered));
    let relay = watched::start_relay(lease.target.relay.as_ref(), &trial.load);
    let crossing = Crossing::begin(scene, trial, address.port(), (&around.stage, relay))?;
    let generating = || generate(&job, epoch, &watch, &crossing, around.interrupts);
    let (mut outcome, taken) = taken::beside(target, &job, &watch.bell, generating);
    let mut crossed = crossing.end();
    let accounts = outcome.as_mut().ok().map(|outcome| &mut outcome.accounts);
    let recorded = messages.map(|messages| messages.finish(accounts)).unwrap_or_default();
    let mut outcome = outcome
        .map_err(|error| target.died(lane).unwrap_or_else(|| unreached(error, lane, &crossed)))?;
    if target.ended().is_none() {
        check_answered(&outcome, &job).map_err(|error| failure(error, lane))?;
    }
    let (from, to, at_end, own_end) = watch.window.lock().map(|window| *window).unwrap_or_default();
    recorded.check()?;
    let at = scene.and_then(|scene| scene.host(stage::TARGET).ok());
    let clock = (epoch_monotonic_ns, (from, to));
    let ended = (clock, at, around.interrupts);
    let (arrived, to) = staged::end(staged, &mut outcome, target, trial, ended)?;
    crossed.weigh_between(epoch_monotonic_ns + from.0, epoch_monotonic_ns + to.0);
    let (sighted, recording) = watch.sighted(lane.is_foreign(), epoch_monotonic_ns + to.0);
    let usage = watched::usage(recording.as_ref(), &outcome, epoch_monotonic_ns, (from, to));
    let seen = Seen {
        usage,
        sighted,
        confirms: job.dial.confirms,
        shared_cores: around.pinning.shared,
        generator_bytes: own_before.zip(own_end).map(|(before, end)| end.saturating_sub(before)),
        target_bytes: before.zip(at_end).filter(|_| recording.is_some()),
        aside_cpu_ns: recorded.cpu_ns + crossed.cpu_ns(),
        told: crossed.tcp(&trial.id, unix_ns as u64),
        crossed,
        layers: layers.sealed_by(sealer),
        observed: watch.observed(&job, scene.is_some()),
        window: Span::of(epoch_monotonic_ns + from.0, epoch_monotonic_ns + to.0),
        arrived,
        epoch_ns: epoch_monotonic_ns,
        is_mixed: mixed(around).is_some(),
        taken,
        emulated: screen.end(&outcome, trial, epoch_monotonic_ns),
    };
    Ok((Measured { outcome, seen }, recorded))
}

/// What the shards work on.
fn job(
    trial: &Trial,
    material: &Material,
    around: &Surroundings<'_>,
    scene: Option<&Scene>,
    (dial, composer, address, messages): (Dial, Composer, SocketAddr, Option<MessageLog>),
) -> Result<Job, Stop> {
    Ok(Job {
        object: material::object(&trial.load)?,
        sources: sources(trial, address),
        consumers: scene.and_then(stage::subscribers),
        trial: trial.clone(),
        dial,
        composer,
        address,
        trace: material.trace.clone(),
        shards: around.shards,
        every: reported_every(&trial.load, around.every),
        messages,
        is_metered: scene.is_some() && around.stage.is_heard,
        may_be_cut_off: scene.is_some() && around.stage.path.is_some(),
        shared: Shared::default(),
    })
}

/// The background at the measured target, where there is one.
fn mixed<'a>(around: &'a Surroundings<'_>) -> Option<&'a Background> {
    let asked = around.background.as_ref().map(|own| &own.case.asked)?;
    asked.is_at_same().then_some(asked)
}

/// Where the trial's target was found.
fn located(trial: &Trial) -> Result<(&Endpoint, SocketAddr), Stop> {
    let known = trial.endpoint.as_ref().and_then(|own| Some((own, own.address?)));
    known.ok_or_else(|| Stop::new(Exit::Internal, "no address"))
}

/// Watches the target from now on, where that can be, and lets who follows the trial know.
fn look_out(
    lane: &Lane,
    around: &Surroundings<'_>,
    pids: &[u32],
    load: &Load,
    epoch_ns: u64,
) -> Outlook {
    let cores = around.pinning.target.count();
    let outlook = around.lookouts.begin(lane, (pids, cores), watched::sample_every(load));
    if let Some(since) = outlook.so_far() {
        let watched = Watched { since, epoch_ns, is_foreign: lane.is_foreign() };
        let _ = around.progress.send(TrialNews::Target(watched));
    }
    outlook
}

/// Makes the load, from the generator's host where it has one.
fn generate(
    job: &Arc<Job>,
    epoch: Instant,
    watch: &Arc<Watch>,
    crossing: &Crossing<'_>,
    interrupts: &Interrupts,
) -> Result<Outcome, Failure> {
    let attendant: Arc<dyn Attendant> = Arc::clone(watch) as Arc<dyn Attendant>;
    let start = || Generator::start(Arc::clone(job), epoch, &attendant);
    let generator = crossing.on_generator(start)?;
    interrupts.arm(generator.stopper());
    let outcome = generator.finish();
    interrupts.disarm();
    outcome
}

/// What is done in the generator's threads at the borders of the window.
struct Watch {
    pinning: Pinning,
    /// The generator goes before others: it sleeps between messages, on a core that is not the
    /// target's.
    is_urgent: bool,
    progress: Mutex<Sender<TrialNews>>,
    outlook: Mutex<Option<Outlook>>,
    window: Mutex<Window>,
    /// Ourselves and the target's processes as they were before the load.
    processes: Vec<u32>,
    room: Mutex<Room>,
    /// Who measures energy.
    metered: Option<Arc<MeteredTrial>>,
    /// Rung when the load has ended.
    bell: Bell,
}

/// What was seen of what ends, when the window began and when it ended.
#[derive(Default)]
struct Room {
    began: Option<room::Network>,
    ports: Option<u64>,
    ended: Option<room::Network>,
    descriptors: Option<room::Used>,
}

/// Begin and end of the window on the trial's clock, and the memory of target and generator in
/// bytes at its end.
type Window = (Nanos, Nanos, Option<u64>, Option<u64>);

impl Attendant for Watch {
    fn thread_started(&self, shard: u32) {
        // An affinity that cannot be set leaves the thread where the scheduler puts it.
        let _ = self.pinning.generator_core(shard as usize).pin_this_thread();
        if self.is_urgent {
            // Without the right to, the lag gate judges what comes of it.
            let _ = urgency::before_others(urgency::Rank::Generator);
        }
    }

    fn window_began(&self, now: Nanos) {
        self.sample();
        if let Ok(mut room) = self.room.lock() {
            (room.began, room.ports) = (room::network(), room::local_ports());
        }
        if let Ok(mut window) = self.window.lock() {
            window.0 = now;
        }
    }

    fn load_ended(&self, _now: Nanos) {
        self.bell.ring();
        // The processor time of the window is read where it ends, not guessed between two looks.
        if let Ok(outlook) = self.outlook.lock()
            && let Some(outlook) = outlook.as_ref()
        {
            let _ = outlook.look();
        }
    }

    fn window_ended(&self, now: Nanos) {
        self.bell.ring();
        let memory = self.sample();
        let own = own_resident_bytes();
        if let Ok(mut window) = self.window.lock() {
            (window.1, window.2, window.3) = (now, memory, own);
        }
        if let Ok(mut room) = self.room.lock() {
            room.ended = room::network();
            room.descriptors = room::descriptors(self.processes.iter().copied());
        }
    }

    fn progress(&self, shard: u32, progress: Progress) {
        if let Ok(sender) = self.progress.lock() {
            let _ = sender.send(TrialNews::Shard(shard, progress));
        }
    }
}

impl Watch {
    fn new(
        around: &Surroundings<'_>,
        load: &Load,
        (outlook, target): (Outlook, &[u32]),
        metered: Option<Arc<MeteredTrial>>,
    ) -> Watch {
        let sleeps = load.arrival.is_open() && load.arrival != Arrival::Burst;
        let tree = Tree::of(target).ok();
        let members = tree.map(|mut tree| tree.look()).unwrap_or_default();
        let members = members.into_iter().map(|stat| stat.pid);
        let processes = std::iter::once(std::process::id()).chain(members).collect();
        Watch {
            pinning: around.pinning.clone(),
            is_urgent: sleeps && !around.pinning.shared,
            progress: Mutex::new(around.progress.clone()),
            outlook: Mutex::new(Some(outlook)),
            window: Mutex::new((Nanos(0), Nanos(0), None, None)),
            processes,
            room: Mutex::new(Room::default()),
            metered,
            bell: Bell::default(),
        }
    }

    /// How much of what ends was used. A connection that is over keeps its port for a minute, so
    /// where every message has one of its own, those that wait count too. The generator counts for
    /// its own host: what the kernel drops at a target that `has_hosts` apart from it is not seen.
    fn observed(&self, job: &Job, has_hosts: bool) -> Observed {
        let Ok(room) = self.room.lock() else { return Observed::default() };
        let of = |used: room::Used| Use { used: used.used, available: used.available, failures: 0 };
        let load = job.load();
        let standing = u64::from(load.connections) + u64::from(load.subscribers);
        let both = room.began.zip(room.ended);
        let waiting = both.map_or(0, |(from, to)| to.waiting.saturating_sub(from.waiting));
        let addresses = job.sources.len().max(1) as u64;
        let ports = room.ports.filter(|_| job.address.is_ipv4());
        Observed {
            descriptors: room.descriptors.map(of),
            ports: ports.map(|of_one| Use {
                used: standing + waiting,
                available: of_one * addresses,
                failures: 0,
            }),
            kernel_drops: both
                .filter(|_| !has_hosts)
                .map(|(from, to)| to.drops.saturating_sub(from.drops)),
        }
    }

    /// All that was seen of the target, once nothing more is to come.
    fn sighted(&self, is_foreign: bool, ended_ns: u64) -> (Sighted, Option<Recording>) {
        let outlook = self.outlook.lock().ok().and_then(|mut outlook| outlook.take());
        let sighted = outlook.map(|outlook| outlook.end(is_foreign, ended_ns));
        let mut sighted = sighted.unwrap_or_default();
        let recording = sighted.recording.take();
        (sighted, recording)
    }

    fn sample(&self) -> Option<u64> {
        self.metered.iter().for_each(|metered| metered.poke());
        self.outlook.lock().ok()?.as_ref()?.look()
    }
}

fn own_resident_bytes() -> Option<u64> {
    Some(weigh_observe::memory::resident([std::process::id()]).bytes())
}
