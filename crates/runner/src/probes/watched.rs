//! What is seen of a target while a trial runs: its processes are looked at from a thread of their
//! own.

use std::time::Duration;

use weigh_engine::outcome::Outcome;
use weigh_model::event::Interval;
use weigh_model::{Load, Nanos};
use weigh_observe::cpu::HostCpu;
use weigh_observe::sampler::{Recording, Sampler, Usage};

use crate::targets::relayed::Relayed;

/// A target that is watched while a trial runs.
pub struct Watched {
    /// The samples so far that windows from a moment on need.
    pub since: Since,
    /// What their clock showed when the trial's stood at 0.
    pub epoch_ns: u64,
    /// True for a target that Weighbridge does not run: once it is gone, it has no figures.
    pub is_foreign: bool,
}

/// Reads a recording that may still grow, from this moment of the monotonic clock on.
pub type Since = Box<dyn Fn(u64) -> Option<Recording> + Send>;

impl Watched {
    /// Puts the target's load and memory into an interval. Returns false where the target was not
    /// watched to the interval's end yet.
    pub fn tell(&self, interval: &mut Interval) -> bool {
        let to = self.epoch_ns + interval.at_ns;
        let from = to.saturating_sub(interval.length_ns.unwrap_or(0));
        let Some(recording) = (self.since)(from) else { return true };
        let is_gone = self.is_foreign && recording.gone_ns.is_some_and(|gone| gone <= to);
        if let Some(usage) = recording.window(from, to).filter(|_| !is_gone) {
            interval.target_cpu_percent = Some(usage.percent_mean);
            let bytes = usage.rss_bytes_max.saturating_sub(shared_bytes(&recording));
            interval.target_memory_bytes = (usage.rss_bytes_max > 0).then_some(bytes);
        }
        recording.reaches(to)
    }
}

/// What resident memory exceeded proportional memory by: frequent samples know only the former,
/// and a report that shows both must not contradict itself.
fn shared_bytes(recording: &Recording) -> u64 {
    let known = recording.samples.iter().filter(|sample| sample.memory.pss_bytes.is_some());
    known.map(|s| s.memory.rss_bytes.saturating_sub(s.memory.bytes())).min().unwrap_or(0)
}

/// Watches the relay, whose processor time is of one core.
pub fn start_relay(relay: Option<&Relayed>, load: &Load) -> Option<Sampler> {
    Sampler::start(relay?.pid(), 1, sample_every(load)).ok()
}

/// What the target used: processor time over the whole window, draining included, and load over
/// the measured window alone. Beside it is what the host used in the latter.
pub fn usage(
    recording: Option<&Recording>,
    outcome: &Outcome,
    epoch_ns: u64,
    (from, to): (Nanos, Nanos),
) -> Option<(Usage, HostCpu)> {
    let recording = recording?;
    let whole = recording.window(epoch_ns + from.0, epoch_ns + to.0)?;
    let (begin, end) = outcome.window_between().unwrap_or((from, to));
    let within = recording.window(epoch_ns + begin.0, epoch_ns + end.min(to).0);
    let Usage { percent_mean, percent_max, host, .. } = within.unwrap_or(whole);
    Some((Usage { percent_mean, percent_max, ..whole }, host))
}

/// How often the target is looked at: every 50 ms, in trials longer than half an hour so seldom
/// that there are no more than 36,000 samples.
pub fn sample_every(load: &Load) -> Duration {
    let whole = load.duration.unwrap_or_default() + load.warmup;
    SAMPLE_EVERY.max(Duration::from_nanos(whole.0 / SAMPLES_MAX))
}

const SAMPLE_EVERY: Duration = Duration::from_millis(50);

/// Samples of a trial of known length: 130 bytes each, 5 MB.
const SAMPLES_MAX: u64 = 36_000;
