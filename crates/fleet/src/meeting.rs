//! Where the shards of an agent meet those of the other agents: their own numbers, and what was
//! last heard of all. The numbers are carried by the bus.
//!
//! Each side is a snapshot that is replaced as a whole, so that a sum and its parts always belong
//! together. A snapshot that comes twice or too late changes nothing.
//!
//! Shards call it in their threads, which have descriptor tables of their own: nothing here may
//! wake a runtime, whose descriptor they do not have. What has changed is looked for instead.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use weigh_engine::rendezvous::orders::Orders;
use weigh_engine::rendezvous::{Rendezvous, Totals};
use weigh_model::Nanos;

use crate::bus::lock;
use crate::messages::{Counts, Fault, Whole};

/// The rendezvous of an agent's part of a trial.
pub struct Meeting {
    orders: Arc<Orders>,
    rank: u32,
    /// Of all agents.
    shards: u32,
    /// Of this agent.
    shards_here: u32,
    own: Mutex<Counts>,
    heard: Mutex<Heard>,
    fault: Mutex<Option<Fault>>,
    has_changed: AtomicBool,
}

/// What the coordinator said last.
#[derive(Default)]
struct Heard {
    whole: Whole,
    /// A start that is named and not confirmed.
    named_ns: Option<u64>,
    start_ns: Option<u64>,
    start_slack_ns: u64,
    /// True once the coordinator is gone.
    is_alone: bool,
}

impl Meeting {
    /// The meeting of `shards_here` of `shards`.
    pub fn new(rank: u32, shards_here: u32, shards: u32) -> Meeting {
        let (orders, own, heard) = <(Arc<Orders>, _, _)>::default();
        // Shards that are done would not wait for an order that comes later.
        orders.hold_elsewhere(true);
        let (fault, has_changed) = (Mutex::default(), AtomicBool::new(true));
        Meeting { orders, rank, shards, shards_here, own, heard, fault, has_changed }
    }

    /// True if something has changed since the last call.
    pub fn take_change(&self) -> bool {
        self.has_changed.swap(false, Ordering::SeqCst)
    }

    /// Notes that something has changed.
    pub fn note_change(&self) {
        self.has_changed.store(true, Ordering::SeqCst);
    }

    /// What the shards of this agent noted.
    pub fn own(&self) -> Counts {
        *lock(&self.own)
    }

    /// Takes over the state of all, at this time on the trial's clock.
    pub fn hear(&self, whole: Whole, now: Nanos) {
        let mut heard = lock(&self.heard);
        if whole.number <= heard.whole.number || heard.is_alone {
            return;
        }
        self.orders.raise_stop(whole.stop_level);
        let is_held = whole.is_held_here || whole.held.iter().any(|rank| *rank != self.rank);
        self.orders.hold_elsewhere(is_held);
        if whole.has_failed {
            self.orders.give_up();
        }
        let start = whole.start_ns;
        heard.whole = whole;
        drop(heard);
        if let Some(start_ns) = start {
            self.confirm(start_ns, now);
        }
    }

    /// Number of the last report of this agent that reached the coordinator.
    pub fn reported(&self) -> u64 {
        lock(&self.heard).whole.reported.get(self.rank as usize).copied().unwrap_or(0)
    }

    /// Takes a start that all agents are asked for. Returns the time left, nanoseconds.
    pub fn name(&self, start_ns: u64, now: Nanos) -> i64 {
        let slack = (start_ns as i64).saturating_sub(now.0 as i64);
        if slack > 0 {
            lock(&self.heard).named_ns = Some(start_ns);
        }
        slack
    }

    /// Takes the start that all agents can keep. Too late for its shards, it is a fault.
    pub fn confirm(&self, start_ns: u64, now: Nanos) {
        let mut heard = lock(&self.heard);
        if heard.start_ns.is_some() || self.orders.has_failed() {
            return;
        }
        let slack_ns = start_ns.saturating_sub(now.0);
        if slack_ns < SLACK_MIN.0 {
            drop(heard);
            return self.fail(Fault::Lost { reason: UNCONFIRMED.to_owned() });
        }
        heard.start_slack_ns = slack_ns;
        heard.start_ns = Some(start_ns);
    }

