//! Observes a target on another host during a trial: requests samples from its agent in a thread,
//! and converts them to the clock of this host.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::clocks::pair::{ClockPair, Exchange};
use crate::cpu::monotonic_ns;
use crate::memory::Memory;
use crate::sampler::{Recording, SAMPLES_MAX, Sample, thinned};

use crate::remote::RemoteError;
use crate::remote::page::Sight;
use crate::remote::visitor::{Looked, Visitor};

/// A thread that requests samples until it is stopped or dropped.
pub struct AgentWatch {
    ask: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    notes: Arc<Mutex<Notes>>,
}

/// Samples up to now.
#[derive(Clone)]
pub struct SoFar(Arc<Mutex<Notes>>);

impl SoFar {
    /// The samples that windows from `from_ns` of this host's monotonic clock on need, converted to
    /// that clock by what is known of both clocks up to now; `None` before the first sample.
    pub fn since(&self, from_ns: u64) -> Option<Recording> {
        let notes = self.0.lock().ok()?;
        let last_ns = notes.looks.last()?.at_ns;
        // By the agent's own clock, so that old samples can be removed without knowing its offset.
        let behind_ns = monotonic_ns().saturating_sub(from_ns) + MARGIN_NS;
        let old = notes.looks.partition_point(|look| look.at_ns + behind_ns < last_ns);
        let (before, rest) = notes.looks.split_at(old);
        // As in a recording: samples with shared memory stay.
        let asked_for = before.iter().filter(|look| look.pss_bytes.is_some());
        let needed = Notes {
            looks: asked_for.chain(rest).copied().collect(),
            exchanges: notes.exchanges.clone(),
            failure: notes.failure.clone(),
            ..*notes
        };
        drop(notes);
        needed.told().recording.map(|seen| seen.since(from_ns))
    }

    /// True if no further sample will come.
    pub fn has_ended(&self) -> bool {
        self.0.lock().is_ok_and(|notes| notes.failure.is_some())
    }
}

/// Samples of an agent.
pub struct Seen {
    /// The samples, on this host's monotonic clock; `None` if there were none.
    pub recording: Option<Recording>,
    /// Possible error of the time of a sample, nanoseconds: the uncertainty of the two clocks.
    /// Rates
    /// are not affected: they use the agent's own clock.
    pub clock_bound_ns: Option<u64>,
    /// Processor time of the agent itself, as a share of a core of its host.
    pub agent_share: Option<f64>,
    /// Why it ended early, if it did.
    pub failure: Option<Arc<RemoteError>>,
}

/// State of the thread.
#[derive(Clone)]
struct Notes {
    looks: Vec<Sight>,
    exchanges: Vec<Exchange>,
    failure: Option<Arc<RemoteError>>,
    cores: u32,
    period: Duration,
}

impl AgentWatch {
    /// Requests a sample every `period`, through a connected client.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(visitor: Visitor, period: Duration) -> Result<AgentWatch, RemoteError> {
        let (ask, asked) = channel();
        let period = period.max(Duration::from_millis(10));
        let notes = Arc::new(Mutex::new(Notes {
            looks: Vec::new(),
            exchanges: Vec::new(),
            failure: None,
            cores: visitor.cores(),
            period,
        }));
        let written = Arc::clone(&notes);
        let thread = std::thread::Builder::new()
            .name("weigh-outlook".to_owned())
            .spawn(move || watch(visitor, period, &asked, &written))
            .map_err(|error| RemoteError::Identity(error.to_string()))?;
        Ok(AgentWatch { ask: Some(ask), thread: Some(thread), notes })
    }

    /// Returns a reader of the samples while the watch continues.
    pub fn so_far(&self) -> SoFar {
        SoFar(Arc::clone(&self.notes))
    }

    /// Requests a sample with proportional memory, and does not wait for it: the caller, who marks
    /// the border of a window, has other work.
    pub fn poke(&self) {
        if let Some(ask) = &self.ask {
            let _ = ask.send(());
        }
    }

    /// Requests a last sample and returns all.
    pub fn stop(mut self) -> Seen {
        self.ask = None;
        let joined = self.thread.take().and_then(|thread| thread.join().ok());
        let notes = joined.and_then(|()| Some(self.notes.lock().ok()?.clone()));
        notes.map_or_else(
            || Seen { recording: None, clock_bound_ns: None, agent_share: None, failure: None },
            Notes::told,
        )
    }
}

