//! One thread of the generator: its connections, its loop, its record. It shares nothing but a
//! few numbers with the others, and everything it does is a step over an [`Io`], so that a
//! whole trial can run on virtual time.

mod backlog;
mod batching;
mod desk;
mod finishing;
mod joining;
mod metered;
mod opening;
mod polling;
mod receiving;
mod seconds;
mod sending;
mod stalling;
mod streaming;
mod waking;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use weigh_model::protocol::Role;
use weigh_model::{Arrival, Nanos, Pattern};

use crate::io::Io;
use crate::job::{Failure, Job, Progress, ShardInterval};
use crate::link::{Link, LinkState};
use crate::outcome::ShardOutcome;
use crate::schedule::{Due, Schedule};
use backlog::Bounds;
use batching::Gathered;
use desk::Desk;
use metered::Metered;
use polling::Reason;
use receiving::{Loss, Spare};
use seconds::Share;
use stalling::Stall;
use streaming::PIECE_BYTES;
use waking::Waking;

/// One shard of a trial.
pub struct Shard {
    job: Arc<Job>,
    links: Vec<Link>,
    desk: Desk,
    /// The link of each token.
    by_token: Vec<u32>,
    phase: Phase,
    /// When the load started; the schedule counts from here.
    start: Nanos,
    /// When warm-up ends.
    measure_from: Nanos,
    /// When nothing more becomes due.
    end: Nanos,
    /// The stream that all clients share, and its next entry.
    stream: Option<Schedule>,
    stream_next: Option<Due>,
    /// Shared messages that are due and wait for a link.
    backlog: VecDeque<Nanos>,
    /// What holds those back.
    bounds: Bounds,
    /// Links that may take a shared message, in turn.
    takers: VecDeque<u32>,
    /// The stream of each producer, where each has its own.
    streams: Vec<Schedule>,
    /// Links that had no time to send all they could.
    eager: Vec<u32>,
    timers: BinaryHeap<Reverse<(Nanos, Timer, u32)>>,
    /// When which consumer asks for what is new, and why.
    asks: BinaryHeap<Reverse<(Nanos, Reason, u32)>>,
    /// What each producer has sent in which second, where each second has a share.
    shares: Vec<Share>,
    /// Links to be connected again, and when.
    reopens: BinaryHeap<Reverse<(Nanos, u32)>>,
    waking: Waking,
    /// Connections that were asked for, in the order of time; most of them stand by now.
    openings: VecDeque<(Nanos, u32)>,
    next_unopened: usize,
    /// The link of the next client that comes while the load runs.
    next_joiner: usize,
    next_source: usize,
    last_release: Nanos,
    /// The latest due time of a message that became due.
    newest_due: Nanos,
    /// Before this no wake-up for due messages: it moves on by a quantum with each.
    paced_until: Nanos,
    next_interval: Nanos,
    /// Whether consumers read.
    stall: Stall,
    /// When the last interval ended.
    told_at: Nanos,
    /// True once the interval in which the load ended was reported.
    is_load_told: bool,
    next_sweep: Nanos,
    /// Messages that quotas or bursts still owe.
    owed: u64,
    /// Client streams that are not spent.
    streams_left: usize,
    /// Links that were given up, by role: producers, consumers.
    dead: (usize, usize),
    /// Connections to take down.
    losses: Vec<Loss>,
    /// Links with bytes to flush.
    dirty: Vec<u32>,
    /// Links whose sockets would take more of the object that they send.
    streaming: Vec<u32>,
    spare: Spare,
    /// The body being composed, or those of one exchange.
    body: Vec<u8>,
    /// The messages of the exchange that is being put together.
    gathered: Vec<Gathered>,
    tag: u16,
    delivers_complete: bool,
    has_begun: bool,
    /// True once a step has seen the end of the load.
    is_past_end: bool,
    is_told_complete: bool,
    told_unique: u64,
    progress: Box<dyn FnMut(Progress) + Send>,
    /// What codecs count, where somebody listens on the wire.
    metered: Option<Box<Metered>>,
    failure: Option<Failure>,
}

/// How far the trial is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Connections are being made.
    Opening,
    /// Ours stand; other shards are not ready yet, or the start lies ahead.
    Waiting,
    /// Messages before the measured window are sent.
    WarmingUp,
    /// Measured messages are sent.
    Measuring,
    /// Nothing more is sent; answers and deliveries are awaited.
    Draining,
    /// Everything is accounted for; what may still come twice is awaited for a moment.
    Lingering(Nanos),
    /// The books are closed, the connections are not: what they cost can be looked at.
    Settled,
    /// Goodbye is said; what the other side still says is listened to, because it is counted.
    Parting(Nanos),
    /// Over.
    Done,
}

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// A slot of a closed loop is free again after the think time.
    Slot,
    /// The next message of a client's own stream is due.
    Client,
}

