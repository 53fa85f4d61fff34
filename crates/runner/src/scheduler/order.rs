//! Order of a round: every case once, drawn from the plan's seed. Each round is drawn again, so
//! that a drift of the machine affects all cases alike.

use weigh_stats::random::Random;

/// The indices of `levels` in the order of round `round`: lower levels first, and cases of one
/// level in random order. A pure function of its arguments, so that a resumed run needs no state of
/// a random generator.
pub fn order(seed: u64, round: u32, levels: &[u32]) -> Vec<usize> {
    let mut random = Random::stream(seed, ORDER_STREAM | u64::from(round) << 8);
    let mut order: Vec<usize> = (0..levels.len()).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, random.below(last as u64 + 1) as usize);
    }
    // The sort is stable, so the drawn order stays within a level.
    order.sort_by_key(|case| levels[*case]);
    order
}

/// The random stream of the order of trials; the round's number is added above it.
const ORDER_STREAM: u64 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_differ_and_levels_ascend() {
        let flat = vec![0; 50];
        assert_eq!(order(7, 0, &flat), order(7, 0, &flat));
        assert_ne!(order(7, 0, &flat), order(7, 1, &flat));
        assert_ne!(order(7, 0, &flat), order(8, 0, &flat));
        let levels: Vec<u32> = (0..50).map(|case| case % 5).collect();
        let ordered: Vec<u32> = order(7, 0, &levels).iter().map(|case| levels[*case]).collect();
        assert!(ordered.is_sorted());
    }

    /// Every case is as likely to be first as any other, so that none always meets a cold machine:
    /// 6,000 rounds of 6 cases, each first within five standard deviations (29) of 1,000 times.
    #[test]
    fn nobody_is_always_first() {
        let mut first = [0_i32; 6];
        (0..6000).for_each(|round| first[order(1, round, &[0; 6])[0]] += 1);
        assert!(first.iter().all(|count| (count - 1000).abs() < 145), "{first:?}");
    }
}