impl Drop for AgentWatch {
    fn drop(&mut self) {
        self.ask = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn watch(mut visitor: Visitor, period: Duration, asked: &Receiver<()>, notes: &Mutex<Notes>) {
    let mut due = Instant::now();
    loop {
        let wanted = asked.recv_timeout(due.saturating_duration_since(Instant::now()));
        let looked = visitor.look(wanted.is_ok());
        let Ok(mut notes) = notes.lock() else { return };
        match looked {
            Ok(looked) => notes.take(looked),
            Err(error) => {
                notes.failure = Some(Arc::new(error));
                return;
            }
        }
        match wanted {
            Ok(()) => {}
            Err(RecvTimeoutError::Timeout) => due = (due + period).max(Instant::now()),
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

impl Notes {
    fn take(&mut self, looked: Looked) {
        self.looks.push(looked.sight);
        self.exchanges.push(looked.exchange);
        if self.exchanges.len() >= 2 * EXCHANGES_MAX {
            // The quickest exchanges bound the clocks best; the first and the last span the drift.
            let middle = self.exchanges.len() / 2;
            let quickest = |part: &[Exchange]| {
                let mut part = part.to_vec();
                part.sort_by_key(Exchange::round_trip);
                part.truncate(EXCHANGES_MAX / 2);
                part
            };
            let mut kept = quickest(&self.exchanges[..middle]);
            kept.extend(quickest(&self.exchanges[middle..]));
            self.exchanges = kept;
        }
    }

    fn told(self) -> Seen {
        let (Some(first), Some(last)) = (self.looks.first(), self.looks.last()) else {
            return Seen {
                recording: None,
                clock_bound_ns: None,
                agent_share: None,
                failure: self.failure,
            };
        };
        let pair = ClockPair::of(&self.exchanges, RESOLUTION_NS);
        let quickest = self.exchanges.iter().min_by_key(|exchange| exchange.round_trip());
        let ahead = quickest
            .map_or(0, |own| own.reached.midpoint(own.answered) - own.sent.midpoint(own.received));
        // Without a line that fits them all, the quickest exchange bounds the offset by half of its
        // round trip (RFC 5905, section 8).
        let own = |agent_ns: u64| match &pair {
            Ok(pair) => pair.own(agent_ns as i64),
            Err(_) => (agent_ns as i64).saturating_sub(ahead),
        };
        let bound = match &pair {
            Ok(pair) => {
                let ends = [own(first.at_ns), own(last.at_ns)];
                let bounds = ends.map(|at| pair.offset(at).bound);
                Some(bounds[0].max(bounds[1]).ceil() as u64)
            }
            Err(_) => quickest.map(|own| own.round_trip().unsigned_abs().div_ceil(2)),
        };
        let wall_ns = last.at_ns.saturating_sub(first.at_ns);
        let agent_ns = last.own_cpu_ns.saturating_sub(first.own_cpu_ns);
        let agent_share = (wall_ns > 0).then(|| agent_ns as f64 / wall_ns as f64);
        let accounting = self.looks.iter().map(|look| look.accounting).max();
        let sample = |look: &Sight| Sample {
            at_ns: u64::try_from(own(look.at_ns)).unwrap_or(0),
            cpu_ns: look.cpu_ns,
            processes: look.processes,
            threads: look.threads,
            memory: Memory { rss_bytes: look.rss_bytes, pss_bytes: look.pss_bytes },
            host: look.host,
        };
        let mut samples: Vec<Sample> = self.looks.iter().map(sample).collect();
        let gone_ns = self.failure.as_ref().and(samples.last()).map(|sample| sample.at_ns + 1);
        let mut period = self.period;
        if samples.len() > SAMPLES_MAX {
            samples = thinned(samples);
            period *= 2;
        }
        let recording = accounting.map(|accounting| Recording {
            samples,
            cores: self.cores,
            accounting,
            own_cpu_ns: agent_ns,
            gone_ns,
            period,
        });
        Seen { recording, clock_bound_ns: bound, agent_share, failure: self.failure }
    }
}

/// How much longer than a window its samples are kept: longer than the time between two of them.
const MARGIN_NS: u64 = 2_000_000_000;

/// Number of exchanges kept to estimate the clocks.
const EXCHANGES_MAX: usize = 1_000;

/// Both clocks count nanoseconds.
const RESOLUTION_NS: i64 = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::{Accounting, HostCpu};

    /// Memory is what no other process shares: the look that tells the two apart may be old.
    #[test]
    fn a_part_of_what_was_seen_keeps_what_is_known_of_shared_memory() {
        let now_ns = monotonic_ns();
        let look = |at_ns: u64, pss_bytes| Sight {
            reached_ns: at_ns,
            at_ns,
            answered_ns: at_ns,
            cpu_ns: 0,
            processes: 1,
            threads: 1,
            rss_bytes: 5_000,
            pss_bytes,
            accounting: Accounting::ThreadSchedule,
            host: HostCpu::default(),
            own_cpu_ns: 0,
        };
        // The agent's clock is far ahead, and its looks are a minute apart.
        let ahead_ns = 1_000_000_000_000;
        let at = |seconds: u64| now_ns + ahead_ns - 200_000_000_000 + seconds * 1_000_000_000;
        let looks = vec![look(at(0), Some(3_000)), look(at(60), None), look(at(200), None)];
        let own = now_ns as i64;
        let exchanges = vec![Exchange {
            sent: own - 10,
            reached: own + ahead_ns as i64 - 5,
            answered: own + ahead_ns as i64 - 5,
            received: own,
        }];
        let (failure, period) = (None, Duration::from_secs(60));
        let notes = Notes { looks, exchanges, failure, cores: 1, period };
        let seen = SoFar(Arc::new(Mutex::new(notes))).since(now_ns).expect("looks");
        let known: Vec<_> = seen.samples.iter().map(|own| own.memory.pss_bytes).collect();
        assert_eq!(known, [Some(3_000), None]);
    }
}
