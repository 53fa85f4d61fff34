//! The coordinator: gathers agents and runs trials on them.

mod choice;
mod clock_watch;
mod collection;
pub(crate) mod control;
mod discovery;
mod events;
mod gathering;
mod hand;
mod moments;
mod options;
mod outcome;
pub(crate) mod placement;
mod start;
mod stopping;
mod trial;
pub(crate) mod trial_clocks;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use weigh_engine::generator::TrialObserver;
use weigh_engine::job::Failure;
use weigh_model::Nanos;

use crate::bus::{Bus, lock};
use crate::error::FleetError;
use crate::fresh_name::fresh_name;
use crate::hash::Hash;
use crate::messages::{What, read, written};
use crate::order::{Attempt, Order, Secrets};
use crate::{monotonic, subjects};
use collection::{Collection, Reported};
use events::Event;
use gathering::{Gathering, release};
use hand::Hand;
pub use options::{FleetOptions, Member, Placed};
pub use outcome::{FleetOutcome, HostPart};
use stopping::Stopping;
use trial::{Ended, Setting, TrialRun};
use trial_clocks::{Clocked, skew_bound};

/// Agents that obey this process until it is dropped.
pub struct Fleet {
    bus: Arc<Bus>,
    options: FleetOptions,
    session: String,
    host: String,
    /// By rank. An agent that was lost leaves a gap, which the next trial fills.
    hands: Mutex<Vec<Option<Hand>>>,
    /// Number of the last trial.
    turn: AtomicU64,
    /// One trial at a time listens.
    events: Mutex<Receiver<Event>>,
    replies: Sender<Event>,
    /// Names of objects to remove at the end.
    stored: Mutex<BTreeSet<String>>,
    /// Names of outcomes to remove before the next trial: by then this one's result is recorded.
    collected: Mutex<Vec<String>>,
}

impl Fleet {
    /// Waits for exactly as many agents as asked for. `say` gets a sentence about each that is
    /// missing or was refused.
    ///
    /// # Errors
    /// Those of [`Bus::connect`]; [`FleetError::Agents`] if agents are missing when the time is
    /// over.
    pub fn gather(options: &FleetOptions, say: &dyn Fn(&str)) -> Result<Fleet, FleetError> {
        Fleet::gather_until(options, say, &|| false)
    }

