//! Progress of a running trial: from the shards of the generator, and from the target.

use weigh_engine::job::Progress;
use weigh_model::event::Interval;
use weigh_observe::sampler::Recording;

/// Reports of a trial's threads while it runs.
pub enum TrialNews {
    /// A shard of the generator.
    Shard(u32, Progress),
    /// The target is observed.
    Target(Watched),
}

/// A target that is observed during a trial.
pub struct Watched {
    /// The samples so far that windows from a moment on need.
    pub since: Since,
    /// The samples' clock at the trial's time 0.
    pub epoch_ns: u64,
    /// True for a target that Weighbridge does not run: once it is gone, it has no figures.
    pub is_foreign: bool,
}

/// Reads a recording that may still grow, from this moment of the monotonic clock on.
pub type Since = Box<dyn Fn(u64) -> SoFar + Send>;

/// State of a recording that may still grow.
pub enum SoFar {
    /// It has ended without a sample.
    Nothing,
    /// The first sample has not come yet.
    NotYet,
    /// The samples so far.
    Seen(Recording),
}

impl Watched {
    /// Adds the target's load and memory to an interval. Returns false if the samples do not reach
    /// the interval's end yet.
    pub fn tell(&self, interval: &mut Interval) -> bool {
        let to = self.epoch_ns + interval.at_ns;
        let from = to.saturating_sub(interval.length_ns.unwrap_or(0));
        let recording = match (self.since)(from) {
            SoFar::Nothing => return true,
            SoFar::NotYet => return false,
            SoFar::Seen(recording) => recording,
        };
        let is_gone = self.is_foreign && recording.gone_ns.is_some_and(|gone| gone <= to);
        if let Some(usage) = recording.window(from, to).filter(|_| !is_gone) {
            interval.target_cpu_percent = Some(usage.percent_mean);
            let bytes = usage.rss_bytes_max.saturating_sub(shared_bytes(&recording));
            interval.target_memory_bytes = (usage.rss_bytes_max > 0).then_some(bytes);
        }
        recording.reaches(to)
    }
}

/// Resident memory less proportional memory: frequent samples have only the former, and a report
/// that shows both must be consistent.
fn shared_bytes(recording: &Recording) -> u64 {
    let known = recording.samples.iter().filter(|sample| sample.memory.pss_bytes.is_some());
    known.map(|s| s.memory.rss_bytes.saturating_sub(s.memory.bytes())).min().unwrap_or(0)
}
