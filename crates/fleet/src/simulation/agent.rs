//! An agent on virtual time: its meeting is the real one, its shards only count.

use std::ops::Range;

use weigh_engine::rendezvous::Rendezvous;
use weigh_model::Nanos;

use super::bus::Bus;
use crate::hash::Hash;
use crate::meeting::Meeting;
use crate::messages::{Start, State, Whole};

/// An agent with a clock of its own.
pub struct Agent {
    pub rank: u32,
    pub here: Range<u32>,
    pub meeting: Meeting,
    pub is_dead: bool,
    /// When it first knew the confirmed start, on the true clock.
    pub confirmed: Option<u64>,
    /// When its load began, on the true clock.
    pub began: Option<u64>,
    offset_ns: i64,
    drift_ppm: i64,
    zero_ns: i64,
    /// When each shard's connections stand.
    ready: Vec<u64>,
    shards: u32,
    phase: Phase,
    number: u64,
    published: u64,
}

/// How far its shards are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Opening,
    Loading,
    Draining,
    Complete,
    Over,
}

impl Agent {
    /// An agent whose clock is far from the coordinator's.
    pub fn new(rank: u32, here: Range<u32>, shards: u32, bus: &mut Bus) -> Agent {
        Agent {
            rank,
            meeting: Meeting::new(rank, shards),
            is_dead: false,
            confirmed: None,
            began: None,
            offset_ns: bus.below(10_000_000_000_000) as i64 - 5_000_000_000_000,
            drift_ppm: bus.below(200) as i64 - 100,
            zero_ns: 0,
            ready: here.clone().map(|_| bus.below(800_000_000)).collect(),
            here,
            shards,
            phase: Phase::Opening,
            number: 0,
            published: 0,
        }
    }

    /// Its clock at this moment of the true one.
    pub fn clock(&self, at: u64) -> i64 {
        let at = at as i64;
        at + self.offset_ns + at / 1_000 * self.drift_ppm / 1_000
    }

    /// Takes its part.
    pub fn take(&mut self, zero_ns: i64, now: u64) {
        self.zero_ns = zero_ns;
        self.ready.iter_mut().for_each(|at| *at += now);
    }

    pub fn hear(&mut self, whole: &Whole, now: u64) {
        self.meeting.hear(whole.clone(), self.trial_now(now));
        self.note_start(now);
    }

    pub fn name(&mut self, start: Start, now: u64) -> i64 {
        self.meeting.name(start.start_ns, self.trial_now(now))
    }

    pub fn confirm(&mut self, start: Start, now: u64) {
        self.meeting.confirm(start.start_ns, self.trial_now(now));
        self.note_start(now);
    }

    /// What it does every 10 ms; its state if it is to be published.
    pub fn look(&mut self, now: u64) -> Option<State> {
        self.meeting.check_start(self.trial_now(now));
        self.run_shards(now);
        let is_due = now - self.published >= EVERY_NS;
        (self.meeting.take_change() || is_due).then(|| {
            self.published = now;
            self.number += 1;
            let is_over = self.phase == Phase::Over;
            let is_whole = is_over && !self.meeting.orders().has_failed();
            State {
                turn: 1,
                rank: self.rank,
                number: self.number,
                is_over,
                is_load_over: self.phase >= Phase::Draining,
                is_window_over: self.phase >= Phase::Complete,
                outcomes: is_whole.then(|| vec![Hash::of(b""); self.here.len()]),
                ..self.meeting.state()
            }
        })
    }

    fn run_shards(&mut self, now: u64) {
        let orders = self.meeting.orders();
        if orders.has_failed() && self.phase != Phase::Over {
            self.phase = Phase::Over;
            self.meeting.note_change();
            return;
        }
        self.ready.retain(|at| {
            let stands = *at <= now;
            if stands {
                self.meeting.note_ready();
            }
            !stands
        });
        let trial_now = self.trial_now(now);
        let start = self.meeting.start(trial_now);
        let end = |start: Nanos| start + LOAD;
        match (self.phase, start) {
            (Phase::Opening, Some(start)) if trial_now >= start => {
                self.began = Some(self.true_time(start));
                self.phase = Phase::Loading;
            }
            (Phase::Loading, Some(start)) if trial_now >= end(start) => {
                for _ in self.here.clone() {
                    self.meeting.note_sent(MESSAGES, end(start));
                    self.meeting.note_arrived(MESSAGES);
                }
                self.phase = Phase::Draining;
            }
            (Phase::Draining, _) => {
                let Some(totals) = self.meeting.totals() else { return };
                assert_eq!(totals.sent, MESSAGES * u64::from(self.shards), "a sum without a part");
                if totals.arrived == totals.sent {
                    self.here.clone().for_each(|_| self.meeting.note_complete());
                    self.phase = Phase::Complete;
                }
            }
            (Phase::Complete, _) if self.meeting.is_complete() => {
                self.phase = Phase::Over;
                self.meeting.note_change();
            }
            _ => {}
        }
    }

    fn note_start(&mut self, now: u64) {
        if self.meeting.has_start() {
            self.confirmed.get_or_insert(now);
        }
    }

    fn trial_now(&self, now: u64) -> Nanos {
        Nanos(u64::try_from(self.clock(now) - self.zero_ns).unwrap_or(0))
    }

    /// When its trial clock shows this, on the true clock.
    fn true_time(&self, at: Nanos) -> u64 {
        let shown = i128::from(self.zero_ns) + i128::from(at.0) - i128::from(self.offset_ns);
        (shown * 1_000_000 / (1_000_000 + i128::from(self.drift_ppm))) as u64
    }
}

const EVERY_NS: u64 = 100_000_000;
const LOAD: Nanos = Nanos::from_secs(2);
/// Of each shard.
pub const MESSAGES: u64 = 100;
