//! A trial as the coordinator sees it: parts are taken, connections stand, a start is named and
//! kept by all, the load runs, outcomes arrive. What fails anywhere ends it everywhere.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use weigh_engine::generator::TrialObserver;
use weigh_engine::job::{Failure, Progress, ShardInterval};
use weigh_model::Nanos;

use super::events::{Event, Replied};
use super::hand::{Hand, NotDone};
use super::moments::Moments;
use super::start::Starting;
use super::stopping::Stopping;
use super::sums::Sums;
use super::trial_clocks::TrialClocks;
use crate::bus::{Bus, publish};
use crate::messages::{Answer, Fault, Report, Start, State, Take, What, written};
use crate::order::{Order, Part, Secrets};
use crate::{monotonic, subjects};

/// What a trial needs of the fleet.
pub struct Setting<'f> {
    /// The bus.
    pub bus: &'f Bus,
    /// The coordinator's own name.
    pub session: &'f str,
    /// The agents, by rank.
    pub hands: &'f [Hand],
    /// The shards of each.
    pub placed: &'f [Range<u32>],
    /// Silence after which an agent is lost.
    pub silence: Duration,
    /// What the user asked for.
    pub stopping: &'f Stopping,
    /// Where events come from,
    pub events: &'f Receiver<Event>,
    /// and where requests put what they gave.
    pub replies: &'f Sender<Event>,
}

/// A trial that is running.
pub struct TrialRun<'f> {
    setting: &'f Setting<'f>,
    order: &'f Order,
    turn: u64,
    epoch_ns: i64,
    observer: &'f Arc<dyn TrialObserver>,
    moments: Moments,
    sums: Sums,
    starting: Starting,
    clocks: TrialClocks,
    /// Shards that have no interval to report any more.
    is_settled: Vec<bool>,
    /// What was last forwarded of connections that open, by shard.
    opened: Vec<Option<(u64, u64)>>,
    has_moment: Told,
    failing: Option<Failing>,
    published: Option<Instant>,
    is_changed: bool,
}

/// Which moments of the window have been passed on.
#[derive(Default)]
struct Told {
    window: bool,
    load_over: bool,
    over: bool,
}

/// A trial that has failed, while agents say why.
struct Failing {
    failure: Option<Failure>,
    since: Instant,
    lost: Vec<u32>,
}

/// How a trial ended.
pub struct Ended {
    /// The last states of the agents, by rank, if nothing failed.
    pub states: Result<Vec<State>, Failure>,
    /// Ranks of agents that are lost.
    pub lost: Vec<u32>,
    /// Their clocks.
    pub clocks: TrialClocks,
    /// The start on the trial's clock, if there was one.
    pub start: Option<Nanos>,
}

impl<'f> TrialRun<'f> {
    /// A trial that begins now; `secrets` go with the parts.
    ///
    /// # Errors
    /// [`Failure::Ourselves`] if an agent's clock is not known, or there is no thread.
    pub fn begin(
        setting: &'f Setting<'f>,
        (order, secrets): (&'f Order, Option<&Secrets>),
        turn: u64,
        epoch_ns: i64,
        observer: &'f Arc<dyn TrialObserver>,
    ) -> Result<TrialRun<'f>, Failure> {
        let clocks = TrialClocks::place(setting.hands, epoch_ns)?;
        let moments = Moments::start(observer, epoch_ns);
        let moments = moments.map_err(|error| {
            Failure::Ourselves(format!("no thread for the moments of the window: {error}"))
        })?;
        let run = TrialRun {
            setting,
            order,
            turn,
            epoch_ns,
            observer,
            moments,
            sums: Sums::new(turn, setting.hands.len()),
            starting: Starting::new(setting.hands.len()),
            clocks,
            is_settled: vec![false; order.shards as usize],
            opened: vec![None; order.shards as usize],
            has_moment: Told::default(),
            failing: None,
            published: None,
            is_changed: true,
        };
        for (index, hand) in setting.hands.iter().enumerate() {
            let here = setting.placed[index].clone();
            let (order, secrets) = (order.clone(), secrets.cloned());
            let part = Part { order, secrets, here, rank: hand.rank };
            let zero_ns = run.clocks.zero_ns(index);
            run.request(hand, What::Take(Box::new(Take { turn, part, zero_ns })));
        }
        Ok(run)
    }

