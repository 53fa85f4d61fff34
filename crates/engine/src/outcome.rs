//! Results of a trial in the generator: the ledger, the recorded times, the generator's own cost;
//! and the metrics that follow from them.

use std::collections::BTreeMap;

use weigh_model::connection::IDENTIFIERS_USED_UP;
use weigh_model::ledger::Cause;
use weigh_model::protocol::ErrorWords;
use weigh_model::{Arrival, Ledger, Load, Nanos, Pattern, Topology, Warning};

use crate::accounts::Accounts;
use crate::contents::Contents;
use crate::job::Failure;
use crate::polls::Polls;
use crate::recorder::Recorder;
use crate::regroupings::Regroupings;
use crate::window::WindowCount;

/// Function from a protocol's error code to the protocol's words for it.
pub type Words<'w> = &'w dyn Fn(u16) -> ErrorWords;

/// Reason for giving up a connection without an answer for longer than Tmax.
pub const SILENCE: &str = "no answer within the time limit";

/// Part of the reason for ending a trial whose target never sends a byte; a time follows.
pub const NO_BYTE: &str = "sent no byte for";

/// Results of one shard.
#[derive(Debug, Default, PartialEq)]
pub struct ShardOutcome {
    /// Its books.
    pub accounts: Accounts,
    /// Its times.
    pub recorder: Recorder,
    /// The least it was granted, by name.
    pub granted: BTreeMap<String, u64>,
    /// Sessions that ever stood.
    pub opened: u64,
    /// Sessions that stood at the end.
    pub held: u64,
    /// Messages that kept its sessions alive.
    pub alive: SignsOfLife,
    /// Times at which its first connection was requested, and at which the last session was open
    /// before the load.
    pub set_up: Option<(Nanos, Nanos)>,
    /// Connections that failed or were lost.
    pub lost_links: u64,
    /// The first reason for that.
    pub first_loss: Option<String>,
    /// The status or reason of the first error answer.
    pub first_error: Option<u16>,
    /// The status of the first request of a consumer that was answered with an error.
    pub first_refusal: Option<u16>,
    /// The first thing that was wrong with the file that was sent.
    pub object_fault: Option<String>,
    /// True if it was asked to stop early.
    pub was_interrupted: bool,
    /// Begin of the measured window.
    pub measure_from: Nanos,
    /// Time at which it was done.
    pub ended: Nanos,
    /// Processor time of its thread in the measured window, to the end of draining.
    pub cpu: Nanos,
    /// Of it what was used until the measured window ended.
    pub window_cpu: Nanos,
    /// Bytes written and read in the whole trial.
    pub bytes: (u64, u64),
    /// Counts of the codecs, if they were requested.
    pub contents: Option<Contents>,
    /// Reason for which it could not run.
    pub failure: Option<Failure>,
}

/// Messages that connections sent on their own to keep their sessions alive, and the answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignsOfLife {
    /// All of them.
    pub sent: u64,
    /// Number of them that the target answered.
    pub answered: u64,
    /// Number of them that were sent in the measured window.
    pub in_window: u64,
}

/// Results of the whole trial in the generator.
#[derive(Debug)]
pub struct Outcome {
    /// Sum of the results of all shards: the books from which the ledger was made, the recorded
    /// times, the smallest values that were granted, the earliest begin and the latest end.
    pub shards: ShardOutcome,
    /// The ledger: the place where every message ended.
    pub ledger: Ledger,
    /// Processor time of the busiest shard.
    pub cpu_max: Nanos,
    /// Processor time of the busiest shard until the measured window ended.
    pub window_cpu_max: Nanos,
    /// Messages that arrived within the measured window and in time, by the time of each; `None` if
    /// no client saw when they arrived.
    pub delivered_within: Option<u64>,
    /// Messages sent within it that ended after it, and when the last one arrived, if any did;
    /// `None` if no client saw that.
    pub after: Option<After>,
    /// Arrivals from the begin of the measured window to the end of draining, in time or late;
    /// `None` if no client saw them.
    pub delivered_since: Option<u64>,
    /// Bytes that ledger bookkeeping held at the end.
    pub ledger_bytes: u64,
    /// False if bodies were too small for a mark.
    pub is_marked: bool,
}

