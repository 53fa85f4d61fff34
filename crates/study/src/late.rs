//! A figure that includes the generator's lateness, as a quantity of claims: the target's part
//! is anywhere between all of it and the remainder without the lateness.

use std::rc::Rc;

use weigh_report::figures::time;
use weigh_report::summary::Cell;
use weigh_report::summary::lateness::Lateness;
use weigh_stats::random::Random;

/// The part that is lateness.
#[derive(Clone, Debug)]
pub(crate) struct Late {
    lag_ns: f64,
    /// What is said of the figure.
    pub(crate) words: String,
}

impl Late {
    /// That of the figure `metric` of `cell`; `None` where it is too little to matter.
    pub(crate) fn of(cell: &Cell, metric: &str) -> Option<Late> {
        let lag_ns = Lateness::of(cell, metric).said_ns();
        let said = time(lag_ns, false);
        let words = format!("up to {said} of {metric} is generator lag");
        (lag_ns > 0.0).then_some(Late { lag_ns, words })
    }

    /// The draws of the figure, each less a random part of the lateness, since its share is
    /// unknown.
    pub(crate) fn taken_from(&self, draws: &[f64], seed: u64) -> Rc<Vec<f64>> {
        let mut random = Random::new(seed ^ OF_LATENESS);
        let without = |draw: &f64| (draw - self.lag_ns * random.next_f64()).max(0.0);
        Rc::new(draws.iter().map(without).collect())
    }
}

/// Makes these random numbers differ from those of the draws themselves.
const OF_LATENESS: u64 = 0x1A7E;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_reach_from_the_figure_to_what_is_left_of_it() {
        let late = Late { lag_ns: 40.0, words: String::new() };
        let draws = late.taken_from(&[100.0; 1000], 7);
        assert!(draws.iter().all(|draw| (60.0..=100.0).contains(draw)));
        let of = |low: f64| draws.iter().filter(|draw| (low..low + 10.0).contains(*draw)).count();
        assert!([60.0, 70.0, 80.0, 90.0].into_iter().all(|low| of(low) > 200));
        assert_eq!(late.taken_from(&[100.0; 1000], 7), draws, "the same for one seed");
    }
}