impl Shard {
    /// Shard `index` of the job; `progress` hears what it does.
    pub fn new(job: Arc<Job>, index: u32, progress: Box<dyn FnMut(Progress) + Send>) -> Shard {
        let load = job.load();
        let mine = |count: u32| (index..count).step_by(job.shards as usize);
        let (consumers, producers) = (mine(load.subscribers).len(), mine(load.connections).len());
        let mut links = Vec::with_capacity(consumers + producers);
        let idle = |state| Link { connection: None, state };
        let mut desk = Desk::new(Arc::clone(&job), consumers, producers);
        for seat in mine(load.subscribers) {
            links.push(idle(LinkState::new(seat, desk.open_consumer(seat), Role::Consumer)));
        }
        let (mut streams, mut owed) = (Vec::new(), 0);
        for producer in mine(load.connections) {
            let state = producer_state(&job, producer, desk.open_producer(producer));
            owed += state.traffic().quota + state.traffic().burst_left;
            streams.extend(Schedule::client(load, job.trial.seed, producer));
            links.push(idle(state));
        }
        Shard {
            links,
            desk,
            by_token: Vec::with_capacity(consumers + producers),
            phase: Phase::Opening,
            start: Nanos::NEVER,
            measure_from: Nanos::NEVER,
            end: Nanos::NEVER,
            stream: Schedule::shared(load, &job.trace, job.trial.seed, index, job.shards),
            stream_next: None,
            backlog: VecDeque::new(),
            bounds: Bounds::default(),
            takers: VecDeque::new(),
            streams,
            eager: Vec::new(),
            timers: BinaryHeap::new(),
            asks: BinaryHeap::new(),
            shares: seconds::shares(load, producers),
            reopens: BinaryHeap::new(),
            waking: Waking::new(consumers + producers),
            openings: VecDeque::new(),
            next_unopened: 0,
            next_joiner: consumers + if load.join.is_some() { 0 } else { producers },
            next_source: index as usize,
            last_release: Nanos(0),
            newest_due: Nanos(0),
            paced_until: Nanos(0),
            next_interval: Nanos(0),
            stall: Stall::of(load),
            told_at: Nanos(0),
            is_load_told: false,
            next_sweep: Nanos(0),
            owed,
            streams_left: 0,
            dead: (0, 0),
            losses: Vec::new(),
            dirty: Vec::new(),
            streaming: Vec::new(),
            spare: Spare::default(),
            body: Vec::with_capacity(body_room(&job)),
            gathered: Vec::new(),
            tag: job.trial.tag(),
            delivers_complete: job.completes_on_delivery(),
            has_begun: false,
            is_past_end: false,
            is_told_complete: false,
            told_unique: 0,
            progress,
            metered: job.is_metered.then(Box::default),
            failure: None,
            job,
        }
    }

    /// True once the books are closed.
    fn is_settled(&self) -> bool {
        matches!(self.phase, Phase::Settled | Phase::Parting(_) | Phase::Done)
    }

    /// True once the measured window is over.
    pub fn is_past_window(&self) -> bool {
        self.desk.recorder.window.is_over()
    }

    /// How far it is.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Waits for the next thing to happen and does what follows from it. False once the trial
    /// is over for this shard.
    pub fn step(&mut self, io: &mut dyn Io) -> bool {
        let until = self.next_moment(io);
        self.desk.epoch = io.epoch();
        io.turn(until, &mut |now, happening| self.happened(now, happening));
        self.drop_lost(io);
        let now = io.now();
        self.desk.recorder.window.end_turn(now);
        if now >= self.next_sweep {
            self.next_sweep = now + SWEEP;
            self.sweep(now);
        }
        self.reopen(io, now);
        self.stall_consumers(io, now);
        self.flush_consumers(io);
        match self.phase {
            Phase::Opening => self.open_more(io),
            Phase::Waiting => self.wait_for_start(io),
            Phase::WarmingUp | Phase::Measuring if now < self.start => {}
            Phase::WarmingUp | Phase::Measuring => {
                if !self.has_begun {
                    self.begin(now);
                }
                self.join_clients(io, now);
                self.is_past_end = now >= self.end;
                self.send_due(io, now);
                self.ask_due(io, now);
            }
            Phase::Draining => {
                self.ask_due(io, now);
                self.drain(now);
            }
            Phase::Lingering(until) if now >= until => self.settle(),
            Phase::Lingering(_) => {}
            Phase::Settled if self.job.shared.is_looked_at.load(Ordering::SeqCst) => {}
            Phase::Settled if self.metered.is_some() => self.say_goodbye(io),
            Phase::Settled => self.part(io),
            Phase::Parting(until) => self.await_goodbyes(until, io),
            Phase::Done => return false,
        }
        self.wake_connections(now);
        self.flush_dirty(io);
        self.drop_lost(io);
        self.tell_interval(now);
        self.heed_stop(io);
        self.desk.hand_notes_over(self.phase == Phase::Settled);
        self.phase != Phase::Done
    }

