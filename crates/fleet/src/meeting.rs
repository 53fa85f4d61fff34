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
use crate::messages::{Counts, Fault, State, Whole};
use crate::peers::Peers;

/// The rendezvous of an agent's part of a trial.
pub struct Meeting {
    orders: Arc<Orders>,
    rank: u32,
    /// Of all agents.
    shards: u32,
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
    /// True if this part failed only because another one had.
    has_failed_elsewhere: bool,
    /// The other agents, once the coordinator is gone.
    peers: Option<Peers>,
}

impl Meeting {
    /// The meeting of the agent of this rank; all agents together run `shards`.
    pub fn new(rank: u32, shards: u32) -> Meeting {
        let (orders, own, heard) = <(Arc<Orders>, _, _)>::default();
        // Shards that are done would not wait for an order that comes later.
        orders.hold_elsewhere(true);
        let (fault, has_changed) = (Mutex::default(), AtomicBool::new(true));
        Meeting { orders, rank, shards, own, heard, fault, has_changed }
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
        if whole.number <= heard.whole.number || heard.peers.is_some() {
            return;
        }
        self.obey(&whole, &mut heard);
        let start = whole.start_ns;
        heard.whole = whole;
        drop(heard);
        if let Some(start_ns) = start {
            self.confirm(start_ns, now);
        }
    }

