//! One thread of the generator: its connections, its loop, its record. It shares nothing but a
//! few numbers with the others, and everything it does is a step over an [`Io`], so that a
//! whole trial can run on virtual time.
//!
//! Its phases, and what ends each:
//!
//! ```text
//! Opening ─all stand─► Waiting ─start─► WarmingUp ─warm-up over─► Measuring
//!                                                                     │ nothing more is due
//! Done ◄─ Closing ◄─looked at─ Settled ◄─ Lingering ◄─all settled─ Draining
//! ```
//!
//! A message's way through the queues of one step:
//!
//! ```text
//! Source::Shared ──due──► backlog ──free_links──┐
//! Source::{Own, Closed} ──timers──► waiting ────┤ to_serve
//! Source::Burst ──at its turn──► burst_left ────┤
//! freed slots ──Source::Closed──► waiting ──────┤
//! unblocked links ──────────────────────────────┴► send ──► dirty ──flush──► Io
//! requests (Consumer::Poll) ────────────────────────► ask ──►─┘               │ events
//! freed, unblocked, deliveries, answered ◄── Bookkeeping ◄── signals of connections
//!                                                        losses ──► links down ──► reopens
//! ```
//!
//! All differences between trials are decided when the shard is made: [`Source`] makes messages
//! due, [`rules::Exchange`] sends them, [`rules::Consumer`] fetches them.

mod batching;
mod books;
mod finishing;
mod joining;
mod links;
mod metered;
mod opening;
mod parting;
mod parts;
mod polling;
mod receiving;
mod releasing;
mod repeating;
mod rules;
mod sending;
mod silence;
mod source;
mod spacing;
mod stalling;
mod streaming;
mod waking;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use weigh_model::protocol::Role;
use weigh_model::{Arrival, Nanos, Pattern};

use crate::io::Io;
use crate::job::{Failure, Job, Progress, ShardInterval};
use crate::link::{LinkId, LinkState};
use crate::outcome::ShardOutcome;
use crate::rendezvous::orders::Orders;
use books::Bookkeeping;
use links::Links;
use parting::Parting;
use parts::Metered;
use parts::PIECE_BYTES;
pub use parts::Phase;
use parts::Silence;
use parts::Stall;
use parts::{Awaited, Clock, Connecting, Output, Pending, Reported, Request};
use rules::Rules;
use source::Source;
use waking::Waking;

/// One shard of a trial.
pub struct Shard {
    job: Arc<Job>,
    /// Those of the rendezvous: every step looks at them.
    orders: Arc<Orders>,
    links: Links,
    books: Bookkeeping,
    /// The link of each token.
    by_token: Vec<LinkId>,
    rules: Rules,
    clock: Clock,
    source: Source,
    pending: Pending,
    /// Requests that consumers are to make.
    requests: BinaryHeap<Reverse<Request>>,
    connecting: Connecting,
    waking: Waking,
    reported: Reported,
    /// State of consumers: reading or stalled.
    stall: Stall,
    /// Whether the target has ever sent a byte.
    silence: Silence,
    out: Output,
    awaited: Awaited,
    /// Counts of codecs, if packets are captured.
    metered: Option<Box<Metered>>,
    /// Closed connections whose last bytes may not have arrived.
    parting: Parting,
    failure: Option<Failure>,
}

impl Shard {
    /// Shard `index` of the job; `progress` hears what it does.
    pub fn new(job: Arc<Job>, index: u32, progress: Box<dyn FnMut(Progress) + Send>) -> Shard {
        let load = job.load();
        let mine = |count: u32| (index..count).step_by(job.shards as usize);
        let (consumers, producers) = (mine(load.subscribers).len(), mine(load.connections).len());
        let rules = Rules::of(&job);
        let mut links = Links::with_room(consumers, producers);
        let mut books = Bookkeeping::new(Arc::clone(&job), rules, consumers, producers);
        for seat in mine(load.subscribers) {
            links.push(LinkState::new(seat, books.open_consumer(seat), Role::Consumer));
        }
        let mut owed = 0;
        for producer in mine(load.connections) {
            let state = producer_state(&job, producer, books.open_producer(producer));
            owed += state.traffic().quota + state.traffic().burst_left;
            links.push(state);
        }
        let producing: Vec<u32> = mine(load.connections).collect();
        Shard {
            orders: Arc::clone(job.rendezvous.orders()),
            links,
            books,
            rules,
            by_token: Vec::with_capacity(consumers + producers),
            clock: Clock::unset(),
            source: Source::of(&job, index, &producing),
            pending: Pending { owed, ..Pending::default() },
            requests: BinaryHeap::new(),
            connecting: Connecting {
                next_joiner: consumers + if load.join.is_some() { 0 } else { producers },
                next_source: index as usize,
                ..Connecting::default()
            },
            waking: Waking::new(consumers + producers),
            reported: Reported::to(progress),
            stall: Stall::of(load),
            silence: Silence::default(),
            out: Output { body: Vec::with_capacity(body_room(&job)), ..Output::default() },
            awaited: Awaited::default(),
            metered: job.is_metered.then(Box::default),
            parting: Parting::default(),
            failure: None,
            job,
        }
    }