    /// What the shard has to tell when it is done.
    pub fn outcome(self) -> ShardOutcome {
        let contents = self.metered.map(|metered| metered.contents);
        ShardOutcome { contents, ..self.desk.into_outcome(self.failure) }
    }

    /// The next moment at which something must be done even if nothing happens.
    fn next_moment(&mut self, io: &mut dyn Io) -> Nanos {
        let is_sending = matches!(self.phase, Phase::WarmingUp | Phase::Measuring);
        let is_stirred = !self.desk.stirred.is_empty() || !self.desk.freed.is_empty();
        if is_sending && self.has_begun && (is_stirred || !self.eager.is_empty()) {
            return Nanos(0);
        }
        if is_sending && self.bounds.is_cut_short {
            return Nanos(0);
        }
        if !self.streaming.is_empty() {
            return Nanos(0);
        }
        let mut until = match self.phase {
            Phase::Opening if self.has_openable() => return Nanos(0),
            Phase::Waiting if self.start == Nanos::NEVER => io.now() + SHARD_POLL,
            Phase::Waiting => self.start - START_LEAD,
            _ if is_sending && !self.has_begun => self.start,
            Phase::Draining => self.drain_moment(io).min(self.next_ask().max(self.paced_until)),
            Phase::Lingering(until) | Phase::Parting(until) => until,
            Phase::Settled if !self.job.shared.is_looked_at.load(Ordering::SeqCst) => {
                return Nanos(0);
            }
            Phase::Settled => io.now() + SHARD_POLL,
            Phase::WarmingUp => self.next_interval.min(self.measure_from),
            _ => self.next_interval,
        };
        until = until.min(self.next_sweep).min(self.stall.ends()).min(self.waking.next());
        if is_sending && self.has_begun {
            until = until.min(self.next_due_moment());
            // Once over, what still waits to be sent must not be waited for in circles.
            if !self.is_past_end {
                until = until.min(self.end);
            }
        }
        if let Some(Reverse((at, _))) = self.reopens.peek() {
            until = until.min(*at);
        }
        until
    }

    /// When the next message is due, put off so that wake-ups keep a quantum between them on
    /// average: at high rates all that is due within it starts together, while neighbours by
    /// chance at low rates keep their own times.
    fn next_due_moment(&self) -> Nanos {
        let stream = self.stream_next.filter(|_| !self.is_backlog_full());
        let stream = stream.map_or(Nanos::NEVER, |due| self.start + due.at);
        let timer = self.timers.peek().map_or(Nanos::NEVER, |Reverse((at, _, _))| *at);
        match stream.min(timer).min(self.next_turn()).min(self.next_ask()) {
            Nanos::NEVER => Nanos::NEVER,
            due => due.max(self.paced_until),
        }
    }

    fn wait_for_start(&mut self, io: &mut dyn Io) {
        let shared = &self.job.shared;
        let now = io.now();
        if self.start == Nanos::NEVER {
            if shared.ready.load(Ordering::SeqCst) < self.job.shards {
                return;
            }
            let ahead = (now + START_AHEAD).0;
            let set =
                shared.start_ns.compare_exchange(0, ahead, Ordering::SeqCst, Ordering::SeqCst);
            self.set_start(Nanos(set.map_or_else(|already| already, |_| ahead)));
        }
        if now + START_LEAD >= self.start {
            let has_warmup = self.start < self.measure_from;
            self.phase = if has_warmup { Phase::WarmingUp } else { Phase::Measuring };
            self.told_at = self.start;
            self.next_interval = self.border_after(self.start);
        }
    }

    fn set_start(&mut self, start: Nanos) {
        let load = self.job.load();
        self.start = start;
        self.measure_from = start + load.warmup;
        self.end = load.duration.map_or(Nanos::NEVER, |duration| self.measure_from + duration);
        self.desk.measure_from = self.measure_from;
        self.desk.recorder.window.open(start);
    }

    /// The load starts: slots open, streams begin.
    fn begin(&mut self, now: Nanos) {
        self.has_begun = true;
        self.begin_polling();
        self.stream_next = self.stream.as_mut().and_then(Schedule::next_due);
        let load = self.job.load().clone();
        let mut stream = 0;
        for index in 0..self.links.len() as u32 {
            if self.links[index as usize].state.role == Role::Consumer {
                continue;
            }
            self.note_window(index);
            if let Some(schedule) = self.streams.get_mut(stream) {
                if let Some(due) = schedule.next_due() {
                    self.desk.scheduled(due.warmup);
                    self.timers.push(Reverse((self.start + due.at, Timer::Client, index)));
                    self.streams_left += 1;
                }
                stream += 1;
            } else if load.join.is_none() {
                self.begin_client(index, self.start);
            }
        }
        self.last_release = now;
    }