    /// Runs the trial to its end.
    pub fn finish(mut self) -> Ended {
        while !self.is_over() {
            match self.setting.events.recv_timeout(TICK) {
                Ok(event) => self.take(event),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            // Many events may have come at once: one state answers them all.
            while let Ok(event) = self.setting.events.try_recv() {
                self.take(event);
            }
            self.look_around();
            self.publish();
        }
        self.clocks.sample(self.setting.hands, monotonic::now_ns());
        self.settle_all();
        drop(self.moments);
        let (states, lost) = match self.failing {
            None => (Ok(self.sums.states().to_vec()), Vec::new()),
            Some(failing) => {
                let unknown = || Failure::Lost("an agent gave up without a reason".to_owned());
                (Err(failing.failure.unwrap_or_else(unknown)), failing.lost)
            }
        };
        let start = self.sums.start_ns.map(Nanos);
        Ended { states, lost, clocks: self.clocks, start }
    }

    fn now(&self) -> Nanos {
        Nanos(u64::try_from(monotonic::now_ns() - self.epoch_ns).unwrap_or(0))
    }

    /// True once everything is here, or all agents have said why they failed.
    fn is_over(&self) -> bool {
        match &self.failing {
            None => self.sums.is_delivered() && self.moments.is_done(),
            Some(failing) => {
                let mut states = self.sums.states().iter().zip(self.setting.hands);
                let all_over = states.all(|(state, hand)| {
                    state.is_over || state.number == 0 || failing.lost.contains(&hand.rank)
                });
                // An agent's reason may come after its failure.
                let is_known = failing.failure.is_some() || failing.since.elapsed() > REASON_DELAY;
                (all_over && is_known && !self.is_changed)
                    || failing.since.elapsed() > FAILING_PATIENCE
            }
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::State(state) => {
                self.is_changed |= self.sums.hear(*state);
            }
            Event::Report(bytes) => self.report(&bytes),
            Event::Taken(Replied { turn, rank, reply: Err(why) }) if turn == self.turn => {
                let name = self.name(rank);
                self.fail(match why {
                    NotDone::Refused(reason) => Failure::Ourselves(format!("{name}: {reason}")),
                    NotDone::Lost(reason) => Failure::Lost(format!("{name}: {reason}")),
                });
            }
            Event::Named(Replied { turn, rank, reply }) if turn == self.turn => {
                match self.starting.take_answer(rank, reply, Instant::now()) {
                    Ok(true) => self.confirm(),
                    Ok(false) => {}
                    Err(reason) => {
                        self.call_off(rank, &reason);
                    }
                }
            }
            Event::Confirmed(Replied { turn, rank, reply: Ok(answer) }) if turn == self.turn => {
                if let Answer::Refused(reason) = answer {
                    self.call_off(rank, &reason);
                }
            }
            Event::Stop => self.is_changed = true,
            // An agent that was not reached with the confirmation fails by itself. The others are
            // of a trial before.
            Event::Taken(_) | Event::Named(_) | Event::Confirmed(_) => {}
        }
    }

    fn report(&mut self, bytes: &[u8]) {
        let Some((report, body)) = Report::split(bytes) else { return };
        if !self.sums.take_report(report.turn, report.rank, report.number) {
            return;
        }
        if !report.is_interval {
            self.settle(report.shard);
            return;
        }
        match ShardInterval::from_bytes(body) {
            Ok(interval) => {
                self.observer.progress(report.shard, Progress::Interval(Box::new(interval)));
            }
            Err(error) => {
                let text =
                    format!("{}: an interval is unreadable: {error}", self.name(report.rank));
                self.fail(Failure::Ourselves(text));
            }
        }
    }

    fn settle(&mut self, shard: u32) {
        if let Some(settled) = self.is_settled.get_mut(shard as usize)
            && !std::mem::replace(settled, true)
        {
            self.observer.progress(shard, Progress::Settled);
        }
    }

    /// The observer waits for every shard, also for those of a host that is lost.
    fn settle_all(&mut self) {
        (0..self.order.shards).for_each(|shard| self.settle(shard));
    }

    fn look_around(&mut self) {
        self.forward_openings();
        self.clocks.sample_sometimes(self.setting.hands);
        self.see_failures();
        if self.failing.is_some() {
            return;
        }
        self.tell_moments();
        if self.sums.has_failed {
            return;
        }
        let counts = self.sums.counts();
        if counts.ready == self.order.shards && !self.starting.is_named() {
            self.name_start();
        }
        if let Some(late) = self.starting.overdue(Instant::now())
            && !self.is_stopped()
        {
            let late = late.iter().map(|rank| self.name(*rank)).collect::<Vec<_>>().join(", ");
            let text = format!("the start was called off: {late} did not acknowledge it in time");
            self.fail(Failure::Lost(text));
        }
    }

    /// Passes on how many connections stand.
    fn forward_openings(&mut self) {
        for opening in self.sums.states().iter().flat_map(|state| &state.opening) {
            let now = Some((opening.open, opening.all));
            let Some(last) = self.opened.get_mut(opening.shard as usize) else { continue };
            if *last != now {
                *last = now;
                self.observer.progress(opening.shard, Progress::Opening(opening.open, opening.all));
            }
        }
    }

    fn see_failures(&mut self) {
        let silence_ns = self.setting.silence.as_nanos() as i64;
        let now_ns = monotonic::now_ns();
        for hand in self.setting.hands {
            let is_silent = now_ns - hand.clock.heard_ns() > silence_ns;
            if is_silent || hand.clock.is_disowned() {
                let seconds = self.setting.silence.as_secs_f64();
                let why = match is_silent {
                    true => format!("did not answer for {seconds} s"),
                    false => "was released, or was cut off for too long".to_owned(),
                };
                self.fail(Failure::Lost(format!("{} {why}", hand.name())));
                self.note_lost(hand.rank);
            }
        }
        let mut faults = self.sums.states().iter().filter_map(|state| {
            let fault = state.fault.clone()?;
            Some((state.rank, matches!(fault, Fault::Lost { .. }), fault))
        });
        match faults.next() {
            Some((rank, is_lost, fault)) => {
                self.fail(fault.failure(&self.name(rank)));
                if is_lost {
                    self.note_lost(rank);
                }
            }
            None if self.sums.states().iter().any(|state| state.has_failed) => {
                match self.is_stopped() {
                    true => self.end_everywhere(),
                    false => self.start_failing(),
                }
            }
            None => {}
        }
    }

    fn fail(&mut self, failure: Failure) {
        self.start_failing();
        if let Some(failing) = &mut self.failing {
            failing.failure.get_or_insert(failure);
        }
    }

    /// Nothing more is expected of this agent in the trial.
    fn note_lost(&mut self, rank: u32) {
        let lost = self.failing.as_mut().map(|failing| &mut failing.lost);
        lost.filter(|lost| !lost.contains(&rank)).into_iter().for_each(|lost| lost.push(rank));
    }

    fn start_failing(&mut self) {
        if self.failing.is_none() {
            self.failing = Some(Failing { failure: None, since: Instant::now(), lost: Vec::new() });
            self.end_everywhere();
        }
    }

    /// Ends the shards of all agents, because some have failed, or were stopped before the start:
    /// then what they deliver is the result.
    fn end_everywhere(&mut self) {
        self.is_changed |= !self.sums.has_failed;
        self.sums.has_failed = true;
        self.sums.is_held_here = false;
    }

    fn is_stopped(&self) -> bool {
        let mut states = self.sums.states().iter();
        self.setting.stopping.level() > 0 || states.any(|state| state.stop_level > 0)
    }

    fn call_off(&mut self, rank: u32, reason: &str) {
        if self.is_stopped() {
            // Without a load there is no start to keep.
            return;
        }
        let name = self.name(rank);
        self.fail(Failure::Lost(format!("the start was called off: {name}: {reason}")));
    }

    fn name_start(&mut self) {
        let round_trip =
            self.setting.hands.iter().filter_map(|hand| {
                hand.clock.at(monotonic::now_ns()).map(|known| known.round_trip_ns)
            });
        let start = self.starting.name(self.now(), Nanos(round_trip.max().unwrap_or(0)));
        let start = Start { turn: self.turn, start_ns: start.0 };
        for hand in self.setting.hands {
            self.request(hand, What::Name(start));
        }
    }

    fn confirm(&mut self) {
        let start = self.starting.start();
        self.sums.start_ns = Some(start.0);
        self.is_changed = true;
        for hand in self.setting.hands {
            let start = Start { turn: self.turn, start_ns: start.0 };
            self.request(hand, What::Confirm(start));
        }
    }

    fn tell_moments(&mut self) {
        let load = &self.order.trial.load;
        let states = self.sums.states();
        if let Some(start) = self.sums.start_ns.map(Nanos)
            && !std::mem::replace(&mut self.has_moment.window, true)
        {
            let from = start + load.warmup;
            let length = load.duration.filter(|_| load.arrival.is_open());
            self.moments.expect(from, length.map(|length| from + length));
        }
        if states.iter().any(|state| state.is_load_over)
            && !std::mem::replace(&mut self.has_moment.load_over, true)
        {
            self.moments.note_load_over();
        }
        if states.iter().all(|state| state.is_window_over)
            && !std::mem::replace(&mut self.has_moment.over, true)
        {
            self.moments.note_over();
        }
        if self.moments.is_done() && self.sums.is_held_here {
            self.sums.is_held_here = false;
            self.is_changed = true;
        }
    }

    fn name(&self, rank: u32) -> String {
        let hand = self.setting.hands.iter().find(|hand| hand.rank == rank);
        hand.map_or_else(|| format!("agent {rank}"), Hand::name)
    }

    /// Publishes the state of all: after a change, and ten times a second.
    fn publish(&mut self) {
        let since = self.published.map(|published| published.elapsed());
        let is_due =
            since.is_none_or(|since| since >= EVERY || (self.is_changed && since >= self.apart()));
        if !is_due {
            return;
        }
        self.is_changed = false;
        self.published = Some(Instant::now());
        let whole = self.sums.whole(self.setting.stopping.level());
        let Setting { bus, session, .. } = self.setting;
        let (client, subject) = (bus.client().clone(), subjects::whole(bus.fleet(), session));
        bus.spawn(async move { publish(&client, subject, written(&whole).into()).await });
    }

    /// The least time between two states of all, which every agent reads: more with many agents.
    fn apart(&self) -> Duration {
        let agents = u32::try_from(self.setting.hands.len()).unwrap_or(u32::MAX);
        (APART_PER_AGENT.saturating_mul(agents)).clamp(APART_MIN, EVERY)
    }

    /// Asks an agent; its reply becomes an event.
    fn request(&self, hand: &Hand, what: What) {
        let (line, to) = (hand.line.clone(), self.setting.replies.clone());
        let (turn, rank) = (self.turn, hand.rank);
        let patience = self.starting.patience();
        self.setting.bus.spawn(async move {
            let once =
                async |what| line.ask(what, patience).await.map_err(|_| UNANSWERED.to_owned());
            let event = match what {
                What::Name(_) => Event::Named(Replied { turn, rank, reply: once(what).await }),
                What::Confirm(_) => {
                    Event::Confirmed(Replied { turn, rank, reply: once(what).await })
                }
                _ => {
                    let reply = line.insist(what, TAKE_PATIENCE).await;
                    Event::Taken(Replied { turn, rank, reply })
                }
            };
            // The fleet listens for as long as it is there.
            let _ = to.send(event);
        });
    }
}

const TICK: Duration = Duration::from_millis(10);
const EVERY: Duration = Duration::from_millis(100);
const APART_MIN: Duration = Duration::from_millis(5);
const APART_PER_AGENT: Duration = Duration::from_micros(200);
/// An agent may still end the trial before.
const TAKE_PATIENCE: Duration = Duration::from_secs(15);
const REASON_DELAY: Duration = Duration::from_secs(2);
/// Connections of a trial that failed are closed within this.
const FAILING_PATIENCE: Duration = Duration::from_secs(10);
const UNANSWERED: &str = "it did not answer";
