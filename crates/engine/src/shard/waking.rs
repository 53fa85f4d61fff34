//! Connections that want to be woken: for keep-alive within a tick, for retransmission on time. A
//! trial whose connections never do pays one comparison for it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weigh_model::Nanos;
use weigh_model::connection::Timing;

use super::source::Timers;
use crate::link::{LinkId, LinkState, Tick};

/// Times at which connections are to be woken.
pub(super) struct Waking {
    /// The most that a connection of this shard has asked for.
    timing: Timing,
    /// Entries that differ from their link's `wake_at` are stale.
    ticks: BinaryHeap<Reverse<(Tick, LinkId)>>,
    /// Times of connections that are woken exactly, compared with `alarm_of`.
    alarms: Timers,
    alarm_of: Vec<Nanos>,
}

impl Waking {
    /// Nothing to wake among `links` links.
    pub(super) fn new(links: usize) -> Waking {
        Waking {
            timing: Timing::Untimed,
            ticks: BinaryHeap::with_capacity(links),
            alarms: Timers::default(),
            alarm_of: Vec::new(),
        }
    }

    /// A connection was made that uses time in this way.
    pub(super) fn note_timing(&mut self, timing: Timing) {
        self.timing = self.timing.max(timing);
    }

    /// True if any call may bring the next wake-up of a connection forward.
    #[inline]
    pub(super) fn is_exact(&self) -> bool {
        self.timing == Timing::Exact
    }

    /// True if a connection is to be asked again after a call, before which its session was
    /// standing or not.
    #[inline]
    pub(super) fn asks_after(&self, was_standing: bool) -> bool {
        match self.timing {
            Timing::Untimed => false,
            // Until it stands the keep-alive is not settled.
            Timing::KeepAlive => !was_standing,
            Timing::Exact => true,
        }
    }

    /// Returns the time at which the next connection is to be woken.
    pub(super) fn next(&self) -> Nanos {
        let tick = self.ticks.peek().map_or(Nanos::NEVER, |Reverse((at, _))| at.moment());
        tick.min(self.alarms.next())
    }

    /// Notes that a link is to be woken at `at`, unless it will be before.
    pub(super) fn note(&mut self, link: LinkId, state: &mut LinkState, at: Nanos) {
        if !self.is_exact() {
            let tick = Tick::at(at);
            if tick < state.wake_at {
                state.wake_at = tick;
                self.ticks.push(Reverse((tick, link)));
            }
            return;
        }
        let place = link.0 as usize;
        if place >= self.alarm_of.len() {
            self.alarm_of.resize(place + 1, Nanos::NEVER);
        }
        if at < self.alarm_of[place] {
            self.alarm_of[place] = at;
            self.alarms.push(at, link);
        }
    }

    /// Takes a link whose time may have come; `None` if no other has.
    pub(super) fn pop(&mut self, now: Nanos) -> Option<Woken> {
        if let Some(Reverse((at, link))) = self.ticks.peek().copied()
            && at.moment() <= now
        {
            self.ticks.pop();
            return Some(Woken { link, tick: Some(at) });
        }
        while let Some((at, link)) = self.alarms.pop(now) {
            let known = &mut self.alarm_of[link.0 as usize];
            if *known == at {
                *known = Nanos::NEVER;
                return Some(Woken { link, tick: None });
            }
        }
        None
    }
}

/// A link whose time may have come.
pub(super) struct Woken {
    pub(super) link: LinkId,
    /// The tick it was noted for; stale where the link knows another.
    pub(super) tick: Option<Tick>,
}
