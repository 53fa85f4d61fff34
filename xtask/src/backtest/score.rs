//! The scores: whether the advised set holds the best option, how large it is, what following it
//! costs, whether it refuses what it should, and how good its intervals and probabilities are.

use super::advisers::by_literature;
use super::outcome::{Situation, mean};

/// Scores of an adviser.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Scores {
    /// Situations that were measured.
    pub(crate) measured: usize,
    /// Of these, with an advised option among the best.
    pub(crate) covered: usize,
    /// Mean size of the advised set.
    pub(crate) set_size: f64,
    /// Situations with one advised option.
    pub(crate) singles: usize,
    /// Cost of the first advised option over that of the best, sorted.
    pub(crate) regrets: Vec<f64>,
    /// Closed gap between the single best option and the best of every situation.
    pub(crate) closed_gap: f64,
    /// Refused of those that should be, and of those that should not.
    pub(crate) refusals: [usize; 2],
    /// Situations that should be refused.
    pub(crate) outside: usize,
    /// Share of measured figures within their predicted interval.
    pub(crate) held: f64,
    /// Brier score of the probabilities, and of the rank by literature on the same pairs.
    pub(crate) brier: [f64; 2],
    /// Break-evens whose set has two options or more.
    pub(crate) undecided: [usize; 2],
}

/// Scores of the advice; `pick` replaces the advised set of a situation by another adviser's.
pub(crate) fn scores(all: &[Situation], pick: &dyn Fn(&Situation) -> Vec<String>) -> Scores {
    let done: Vec<&Situation> = all.iter().filter(|own| own.is_scored()).collect();
    let outside = all.iter().filter(|own| own.kind == "outside");
    let inside = all.iter().filter(|own| own.kind != "outside");
    let is_refused = |own: &&Situation| !own.is_answered;
    let mut scores = Scores {
        measured: done.len(),
        outside: outside.clone().count(),
        refusals: [outside.filter(is_refused).count(), inside.filter(is_refused).count()],
        ..Scores::default()
    };
    let (mut sizes, mut held) = (Vec::new(), Vec::new());
    let (mut own_error, mut literature) = (Vec::new(), Vec::new());
    for situation in &done {
        let advised = pick(situation);
        scores.covered += usize::from(situation.is_covered(&advised));
        scores.singles += usize::from(advised.len() == 1);
        if situation.kind == "break-even" {
            scores.undecided[0] += usize::from(advised.len() > 1);
            scores.undecided[1] += 1;
        }
        sizes.push(advised.len() as f64);
        let first = advised.first().and_then(|own| situation.regret(own));
        scores.regrets.push(first.unwrap_or(REGRET_OF_NONE));
        for (name, values) in &situation.measured {
            if let Some([low, high]) = situation.predicted.get(name) {
                let value = mean(values);
                held.push(f64::from(u8::from((*low..=*high).contains(&value))));
            }
            for (other, others) in situation.measured.iter().filter(|(other, _)| *other > name) {
                let Some(share) = situation.beats.get(&(name.clone(), other.clone())) else {
                    continue;
                };
                let truth = match mean(values).total_cmp(&mean(others)) {
                    std::cmp::Ordering::Less => 1.0,
                    std::cmp::Ordering::Equal => 0.5,
                    std::cmp::Ordering::Greater => 0.0,
                };
                own_error.push((share - truth).powi(2));
                literature.push((by_literature(name, other) - truth).powi(2));
            }
        }
    }
    scores.regrets.sort_unstable_by(f64::total_cmp);
    (scores.set_size, scores.held) = (mean(&sizes), mean(&held));
    scores.brier = [mean(&own_error), mean(&literature)];
    let single = single_best(&done);
    let mean_regret = mean(&scores.regrets);
    scores.closed_gap = if single > 1.0 { (single - mean_regret) / (single - 1.0) } else { 1.0 };
    scores
}

/// Mean regret of the one option that is best for all situations together.
fn single_best(done: &[&Situation]) -> f64 {
    let plain = |name: &String| name.replace(", TLS", "");
    let names: Vec<String> = done.iter().flat_map(|own| own.measured.keys().map(plain)).collect();
    let of = |name: &String| {
        let regrets: Vec<f64> = done
            .iter()
            .map(|own| {
                let found = own.measured.keys().find(|other| plain(other) == *name);
                found.and_then(|found| own.regret(found)).unwrap_or(REGRET_OF_NONE)
            })
            .collect();
        mean(&regrets)
    };
    names.iter().map(of).fold(f64::INFINITY, f64::min)
}

impl Scores {
    /// The regret that this share of the situations does not exceed.
    pub(crate) fn regret_at(&self, share: f64) -> f64 {
        let last = self.regrets.len().saturating_sub(1) as f64;
        self.regrets.get((share * last).round() as usize).copied().unwrap_or(f64::INFINITY)
    }

    /// The goals that are missed.
    pub(crate) fn missed(&self) -> Vec<&'static str> {
        let n = self.measured as f64;
        let [own, literature] = self.brier;
        let goals = [
            (self.measured > 0 && self.covered as f64 >= 24.0 / 26.0 * n, "coverage"),
            (self.set_size <= 1.7, "size of the set"),
            (self.singles as f64 >= n / 2.0, "single options"),
            (self.regret_at(0.5) <= 1.02, "median regret"),
            (self.regret_at(0.95) <= 1.15, "regret at 95 %"),
            (self.closed_gap >= 0.8, "closed gap"),
            (self.refusals[0] == self.outside && self.refusals[1] == 0, "refusals"),
            ((0.88..=0.98).contains(&self.held), "intervals"),
            (own < 0.25 && own < literature, "Brier score"),
        ];
        goals.into_iter().filter(|(holds, _)| !holds).map(|(_, name)| name).collect()
    }
}

