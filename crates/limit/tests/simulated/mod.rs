//! Targets with a known limit on virtual time: they answer a request for a trial at once, message
//! by message.

// Every test binary uses its own part of these.
#![allow(dead_code)]

use std::collections::BTreeMap;

use weigh_limit::{Answer, Search, Selector, TrialEnd, TrialRequest, TrialResult};
use weigh_model::units::Nanos;
use weigh_stats::random::Random;

/// A target that takes messages out of a queue at a steady rate and refuses what finds it full: a
/// token bucket. Its rate may scatter.
#[derive(Clone, Debug)]
pub struct Bucket {
    /// Messages per second.
    pub capacity: f64,
    /// Messages that find room at once.
    pub queue: f64,
    noise: Noise,
    random: Random,
}

/// How the rate scatters: the standard deviation as a share of the capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Noise {
    /// Drawn anew every 100 ms: what disturbs a server for a moment.
    OfMoments(f64),
    /// Drawn once for a whole trial, however long: no trial averages it out.
    OfTrials(f64),
}

impl Bucket {
    pub fn new(capacity: f64, queue: f64, noise: Noise, seed: u64) -> Bucket {
        Bucket { capacity, queue, noise, random: Random::new(seed) }
    }

    /// The largest rate at which a trial of so many seconds loses no more than this share: what
    /// is due, less what is lost, is what the bucket takes out and what its queue holds at the end.
    pub fn limit(&self, seconds: f64, loss_ratio: f64) -> f64 {
        (self.capacity + self.queue / seconds) / (1.0 - loss_ratio)
    }

    /// A trial at `rate` messages per second for so many seconds: how many were taken and refused.
    pub fn offer(&mut self, rate: f64, seconds: f64) -> (u64, u64) {
        let messages = (rate * seconds).round() as u64;
        let (share, moment) = match self.noise {
            Noise::OfMoments(share) => (share, ((rate / 10.0) as u64).max(1)),
            Noise::OfTrials(share) => (share, u64::MAX),
        };
        let (mut waiting, mut taken, mut drained) = (0.0f64, 0, 0.0);
        for message in 0..messages {
            if message % moment == 0 {
                drained = self.capacity * (1.0 + share * self.random.normal()) / rate;
            }
            waiting = (waiting - drained).max(0.0);
            // Accumulated sums of fractions must not refuse what just fits.
            if waiting + 1.0 <= self.queue + 1e-6 {
                waiting += 1.0;
                taken += 1;
            }
        }
        (taken, messages - taken)
    }
}

/// A result with these counts, with nothing beside the trial's duration.
pub fn result(request: &TrialRequest, forwarded: u64, lost: u64) -> TrialResult {
    TrialResult {
        load: request.load,
        duration: request.duration,
        elapsed: request.duration,
        forwarded,
        lost,
        figures: BTreeMap::new(),
        end: TrialEnd::Completed,
    }
}

/// Runs a search to its end against a target.
pub fn searched(search: Search, mut target: impl FnMut(&TrialRequest) -> TrialResult) -> Answer {
    let mut selector = Selector::new(search).expect("the search is sound");
    while let Some(request) = selector.next_trial() {
        let result = target(&request);
        selector.note(result).expect("the result is the one that was asked for");
    }
    selector.answer()
}

/// Runs a search of rates against a bucket.
pub fn searched_bucket(search: Search, bucket: &mut Bucket) -> Answer {
    searched(search, |request| {
        let (taken, refused) = bucket.offer(request.load, request.duration.as_secs_f64());
        result(request, taken, refused)
    })
}

/// What the classical search takes: both ends and then the middle, every trial at full length,
/// until the bounds are `width` apart (RFC 2544, section 24; the draft, section 5.1).
pub fn bisected(
    min: f64,
    max: f64,
    width: f64,
    duration: Nanos,
    mut is_met: impl FnMut(f64) -> bool,
) -> (f64, f64, usize, Nanos) {
    let (mut lower, mut upper, mut trials) = (min, max, 2);
    assert!(is_met(min) && !is_met(max));
    while (upper - lower) / upper > width && upper - lower > 1.0 {
        let middle = ((lower + upper) / 2.0).round();
        trials += 1;
        if is_met(middle) { lower = middle } else { upper = middle }
    }
    (lower, upper, trials, Nanos(duration.0 * trials as u64))
}
