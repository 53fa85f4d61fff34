//! What a trial left behind in the generator: the ledger, the recorded times, the generator's
//! own cost; and the metrics that follow from them.

use std::collections::BTreeMap;

use weigh_model::ledger::Cause;
use weigh_model::{Arrival, Doubt, Ledger, Load, Nanos, Pattern};

use crate::accounts::Accounts;
use crate::job::Failure;
use crate::recorder::Recorder;

/// Why a connection is given up on which nothing was answered for longer than Tmax.
pub const SILENCE: &str = "no answer within the time limit";

/// What one shard left behind.
#[derive(Debug, Default)]
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
    /// Connections that failed or were lost.
    pub lost_links: u64,
    /// The first reason for that.
    pub first_loss: Option<String>,
    /// The status or reason of the first error answer.
    pub first_error: Option<u16>,
    /// True if it was asked to stop early.
    pub was_interrupted: bool,
    /// When the measured window began.
    pub measure_from: Nanos,
    /// When it was done.
    pub ended: Nanos,
    /// Processor time of its thread in the measured window, to the end of draining.
    pub cpu: Nanos,
    /// Bytes written and read in the whole trial.
    pub bytes: (u64, u64),
    /// Why it could not run.
    pub failure: Option<Failure>,
}

/// What the whole trial left behind in the generator.
#[derive(Debug)]
pub struct Outcome {
    /// Where every message went.
    pub ledger: Ledger,
    /// The recorded times.
    pub recorder: Recorder,
    /// The least that was granted to any connection, by name.
    pub granted: BTreeMap<String, u64>,
    /// Sessions that ever stood.
    pub opened: u64,
    /// Sessions that stood at the end.
    pub held: u64,
    /// Connections that failed or were lost, and the first reason.
    pub lost_links: u64,
    /// The first reason for that.
    pub first_loss: Option<String>,
    /// The status or reason of the first error answer.
    pub first_error: Option<u16>,
    /// True if it was cut short.
    pub was_interrupted: bool,
    /// When the measured window began, on the trial's clock.
    pub measure_from: Nanos,
    /// When the last shard was done.
    pub ended: Nanos,
    /// Processor time of all shards in the measured window, and of the busiest.
    pub cpu: Nanos,
    /// Processor time of the busiest shard.
    pub cpu_max: Nanos,
    /// Bytes written and read in the whole trial.
    pub bytes: (u64, u64),
    /// Bytes that ledger bookkeeping held at the end.
    pub ledger_bytes: u64,
    /// False if bodies were too small for a mark.
    pub is_marked: bool,
    /// The books that the ledger was made from.
    pub accounts: Accounts,
}

impl Outcome {
    /// Puts the shards' outcomes together.
    pub fn merge(
        shards: Vec<ShardOutcome>,
        load: &Load,
        confirms: bool,
        is_marked: bool,
    ) -> Outcome {
        let mut accounts = Accounts::default();
        let mut outcome = Outcome {
            ledger: Ledger::zero(),
            recorder: Recorder::default(),
            granted: BTreeMap::new(),
            opened: 0,
            held: 0,
            lost_links: 0,
            first_loss: None,
            first_error: None,
            was_interrupted: false,
            measure_from: Nanos::NEVER,
            ended: Nanos(0),
            cpu: Nanos(0),
            cpu_max: Nanos(0),
            bytes: (0, 0),
            ledger_bytes: 0,
            is_marked,
            accounts: Accounts::default(),
        };
        for shard in shards {
            accounts.merge(shard.accounts);
            outcome.recorder.merge(&shard.recorder);
            for (what, value) in shard.granted {
                let least = outcome.granted.entry(what).or_insert(value);
                *least = value.min(*least);
            }
            outcome.opened += shard.opened;
            outcome.held += shard.held;
            outcome.lost_links += shard.lost_links;
            outcome.first_loss = outcome.first_loss.or(shard.first_loss);
            outcome.first_error = outcome.first_error.or(shard.first_error);
            outcome.was_interrupted |= shard.was_interrupted;
            outcome.measure_from = outcome.measure_from.min(shard.measure_from);
            outcome.ended = outcome.ended.max(shard.ended);
            outcome.bytes.0 += shard.bytes.0;
            outcome.bytes.1 += shard.bytes.1;
            outcome.cpu = outcome.cpu + shard.cpu;
            outcome.cpu_max = outcome.cpu_max.max(shard.cpu);
        }
        outcome.ledger = accounts.settle(load, confirms);
        outcome.ledger_bytes = accounts.memory_bytes();
        outcome.accounts = accounts;
        outcome
    }

