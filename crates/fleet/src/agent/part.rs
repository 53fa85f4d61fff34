//! A part of a trial that runs on this host, from the material to the stored outcomes.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use weigh_engine::generator::{Generator, TrialObserver};
use weigh_engine::job::{Job, Progress};
use weigh_engine::kept_messages::Keeping;
use weigh_engine::outcome::ShardOutcome;
use weigh_engine::rendezvous::Rendezvous;
use weigh_model::Nanos;

use super::options::{AgentOptions, Material, Workshop};
use super::outbox::Outbox;
use crate::allow::AllowList;
use crate::bus::{Bus, lock};
use crate::facts::AgentFacts;
use crate::hash::Hash;
use crate::meeting::Meeting;
use crate::messages::{Confirm, Fault, Opening, Report, State, Take, written};
use crate::order::Part;
use crate::stored_part::{KnownClock, StoredPart};
use crate::{monotonic, subjects};

/// A part of a trial, its shards' meeting and what is to be published of it.
pub struct PartRun {
    /// The coordinator.
    pub session: String,
    /// Number of the trial in the session.
    pub turn: u64,
    /// Where its shards meet those of the other agents.
    pub meeting: Arc<Meeting>,
    part: Part,
    zero_ns: i64,
    /// Silence after which another agent is gone, once the coordinator is.
    silence: Nanos,
    /// What the coordinator knew of this agent's clock at the start.
    clock: Mutex<Option<KnownClock>>,
    number: AtomicU64,
    outbox: Mutex<Outbox>,
    opening: Mutex<Vec<Opening>>,
    stored: Mutex<Option<Stored>>,
    is_load_over: AtomicBool,
    is_window_over: AtomicBool,
    is_over: AtomicBool,
    is_forgotten: AtomicBool,
}

impl PartRun {
    /// A part that has not been started; `silence` is that after which a coordinator is gone.
    pub fn new(session: String, take: Take, silence: Nanos) -> Arc<PartRun> {
        let Take { turn, part, zero_ns } = take;
        Arc::new(PartRun {
            session,
            turn,
            meeting: Arc::new(Meeting::new(part.rank, part.order.shards)),
            part,
            zero_ns,
            silence,
            clock: Mutex::default(),
            number: AtomicU64::new(0),
            outbox: Mutex::default(),
            opening: Mutex::default(),
            stored: Mutex::default(),
            is_load_over: AtomicBool::new(false),
            is_window_over: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            is_forgotten: AtomicBool::new(false),
        })
    }

    /// The trial, for people.
    pub fn name(&self) -> String {
        let order = &self.part.order;
        format!("trial {} of run {}, attempt {}", order.trial.id, order.run, order.attempt)
    }

    /// The shards that run here.
    pub fn here(&self) -> Range<u32> {
        self.part.here.clone()
    }

    /// Time on the trial's clock; 0 before its zero.
    pub fn now(&self) -> Nanos {
        Nanos(u64::try_from(monotonic::now_ns().saturating_sub(self.zero_ns)).unwrap_or(0))
    }

    /// True once no shard runs here any more.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// The coordinator is gone: a load that runs is finished.
    pub fn end_alone(&self) {
        self.meeting.end_alone(self.turn, self.silence, self.now());
    }

    /// Takes the start that all agents can keep.
    pub fn confirm(&self, confirm: Confirm) {
        lock(&self.clock).get_or_insert(confirm.clock);
        self.meeting.confirm(confirm.start.start_ns, self.now());
    }

    /// Nothing is to be published of it any more.
    pub fn forget(&self) {
        self.is_forgotten.store(true, Ordering::SeqCst);
        self.meeting.note_change();
    }

    /// True if nothing is to be published of it any more.
    pub fn is_forgotten(&self) -> bool {
        self.is_forgotten.load(Ordering::SeqCst)
    }

    /// The state of the part now.
    pub fn state(&self) -> State {
        // What is over is read before what it leaves behind.
        let is_over = self.is_over();
        let stored = lock(&self.stored).clone();
        State {
            turn: self.turn,
            rank: self.part.rank,
            number: self.number.fetch_add(1, Ordering::SeqCst) + 1,
            opening: lock(&self.opening).clone(),
            is_load_over: self.is_load_over.load(Ordering::SeqCst),
            is_window_over: self.is_window_over.load(Ordering::SeqCst),
            reports: lock(&self.outbox).last(),
            is_over,
            messages: stored.as_ref().and_then(|stored| stored.messages),
            outcomes: stored.map(|stored| stored.outcomes),
            ..self.meeting.state()
        }
    }