    /// Fails if a start that was named has not been confirmed in time: agents that know it send
    /// already.
    pub fn check_start(&self, now: Nanos) {
        let heard = lock(&self.heard);
        let is_late = heard.named_ns.is_some_and(|named| now.0 + SLACK_MIN.0 > named)
            && heard.start_ns.is_none();
        drop(heard);
        if is_late {
            self.fail(Fault::Lost { reason: UNCONFIRMED.to_owned() });
        }
    }

    /// True once the load has a start.
    pub fn has_start(&self) -> bool {
        lock(&self.heard).start_ns.is_some()
    }

    /// Time from the arrival of the confirmed start to the start, nanoseconds.
    pub fn start_slack_ns(&self) -> u64 {
        lock(&self.heard).start_slack_ns
    }

    /// Ends the trial on all agents, for the first reason that is given here. What follows from a
    /// failure elsewhere is not a reason.
    pub fn fail(&self, fault: Fault) {
        if !lock(&self.heard).whole.has_failed {
            lock(&self.fault).get_or_insert(fault);
        }
        self.orders.give_up();
        self.note_change();
    }

    /// Why this agent's part failed, if it did.
    pub fn fault(&self) -> Option<Fault> {
        lock(&self.fault).clone()
    }

    /// The coordinator is gone, and with it what the other agents note: a load that runs is
    /// finished with what is known here, another trial is given up.
    pub fn end_alone(&self) {
        let mut heard = lock(&self.heard);
        heard.is_alone = true;
        if heard.start_ns.is_none() {
            self.orders.give_up();
        }
        self.orders.hold_elsewhere(false);
    }

    /// True once the coordinator is gone.
    pub fn is_alone(&self) -> bool {
        lock(&self.heard).is_alone
    }
}

impl Rendezvous for Meeting {
    fn orders(&self) -> &Arc<Orders> {
        &self.orders
    }

    fn note_ready(&self) {
        lock(&self.own).ready += 1;
        self.note_change();
    }

    fn start(&self, _: Nanos) -> Option<Nanos> {
        lock(&self.heard).start_ns.map(Nanos)
    }

    fn note_sent(&self, messages: u64, last_due: Nanos) {
        let mut own = lock(&self.own);
        own.sent += messages;
        own.last_due_ns = own.last_due_ns.max(last_due.0);
        own.sending_done += 1;
        drop(own);
        self.note_change();
    }

    fn note_dropped(&self) {
        let mut own = lock(&self.own);
        own.sent = own.sent.saturating_sub(1);
        drop(own);
        self.note_change();
    }

    fn note_arrived(&self, messages: u64) {
        lock(&self.own).arrived += messages;
        self.note_change();
    }

    fn note_complete(&self) {
        lock(&self.own).complete += 1;
        self.note_change();
    }

    /// Alone, how much the other agents sent is not known: consumers wait until Tmax after the last
    /// due time here.
    fn totals(&self) -> Option<Totals> {
        let heard = lock(&self.heard);
        let Counts { sending_done, sent, arrived, last_due_ns, .. } = heard.whole.counts;
        if sending_done == self.shards {
            return Some(Totals { sent, arrived, last_due: Nanos(last_due_ns) });
        }
        let own = heard.is_alone.then(|| self.own())?;
        let (arrived, last_due) = (own.arrived, Nanos(own.last_due_ns));
        (own.sending_done == self.shards_here).then_some(Totals {
            sent: u64::MAX,
            arrived,
            last_due,
        })
    }

    fn is_complete(&self) -> bool {
        let heard = lock(&self.heard);
        heard.whole.counts.complete == self.shards
            || (heard.is_alone && self.own().complete == self.shards_here)
    }
}

