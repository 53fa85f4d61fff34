//! The parts of a shard that its files share: its phase, what becomes due, what goes out, what was
//! reported, and what holds back.

use std::collections::VecDeque;
use std::net::SocketAddr;

use weigh_model::connection::Ticket;
use weigh_model::content::Phase as Part;
use weigh_model::{Load, Nanos};

use super::source::Timers;
use super::spacing::Spacing;
use crate::contents::{ConnectionContent, Contents};
use crate::job::Progress;
use crate::link::{Link, LinkId, LinkState, Staged};

/// The phases of the trial, and the moments between them.
pub(super) struct Clock {
    pub(super) phase: Phase,
    /// Start of the load; the schedule counts from here.
    pub(super) start: Nanos,
    /// End of the warm-up.
    pub(super) measure_from: Nanos,
    /// Time after which nothing more becomes due.
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

/// Messages that are due and wait for a link, and the time of the next check.
#[derive(Default)]
pub(super) struct Pending {
    /// Messages of a shared schedule.
    pub(super) backlog: VecDeque<Nanos>,
    /// Number of messages at the front of the backlog that had to wait because no link could take
    /// them.
    pub(super) held_up: usize,
    /// True if links could take more of the backlog than one step hands out.
    pub(super) is_cut_short: bool,
    /// Links that may take a message of the backlog, in turn.
    pub(super) free_links: VecDeque<LinkId>,
    /// Links with messages of their own that may be sent.
    pub(super) to_serve: Vec<LinkId>,
    pub(super) last_release: Nanos,
    /// The latest due time of a message that became due.
    pub(super) newest_due: Nanos,
    /// Before this no wake-up for due messages: it moves on by a quantum with each.
    pub(super) paced_until: Nanos,
    /// Messages that quotas or bursts still owe.
    pub(super) owed: u64,
}

/// A request that a consumer is to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Request {
    pub(super) due: Nanos,
    pub(super) reason: Reason,
    pub(super) link: LinkId,
}

/// What a shard knows of the target's first byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Silence {
    /// Nothing is awaited yet.
    #[default]
    Unasked,
    /// An answer has been awaited since then.
    Since(Nanos),
    /// A byte came, here or on another shard.
    Over,
}

/// Connections that are made, lost and made again.
#[derive(Default)]
pub(super) struct Connecting {
    /// Links to be connected again, and when.
    pub(super) reopens: Timers,
    /// Connections that were asked for, in the order of time; most of them stand by now.
    pub(super) openings: VecDeque<(Nanos, LinkId)>,
    pub(super) next_unopened: usize,
    /// The link of the next client that comes while the load runs.
    pub(super) next_joiner: usize,
    pub(super) next_source: usize,
    /// The most connections that stood while the first ones opened, and since when.
    pub(super) highest: (u64, Nanos),
    /// Links that were given up, by role: producers, consumers.
    pub(super) dead: (usize, usize),
    /// Connections to take down.
    pub(super) losses: Vec<Loss>,
    /// True if consumers get what they missed on their next connection.
    pub(super) resumes: bool,
    /// The longest time that a connection asked for until its session is open.
    pub(super) opens_within: Nanos,
    pub(super) spacing: Spacing,
}

/// Output: links to flush, and room for bodies.
#[derive(Default)]
pub(super) struct Output {
    /// Links with bytes to flush.
    pub(super) dirty: Vec<LinkId>,
    /// Links whose sockets would take more of the object that they send.
    pub(super) streaming: Vec<LinkId>,
    pub(super) spare: Spare,
    /// The body being composed, or those of one exchange.
    pub(super) body: Vec<u8>,
    /// The messages of the exchange that is being put together.
    pub(super) gathered: Vec<Gathered>,
}

/// Reports of the trial while it runs, and their receiver.
pub(super) struct Reported {
    pub(super) next_interval: Nanos,
    /// Time at which the last interval ended.
    pub(super) reported_at: Nanos,
    /// True once the interval in which the load ended was reported.
    pub(super) is_load_reported: bool,
    pub(super) is_complete_reported: bool,
    pub(super) reported_unique: u64,
    pub(super) progress: Box<dyn FnMut(Progress) + Send>,
}

