//! The parts of a shard that its files share: its phase, what becomes due, what goes out, what was
//! reported, and what holds back.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::net::SocketAddr;

use weigh_model::connection::Ticket;
use weigh_model::content::Phase as Part;
use weigh_model::{Arrival, Load, Nanos};

use crate::contents::{ConnectionContent, Contents};
use crate::job::Progress;
use crate::link::{Link, LinkState, Staged};
use crate::schedule::{Due, Schedule};

/// The phases of the trial, and the moments between them.
pub(super) struct Clock {
    pub(super) phase: Phase,
    /// When the load started; the schedule counts from here.
    pub(super) start: Nanos,
    /// When warm-up ends.
    pub(super) measure_from: Nanos,
    /// When nothing more becomes due.
    pub(super) end: Nanos,
    pub(super) next_sweep: Nanos,
    pub(super) has_begun: bool,
    /// True once a step has seen the end of the load.
    pub(super) is_past_end: bool,
}

impl Clock {
    /// Before the start is agreed on.
    pub(super) fn unset() -> Clock {
        Clock {
            phase: Phase::Opening,
            start: Nanos::NEVER,
            measure_from: Nanos::NEVER,
            end: Nanos::NEVER,
            next_sweep: Nanos(0),
            has_begun: false,
            is_past_end: false,
        }
    }
}

/// What becomes due, and who may take it.
pub(super) struct Source {
    /// The stream that all clients share, and its next entry.
    pub(super) stream: Option<Schedule>,
    pub(super) stream_next: Option<Due>,
    /// Shared messages that are due and wait for a link.
    pub(super) backlog: VecDeque<Nanos>,
    /// What holds those back.
    pub(super) bounds: Bounds,
    /// Links that may take a shared message, in turn.
    pub(super) takers: VecDeque<u32>,
    /// The stream of each producer, where each has its own.
    pub(super) streams: Vec<Schedule>,
    /// Links that had no time to send all they could.
    pub(super) eager: Vec<u32>,
    pub(super) timers: BinaryHeap<Reverse<(Nanos, Timer, u32)>>,
    /// When which consumer asks for what is new, and why.
    pub(super) asks: BinaryHeap<Reverse<(Nanos, Reason, u32)>>,
    /// What each producer has sent in which second, where each second has a share.
    pub(super) shares: Vec<Share>,
    pub(super) last_release: Nanos,
    /// The latest due time of a message that became due.
    pub(super) newest_due: Nanos,
    /// Before this no wake-up for due messages: it moves on by a quantum with each.
    pub(super) paced_until: Nanos,
    /// Messages that quotas or bursts still owe.
    pub(super) owed: u64,
    /// Client streams that are not spent.
    pub(super) streams_left: usize,
}

/// Connections that are made, lost and made again.
#[derive(Default)]
pub(super) struct Connecting {
    /// Links to be connected again, and when.
    pub(super) reopens: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Connections that were asked for, in the order of time; most of them stand by now.
    pub(super) openings: VecDeque<(Nanos, u32)>,
    pub(super) next_unopened: usize,
    /// The link of the next client that comes while the load runs.
    pub(super) next_joiner: usize,
    pub(super) next_source: usize,
    /// Links that were given up, by role: producers, consumers.
    pub(super) dead: (usize, usize),
    /// Connections to take down.
    pub(super) losses: Vec<Loss>,
}

/// What goes out: links to flush, and room for bodies.
#[derive(Default)]
pub(super) struct Output {
    /// Links with bytes to flush.
    pub(super) dirty: Vec<u32>,
    /// Links whose sockets would take more of the object that they send.
    pub(super) streaming: Vec<u32>,
    pub(super) spare: Spare,
    /// The body being composed, or those of one exchange.
    pub(super) body: Vec<u8>,
    /// The messages of the exchange that is being put together.
    pub(super) gathered: Vec<Gathered>,
}

/// What was reported of the trial while it runs, and to whom.
pub(super) struct Reported {
    pub(super) next_interval: Nanos,
    /// When the last interval ended.
    pub(super) told_at: Nanos,
    /// True once the interval in which the load ended was reported.
    pub(super) is_load_told: bool,
    pub(super) is_told_complete: bool,
    pub(super) told_unique: u64,
    pub(super) progress: Box<dyn FnMut(Progress) + Send>,
}

impl Reported {
    /// Nothing yet; `progress` hears what comes.
    pub(super) fn to(progress: Box<dyn FnMut(Progress) + Send>) -> Reported {
        Reported {
            next_interval: Nanos(0),
            told_at: Nanos(0),
            is_load_told: false,
            is_told_complete: false,
            told_unique: 0,
            progress,
        }
    }
}

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// A slot of a closed loop is free again after the think time.
    Slot,
    /// The next message of a client's own stream is due.
    Client,
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

/// Whether consumers read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stall {
    /// They do, until the window begins.
    Ahead,
    /// They do not, until then.
    Until(Nanos),
    /// They do for good.
    Over,
}