    /// What a client has to send of its own accord is due from `since` on.
    fn begin_client(&mut self, index: u32, since: Nanos) {
        let job = Arc::clone(&self.job);
        let load = job.load();
        match load.arrival {
            Arrival::Closed | Arrival::EachSecond if load.pattern != Pattern::Hold => {
                self.open_slots(index, since);
            }
            Arrival::Ramp(over) => {
                let place = u64::from(self.links[index as usize].state.index);
                let offset = over.0 * place / u64::from(load.connections);
                self.timers.push(Reverse((since + Nanos(offset), Timer::Slot, index)));
            }
            _ => {}
        }
        let burst = self.links[index as usize].state.traffic().burst_left;
        self.desk.scheduled_many(burst);
        if burst > 0 {
            self.eager.push(index);
        } else {
            self.offer(index);
        }
    }

    /// Reports what was done since the last border, when the load ends, and at the very end.
    fn tell_interval(&mut self, now: Nanos) {
        let has_started = !matches!(self.phase, Phase::Opening | Phase::Waiting);
        let is_sending = matches!(self.phase, Phase::WarmingUp | Phase::Measuring);
        // An interval that holds both load and draining would show a rate that nobody offered.
        let ends_load = !is_sending && !self.is_load_told;
        let is_over = self.is_settled() || ends_load;
        let is_told = is_over && self.desk.recorder.is_interval_empty();
        if !has_started || self.start == Nanos::NEVER {
            return;
        }
        if is_told {
            self.is_load_told |= ends_load;
            return;
        }
        if now < self.next_interval && !is_over {
            return;
        }
        // Of borders that passed unseen the last one counts.
        let is_early = now < self.next_interval;
        let passed = self.border_after(now) - self.job.every;
        let border = if is_early { self.next_interval } else { passed };
        self.next_interval = border + self.job.every;
        let warmup = border <= self.measure_from;
        let (mut interval, times) = self.desk.take_interval(now, warmup);
        interval.length_ns = Some((now - self.told_at).0);
        interval.draining = self.is_load_told;
        self.is_load_told = !is_sending;
        self.told_at = now;
        let told = ShardInterval { interval, border, times, cpu: Nanos(0) };
        (self.progress)(Progress::Interval(Box::new(told)));
    }

    /// The first end of an interval after `now`: they lie so that one is where warm-up ends, at
    /// the same moments for all shards.
    fn border_after(&self, now: Nanos) -> Nanos {
        let every = self.job.every.0.max(1);
        let from = self.measure_from;
        if now < from {
            let before = ((from - now).0 - 1) / every;
            return from - Nanos(before * every);
        }
        from + Nanos(((now - from).0 / every + 1) * every)
    }
}

/// The link of a producer with its share of the total, where it has one of its own.
fn producer_state(job: &Job, producer: u32, account: u32) -> LinkState {
    let load = job.load();
    let mut state = LinkState::new(producer, account, Role::Producer);
    if load.pattern != Pattern::Hold {
        // Now, not when the first message is due.
        state.traffic_mut();
    }
    let share =
        load.messages.map_or(0, |total| load.split.share(total, load.connections, producer));
    if job.has_quotas() {
        state.traffic_mut().quota = share;
    }
    if load.arrival == Arrival::Burst {
        state.traffic_mut().burst_left = share;
    }
    state
}

/// The memory that composing takes: a whole body, or a piece of it.
fn body_room(job: &Job) -> usize {
    let whole = job.composer.bytes_max();
    if job.composer.makes_pieces() { whole.min(PIECE_BYTES) } else { whole }
}

/// How long after the last connection stood the load starts: long enough for all shards to
/// notice.
const START_AHEAD: Nanos = Nanos::from_millis(2);

/// How long before the start the phase changes, so that whoever attends can read counters
/// without making the first message late.
const START_LEAD: Nanos = Nanos::from_millis(1);

/// How often a shard looks whether the others are ready.
const SHARD_POLL: Nanos = Nanos::from_micros(500);

/// How often flights and connection attempts are checked against their time limits.
const SWEEP: Nanos = Nanos::from_millis(100);

/// Least time between two wake-ups for due messages, on average. A precise wake-up costs some
/// 25 µs of processor time, so this bounds their cost at a quarter of a core.
const QUANTUM: Nanos = Nanos::from_micros(100);

/// So much of that time can be saved up by not waking: 32 wake-ups may follow one another as
/// closely as they are due.
const PACE_CREDIT: Nanos = Nanos::from_micros(3200);

#[cfg(test)]
mod tests;