impl Reported {
    /// Nothing yet; `progress` hears what comes.
    pub(super) fn to(progress: Box<dyn FnMut(Progress) + Send>) -> Reported {
        Reported {
            next_interval: Nanos(0),
            reported_at: Nanos(0),
            is_load_reported: false,
            is_complete_reported: false,
            reported_unique: 0,
            progress,
        }
    }
}

/// Phase of the trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Connections are being made.
    Opening,
    /// All connections of this shard stand; other shards are not ready, or the start is ahead.
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
    /// Sessions are closed; what the other side still sends is read, because it is counted, and
    /// what was said last is repeated where only the connection can.
    Closing(Nanos),
    /// Over.
    Done,
}

/// State of consumers: reading or stalled.
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

    /// Returns the end of the stall, if it must be waited for.
    pub(super) fn ends(self) -> Nanos {
        match self {
            Stall::Until(end) => end,
            Stall::Ahead | Stall::Over => Nanos::NEVER,
        }
    }
}

/// Cause that kept draining from its end at the last check.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Awaited {
    /// The place of a link with bytes to flush.
    pub(super) link: usize,
    /// The account of a consumer that lacks messages.
    pub(super) consumer: usize,
}

/// Loss of a connection, with its cause.
#[derive(Clone, Debug)]
pub(super) struct Loss {
    pub(super) link: LinkId,
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

    /// Keeps buffers for the next link that has output, unless they have grown large.
    fn keep(&mut self, mut staged: Box<Staged>) {
        let is_small = |bytes: &Vec<u8>| bytes.capacity() <= BUFFER_KEPT_BYTES;
        let is_kept = is_small(staged.out.buffer()) && is_small(&staged.carry);
        if is_kept && self.buffers.len() < BUFFERS_KEPT {
            self.buffers.push(staged);
        }
    }
}

/// Reason for a consumer's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reason {
    /// Its period is over.
    Tick,
    /// Its last answer was full, or it polls long and has got its answer.
    Answer,
}

/// Counts of codecs so far.
#[derive(Default)]
pub(super) struct Metered {
    pub(super) contents: Contents,
    /// The own end of each link's connection.
    locals: Vec<Option<SocketAddr>>,
}

impl Metered {
    /// A link was connected from `local`.
    pub(super) fn opened(&mut self, link: LinkId, local: Option<SocketAddr>) {
        let place = link.0 as usize;
        if place >= self.locals.len() {
            self.locals.resize(place + 1, None);
        }
        self.locals[place] = local;
    }

    /// The connection of a link is over.
    pub(super) fn closed(&mut self, number: LinkId, link: &mut Link) {
        let metered = link.connection.as_mut().and_then(|connection| connection.metered());
        let Some(mut counts) = metered.and_then(|own| own.counts()) else { return };
        let state = &link.state;
        // What would have been payload of a packet that never became whole is unknown.
        let rest = state.staged.as_ref().map_or(0, |staged| staged.carry.len());
        counts.received.add(Part::Messages, rest, 0);
        self.contents.note(ConnectionContent {
            local: self.locals.get(number.0 as usize).copied().flatten(),
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
    /// End of its body in the memory for all bodies.
    pub(super) body_end: usize,
    pub(super) ticket: Ticket,
}

/// The size of a piece: as much as one read or write usually moves.
pub(super) const PIECE_BYTES: usize = 64 * 1024;

/// The largest buffer that is kept between turns, and how many pairs of them are.
pub(super) const BUFFER_KEPT_BYTES: usize = 128 * 1024;

pub(super) const BUFFERS_KEPT: usize = 64;

/// Messages that are taken from schedules in one step of the loop, and handed to links: some ten
/// milliseconds. Then events and signals have their turn.
pub(super) const RELEASED_MAX: usize = if cfg!(test) { 1 << 10 } else { 1 << 16 };
