//! A trial as the coordinator sees it: parts are taken, connections stand, a start is named and
//! kept by all, the load runs, outcomes arrive. What fails anywhere ends it everywhere.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use weigh_engine::generator::TrialObserver;
use weigh_engine::job::{Failure, Progress, ShardInterval};
use weigh_model::Nanos;

use super::control::{Control, Sighting};
use super::events::{Event, Replied};
use super::hand::Hand;
use super::moments::Moments;
use super::stopping::Stopping;
use super::trial_clocks::{Clocked, TrialClocks};
use crate::bus::{Bus, publish};
use crate::messages::{Confirm, Report, Start, State, Take, What, written};
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
    control: Control,
    clocks: TrialClocks,
    /// Shards that have no interval to report any more.
    is_settled: Vec<bool>,
    /// What was last forwarded of connections that open, by shard.
    opened: Vec<Option<(u64, u64)>>,
    has_moment: Told,
}

/// Which moments of the window have been passed on.
#[derive(Default)]
struct Told {
    window: bool,
    load_over: bool,
    over: bool,
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
        let clocks = TrialClocks::place(setting.hands, epoch_ns, monotonic::now_ns())?;
        let moments = Moments::start(observer, epoch_ns);
        let moments = moments.map_err(|error| {
            Failure::Ourselves(format!("no thread for the moments of the window: {error}"))
        })?;
        let names = setting.hands.iter().map(Hand::name).collect();
        let run = TrialRun {
            setting,
            order,
            turn,
            epoch_ns,
            observer,
            moments,
            control: Control::new(turn, order.shards, setting.silence, names),
            clocks,
            is_settled: vec![false; order.shards as usize],
            opened: vec![None; order.shards as usize],
            has_moment: Told::default(),
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
        while !self.control.is_over(self.moments.is_done(), self.now()) {
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
        let (states, lost) = self.control.ended();
        let start = self.control.sums.start_ns.map(Nanos);
        Ended { states, lost, clocks: self.clocks, start }
    }

    fn now(&self) -> Nanos {
        Nanos(u64::try_from(monotonic::now_ns() - self.epoch_ns).unwrap_or(0))
    }

    fn take(&mut self, event: Event) {
        let now = self.now();
        match event {
            Event::State(state) => self.control.hear(*state),
            Event::Report(bytes) => self.report(&bytes),
            Event::Taken(Replied { turn, rank, reply: Err(why) }) if turn == self.turn => {
                self.control.note_not_taken(rank, why, now);
            }
            Event::Named(Replied { turn, rank, reply }) if turn == self.turn => {
                if let Some(start) = self.control.take_named(rank, reply, now) {
                    self.confirm(start);
                }
            }
            Event::Confirmed(Replied { turn, rank, reply }) if turn == self.turn => {
                self.control.take_confirmed(rank, reply, now);
            }
            // The level is read before each look.
            Event::Stop => {}
            // They are of a trial before.
            Event::Taken(_) | Event::Named(_) | Event::Confirmed(_) => {}
        }
    }

    fn report(&mut self, bytes: &[u8]) {
        let Some((report, body)) = Report::split(bytes) else { return };
        if !self.control.sums.take_report(report.turn, report.rank, report.number) {
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
                let name = self.control.name(report.rank);
                let text = format!("{name}: an interval is unreadable: {error}");
                self.control.fail(Failure::Ourselves(text), self.now());
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
        let (now, now_ns) = (self.now(), monotonic::now_ns());
        self.control.stop(self.setting.stopping.level());
        self.forward_openings();
        let hands = self.setting.hands;
        self.clocks.sample_sometimes(hands, now_ns);
        let sighting = |hand: &Hand| Sighting {
            rank: hand.rank,
            silent: Nanos(u64::try_from(now_ns - hand.clock.heard_ns()).unwrap_or(0)),
            is_disowned: hand.clock.is_disowned(),
        };
        self.control.see_failures(hands.iter().map(sighting), now);
        if self.control.is_failing() {
            return;
        }
        self.tell_moments();
        if self.control.is_ending() {
            return;
        }
        let round_trip = |hand: &Hand| hand.clock_at(now_ns).map(|known| known.round_trip_ns);
        let longest = || Nanos(hands.iter().filter_map(round_trip).max().unwrap_or(0));
        if let Some(start) = self.control.name_start(longest, now) {
            hands.iter().for_each(|hand| self.request(hand, What::Name(start)));
        }
    }

    /// Passes on how many connections stand.
    fn forward_openings(&mut self) {
        for opening in self.control.sums.states().iter().flat_map(|state| &state.opening) {
            let now = Some((opening.open, opening.all));
            let Some(last) = self.opened.get_mut(opening.shard as usize) else { continue };
            if *last != now {
                *last = now;
                self.observer.progress(opening.shard, Progress::Opening(opening.open, opening.all));
            }
        }
    }

    fn confirm(&mut self, start: Start) {
        self.clocks.errors_at(self.setting.hands, Nanos(start.start_ns));
        for (index, hand) in self.setting.hands.iter().enumerate() {
            let clock = self.clocks.known(index, hand, monotonic::now_ns());
            self.request(hand, What::Confirm(Confirm { start, clock }));
        }
    }

    fn tell_moments(&mut self) {
        let load = &self.order.trial.load;
        let states = self.control.sums.states();
        if let Some(start) = self.control.sums.start_ns.map(Nanos)
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
        if self.moments.is_done() {
            self.control.let_go();
        }
    }

    /// Publishes the state of all, if it is time.
    fn publish(&mut self) {
        let Some(whole) = self.control.publish(self.now()) else { return };
        let Setting { bus, session, .. } = self.setting;
        let (client, subject) = (bus.client().clone(), subjects::whole(bus.fleet(), session));
        bus.spawn(async move { publish(&client, subject, written(&whole).into()).await });
    }

    /// Asks an agent; its reply becomes an event.
    fn request(&self, hand: &Hand, what: What) {
        let (line, to) = (hand.line.clone(), self.setting.replies.clone());
        let (turn, rank) = (self.turn, hand.rank);
        let patience = self.control.patience();
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
/// An agent may still end the trial before.
const TAKE_PATIENCE: Duration = Duration::from_secs(15);
const UNANSWERED: &str = "it did not answer";