impl SignsOfLife {
    fn add(&mut self, other: SignsOfLife) {
        self.sent += other.sent;
        self.answered += other.answered;
        self.in_window += other.in_window;
    }
}

/// From the earlier begin to the later end.
fn joined(a: Option<(Nanos, Nanos)>, b: Option<(Nanos, Nanos)>) -> Option<(Nanos, Nanos)> {
    match (a, b) {
        (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
        (some, None) | (None, some) => some,
    }
}

impl ShardOutcome {
    /// This and that of another shard as one.
    fn with(mut self, other: ShardOutcome) -> ShardOutcome {
        self.accounts.merge(other.accounts);
        self.recorder.merge(&other.recorder);
        for (what, value) in other.granted {
            let least = self.granted.entry(what).or_insert(value);
            *least = value.min(*least);
        }
        self.alive.add(other.alive);
        if let Some(contents) = other.contents {
            self.contents.get_or_insert_default().merge(contents);
        }
        ShardOutcome {
            opened: self.opened + other.opened,
            held: self.held + other.held,
            set_up: joined(self.set_up, other.set_up),
            lost_links: self.lost_links + other.lost_links,
            first_loss: self.first_loss.or(other.first_loss),
            first_error: self.first_error.or(other.first_error),
            first_refusal: self.first_refusal.or(other.first_refusal),
            object_fault: self.object_fault.or(other.object_fault),
            was_interrupted: self.was_interrupted | other.was_interrupted,
            measure_from: self.measure_from.min(other.measure_from),
            ended: self.ended.max(other.ended),
            cpu: self.cpu + other.cpu,
            window_cpu: self.window_cpu + other.window_cpu,
            bytes: (self.bytes.0 + other.bytes.0, self.bytes.1 + other.bytes.1),
            failure: self.failure.or(other.failure),
            ..self
        }
    }
}

impl Outcome {
    /// Puts the shards' outcomes together.
    pub fn merge(
        shards: Vec<ShardOutcome>,
        load: &Load,
        confirms: bool,
        is_marked: bool,
    ) -> Outcome {
        let cpu_max = shards.iter().map(|shard| shard.cpu).max().unwrap_or_default();
        let window_cpu_max = shards.iter().map(|shard| shard.window_cpu).max().unwrap_or_default();
        let none = ShardOutcome { measure_from: Nanos::NEVER, ..ShardOutcome::default() };
        let shards = shards.into_iter().fold(none, ShardOutcome::with);
        let ledger = shards.accounts.settle(load, confirms);
        let ledger_bytes = shards.accounts.identity_bytes;
        let mut outcome = Outcome {
            shards,
            ledger,
            cpu_max,
            window_cpu_max,
            delivered_within: None,
            after: None,
            delivered_since: None,
            ledger_bytes,
            is_marked,
        };
        outcome.see_window(load, confirms);
        outcome
    }

    /// Counts what arrived within the window and after it, as seen by consumers, or else by
    /// producers.
    fn see_window(&mut self, load: &Load, confirms: bool) {
        let seen = &self.shards.recorder.window;
        if load.delivers() {
            let unique: u64 =
                self.shards.accounts.consumers.iter().map(|own| own.tally.unique()).sum();
            // What several got that share their messages is one message; which arrival of it was
            // the first is not known once some came after the window.
            let known = self.ledger.delivered.map(|delivered| delivered + self.ledger.late);
            let is_single = load.topology != Topology::Shared || known == Some(unique);
            if is_single {
                self.delivered_within = Some(seen.delivered);
                self.after = Some(After::of(seen.delivered_after, seen.last_delivered));
                self.delivered_since = Some(seen.delivered_since);
            }
        } else if confirms {
            self.delivered_within = Some(seen.confirmed);
            self.after = Some(After::of(seen.answered_after, seen.last_answered));
            self.delivered_since = Some(seen.confirmed_since);
        }
    }

    /// The window that rates are counted over: in open loops from the begin of the measurement to
    /// the end of the schedule, whatever came later; in closed loops and bursts from the first due
    /// time to the last completion. The connections of sessions are opened after they are due.
    pub fn window(&self, load: &Load) -> Option<Nanos> {
        let scheduled = self.shards.recorder.window.window().map(|window| window.length());
        let is_each_second = load.arrival == Arrival::EachSecond && load.duration.is_some();
        let window = match scheduled {
            Some(length) => Some(length),
            // With a share for each second the last one is waited out.
            None if is_each_second && !self.shards.was_interrupted => load.duration,
            None => self.shards.recorder.span.due_to_done().map(|(from, to)| to - from),
        };
        window.filter(|window| window.0 > 0)
    }

    /// Returns the measured window as times of the trial's clock.
    pub fn window_between(&self) -> Option<(Nanos, Nanos)> {
        let scheduled =
            self.shards.recorder.window.window().map(|window| (window.begin, window.end));
        scheduled.or(self.shards.recorder.span.due_to_done())
    }

    /// Messages that were handed over within the window, and deliveries that arrived in it. Where
    /// the schedule sets none, all of them did.
    fn within(&self, load: &Load) -> (u64, Option<u64>) {
        match self.shards.recorder.window.window() {
            Some(_) => (self.shards.recorder.window.sent, self.delivered_within),
            None => (self.ledger.sent / load.copies().max(1), self.ledger.delivered),
        }
    }

    /// Returns the number of messages by which processor time and energy are divided: all that
    /// arrived from the begin of the window until all was settled, in time or late; or all that
    /// were sent, if no client saw arrivals.
    pub fn settled_messages(&self, copies: u64) -> u64 {
        let known = match self.shards.recorder.window.window() {
            Some(_) => self.delivered_since,
            None => self.ledger.delivered.map(|delivered| delivered + self.ledger.late),
        };
        known.unwrap_or(self.ledger.sent / copies.max(1))
    }

    /// Mean size of the bodies that were sent, bytes; `None` if none were.
    fn body_bytes_mean(&self, load: &Load) -> Option<f64> {
        let sent = self.ledger.sent / load.copies().max(1);
        (sent > 0).then(|| self.shards.recorder.body_bytes as f64 / sent as f64)
    }

    /// Mean number of messages that left in one write to a socket; `None` if none left.
    pub fn messages_per_write(&self, load: &Load) -> Option<f64> {
        let sent = self.ledger.sent / load.copies().max(1);
        (self.shards.recorder.writes > 0).then(|| sent as f64 / self.shards.recorder.writes as f64)
    }

    /// The metrics that follow from the generator's own record, by their flat names.
    pub fn metrics(&self, load: &Load) -> BTreeMap<String, f64> {
        let mut metrics = BTreeMap::new();
        let mut put = |name: &str, value: f64| {
            metrics.insert(name.to_owned(), value);
        };
        self.add_rates(load, &mut put);
        if load.pattern != Pattern::Hold {
            put("settled_messages", self.settled_messages(load.copies()) as f64);
        }
        let Recorder { window: WindowCount { answers, turns, .. }, .. } = self.shards.recorder;
        if turns > 0 {
            put("answers_per_wakeup", answers as f64 / turns as f64);
        }
        if let (Some(first), Some(last)) =
            (self.shards.recorder.span.first_sent, self.shards.recorder.span.last_done)
        {
            put("transfer_time_s", (last - first).as_secs_f64());
        }
        if let Some(bytes) = self.body_bytes_mean(load) {
            put("body_bytes", bytes);
        }
        let sent_again = self.shards.accounts.sent_again;
        if sent_again > 0 {
            put("sent_again", sent_again as f64);
        }
        let Regroupings { times, pause_max } = self.shards.accounts.regroupings;
        if times > 0 {
            put("rebalances", times as f64);
            put("rebalance_pause_s", pause_max.as_secs_f64());
        }
        if let Some(messages) = self.messages_per_write(load) {
            put("messages_per_write", messages);
        }
        if self.ledger.sent > 0 {
            let each = self.ledger_bytes as f64 / self.ledger.sent as f64;
            put("ledger_bytes_per_message", each);
        }
        if let Some(delivered) = self.ledger.delivered.filter(|_| self.ledger.sent > 0) {
            put("acceptance_ratio", delivered as f64 / self.ledger.sent as f64);
        }
        if self.ledger.sent > 0 {
            let failed: u64 = failed_exchanges(&self.ledger);
            put("errors_ratio", failed as f64 / self.ledger.sent as f64);
        }
        let lags = self.shards.recorder.lags.all.count();
        // Messages of a batch wait for each other, whatever the window allows.
        let waits_by_design = load.arrival == Arrival::Burst || load.batch_size() > 1;
        if load.arrival.is_open() && !waits_by_design && lags > 0 {
            let held_up = lags.saturating_sub(self.shards.recorder.lags.own.count());
            put("held_up_ratio", held_up as f64 / lags as f64);
        }
        let span = self.shards.ended - self.shards.measure_from;
        if self.shards.cpu.0 > 0 && span.0 > 0 {
            let messages = self.ledger.sent / load.copies().max(1);
            if messages > 0 {
                put(
                    "generator_cpu_us_per_message",
                    self.shards.cpu.0 as f64 / 1e3 / messages as f64,
                );
            }
            put("generator_cpu_percent.max", 100.0 * self.busy_share(load));
        }
        match load.pattern {
            Pattern::Hold => self.add_hold(load, &mut put),
            Pattern::Poll => self.add_polls(&mut put),
            _ => {}
        }
        metrics
    }

    /// Adds the messages that went in and came out within the window, and those that came after it.
    fn add_rates(&self, load: &Load, put: &mut dyn FnMut(&str, f64)) {
        if let Some(window) = self.window(load) {
            let seconds = window.as_secs_f64();
            let (sent, delivered) = self.within(load);
            if load.pattern != Pattern::Hold {
                put("throughput_in_per_s", sent as f64 / seconds);
            }
            if let Some(delivered) = delivered {
                put("throughput_out_per_s", delivered as f64 / seconds);
                let body_bytes = self.body_bytes_mean(load).unwrap_or(0.0);
                put("goodput_bytes_per_s", delivered as f64 * body_bytes / seconds);
            }
            put("window_s", seconds);
        }
        if let Some((window, after)) = self.shards.recorder.window.window().zip(self.after) {
            put("backlog_messages", after.messages as f64);
            let drained = after.last.map_or(Nanos(0), |last| last - window.end);
            put("drained_after_s", drained.as_secs_f64());
        }
    }

    /// Adds the metrics of polling.
    fn add_polls(&self, put: &mut dyn FnMut(&str, f64)) {
        let polls = &self.shards.recorder.polls;
        put("polls", polls.made as f64);
        put("empty_polls", polls.empty as f64);
        put("polls_skipped", polls.skipped as f64);
        put("polls_refused", polls.refused as f64);
        if polls.made > 0 {
            put("messages_per_poll", polls.messages as f64 / polls.made as f64);
        }
    }

    /// Adds the metrics of held connections.
    fn add_hold(&self, load: &Load, put: &mut dyn FnMut(&str, f64)) {
        put("connections_held", self.shards.held as f64);
        if let Some((asked, stood)) = self.shards.set_up.filter(|(asked, stood)| stood > asked) {
            put("connections_per_s", self.shards.opened as f64 / (stood - asked).as_secs_f64());
        }
        let whole = self.shards.ended - self.shards.measure_from;
        if whole.0 > 0 {
            let window = load.duration.map_or(whole, |duration| whole.min(duration));
            put("keep_alives_per_s", self.shards.alive.in_window as f64 / window.as_secs_f64());
            let busy_share = self.shards.cpu.as_secs_f64() / whole.as_secs_f64();
            put("generator_cpu_percent.all", 100.0 * busy_share);
        }
        put(
            "keep_alives_unanswered",
            self.shards.alive.sent.saturating_sub(self.shards.alive.answered) as f64,
        );
    }

    /// The share of its core that the busiest shard used while there was something to do. What it
    /// does before and after is in its processor time too, so that a window of a few messages would
    /// seem full: it counts as [`ACTIVE_S_MIN`] at least.
    pub fn busy_share(&self, load: &Load) -> f64 {
        if let Some(window) = self.shards.recorder.window.window() {
            let length = window.length().as_secs_f64().max(ACTIVE_S_MIN);
            return (self.window_cpu_max.as_secs_f64() / length).min(1.0);
        }
        let whole = (self.shards.ended - self.shards.measure_from).as_secs_f64();
        let active = match (load.duration, self.shards.recorder.span.last_done) {
            (Some(duration), _) => duration.as_secs_f64(),
            (None, Some(last)) => (last - self.shards.measure_from).as_secs_f64(),
            (None, None) => whole,
        };
        let active = if active > 0.0 { active.min(whole) } else { whole };
        (self.cpu_max.as_secs_f64() / active.max(ACTIVE_S_MIN)).min(1.0)
    }

    /// Returns the warnings that follow from the generator's own record; `words` name the errors of
    /// the protocol.
    pub fn warnings(&self, load: &Load, confirms: bool, words: Words<'_>) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let is_timed = load.pattern != Pattern::Hold;
        if is_timed && !load.arrival.is_open() {
            warnings.push(Warning::ClosedLoop);
        }
        if is_timed && !self.is_marked && load.delivers() {
            warnings.push(Warning::IdentityByOrder);
        }
        if is_timed && self.ledger.delivered.is_none() && !confirms {
            warnings.push(Warning::Unconfirmed);
        }
        if self.shards.was_interrupted {
            warnings.push(Warning::Interrupted);
        }
        if self.shards.lost_links > 0 {
            let reason = self.shards.first_loss.clone().unwrap_or_default();
            let all = u64::from(load.connections + load.subscribers);
            warnings.push(Warning::ConnectionsLost(self.shards.lost_links, all, reason));
        }
        let Regroupings { times, pause_max } = self.shards.accounts.regroupings;
        if times > 0 {
            warnings.push(Warning::Rebalanced(times, pause_max));
        }
        if self.shards.granted.contains_key(IDENTIFIERS_USED_UP) {
            let all = u64::from(load.connections + load.subscribers);
            let replaced = self.shards.opened.saturating_sub(all);
            warnings.push(Warning::EndpointsReplaced(replaced, all));
        }
        let per_write = self.messages_per_write(load);
        // Messages that must leave together are expected.
        let bursts = per_write.filter(|mean| *mean >= BURST_MEAN_MIN && load.batch_size() == 1);
        warnings.extend(bursts.map(Warning::Burst));
        warnings.extend(self.shards.object_fault.clone().map(Warning::ObjectFile));
        warnings.extend(self.error_answers(words));
        warnings.extend(self.polls(load, words));
        warnings.extend(self.backlog(load));
        warnings.extend(self.little(load));
        warnings.extend(self.ledger.contradiction().map(Warning::LedgerContradiction));
        warnings
    }

    fn error_answers(&self, words: Words<'_>) -> Option<Warning> {
        let errors = *self.ledger.causes.get(&Cause::ErrorAnswer)?;
        Some(Warning::ErrorAnswers(errors, self.ledger.sent, words(self.shards.first_error?)))
    }

    /// Warnings about the requests of consumers.
    fn polls(&self, load: &Load, words: Words<'_>) -> Vec<Warning> {
        if load.polling().is_none() {
            return Vec::new();
        }
        let Polls { made, skipped, refused, .. } = self.shards.recorder.polls;
        let mut warnings = Vec::new();
        if let Some(status) = self.shards.first_refusal.filter(|_| refused > 0) {
            warnings.push(Warning::PollsRefused(refused, made, words(status)));
        }
        if skipped > 0 {
            warnings.push(Warning::PollsSkipped(skipped, skipped + made));
        }
        warnings
    }

    /// Little's law in a closed loop of fixed length: X (R + Z) = N within 2 % (rule L01). Asked
    /// only where nothing was lost and the window held many rounds, so that its edges are small.
    fn little(&self, load: &Load) -> Option<Warning> {
        // Of an exchange of several messages some may be over before the others.
        let is_single = load.batch_size() == 1;
        let is_steady = load.arrival == Arrival::Closed && load.duration.is_some() && is_single;
        if !is_steady
            || self.shards.was_interrupted
            || self.shards.lost_links > 0
            || load.copies() > 1
        {
            return None;
        }
        let response = &self.shards.recorder.response;
        let times = if response.count() > 0 { response } else { &self.shards.recorder.delivery };
        let granted =
            ["in_flight", "receive_maximum"].map(|name| self.shards.granted.get(name).copied());
        let granted = granted.into_iter().flatten().min().unwrap_or(u64::MAX);
        let window = u64::from(load.window.unwrap_or(1)).min(granted);
        let in_flight = window * u64::from(load.connections);
        if times.count() < LITTLE_ROUNDS * in_flight || self.ledger.lost != Some(0) {
            return None;
        }
        let window_s = self.window(load)?.as_secs_f64();
        let per_second = times.count() as f64 / window_s;
        let cycle = times.mean()? / 1e9 + load.think.as_secs_f64();
        let residual = per_second * cycle / in_flight as f64 - 1.0;
        // At either edge fewer than all may be in flight, for as long as the slowest took.
        let edge = times.max()? as f64 / 1e9 / window_s;
        (residual.abs() > LITTLE_MAX + edge).then_some(Warning::LittleResidual(residual))
    }

    /// Returns the warning about messages still in flight when the load ended, if they are more
    /// than are in flight all the time, and fewer messages came out than went in.
    fn backlog(&self, load: &Load) -> Option<Warning> {
        let seconds = self.shards.recorder.window.window()?.length().as_secs_f64();
        let (After { messages, last }, (sent, delivered)) = (self.after?, self.within(load));
        let (offered, delivered) = ((sent * load.copies()) as f64, delivered? as f64);
        let times = if load.delivers() {
            &self.shards.recorder.one_way
        } else {
            &self.shards.recorder.service
        };
        // Behind what a warm-up left even the fastest message waits; connecting did not.
        let unloaded = self.shards.recorder.connect.min().filter(|_| load.warmup.0 > 0);
        let shortest = times.min().unwrap_or(0).min(unloaded.unwrap_or(u64::MAX));
        let shortest_s = shortest as f64 / 1e9;
        let always = [
            UNDER_WAY * offered,
            2.0 * shortest_s * offered / seconds,
            (2 * u64::from(load.connections) * load.copies()) as f64,
        ];
        let most = always.into_iter().fold(0.0, f64::max);
        let drained = last? - self.shards.recorder.window.window()?.end;
        let is_behind = messages as f64 > most && delivered < REACHED * offered;
        is_behind.then_some(Warning::Backlog(messages, drained))
    }
}

/// Messages that were sent within the measured window and ended after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct After {
    /// Number of messages; if producers get answers, including those that never were answered.
    pub messages: u64,
    /// Time at which the last message arrived, no matter when it was sent.
    pub last: Option<Nanos>,
}

impl After {
    fn of(messages: u64, last: Option<Nanos>) -> After {
        After { messages, last }
    }
}

fn failed_exchanges(ledger: &Ledger) -> u64 {
    [Cause::ErrorAnswer, Cause::ConnectionClosed, Cause::ReceiveQueueFull, Cause::Timeout]
        .iter()
        .filter_map(|cause| ledger.causes.get(cause))
        .sum()
}

/// The share of what was offered that may be under way when a load ends without being a backlog.
const UNDER_WAY: f64 = 0.01;

/// The share of what was offered from which it was reached.
const REACHED: f64 = 0.98;

/// Shortest window whose processor use can be measured, seconds: opening and settling take some
/// milliseconds.
const ACTIVE_S_MIN: f64 = 0.05;

/// Messages to a write, on average, from which on it is said that they left in bursts: below, a few
/// met by chance.
const BURST_MEAN_MIN: f64 = 1.5;

/// Maximum deviation from Little's law, in addition to the effect of the edges of the window.
const LITTLE_MAX: f64 = 0.02;

/// Rounds of all messages in flight that a window must hold for Little's law to be asked for.
const LITTLE_ROUNDS: u64 = 200;
