//! Whether a load is a lower bound, an upper bound or undecided for a goal, from the durations of
//! its trials; and its conditional throughput. Both as the draft defines them: sections 6.1 and
//! 6.2, appendices A and B.

use serde::Serialize;
use weigh_model::units::Nanos;

/// Status of a load for a goal (the draft, section 4.7.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// Certain to meet the goal, whatever the results of missing trials.
    Lower,
    /// Certain to fail it.
    Upper,
    /// Not yet certain.
    Undecided,
}

/// The durations of the trials at one load, summed by kind (section 6.1). A trial is high-loss if
/// it misses the goal, and full-length if it lasts at least the goal's final trial duration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DurationSums {
    /// Full-length trials that miss the goal.
    pub full_length_high_loss: Nanos,
    /// Full-length trials that meet it.
    pub full_length_low_loss: Nanos,
    /// Shorter trials that miss it.
    pub short_high_loss: Nanos,
    /// Shorter trials that meet it.
    pub short_low_loss: Nanos,
}

impl DurationSums {
    /// Adds one trial.
    pub fn add(&mut self, duration: Nanos, is_full_length: bool, is_high_loss: bool) {
        let sum = match (is_full_length, is_high_loss) {
            (true, true) => &mut self.full_length_high_loss,
            (true, false) => &mut self.full_length_low_loss,
            (false, true) => &mut self.short_high_loss,
            (false, false) => &mut self.short_low_loss,
        };
        *sum = *sum + duration;
    }
}

/// All values between the sums and the result, named as in section 6.1. Sums are whole nanoseconds,
/// so that a load whose full-length trials reach the goal's sum is always decided: with
/// floating-point seconds the optimistic and the pessimistic result could differ by a rounding
/// error for ever.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Classification {
    /// Short low-loss sum times exceed ratio over (1 - exceed ratio), nanoseconds.
    pub balancing_ns: i128,
    /// Short high-loss sum minus the balancing sum.
    pub excess_ns: i128,
    /// The excess, or 0.
    pub positive_excess_ns: i128,
    /// Full-length high-loss sum plus the positive excess.
    pub effective_high_loss_ns: i128,
    /// Effective high-loss sum plus full-length low-loss sum.
    pub effective_full_ns: i128,
    /// The larger of that and the goal's duration sum.
    pub effective_whole_ns: i128,
    /// Time still missing.
    pub missing_ns: i128,
    /// Effective high-loss sum if all missing trials were high-loss.
    pub pessimistic_high_loss_ns: i128,
    /// Share of high loss if all missing trials were low-loss.
    pub optimistic_exceed_ratio: f64,
    /// Share of high loss if all missing trials were high-loss.
    pub pessimistic_exceed_ratio: f64,
    /// The result.
    pub standing: Standing,
}

/// Classifies a load by the sums of its trials, for a goal with this duration sum (above 0) and
/// this exceed ratio (0 or more, below 1).
pub fn classify(sums: &DurationSums, duration_sum: Nanos, exceed_ratio: f64) -> Classification {
    let whole = |sum: Nanos| i128::from(sum.0);
    let coefficient = exceed_ratio / (1.0 - exceed_ratio);
    let balancing_ns = (whole(sums.short_low_loss) as f64 * coefficient).round() as i128;
    let excess_ns = whole(sums.short_high_loss) - balancing_ns;
    let positive_excess_ns = excess_ns.max(0);
    let effective_high_loss_ns = whole(sums.full_length_high_loss) + positive_excess_ns;
    let effective_full_ns = effective_high_loss_ns + whole(sums.full_length_low_loss);
    let effective_whole_ns = effective_full_ns.max(whole(duration_sum));
    let missing_ns = effective_whole_ns - effective_full_ns;
    let pessimistic_high_loss_ns = effective_high_loss_ns + missing_ns;
    // Appendix A compares sums with a product, not ratios with a ratio.
    let tolerated_ns = effective_whole_ns as f64 * exceed_ratio;
    let is_lower = |high_loss_ns: i128| high_loss_ns as f64 <= tolerated_ns;
    let standing = match (is_lower(effective_high_loss_ns), is_lower(pessimistic_high_loss_ns)) {
        (true, true) => Standing::Lower,
        (false, false) => Standing::Upper,
        _ => Standing::Undecided,
    };
    let share = |part: i128| part as f64 / effective_whole_ns as f64;
    Classification {
        balancing_ns,
        excess_ns,
        positive_excess_ns,
        effective_high_loss_ns,
        effective_full_ns,
        effective_whole_ns,
        missing_ns,
        pessimistic_high_loss_ns,
        optimistic_exceed_ratio: share(effective_high_loss_ns),
        pessimistic_exceed_ratio: share(pessimistic_high_loss_ns),
        standing,
    }
}