    fn obey(&self, whole: &Whole, heard: &mut Heard) {
        self.orders.raise_stop(whole.stop_level);
        let is_held = whole.is_held_here || whole.held.iter().any(|rank| *rank != self.rank);
        self.orders.hold_elsewhere(is_held);
        if whole.has_failed {
            // A failure of our own may come back to us before its reason is known here.
            heard.has_failed_elsewhere |= !self.orders.has_failed();
            self.orders.give_up();
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
        if heard.start_ns.is_some() || self.is_ending() {
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
        let is_near = heard.named_ns.is_some_and(|named| now.0 + SLACK_MIN.0 > named);
        let is_late = is_near && heard.start_ns.is_none() && !self.is_ending();
        drop(heard);
        if is_late {
            self.fail(Fault::Lost { reason: UNCONFIRMED.to_owned() });
        }
    }

    /// True if there will be no load: the trial has failed, or was stopped before its start.
    fn is_ending(&self) -> bool {
        self.orders.has_failed() || self.orders.stop_level() > 0
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
        if !lock(&self.heard).has_failed_elsewhere {
            lock(&self.fault).get_or_insert(fault);
        }
        self.orders.give_up();
        self.note_change();
    }

    /// What it adds to the state of the part: all that its shards noted and that was heard.
    pub fn state(&self) -> State {
        State {
            counts: self.own(),
            stop_level: self.orders.stop_level(),
            has_failed: self.orders.has_failed(),
            is_alone: self.is_alone(),
            fault: self.fault(),
            is_held: self.orders.is_held_here(),
            start_slack_ns: self.start_slack_ns(),
            ..State::default()
        }
    }

    /// Why this agent's part failed, if it did.
    pub fn fault(&self) -> Option<Fault> {
        lock(&self.fault).clone()
    }

    /// The coordinator is gone at `now`. A load that runs is finished: from now on this agent adds
    /// up the states of all, of which none may be silent for longer than `silence`. A trial without
    /// a start is given up.
    pub fn end_alone(&self, turn: u64, silence: Nanos, now: Nanos) {
        let mut heard = lock(&self.heard);
        heard.peers = Some(Peers::new(turn, self.shards, silence, now));
        if heard.start_ns.is_none() {
            self.orders.give_up();
        }
        self.orders.hold_elsewhere(false);
    }

    /// True once the coordinator is gone.
    pub fn is_alone(&self) -> bool {
        lock(&self.heard).peers.is_some()
    }

    /// Takes over the state of any agent, this one too, once the coordinator is gone.
    pub fn hear_peer(&self, state: State, now: Nanos) {
        let mut heard = lock(&self.heard);
        if let Some(whole) = heard.peers.as_mut().and_then(|peers| peers.hear(state, now)) {
            self.obey(&whole, &mut heard);
            heard.whole = whole;
        }
    }

    /// Gives a load up whose coordinator is gone and another agent too: there will be no result.
    pub fn check_peers(&self, now: Nanos) {
        let heard = lock(&self.heard);
        if heard.peers.as_ref().is_some_and(|peers| peers.is_one_gone(now)) {
            self.orders.give_up();
        }
    }

    /// True unless other agents may still wait for a state of this one, after its part is over.
    pub fn is_let_go(&self) -> bool {
        let heard = lock(&self.heard);
        self.orders.has_failed() || heard.peers.as_ref().is_none_or(Peers::are_over)
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

    fn totals(&self) -> Option<Totals> {
        let Counts { sending_done, sent, arrived, last_due_ns, .. } =
            lock(&self.heard).whole.counts;
        let last_due = Nanos(last_due_ns);
        (sending_done == self.shards).then_some(Totals { sent, arrived, last_due })
    }

    fn is_complete(&self) -> bool {
        lock(&self.heard).whole.counts.complete == self.shards
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
        let meeting = Meeting::new(0, 2);
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
    fn a_reason_is_kept_although_its_failure_came_back_before_it() {
        let failed = Whole { has_failed: true, ..whole(1, Counts::default()) };
        let lost = || Fault::Lost { reason: "gone".to_owned() };
        let first = Meeting::new(0, 2);
        first.orders().give_up();
        first.hear(failed.clone(), Nanos(0));
        first.fail(lost());
        assert!(first.fault().is_some());

        let second = Meeting::new(1, 2);
        second.hear(failed, Nanos(0));
        second.fail(lost());
        assert!(second.fault().is_none(), "it follows from a failure elsewhere");
    }

    #[test]
    fn totals_wait_for_the_last_shard_of_all() {
        let meeting = Meeting::new(0, 2);
        meeting.note_sent(4, Nanos(3));
        meeting.hear(whole(1, Counts { sending_done: 1, sent: 4, ..Counts::default() }), Nanos(0));
        assert_eq!(meeting.totals(), None);
        assert!(!meeting.is_complete());
    }

    #[test]
    fn a_start_is_kept_once_confirmed_and_a_fault_if_too_late() {
        let meeting = Meeting::new(0, 1);
        assert_eq!(meeting.name(5_000_000_000, Nanos(4_000_000_000)), 1_000_000_000);
        assert_eq!(meeting.start(Nanos(0)), None);
        meeting.check_start(Nanos(4_900_000_000));
        meeting.confirm(5_000_000_000, Nanos(4_500_000_000));
        meeting.confirm(6_000_000_000, Nanos(4_500_000_000));
        assert_eq!(meeting.start(Nanos(0)), Some(Nanos(5_000_000_000)));
        assert_eq!(meeting.start_slack_ns(), 500_000_000);
        meeting.check_start(Nanos(5_100_000_000));
        assert!(!meeting.orders().has_failed());

        let unconfirmed = Meeting::new(0, 1);
        assert!(unconfirmed.name(1_000, Nanos(2_000)) < 0);
        unconfirmed.name(5_000_000_000, Nanos(1));
        unconfirmed.check_start(Nanos(4_999_000_000));
        assert!(unconfirmed.orders().has_failed() && unconfirmed.fault().is_some());

        let late = Meeting::new(0, 1);
        late.hear(
            Whole { start_ns: Some(5_000_000), ..whole(1, Counts::default()) },
            Nanos(4_000_000),
        );
        assert!(late.orders().has_failed() && late.start(Nanos(0)).is_none());
    }

    #[test]
    fn connections_are_held_for_any_other_host() {
        let meeting = Meeting::new(1, 3);
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
        let (silence, now) = (Nanos::from_secs(10), Nanos::from_secs(7));
        let before = Meeting::new(0, 2);
        before.end_alone(1, silence, now);
        assert!(before.orders().has_failed() && before.is_let_go());

        let running = Meeting::new(0, 2);
        running.confirm(5_000_000_000, Nanos(0));
        running.end_alone(1, silence, now);
        running.orders().hold_here(false);
        assert!(!running.orders().has_failed() && !running.orders().is_held());
        let counts = |sent| Counts { ready: 1, sending_done: 1, sent, ..Counts::default() };
        let state = |rank, sent| State {
            turn: 1,
            rank,
            number: 1,
            counts: counts(sent),
            ..State::default()
        };
        running.hear_peer(state(0, 4), now);
        assert_eq!(running.totals(), None, "nothing is known of the other agent");
        running.hear_peer(state(1, 3), now);
        assert_eq!(running.totals().map(|totals| totals.sent), Some(7));
        running.check_peers(now);
        assert!(!running.is_complete() && !running.is_let_go());
        let done = |rank| State {
            number: 2,
            counts: Counts { complete: 1, ..counts(4) },
            is_over: true,
            ..state(rank, 4)
        };
        running.hear_peer(done(0), now);
        running.hear_peer(done(1), now);
        assert!(running.is_complete() && running.is_let_go() && !running.orders().has_failed());
    }

    #[test]
    fn without_a_coordinator_and_another_agent_nothing_is_finished() {
        let (silence, now) = (Nanos::from_secs(10), Nanos::from_secs(7));
        let left = Meeting::new(0, 2);
        left.confirm(5_000_000_000, Nanos(0));
        left.end_alone(1, silence, now);
        left.check_peers(now + silence);
        assert!(!left.orders().has_failed());
        left.check_peers(now + silence + Nanos(1));
        assert!(left.orders().has_failed());
    }
}