    /// Waits for agents as [`Fleet::gather`] does, until `is_stopped`.
    ///
    /// # Errors
    /// Those of [`Fleet::gather`]; [`FleetError::Stopped`] if the wait was ended.
    pub fn gather_until(
        options: &FleetOptions,
        say: &dyn Fn(&str),
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Fleet, FleetError> {
        if options.agents == 0 {
            return Err(FleetError::Options("expected at least 1 agent, found 0".to_owned()));
        }
        let (replies, events) = channel();
        let fleet = Fleet {
            bus: Bus::connect(&options.bus)?,
            options: options.clone(),
            session: fresh_name(),
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            hands: Mutex::new(vec![None; options.agents as usize]),
            turn: AtomicU64::new(0),
            events: Mutex::new(events),
            replies,
            stored: Mutex::default(),
            collected: Mutex::default(),
        };
        events::forward(&fleet.bus, &fleet.session, &fleet.replies)?;
        fleet.fill_gaps(say, is_stopped)?;
        Ok(fleet)
    }

    /// The agents by rank, with what is known of their clocks now.
    pub fn members(&self) -> Vec<Member> {
        let now = monotonic::now_ns();
        let member = |hand: &Hand| {
            let known = hand.clock.at(now).unwrap_or_default();
            Member {
                rank: hand.rank,
                name: hand.facts.name.clone(),
                facts: hand.facts.clone(),
                offset_ns: known.offset_ns,
                clock_bound_ns: known.bound_ns,
                round_trip_ns: known.round_trip_ns,
            }
        };
        lock(&self.hands).iter().flatten().map(member).collect()
    }

    /// The bus.
    pub fn bus(&self) -> &Arc<Bus> {
        &self.bus
    }

    /// The shards of each agent: contiguous ranges, at least one each, by cores and descriptors.
    ///
    /// # Errors
    /// [`FleetError::Options`] if there are fewer shards than agents.
    pub fn place(&self, shards: u32) -> Result<Vec<Placed>, FleetError> {
        let hands: Vec<Hand> = lock(&self.hands).iter().flatten().cloned().collect();
        let placed = placed(&hands, shards)?;
        let both = hands.iter().zip(placed);
        Ok(both.map(|(hand, shards)| Placed { rank: hand.rank, shards }).collect())
    }

    /// The number of shards that keeps the agents busy: one for each core but one of each machine,
    /// and one for each agent at least.
    pub fn carried(&self) -> u32 {
        let hands: Vec<Hand> = lock(&self.hands).iter().flatten().cloned().collect();
        placement::carried(&hands.iter().map(|hand| &hand.facts).collect::<Vec<_>>())
    }

    /// Stores bytes that agents need, for as long as the fleet is there. Storing them again costs
    /// a look.
    ///
    /// # Errors
    /// [`FleetError::Store`] if the object store is full or cannot be reached.
    pub fn put_material(&self, bytes: &[u8]) -> Result<Hash, FleetError> {
        let hash = Hash::of(bytes);
        let name = subjects::material(hash);
        if !self.bus.has(&name) {
            self.bus.put(&name, bytes, STORE_PATIENCE)?;
        }
        lock(&self.stored).insert(name);
        Ok(hash)
    }

    /// Stores the due times of a traced arrival.
    ///
    /// # Errors
    /// Those of [`Fleet::put_material`].
    pub fn put_trace(&self, trace: &[Nanos]) -> Result<Hash, FleetError> {
        let bytes: Vec<u8> = trace.iter().flat_map(|due| due.0.to_le_bytes()).collect();
        self.put_material(&bytes)
    }

    /// Runs a trial on all agents. Its clock stands at 0 at `epoch_ns` of this host's
    /// `CLOCK_MONOTONIC`. `observer` gets what a generator of this process would report, except
    /// that no thread starts here; the moments of the window are those of this host's clock.
    /// `stopper` is called once, with what stops the trial: once to finish the record, twice to end
    /// it. A stop also ends the wait for agents before the trial.
    ///
    /// # Errors
    /// The first failure of a shard; [`Failure::Lost`] if an agent is lost or is missing;
    /// [`Failure::Ourselves`] if one refuses its part, with its own reason. There is never a result
    /// from fewer shards. The agents are free for the next attempt, for which a lost agent may be
    /// replaced by one of the same rank.
    pub fn run(
        &self,
        order: &Order,
        secrets: Option<&Secrets>,
        epoch_ns: u64,
        observer: &Arc<dyn TrialObserver>,
        stopper: &mut dyn FnMut(Box<dyn Fn() + Send + Sync>),
    ) -> Result<FleetOutcome, Failure> {
        let order = &self.checked(order, secrets)?;
        let events = lock(&self.events);
        self.remove_collected();
        let stopping = Stopping::new(self.replies.clone());
        stopper(stopping.stopper());
        self.fill_gaps(&|_| {}, &|| stopping.level() > 0).map_err(|error| match error {
            FleetError::Stopped => ourselves(error),
            error => Failure::Lost(error.to_string()),
        })?;
        let hands: Vec<Hand> = lock(&self.hands).iter().flatten().cloned().collect();
        let placed = placed(&hands, order.shards).map_err(ourselves)?;
        let turn = self.turn.fetch_add(1, Ordering::SeqCst) + 1;
        let setting = Setting {
            bus: &self.bus,
            session: &self.session,
            hands: &hands,
            placed: &placed,
            silence: self.options.silence,
            stopping: &stopping,
            events: &events,
            replies: &self.replies,
        };
        let epoch_ns = i64::try_from(epoch_ns).unwrap_or(i64::MAX);
        let run = TrialRun::begin(&setting, (order, secrets), turn, epoch_ns, observer)?;
        let ended = run.finish();
        self.note_missed(&ended.lost);
        let attempt = &order.attempt();
        let agents = u32::try_from(hands.len()).unwrap_or(u32::MAX);
        let collection = Collection { bus: &self.bus, attempt, shards: order.shards, agents };
        let outcome = collect(&collection, &setting, ended);
        self.end(&hands, turn);
        match outcome {
            Ok(_) => lock(&self.collected).extend(collection.names()),
            // An agent may still be storing one: they are removed at the end.
            Err(_) => lock(&self.stored).extend(collection.names()),
        }
        outcome
    }

    /// Takes the outcomes of an attempt at a trial whose coordinator was killed, and which as many
    /// agents have finished. They are removed before the next trial. Whether the target outlived
    /// that coordinator is for the caller to know.
    ///
    /// # Errors
    /// What is missing. What is there of it is removed: the attempt has no result.
    pub fn take_over(&self, attempt: &Attempt, shards: u32) -> Result<FleetOutcome, String> {
        let agents = self.options.agents;
        let collection = Collection { bus: &self.bus, attempt, shards, agents };
        let outcome = collection.without_coordinator();
        lock(&self.collected).extend(collection.names());
        outcome
    }

    /// Removes the outcomes of a run that a coordinator which was killed has left, whatever their
    /// trials, except those of the attempt that is `kept`.
    pub fn discard(&self, run: &str, kept: Option<&Attempt>) {
        let kept = kept.map(|attempt| format!("{}/", subjects::of_attempt(attempt)));
        let mut names = self.bus.names(&subjects::of_run(run));
        names.retain(|name| !kept.as_ref().is_some_and(|kept| name.starts_with(kept)));
        self.bus.remove(names);
    }

    fn remove_collected(&self) {
        self.bus.remove(std::mem::take(&mut *lock(&self.collected)));
    }

    /// The order as agents will read it.
    fn checked(&self, order: &Order, secrets: Option<&Secrets>) -> Result<Order, Failure> {
        let mut order = order.clone();
        // It may hold credentials, and is not written.
        order.trial.endpoint = None;
        if secrets.is_some() && !self.bus.is_private() {
            return Err(Failure::Ourselves(
                "secrets of the target are not sent over a bus that others can read; help: connect \
                 with tls://"
                    .to_owned(),
            ));
        }
        if read::<Order>(&written(&order)).as_ref() != Some(&order) {
            let text = "the trial is not the same after it was written for agents";
            return Err(Failure::Ourselves(text.to_owned()));
        }
        Ok(order)
    }

    /// Makes agents obey for the ranks that have none, or whose agent has died since. Hiring an
    /// agent again that was only slow changes nothing.
    fn fill_gaps(
        &self,
        say: &dyn Fn(&str),
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<(), FleetError> {
        let mut hands = lock(&self.hands);
        let since_ns = monotonic::now_ns() - SILENCE_BETWEEN.as_nanos() as i64;
        for hand in hands.iter_mut() {
            hand.take_if(|hand| {
                let is_silent = hand.clock.heard_ns() < since_ns;
                hand.is_missed || hand.clock.is_disowned() || is_silent
            });
        }
        let gaps: Vec<u32> = (0..)
            .zip(hands.iter())
            .filter(|(_, hand)| hand.is_none())
            .map(|(rank, _)| rank)
            .collect();
        if gaps.is_empty() {
            return Ok(());
        }
        let gathering = Gathering {
            bus: &self.bus,
            options: &self.options,
            session: &self.session,
            host: &self.host,
            is_stopped,
        };
        for hand in gathering.hands(&gaps, say)? {
            let rank = hand.rank as usize;
            hands[rank] = Some(hand);
        }
        Ok(())
    }

    fn note_missed(&self, lost: &[u32]) {
        for hand in lock(&self.hands).iter_mut().flatten() {
            hand.is_missed |= lost.contains(&hand.rank);
        }
    }

    /// Lets the agents forget a trial.
    fn end(&self, hands: &[Hand], turn: u64) {
        let all = hands.iter().map(|hand| hand.line.ask(What::End { turn }, END_PATIENCE));
        // An agent that does not hear it forgets the trial with the next one.
        self.bus.wait(futures_util::future::join_all(all));
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        let hands: Vec<Hand> = lock(&self.hands).iter().flatten().cloned().collect();
        release(&self.bus, &hands);
        self.remove_collected();
        self.bus.remove(std::mem::take(&mut *lock(&self.stored)));
    }
}

/// Reads the outcomes of all shards.
fn collect(
    collection: &Collection<'_>,
    setting: &Setting<'_>,
    mut ended: Ended,
) -> Result<FleetOutcome, Failure> {
    let states = ended.states?;
    let start = ended.start.unwrap_or_default();
    let errors = ended.clocks.errors_at(setting.hands, start);
    let (mut shards, mut hosts, mut messages) = (Vec::new(), Vec::new(), Vec::new());
    for (index, (hand, state)) in setting.hands.iter().zip(&states).enumerate() {
        let reported = Reported {
            rank: hand.rank,
            facts: &hand.facts,
            here: setting.placed[index].clone(),
            hashes: state.outcomes.as_deref().unwrap_or_default(),
            clock: ended.clocks.known(index, hand, monotonic::now_ns()),
            start_slack_ns: state.start_slack_ns,
        };
        let failed = |reason: String| Failure::Ourselves(format!("{}: {reason}", hand.name()));
        let (host, outcomes) = collection.part(&reported).map_err(failed)?;
        let kept = state.messages.map(|hash| collection.messages(hand.rank, hash)).transpose();
        messages.extend(kept.map_err(failed)?);
        hosts.push(host);
        shards.extend(outcomes);
    }
    Ok(FleetOutcome { shards, hosts, messages, start_skew_bound_ns: skew_bound(&errors) })
}

fn placed(hands: &[Hand], shards: u32) -> Result<Vec<Range<u32>>, FleetError> {
    let facts: Vec<_> = hands.iter().map(|hand| &hand.facts).collect();
    placement::place(&facts, shards).ok_or_else(|| {
        let agents = hands.len();
        let text = format!(
            "{shards} shards cannot run on {agents} agents, each of which needs one; help: ask for \
             at least {agents} shards, or for fewer agents"
        );
        FleetError::Options(text)
    })
}

fn ourselves(error: FleetError) -> Failure {
    Failure::Ourselves(error.to_string())
}

/// Agents answer five times a second. Between trials it costs nothing to look whether one that
/// does not is still there.
const SILENCE_BETWEEN: Duration = Duration::from_secs(1);
const STORE_PATIENCE: Duration = Duration::from_secs(30);
const END_PATIENCE: Duration = Duration::from_millis(500);