    /// True once the books are closed.
    fn is_settled(&self) -> bool {
        matches!(self.clock.phase, Phase::Settled | Phase::Closing(_) | Phase::Done)
    }

    /// True once the measured window is over.
    pub fn is_past_window(&self) -> bool {
        self.books.outcome.recorder.window.is_over()
    }

    /// Returns the phase of the trial.
    pub fn phase(&self) -> Phase {
        self.clock.phase
    }

    /// Waits for the next thing to happen and does what follows from it. False once the trial
    /// is over for this shard.
    pub fn step(&mut self, io: &mut dyn Io) -> bool {
        let until = self.next_moment(io);
        self.books.epoch = io.epoch();
        io.turn(until, &mut |now, event| self.on_event(now, event));
        self.drop_lost(io);
        let now = io.now();
        self.books.outcome.recorder.window.end_turn(now);
        if now >= self.clock.next_sweep {
            self.clock.next_sweep = now + SWEEP;
            self.sweep(now);
            self.check_silence(io, now);
        }
        self.reopen(io, now);
        self.stall_consumers(io, now);
        self.flush_consumers(io);
        match self.clock.phase {
            Phase::Opening => self.open_more(io),
            Phase::Waiting => self.wait_for_start(io),
            Phase::WarmingUp | Phase::Measuring if now < self.clock.start => {}
            Phase::WarmingUp | Phase::Measuring => {
                if !self.clock.has_begun {
                    self.begin(now);
                }
                self.join_clients(io, now);
                self.clock.is_past_end = now >= self.clock.end;
                self.send_due(io, now);
                self.ask_due(io, now);
            }
            Phase::Draining => {
                self.repeat_unprocessed(io);
                self.ask_due(io, now);
                self.drain(now);
            }
            Phase::Lingering(until) if now >= until => self.settle(),
            Phase::Lingering(_) => {}
            Phase::Settled if self.orders.is_held() => {}
            Phase::Settled if self.metered.is_some() => self.start_closing(io),
            Phase::Settled => self.close_all(io),
            Phase::Closing(until) => self.await_closes(until, io),
            Phase::Done => return false,
        }
        // What was said in this turn may want to leave at its end.
        let woken_at = if self.waking.is_exact() { io.now() } else { now };
        self.wake_connections(woken_at);
        self.flush_dirty(io);
        self.drop_lost(io);
        if !self.parting.is_empty() {
            self.parting.turn(io);
        }
        self.report_interval(now);
        self.check_stop(io);
        self.books.hand_notes_over(self.clock.phase == Phase::Settled);
        self.clock.phase != Phase::Done
    }

    /// Returns the results of the shard when it is done.
    pub fn outcome(self) -> ShardOutcome {
        let contents = self.metered.map(|metered| metered.contents);
        ShardOutcome { contents, ..self.books.into_outcome(self.failure) }
    }

    /// The next moment at which something must be done even if nothing happens.
    fn next_moment(&mut self, io: &mut dyn Io) -> Nanos {
        let is_sending = matches!(self.clock.phase, Phase::WarmingUp | Phase::Measuring);
        let can_send = !self.books.unblocked.is_empty()
            || !self.books.freed.is_empty()
            || !self.pending.to_serve.is_empty();
        if is_sending && ((self.clock.has_begun && can_send) || self.pending.is_cut_short) {
            return Nanos(0);
        }
        if !self.out.streaming.is_empty() {
            return Nanos(0);
        }
        let mut until = match self.clock.phase {
            Phase::Opening if self.has_openable() => self.connecting.spacing.not_before(),
            Phase::Waiting if self.clock.start == Nanos::NEVER => io.now() + SHARD_POLL,
            Phase::Waiting => self.clock.start - START_LEAD,
            _ if is_sending && !self.clock.has_begun => self.clock.start,
            Phase::Draining => {
                self.drain_moment(io).min(self.next_ask().max(self.pending.paced_until))
            }
            Phase::Lingering(until) | Phase::Closing(until) => until,
            Phase::Settled if !self.orders.is_held() => {
                return Nanos(0);
            }
            Phase::Settled => io.now() + SHARD_POLL,
            Phase::WarmingUp => self.reported.next_interval.min(self.clock.measure_from),
            _ => self.reported.next_interval,
        };
        until = until.min(self.clock.next_sweep).min(self.stall.ends()).min(self.waking.next());
        until = until.min(self.parting.next());
        if is_sending && self.clock.has_begun {
            until = until.min(self.next_due_moment());
            // Once over, what still waits to be sent must not be waited for in circles.
            if !self.clock.is_past_end {
                until = until.min(self.clock.end);
            }
        }
        until.min(self.connecting.reopens.next())
    }