    /// The window over which rates are counted: from first to last due time in open loops (with
    /// the gap that follows the last), from first send to last completion in closed ones and
    /// bursts.
    pub fn window(&self, load: &Load) -> Option<Nanos> {
        let done = || {
            let (from, to) = self.recorder.first_sent.zip(self.recorder.last_done)?;
            Some(to - from)
        };
        let window = match (&load.arrival, load.duration) {
            (Arrival::Closed | Arrival::Ramp(_) | Arrival::Burst, _) => done(),
            (_, Some(duration)) if !self.was_interrupted => Some(duration),
            _ => {
                let (first, last) = self.recorder.due_span?;
                let messages = self.ledger.messages.max(2) as f64;
                let span = (last - first).as_secs_f64();
                Some(Nanos::from_secs_f64(span * messages / (messages - 1.0)))
            }
        };
        window.filter(|window| window.0 > 0)
    }

    /// The window that rates are counted over: the one of the due times, or longer where sending
    /// went on after it because the target did not keep up.
    fn rate_window(&self, load: &Load) -> Option<Nanos> {
        let window = self.window(load)?;
        if !load.arrival.is_open() || load.arrival == Arrival::Burst {
            return Some(window);
        }
        let start = match load.duration {
            Some(_) => self.measure_from,
            None => self.recorder.due_span?.0,
        };
        Some(window.max(self.recorder.last_sent? - start))
    }

    /// Mean size of the bodies that were sent, bytes; `None` if none were.
    fn body_bytes_mean(&self, load: &Load) -> Option<f64> {
        let sent = self.ledger.sent / load.copies().max(1);
        (sent > 0).then(|| self.recorder.body_bytes as f64 / sent as f64)
    }

