//! Usage of a target during a trial: its processes are sampled from a thread of its own.

use std::time::Duration;

use weigh_engine::outcome::Outcome;
use weigh_model::{Load, Nanos};
use weigh_observe::cpu::HostCpu;
use weigh_observe::sampler::{Recording, Usage};

/// Usage of the target: CPU time over the whole window, draining included, and load over the
/// measured window alone, with that of the host.
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

/// Sampling interval: 50 ms, and longer in trials over half an hour, for at most 36,000 samples.
pub fn sample_every(load: &Load) -> Duration {
    let whole = load.duration.unwrap_or_default() + load.warmup;
    SAMPLE_EVERY.max(Duration::from_nanos(whole.0 / SAMPLES_MAX))
}

const SAMPLE_EVERY: Duration = Duration::from_millis(50);

/// Maximum number of samples in a trial of known length: 130 bytes each, 5 MB.
const SAMPLES_MAX: u64 = 36_000;