/// What it costs to advise something that cannot do it.
const REGRET_OF_NONE: f64 = 3.0;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::backtest::advisers::shuffled;
    use crate::backtest::measure::read;
    use crate::backtest::outcome::of;
    use crate::backtest::table::table;
    use crate::backtest::tree::Tree;

    fn advice(own: &Situation) -> Vec<String> {
        own.advised.clone()
    }

    /// Twenty situations of four options with costs 1, 1.5, 2 and 3, which change places.
    pub(crate) fn made() -> Vec<Situation> {
        let names = ["a, kept", "b, kept", "c, kept", "d, kept"];
        let one = |number: usize| {
            let cost = |at: usize| [1.0, 1.5, 2.0, 3.0][(at + number) % 4];
            let mut own =
                Situation { kind: "inside".to_owned(), is_answered: true, ..Situation::default() };
            for (at, name) in names.iter().enumerate() {
                // One interval in twenty misses.
                let off = if number == 3 && at < 3 { 2.0 } else { 1.0 };
                own.predicted
                    .insert((*name).to_owned(), [0.9 * off * cost(at), 1.1 * off * cost(at)]);
                own.measured.insert((*name).to_owned(), vec![cost(at); 5]);
                for (other_at, other) in names.iter().enumerate().filter(|(other, _)| *other != at)
                {
                    let share = if cost(at) < cost(other_at) { 0.95 } else { 0.05 };
                    own.beats.insert(((*name).to_owned(), (*other).to_owned()), share);
                }
            }
            own.advised = own.best();
            own
        };
        let refused =
            Situation { kind: "outside".to_owned(), is_answered: false, ..Situation::default() };
        (0..20).map(one).chain([refused]).collect()
    }

    #[test]
    fn good_advice_meets_every_goal() {
        let own = scores(&made(), &advice);
        assert_eq!((own.covered, own.measured, own.singles), (20, 20, 20));
        assert_eq!((own.refusals, own.outside), ([1, 0], 1));
        assert!((own.closed_gap - 1.0).abs() < 1e-9 && own.brier[0] < 0.01, "{own:?}");
        assert!((own.held - 77.0 / 80.0).abs() < 1e-9);
        assert!((own.brier[1] - 0.25).abs() < 1e-9, "the literature does not know these");
        assert_eq!(own.missed(), [""; 0]);
    }

    /// Labels that are permuted at random fail every score that depends on them, whatever the seed.
    #[test]
    fn shuffled_labels_fail() {
        for seed in 0..20 {
            let found = scores(&shuffled(&made(), seed), &advice).missed();
            let goals = ["coverage", "median regret", "regret at 95 %", "closed gap", "intervals"];
            for goal in goals.into_iter().chain(["Brier score"]) {
                assert!(found.contains(&goal), "seed {seed}: {goal} is not among {found:?}");
            }
        }
    }

    /// The committed predictions, measured exactly as predicted, meet the goals of the choice; with
    /// shuffled labels they fail them. So the scores separate both before anything is measured.
    #[test]
    fn the_committed_predictions_fail_with_shuffled_labels() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(super::super::FOLDER);
        let frozen = super::super::freeze::check(&folder).expect("the frozen predictions");
        let mut all = of(&folder, &frozen).expect("the situations");
        for own in &mut all {
            let document = read(&folder.join(format!("{}.json", own.number))).expect("JSON");
            let all = document["options"].as_array().into_iter().flatten();
            let can = all.filter(|option| own.is_answered && option["standing"] != "out");
            let as_predicted = can.filter_map(|option| {
                let value = option["figure"]["value"].as_f64()?;
                Some((option["name"].as_str()?.to_owned(), vec![value; 3]))
            });
            own.measured = as_predicted.collect();
        }
        let own = scores(&all, &advice);
        assert_eq!((own.measured, own.refusals), (26, [4, 0]));
        let missed = own.missed();
        for goal in ["coverage", "median regret", "closed gap", "refusals", "Brier score"] {
            assert!(!missed.contains(&goal), "{missed:?} {own:?}");
        }
        for seed in 0..20 {
            let found = scores(&shuffled(&all, seed), &advice).missed();
            for goal in ["coverage", "median regret", "regret at 95 %", "closed gap", "intervals"] {
                assert!(found.contains(&goal), "seed {seed}: {goal} is not among {found:?}");
            }
        }
    }

    /// Naming everything covers everything and is worth nothing.
    #[test]
    fn advising_everything_is_no_advice() {
        let everything = |own: &Situation| own.measured.keys().cloned().collect();
        let found = scores(&made(), &everything).missed();
        assert!(found.contains(&"size of the set") && found.contains(&"single options"));
    }

    /// An adviser that answers where nothing was measured misses the refusals.
    #[test]
    fn never_refusing_is_a_miss() {
        let mut all = made();
        all.iter_mut().for_each(|own| own.is_answered = true);
        assert!(scores(&all, &advice).missed().contains(&"refusals"));
    }

    #[test]
    fn nothing_measured_meets_no_goal() {
        let mut all = made();
        all.iter_mut().for_each(|own| own.measured.clear());
        assert!(scores(&all, &advice).missed().contains(&"coverage"));
        assert!(table(&all, &Tree::Leaf("a, kept".to_owned())).contains("0 of 0"));
    }
}