/// Shards that learn the start later than this before it would send their first messages late.
const SLACK_MIN: Nanos = Nanos::from_millis(2);
const UNCONFIRMED: &str = "the start was not confirmed in time, because the bus is too slow";

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(number: u64, counts: Counts) -> Whole {
        Whole { turn: 1, number, counts, is_held_here: true, ..Whole::default() }
    }

    #[test]
    fn old_and_repeated_snapshots_change_nothing() {
        let meeting = Meeting::new(0, 1, 2);
        let done =
            Counts { sending_done: 2, sent: 7, arrived: 5, last_due_ns: 9, ..Counts::default() };
        meeting.hear(whole(2, done), Nanos(0));
        let totals = Some(Totals { sent: 7, arrived: 5, last_due: Nanos(9) });
        assert_eq!(meeting.totals(), totals);
        let earlier = Whole { stop_level: 2, has_failed: true, ..whole(2, Counts::default()) };
        meeting.hear(earlier.clone(), Nanos(0));
        meeting.hear(Whole { number: 1, ..earlier }, Nanos(0));
        assert_eq!(meeting.totals(), totals);
        assert!(!meeting.orders().has_failed() && meeting.orders().stop_level() == 0);
    }

    #[test]
    fn totals_wait_for_the_last_shard_of_all() {
        let meeting = Meeting::new(0, 1, 2);
        meeting.note_sent(4, Nanos(3));
        meeting.hear(whole(1, Counts { sending_done: 1, sent: 4, ..Counts::default() }), Nanos(0));
        assert_eq!(meeting.totals(), None);
        assert!(!meeting.is_complete());
    }

    #[test]
    fn a_start_is_kept_once_confirmed_and_a_fault_if_too_late() {
        let meeting = Meeting::new(0, 1, 1);
        assert_eq!(meeting.name(5_000_000_000, Nanos(4_000_000_000)), 1_000_000_000);
        assert_eq!(meeting.start(Nanos(0)), None);
        meeting.check_start(Nanos(4_900_000_000));
        meeting.confirm(5_000_000_000, Nanos(4_500_000_000));
        meeting.confirm(6_000_000_000, Nanos(4_500_000_000));
        assert_eq!(meeting.start(Nanos(0)), Some(Nanos(5_000_000_000)));
        assert_eq!(meeting.start_slack_ns(), 500_000_000);
        meeting.check_start(Nanos(5_100_000_000));
        assert!(!meeting.orders().has_failed());

        let unconfirmed = Meeting::new(0, 1, 1);
        assert!(unconfirmed.name(1_000, Nanos(2_000)) < 0);
        unconfirmed.name(5_000_000_000, Nanos(1));
        unconfirmed.check_start(Nanos(4_999_000_000));
        assert!(unconfirmed.orders().has_failed() && unconfirmed.fault().is_some());

        let late = Meeting::new(0, 1, 1);
        late.hear(
            Whole { start_ns: Some(5_000_000), ..whole(1, Counts::default()) },
            Nanos(4_000_000),
        );
        assert!(late.orders().has_failed() && late.start(Nanos(0)).is_none());
    }

    #[test]
    fn connections_are_held_for_any_other_host() {
        let meeting = Meeting::new(1, 1, 3);
        meeting.orders().hold_here(false);
        assert!(meeting.orders().is_held(), "from the beginning");
        let held = |number, is_held_here, held: &[u32]| Whole {
            is_held_here,
            held: held.to_vec(),
            ..whole(number, Counts::default())
        };
        meeting.hear(held(1, false, &[0]), Nanos(0));
        assert!(meeting.orders().is_held());
        meeting.hear(held(2, true, &[]), Nanos(0));
        assert!(meeting.orders().is_held());
        meeting.hear(held(3, false, &[1]), Nanos(0));
        assert!(!meeting.orders().is_held(), "its own hold is not another's");
    }

    #[test]
    fn without_a_coordinator_a_load_is_finished_and_another_trial_given_up() {
        let before = Meeting::new(0, 1, 2);
        before.end_alone();
        assert!(before.orders().has_failed());

        let running = Meeting::new(0, 1, 2);
        running.confirm(5_000_000_000, Nanos(0));
        running.end_alone();
        running.orders().hold_here(false);
        assert!(!running.orders().has_failed() && !running.orders().is_held());
        assert_eq!(running.totals(), None);
        running.note_sent(4, Nanos(3));
        assert_eq!(running.totals().map(|totals| totals.last_due), Some(Nanos(3)));
        running.note_complete();
        assert!(running.is_complete());
    }
}