    /// Reports to send now, as messages.
    pub fn reports(&self) -> Vec<Vec<u8>> {
        let mut outbox = lock(&self.outbox);
        let waiting = outbox.next_to_send(self.meeting.reported(), Instant::now());
        let message = |waiting: &super::outbox::Waiting| {
            let report = Report {
                turn: self.turn,
                rank: self.part.rank,
                number: waiting.number,
                shard: waiting.shard,
                is_interval: waiting.interval.is_some(),
            };
            let body = waiting.interval.as_ref().map(|interval| interval.to_bytes());
            report.with(&body.unwrap_or_default())
        };
        waiting.into_iter().map(message).collect()
    }

    /// Runs the part to its end, in the calling thread.
    pub fn run(
        self: &Arc<PartRun>,
        bus: &Bus,
        options: &AgentOptions,
        workshop: &Arc<dyn Workshop>,
    ) {
        let run = Arc::clone(self);
        // A panic of the workshop must not leave the other agents waiting.
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let job = run.prepared(bus, &options.allow, workshop)?;
            run.load(job, workshop).and_then(|found| run.store(bus, found, &options.facts))
        }));
        let ended = ended.unwrap_or_else(|_| Err(ourselves("the agent panicked".to_owned())));
        match ended {
            Ok(stored) => *lock(&self.stored) = stored,
            Err(fault) => self.meeting.fail(fault),
        }
        self.is_over.store(true, Ordering::SeqCst);
        self.meeting.note_change();
    }

    /// Fails because it could not be started.
    pub fn fail_unstarted(&self, reason: &str) {
        self.meeting.fail(ourselves(reason.to_owned()));
        self.is_over.store(true, Ordering::SeqCst);
    }

    /// The job, once the target is allowed and the material has come.
    fn prepared(
        self: &Arc<PartRun>,
        bus: &Bus,
        allow: &AllowList,
        workshop: &Arc<dyn Workshop>,
    ) -> Result<Job, Fault> {
        let order = &self.part.order;
        allow.check(&order.target).map_err(ourselves)?;
        let body = order.body.map_or(Ok(Vec::new()), |hash| self.material(bus, hash))?;
        let trace = order.trace.map_or(Ok(Vec::new()), |hash| self.material(bus, hash))?;
        let trace = trace_of(&trace).map_err(ourselves)?;
        let material = Material { body, trace };
        let meeting: Arc<dyn Rendezvous> = self.meeting.clone();
        let job = workshop.job(&self.part, &material, meeting).map_err(ourselves)?;
        let (asked, made) = (order.target.address, job.address);
        if made != asked {
            return Err(ourselves(format!("the load would go to {made} instead of {asked}")));
        }
        if job.shards != order.shards {
            let text = format!("{} shards were prepared of {}", job.shards, order.shards);
            return Err(ourselves(text));
        }
        Ok(job)
    }

    fn material(&self, bus: &Bus, hash: Hash) -> Result<Vec<u8>, Fault> {
        let bytes = bus.get(&subjects::material(hash), MATERIAL_PATIENCE);
        let bytes = bytes.map_err(|error| Fault::Lost { reason: error.to_string() })?;
        match Hash::of(&bytes) == hash {
            true => Ok(bytes),
            false => Err(ourselves(format!("material {hash} has other contents than its name"))),
        }
    }

    /// Makes the load; `None` if the trial failed elsewhere.
    fn load(
        self: &Arc<PartRun>,
        mut job: Job,
        workshop: &Arc<dyn Workshop>,
    ) -> Result<Option<Found>, Fault> {
        let epoch = monotonic::instant(self.zero_ns)
            .ok_or_else(|| ourselves("the trial began before this host's clock".to_owned()))?;
        let observer: Arc<dyn TrialObserver> =
            Arc::new(Observed { run: Arc::clone(self), workshop: Arc::clone(workshop) });
        let keeping = self.part.order.keeps_messages.then(|| Keeping::start(MESSAGE_BYTES_MAX));
        let keeping = keeping.transpose().map_err(|error| ourselves(error.to_string()))?;
        job.messages = keeping.as_ref().map(Keeping::log);
        let generator = Generator::start(Arc::new(job), self.here(), epoch, &observer)?;
        let outcomes = generator.finish_here()?;
        if let Some(failure) = outcomes.iter().find_map(|outcome| outcome.failure.clone()) {
            return Err(failure.into());
        }
        let orders = self.meeting.orders();
        // A stop before the start ends shards like a failure does: what they have is the result.
        if orders.has_failed() && orders.stop_level() == 0 {
            return Ok(None);
        }
        let messages = keeping.map(Keeping::finish).transpose().map_err(ourselves)?;
        Ok(Some(Found { outcomes, messages }))
    }

    /// Stores what was found, and that it is all there. Returns its hashes.
    fn store(
        &self,
        bus: &Bus,
        found: Option<Found>,
        facts: &AgentFacts,
    ) -> Result<Option<Stored>, Fault> {
        let Some(Found { outcomes, messages }) = found else { return Ok(None) };
        let attempt = self.part.order.attempt();
        let put = |name: &str, bytes: &[u8]| {
            let stored = bus.put(name, bytes, OUTCOME_PATIENCE);
            stored.map(|()| Hash::of(bytes)).map_err(|error| ourselves(error.to_string()))
        };
        let mut hashes = Vec::new();
        for (shard, outcome) in self.here().zip(&outcomes) {
            hashes.push(put(&subjects::outcome(&attempt, shard), &outcome.to_bytes())?);
        }
        let name = subjects::messages(&attempt, self.part.rank);
        let messages = messages.map(|bytes| put(&name, &bytes)).transpose()?;
        let part = StoredPart {
            rank: self.part.rank,
            facts: facts.clone(),
            here: self.here(),
            outcomes: hashes.clone(),
            messages,
            start_slack_ns: self.meeting.start_slack_ns(),
            clock: *lock(&self.clock),
        };
        put(&subjects::part(&attempt, self.part.rank), &written(&part))?;
        Ok(Some(Stored { outcomes: hashes, messages }))
    }
}