/// A full-length trial, as the conditional throughput needs it. The order is that of the draft
/// (by loss ratio), with trials that meet the goal first: a trial that breaks a condition other
/// than loss is high-loss although it may have lost nothing.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct FullLength {
    /// Whether it misses the goal.
    pub is_high_loss: bool,
    /// The share of its messages that did not arrive.
    pub loss_ratio: f64,
    /// Its duration.
    pub duration: Nanos,
}

/// The expected forwarding rate at `load`, from its full-length trials (appendix B); `None` without
/// any. Only at the relevant lower bound it is called the conditional throughput.
pub fn conditional_throughput(
    load: f64,
    mut trials: Vec<FullLength>,
    duration_sum: Nanos,
    exceed_ratio: f64,
) -> Option<f64> {
    trials.sort_by(|a, b| a.partial_cmp(b).expect("loss ratios are never NaN"));
    let sum: u64 = trials.iter().map(|trial| trial.duration.0).sum();
    let mut remaining_ns = sum.max(duration_sum.0) as f64 * (1.0 - exceed_ratio);
    let mut loss_ratio = None;
    for trial in &trials {
        if loss_ratio.is_some() && remaining_ns <= 0.0 {
            break;
        }
        loss_ratio = Some(trial.loss_ratio);
        remaining_ns -= trial.duration.0 as f64;
    }
    // Too few trials for the goal: missing ones might lose everything.
    let loss_ratio = if remaining_ns > 0.0 { loss_ratio.map(|_| 1.0) } else { loss_ratio };
    loss_ratio.map(|loss_ratio| load * (1.0 - loss_ratio))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Thirds have no exact binary form: with sums in floating-point seconds this load would stay
    /// undecided for ever.
    #[test]
    fn a_full_sum_is_always_decided() {
        for exceed in 1..100u32 {
            let exceed_ratio = f64::from(exceed) / 100.0;
            for high in 0..=30 {
                let mut sums = DurationSums::default();
                (0..30).for_each(|i| sums.add(Nanos(333_333_333), true, i < high));
                (0..7).for_each(|i| sums.add(Nanos(111_111_111), false, i < high % 8));
                let found = classify(&sums, Nanos(30 * 333_333_333), exceed_ratio);
                assert_ne!(found.standing, Standing::Undecided, "{high} at {exceed_ratio}");
            }
        }
    }

    #[test]
    fn no_trial_is_no_verdict_and_no_throughput() {
        let none = classify(&DurationSums::default(), Nanos::from_secs(60), 0.5);
        assert_eq!(none.standing, Standing::Undecided);
        assert_eq!(conditional_throughput(1000.0, Vec::new(), Nanos::from_secs(60), 0.5), None);
    }

    /// A late trial that lost nothing must not lift the throughput above what was met.
    #[test]
    fn trials_that_meet_the_goal_come_first() {
        let trial = |is_high_loss, loss_ratio| FullLength {
            is_high_loss,
            loss_ratio,
            duration: Nanos::from_secs(1),
        };
        let trials = vec![trial(true, 0.0), trial(false, 0.002), trial(false, 0.004)];
        let found = conditional_throughput(1000.0, trials, Nanos::from_secs(3), 0.5);
        assert_eq!(found, Some(996.0));
    }
}