    /// The metrics that follow from the generator's own record, by their flat names.
    pub fn metrics(&self, load: &Load) -> BTreeMap<String, f64> {
        let mut metrics = BTreeMap::new();
        let mut put = |name: &str, value: f64| {
            metrics.insert(name.to_owned(), value);
        };
        if let Some(window) = self.rate_window(load) {
            let seconds = window.as_secs_f64();
            if load.pattern != Pattern::Hold {
                put(
                    "throughput_in_per_s",
                    (self.ledger.sent / load.copies().max(1)) as f64 / seconds,
                );
            }
            if let Some(delivered) = self.ledger.delivered {
                put("throughput_out_per_s", delivered as f64 / seconds);
                let body_bytes = self.body_bytes_mean(load).unwrap_or(0.0);
                put("goodput_bytes_per_s", delivered as f64 * body_bytes / seconds);
            }
            put("window_s", seconds);
        }
        if let (Some(first), Some(last)) = (self.recorder.first_sent, self.recorder.last_done) {
            put("transfer_time_s", (last - first).as_secs_f64());
        }
        if let Some(bytes) = self.body_bytes_mean(load) {
            put("body_bytes", bytes);
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
        let lags = self.recorder.send_lag.count();
        if load.arrival.is_open() && load.arrival != Arrival::Burst && lags > 0 {
            let held_up = lags.saturating_sub(self.recorder.own_lag.count());
            put("held_up_ratio", held_up as f64 / lags as f64);
        }
        let span = self.ended - self.measure_from;
        if self.cpu.0 > 0 && span.0 > 0 {
            let messages = self.ledger.sent / load.copies().max(1);
            if messages > 0 {
                put("generator_cpu_us_per_message", self.cpu.0 as f64 / 1e3 / messages as f64);
            }
            put("generator_cpu_percent.max", 100.0 * self.busy_share(load));
        }
        if load.pattern == Pattern::Hold {
            put("connections_held", self.held as f64);
        }
        metrics
    }

    /// The share of its core that the busiest shard used while there was something to do.
    pub fn busy_share(&self, load: &Load) -> f64 {
        let whole = (self.ended - self.measure_from).as_secs_f64();
        let active = match (load.duration, self.recorder.last_done) {
            (Some(duration), _) => duration.as_secs_f64(),
            (None, Some(last)) => (last - self.measure_from).as_secs_f64(),
            (None, None) => whole,
        };
        let active = if active > 0.0 { active.min(whole) } else { whole };
        if active > 0.0 { (self.cpu_max.as_secs_f64() / active).min(1.0) } else { 0.0 }
    }

    /// The doubts that follow from the generator's own record.
    pub fn doubts(&self, load: &Load, confirms: bool) -> Vec<Doubt> {
        let mut doubts = Vec::new();
        let is_timed = load.pattern != Pattern::Hold;
        if is_timed && !load.arrival.is_open() {
            doubts.push(Doubt::ClosedLoop);
        }
        if is_timed && !self.is_marked && load.pattern == Pattern::Deliver {
            doubts.push(Doubt::IdentityByOrder);
        }
        if is_timed && self.ledger.delivered.is_none() && !confirms {
            doubts.push(Doubt::Unconfirmed);
        }
        if self.was_interrupted {
            doubts.push(Doubt::Interrupted);
        }
        if self.lost_links > 0 {
            let reason = self.first_loss.clone().unwrap_or_default();
            let all = u64::from(load.connections + load.subscribers);
            doubts.push(Doubt::ConnectionsLost(self.lost_links, all, reason));
        }
        doubts.extend(self.error_answers());
        doubts.extend(self.lag_gate(load));
        doubts.extend(self.rate_reached(load));
        doubts.extend(self.little(load));
        doubts.extend(self.ledger.contradiction().map(Doubt::LedgerContradiction));
        doubts
    }

    fn error_answers(&self) -> Option<Doubt> {
        let errors = *self.ledger.causes.get(&Cause::ErrorAnswer)?;
        Some(Doubt::ErrorAnswers(errors, self.ledger.sent, self.first_error?))
    }

    /// The lag gate of `docs/methodology.md`: in an open loop the 99.9 % quantile of send lag
    /// must be below 1 % of the mean response time. What waited because the window was full is
    /// left out: that wait is part of the response and not the generator's error.
    fn lag_gate(&self, load: &Load) -> Option<Doubt> {
        if !load.arrival.is_open() || load.arrival == Arrival::Burst {
            return None;
        }
        let times = if self.recorder.response.count() > 0 {
            &self.recorder.response
        } else {
            &self.recorder.delivery
        };
        let mean = times.mean()?;
        let lag = self.recorder.own_lag.quantile(0.999)?;
        (lag as f64 > 0.01 * mean).then_some(Doubt::LagGate(Nanos(lag), Nanos(mean as u64)))
    }

    /// Little's law in a closed loop of fixed length: X (R + Z) = N within 2 % (rule L01). Asked
    /// only where nothing was lost and the window held many rounds, so that its edges are small.
    fn little(&self, load: &Load) -> Option<Doubt> {
        let is_steady = load.arrival == Arrival::Closed && load.duration.is_some();
        if !is_steady || self.was_interrupted || self.lost_links > 0 || load.copies() > 1 {
            return None;
        }
        let response = &self.recorder.response;
        let times = if response.count() > 0 { response } else { &self.recorder.delivery };
        let granted = self.granted.get("receive_maximum").copied().unwrap_or(u64::MAX);
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
        (residual.abs() > LITTLE_MAX + edge).then_some(Doubt::LittleResidual(residual))
    }

    fn rate_reached(&self, load: &Load) -> Option<Doubt> {
        if !load.arrival.is_open() || load.arrival == Arrival::Burst {
            return None;
        }
        let offered = self.ledger.messages as f64 / self.window(load)?.as_secs_f64();
        let sent = (self.ledger.sent / load.copies().max(1)) as f64;
        let achieved = sent / self.rate_window(load)?.as_secs_f64();
        (achieved < 0.98 * offered).then_some(Doubt::RateNotReached(offered, achieved))
    }
}

fn failed_exchanges(ledger: &Ledger) -> u64 {
    [Cause::ErrorAnswer, Cause::ConnectionClosed, Cause::Timeout]
        .iter()
        .filter_map(|cause| ledger.causes.get(cause))
        .sum()
}

/// By how much Little's law may be off, beside what the edges of the window cost.
const LITTLE_MAX: f64 = 0.02;

/// Rounds of all messages in flight that a window must hold for Little's law to be asked for.
const LITTLE_ROUNDS: u64 = 200;