/// What the shards of a part found.
struct Found {
    outcomes: Vec<ShardOutcome>,
    /// The record of single messages, if it was to be kept.
    messages: Option<Vec<u8>>,
}

/// Hashes of what is in the object store.
#[derive(Clone)]
struct Stored {
    outcomes: Vec<Hash>,
    messages: Option<Hash>,
}

/// Takes what shards report. Nothing is written or sent in their threads.
struct Observed {
    run: Arc<PartRun>,
    workshop: Arc<dyn Workshop>,
}

impl TrialObserver for Observed {
    fn thread_started(&self, shard: u32) {
        self.workshop.thread_started(&self.run.part, shard);
    }

    fn load_ended(&self, _: Nanos) {
        self.run.is_load_over.store(true, Ordering::SeqCst);
        self.run.meeting.note_change();
    }

    fn window_ended(&self, _: Nanos) {
        self.run.is_window_over.store(true, Ordering::SeqCst);
        self.run.meeting.note_change();
    }

    fn progress(&self, shard: u32, progress: Progress) {
        match progress {
            Progress::Opening(open, all) => {
                let opening = Opening { shard, open, all };
                let mut known = lock(&self.run.opening);
                match known.iter_mut().find(|known| known.shard == shard) {
                    Some(known) => *known = opening,
                    None => known.push(opening),
                }
                return;
            }
            Progress::Interval(interval) => lock(&self.run.outbox).add(shard, Some(interval)),
            Progress::Settled => lock(&self.run.outbox).add(shard, None),
        }
        self.run.meeting.note_change();
    }
}

/// Due times as [`Fleet::put_trace`](crate::Fleet::put_trace) stores them.
fn trace_of(bytes: &[u8]) -> Result<Vec<Nanos>, String> {
    let (times, rest) = bytes.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(format!("a trace of {} bytes is not one of due times", bytes.len()));
    }
    Ok(times.iter().map(|time| Nanos(u64::from_le_bytes(*time))).collect())
}

fn ourselves(reason: String) -> Fault {
    Fault::Generator { reason }
}

const MATERIAL_PATIENCE: Duration = Duration::from_secs(30);
/// Bytes of a record of single messages, which is in memory until it is stored: about 20 million
/// messages.
const MESSAGE_BYTES_MAX: usize = 1 << 30;
/// Outcomes wait for a bus that is cut.
const OUTCOME_PATIENCE: Duration = Duration::from_secs(60);