    /// Returns the due time of the next message, put off so that wake-ups keep a quantum between
    /// them on average: at high rates all that is due within it starts together, while neighbours
    /// by chance at low rates keep their own times.
    fn next_due_moment(&self) -> Nanos {
        let source = match self.source {
            // Its next message waits for room.
            Source::Shared(_) if self.is_overfull() => Nanos::NEVER,
            _ => self.source.next_moment(self.clock.start),
        };
        match source.min(self.next_turn()).min(self.next_ask()) {
            Nanos::NEVER => Nanos::NEVER,
            due => due.max(self.pending.paced_until),
        }
    }

    fn wait_for_start(&mut self, io: &mut dyn Io) {
        let now = io.now();
        if self.clock.start == Nanos::NEVER {
            let Some(start) = self.job.rendezvous.start(now) else { return };
            self.set_start(start);
        }
        if now + START_LEAD >= self.clock.start {
            let has_warmup = self.clock.start < self.clock.measure_from;
            self.clock.phase = if has_warmup { Phase::WarmingUp } else { Phase::Measuring };
            self.reported.reported_at = self.clock.start;
            self.reported.next_interval = self.border_after(self.clock.start);
        }
    }

    fn set_start(&mut self, start: Nanos) {
        let load = self.job.load();
        self.clock.start = start;
        self.clock.measure_from = start + load.warmup;
        self.clock.end =
            load.duration.map_or(Nanos::NEVER, |duration| self.clock.measure_from + duration);
        self.books.outcome.measure_from = self.clock.measure_from;
        self.books.outcome.recorder.window.open(start);
    }

    /// Reports what was done since the last border, when the load ends, and at the very end.
    fn report_interval(&mut self, now: Nanos) {
        let has_started = !matches!(self.clock.phase, Phase::Opening | Phase::Waiting);
        let is_sending = matches!(self.clock.phase, Phase::WarmingUp | Phase::Measuring);
        // An interval that holds both load and draining would show a rate that was never offered.
        let ends_load = !is_sending && !self.reported.is_load_reported;
        let is_over = self.is_settled() || ends_load;
        let is_told = is_over && self.books.outcome.recorder.is_interval_empty();
        if !has_started || self.clock.start == Nanos::NEVER {
            return;
        }
        if is_told {
            self.reported.is_load_reported |= ends_load;
            return;
        }
        if now < self.reported.next_interval && !is_over {
            return;
        }
        // Of borders that passed unseen the last one counts.
        let is_early = now < self.reported.next_interval;
        let passed = self.border_after(now) - self.job.every;
        let border = if is_early { self.reported.next_interval } else { passed };
        self.reported.next_interval = border + self.job.every;
        let warmup = border <= self.clock.measure_from;
        let (mut interval, times) = self.books.take_interval(now, warmup);
        interval.length_ns = Some((now - self.reported.reported_at).0);
        interval.draining = self.reported.is_load_reported;
        self.reported.is_load_reported = !is_sending;
        self.reported.reported_at = now;
        let told = ShardInterval { interval, border, times, cpu: Nanos(0) };
        (self.reported.progress)(Progress::Interval(Box::new(told)));
    }

    /// The first end of an interval after `now`: they lie so that one is where warm-up ends, at
    /// the same moments for all shards.
    fn border_after(&self, now: Nanos) -> Nanos {
        let every = self.job.every.0.max(1);
        let from = self.clock.measure_from;
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

/// Time from the change of the phase to the start, so that observers can read counters without
/// making the first message late.
const START_LEAD: Nanos = Nanos::from_millis(1);

/// Interval at which a shard checks whether the others are ready.
const SHARD_POLL: Nanos = Nanos::from_micros(500);

/// Interval at which flights and connection attempts are checked against their time limits.
const SWEEP: Nanos = Nanos::from_millis(100);

/// Least time between two wake-ups for due messages, on average. A precise wake-up costs some
/// 25 µs of processor time, so this bounds their cost at a quarter of a core.
const QUANTUM: Nanos = Nanos::from_micros(100);

/// Maximum time that can be saved by not waking: 32 wake-ups may follow one another as closely as
/// they are due.
const PACE_CREDIT: Nanos = Nanos::from_micros(3200);

#[cfg(test)]
mod tests;
