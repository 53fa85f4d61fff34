//! The clocks of a trial's agents: where each of them places its zero, and how wrong that may have
//! been until its end. All moments are those of the coordinator's `CLOCK_MONOTONIC`, nanoseconds.

use weigh_engine::job::Failure;
use weigh_model::Nanos;

use crate::clock::Estimate;
use crate::stored_part::KnownClock;

/// An agent whose clock is asked for.
pub trait Clocked {
    /// What is known of its clock at a moment; `None` before the first exchange.
    fn clock_at(&self, own_ns: i64) -> Option<Estimate>;

    /// The agent in a sentence.
    fn name(&self) -> String;
}

/// Offsets by which a trial was placed, and the largest errors seen since.
#[derive(Clone)]
pub struct TrialClocks {
    epoch_ns: i64,
    offsets_ns: Vec<i64>,
    errors_ns: Vec<u64>,
    sampled_ns: i64,
}

impl TrialClocks {
    /// Places the trial's zero, at `epoch_ns` here, on each agent's clock, with what is known now.
    ///
    /// # Errors
    /// [`Failure::Ourselves`] if an agent's clock is not known.
    pub fn place<H: Clocked>(
        hands: &[H],
        epoch_ns: i64,
        now_ns: i64,
    ) -> Result<TrialClocks, Failure> {
        let offset = |hand: &H| {
            let unknown = || Failure::Ourselves(format!("the clock of {} is unknown", hand.name()));
            // The offset of the present makes the trial's clock right when the load starts, however
            // long ago its zero was.
            let known = hand.clock_at(now_ns).ok_or_else(unknown)?;
            Ok(known.offset_ns)
        };
        let offsets_ns = hands.iter().map(offset).collect::<Result<Vec<_>, _>>()?;
        let errors_ns = vec![0; hands.len()];
        Ok(TrialClocks { epoch_ns, offsets_ns, errors_ns, sampled_ns: now_ns })
    }

    /// What an agent's clock shows at the trial's zero, nanoseconds.
    pub fn zero_ns(&self, index: usize) -> i64 {
        self.epoch_ns.saturating_add(self.offsets_ns[index])
    }

    /// What is known of an agent's clock: the offset by which its zero was placed, the largest
    /// possible error of its trial clock that was seen, and its drift now.
    pub fn known(&self, index: usize, hand: &impl Clocked, now_ns: i64) -> KnownClock {
        let now = hand.clock_at(now_ns).unwrap_or_default();
        KnownClock {
            offset_ns: self.offsets_ns[index],
            error_ns: self.errors_ns[index],
            drift_ppm: now.drift_ppm,
            drift_bound_ppm: now.drift_bound_ppm,
        }
    }

    /// Looks at the errors now, if it has not been done for a while.
    pub fn sample_sometimes(&mut self, hands: &[impl Clocked], now_ns: i64) {
        if now_ns - self.sampled_ns >= SAMPLE_EVERY_NS {
            self.sampled_ns = now_ns;
            self.sample(hands, now_ns);
        }
    }

    /// Looks at the errors at a moment.
    pub fn sample(&mut self, hands: &[impl Clocked], at_ns: i64) {
        for (index, hand) in hands.iter().enumerate() {
            if let Some(error) = self.error_at(index, hand, at_ns) {
                self.errors_ns[index] = self.errors_ns[index].max(error);
            }
        }
    }

    /// The largest possible errors at this time on the trial's clock, by rank.
    pub fn errors_at(&mut self, hands: &[impl Clocked], at: Nanos) -> Vec<u64> {
        let at_ns = self.epoch_ns + at.0 as i64;
        self.sample(hands, at_ns);
        let error = |(index, hand)| self.error_at(index, hand, at_ns).unwrap_or(u64::MAX);
        hands.iter().enumerate().map(error).collect()
    }

    fn error_at(&self, index: usize, hand: &impl Clocked, at_ns: i64) -> Option<u64> {
        let known: Estimate = hand.clock_at(at_ns)?;
        let moved = known.offset_ns.abs_diff(self.offsets_ns[index]);
        Some(moved.saturating_add(known.bound_ns))
    }
}

/// The sum of the two largest errors: no two agents are further apart.
pub fn skew_bound(errors_ns: &[u64]) -> u64 {
    let mut largest = errors_ns.to_vec();
    largest.sort_unstable_by(|a, b| b.cmp(a));
    largest.iter().take(2).fold(0, |sum, error| sum.saturating_add(*error))
}

const SAMPLE_EVERY_NS: i64 = 5_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_agents_are_apart_by_both_errors_at_most() {
        assert_eq!(skew_bound(&[3, 9, 5, 1]), 14);
        assert_eq!(skew_bound(&[7]), 7);
        assert_eq!(skew_bound(&[]), 0);
        assert_eq!(skew_bound(&[u64::MAX, 1]), u64::MAX);
    }
}