impl Stall {
    /// Of this load before it began.
    pub(super) fn of(load: &Load) -> Stall {
        if load.stall.is_some() { Stall::Ahead } else { Stall::Over }
    }

    /// When it ends, where that must be waited for.
    pub(super) fn ends(self) -> Nanos {
        match self {
            Stall::Until(end) => end,
            Stall::Ahead | Stall::Over => Nanos::NEVER,
        }
    }
}

/// Why a connection is lost.
#[derive(Clone, Debug)]
pub(super) struct Loss {
    pub(super) link: u32,
    pub(super) reason: String,
    /// True where trying again cannot help: the session was refused.
    pub(super) is_final: bool,
}

/// Buffers that no link needs now, so that an idle link holds none and a busy one need not wait
/// for memory.
#[derive(Default)]
pub(super) struct Spare {
    #[expect(clippy::vec_box, reason = "boxes go to links and come back: no byte is copied")]
    buffers: Vec<Box<Staged>>,
}

impl Spare {
    /// The buffers of a link, or spare ones if it has none.
    #[inline]
    pub(super) fn lend(&mut self, state: &mut LinkState) -> Box<Staged> {
        state.staged.take().or_else(|| self.buffers.pop()).unwrap_or_default()
    }

    /// Leaves the buffers with the link if they hold something.
    #[inline]
    pub(super) fn settle(&mut self, state: &mut LinkState, staged: Box<Staged>) {
        if staged.is_empty() {
            self.keep(staged);
        } else {
            state.staged = Some(staged);
        }
    }

    /// Takes the buffers of a link back if they hold nothing.
    #[inline]
    pub(super) fn take_back(&mut self, state: &mut LinkState) {
        if let Some(staged) = state.staged.take() {
            self.settle(state, staged);
        }
    }

    /// Keeps buffers for the next link with something to say, unless they have grown large.
    fn keep(&mut self, mut staged: Box<Staged>) {
        let is_small = |bytes: &Vec<u8>| bytes.capacity() <= BUFFER_KEPT_BYTES;
        let is_kept = is_small(staged.out.buffer()) && is_small(&staged.carry);
        if is_kept && self.buffers.len() < BUFFERS_KEPT {
            self.buffers.push(staged);
        }
    }
}

/// Why a consumer asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reason {
    /// Its period is over.
    Tick,
    /// Its last answer was full, or it polls long and has got its answer.
    Answer,
}

/// What codecs have counted so far.
#[derive(Default)]
pub(super) struct Metered {
    pub(super) contents: Contents,
    /// The own end of each link's connection.
    locals: Vec<Option<SocketAddr>>,
}

impl Metered {
    /// A link was connected from `local`.
    pub(super) fn opened(&mut self, link: u32, local: Option<SocketAddr>) {
        let place = link as usize;
        if place >= self.locals.len() {
            self.locals.resize(place + 1, None);
        }
        self.locals[place] = local;
    }

    /// The connection of a link is over.
    pub(super) fn closed(&mut self, number: u32, link: &mut Link) {
        let metered = link.connection.as_mut().and_then(|connection| connection.metered());
        let Some(mut counts) = metered.and_then(|own| own.counts()) else { return };
        let state = &link.state;
        // Of a packet that never became whole nobody knows what would have been payload.
        let rest = state.staged.as_ref().map_or(0, |staged| staged.carry.len());
        counts.received.add(Part::Messages, rest, 0);
        self.contents.note(ConnectionContent {
            local: self.locals.get(number as usize).copied().flatten(),
            role: state.role,
            index: state.index,
            opened_at: state.connecting_since,
            counts,
        });
    }
}

/// One message of an exchange that is being put together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gathered {
    pub(super) due: Nanos,
    pub(super) was_held_up: bool,
    /// What its body ends at in the memory for all of them.
    pub(super) body_end: usize,
    pub(super) ticket: Ticket,
}

/// What holds due messages back.
#[derive(Default)]
pub(super) struct Bounds {
    /// How many at the front of the backlog had to wait because no link could take them.
    pub(super) held_up: usize,
    /// True if links could take more of the backlog than one step hands out.
    pub(super) is_cut_short: bool,
    /// Due messages of clients of which too many wait, still to be taken.
    pub(super) parked: Vec<(Nanos, u32)>,
}

/// What a producer has sent in the second that it is in.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    /// The second, from the start of the load on.
    pub(super) second: u64,
    /// Messages that were let go in it.
    pub(super) spent: u64,
}

/// Those of so many producers; none where seconds have no shares.
pub(super) fn shares(load: &Load, producers: usize) -> Vec<Share> {
    let has_shares = load.arrival == Arrival::EachSecond;
    vec![Share::default(); if has_shares { producers } else { 0 }]
}

/// The size of a piece: as much as one read or write usually moves.
pub(super) const PIECE_BYTES: usize = 64 * 1024;

/// The largest buffer that is kept between turns, and how many pairs of them are.
pub(super) const BUFFER_KEPT_BYTES: usize = 128 * 1024;

pub(super) const BUFFERS_KEPT: usize = 64;
