//! Repetition at several levels: hosts, starts of the target, runs, windows. Shows which level
//! varies and where repetitions are worth their cost; the interval is based on the highest level.
//!
//! T. Kalibera and R. Jones, "Rigorous Benchmarking in Reasonable Time" (ISMM 2013), whose level 1
//! is the innermost. If groups differ in size, means of means are used, with the harmonic mean of
//! the sizes as their n.

use crate::Refusal;
use crate::estimate::{INTERVAL_VALUES_MIN, Sample, t_quantile};
use crate::interval::{Interval, Method};

/// Values, or groups of them, or groups of groups.
#[derive(Clone, Debug, PartialEq)]
pub enum Group {
    /// The innermost level.
    Values(Vec<f64>),
    /// Any other level.
    Groups(Vec<Group>),
}

impl Group {
    /// Groups values by the names of their levels, outermost first; all rows name the same number
    /// of levels. Groups are in the order in which they appear first.
    pub fn of_rows<L: PartialEq>(rows: &[(Vec<L>, f64)]) -> Group {
        let rows: Vec<(&[L], f64)> = rows.iter().map(|(names, value)| (&**names, *value)).collect();
        Group::nested(&rows)
    }

    fn nested<L: PartialEq>(rows: &[(&[L], f64)]) -> Group {
        type Rows<'a, L> = Vec<(&'a [L], f64)>;
        if rows.first().is_none_or(|(names, _)| names.is_empty()) {
            return Group::Values(rows.iter().map(|(_, value)| *value).collect());
        }
        let mut groups: Vec<(&L, Rows<'_, L>)> = Vec::new();
        for (names, value) in rows {
            let Some((first, rest)) = names.split_first() else { continue };
            match groups.iter_mut().find(|(name, _)| *name == first) {
                Some((_, members)) => members.push((rest, *value)),
                None => groups.push((first, vec![(rest, *value)])),
            }
        }
        Group::Groups(groups.iter().map(|(_, members)| Group::nested(members)).collect())
    }

    fn depth(&self) -> Option<usize> {
        match self {
            Group::Values(_) => Some(1),
            Group::Groups(groups) => {
                let mut depths = groups.iter().map(Group::depth);
                let first = depths.next()??;
                depths.all(|depth| depth == Some(first)).then_some(first + 1)
            }
        }
    }

    fn is_sound(&self) -> bool {
        match self {
            Group::Values(values) => Sample::of(values).is_some(),
            Group::Groups(groups) => !groups.is_empty() && groups.iter().all(Group::is_sound),
        }
    }

    /// The mean of the members' means.
    fn mean(&self) -> f64 {
        Sample::of(&self.member_means()).map_or(f64::NAN, |sample| sample.mean)
    }

    fn member_means(&self) -> Vec<f64> {
        match self {
            Group::Values(values) => values.clone(),
            Group::Groups(groups) => groups.iter().map(Group::mean).collect(),
        }
    }

    /// All groups `depth` levels below this one.
    fn at_depth(&self, depth: usize) -> Vec<&Group> {
        match (self, depth) {
            (_, 0) => vec![self],
            (Group::Values(_), _) => Vec::new(),
            (Group::Groups(groups), _) => {
                groups.iter().flat_map(|group| group.at_depth(depth - 1)).collect()
            }
        }
    }
}

/// Variance of one level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Counted from the outermost, which is 0.
    pub depth: usize,
    /// Number of members in all.
    pub members: usize,
    /// Number of members of a group: the harmonic mean.
    pub members_per_group: f64,
    /// S^2: the variance of the members' means within their groups; it includes the variance of
    /// lower levels. 0 if no group has two members.
    pub variance_of_means: f64,
    /// T^2 = S^2 - S^2 of the level below / its n: the variance of this level alone. Below 0 if
    /// chance made the lower levels look larger; then no variance of this level is visible.
    pub own_variance: f64,
    /// False if every group has one member: the spread of this level is unknown, and its part
    /// counts to the level above.
    pub repeated: bool,
}

/// The overall mean, its interval, and the variance of each level.
#[derive(Clone, Debug, PartialEq)]
pub struct Hierarchy {
    /// The mean of means.
    pub mean: f64,
    /// Student's t over the means of the outermost level; its members are independent.
    pub interval: Interval,
    /// The members' means at the outermost level that is repeated.
    pub top_means: Vec<f64>,
    /// All levels, outermost first.
    pub levels: Vec<Level>,
}

impl Hierarchy {
    /// Analyses grouped values.
    ///
    /// # Errors
    /// If the outermost level that is repeated has fewer than [`INTERVAL_VALUES_MIN`] members.
    pub fn of(group: &Group) -> Result<Hierarchy, Refusal> {
        let depth = group.depth().ok_or(Refusal::UnevenDepth)?;
        if !group.is_sound() {
            return Err(Refusal::NoValues);
        }
        let levels = levels(group, depth);
        let top = levels.iter().find(|level| level.repeated).copied();
        // With one member at the outermost levels, the result applies only to these.
        let Some(top) = top else {
            return Err(Refusal::TooFew { have: 1, needed: INTERVAL_VALUES_MIN });
        };
        let at_top = group.at_depth(top.depth);
        let top_means: Vec<f64> = at_top.iter().flat_map(|group| group.member_means()).collect();
        let interval = interval(&top_means)?;
        Ok(Hierarchy { mean: group.mean(), interval, top_means, levels })
    }

    /// How many members each group should have so that the interval is narrowest for the cost: n_i
    /// = ceil(sqrt(c_(i+1) / c_i x T_i^2 / T_(i+1)^2)), where `costs` has the cost of one more
    /// member of each level, outermost first, in any unit. The outermost level that is repeated
    /// gets `None`: repeat there until the interval is narrow enough. A level without variance, or
    /// without repetition, gets 1 and is passed over.
    pub fn best_members(&self, costs: &[f64]) -> Vec<Option<usize>> {
        let mut best = vec![Some(1); self.levels.len()];
        let Some(top) = self.levels.iter().position(|level| level.repeated) else { return best };
        best[top] = None;
        let varies = |index: &usize| self.levels[*index].own_variance > 0.0;
        let varying: Vec<usize> = (top..self.levels.len()).filter(varies).collect();
        for pair in varying.windows(2) {
            let (outer, inner) = (pair[0], pair[1]);
            let (Some(dear), Some(cheap)) = (costs.get(outer), costs.get(inner)) else { continue };
            let variances = self.levels[inner].own_variance / self.levels[outer].own_variance;
            best[inner] = Some((dear / cheap * variances).sqrt().ceil().max(1.0) as usize);
        }
        // If the outermost level has no variance of its own, its members may as well be repeated.
        if let Some(first) = varying.first().filter(|first| **first != top) {
            best[*first] = None;
        }
        best
    }
}

/// Left over right with the bounds of Kalibera and Jones: Fieller's theorem with each side's
/// half-width at its own degrees of freedom, h^2 = t^2 S^2 / n.
///
/// It is wider than [`crate::Comparison`], which has one t for both by Welch.
///
/// # Errors
/// If right is not significantly different from 0.
pub fn ratio(left: &Hierarchy, right: &Hierarchy) -> Result<(f64, Interval), Refusal> {
    let (l, r) = (left.mean, right.mean);
    let (left_half, right_half) = (left.interval.half_width(), right.interval.half_width());
    let below = r * r - right_half * right_half;
    if below <= 0.0 {
        return Err(Refusal::UnboundedRatio);
    }
    let product = l * r;
    let under_root = product * product - below * (l * l - left_half * left_half);
    let root = under_root.max(0.0).sqrt();
    let (low, high) = ((product - root) / below, (product + root) / below);
    Ok((l / r, Interval { low, high, method: Method::KaliberaJones }))
}

fn levels(group: &Group, depth: usize) -> Vec<Level> {
    let mut levels: Vec<Level> = (0..depth).map(|depth| spread_at(group, depth)).collect();
    let mut below: Option<(f64, f64)> = None;
    for level in levels.iter_mut().rev() {
        if level.repeated {
            let from_below = below.map_or(0.0, |(variance, n)| variance / n);
            level.own_variance = level.variance_of_means - from_below;
            below = Some((level.variance_of_means, level.members_per_group));
        }
    }
    levels
}

fn spread_at(group: &Group, depth: usize) -> Level {
    let parents: Vec<Vec<f64>> =
        group.at_depth(depth).into_iter().map(Group::member_means).collect();
    let members: usize = parents.iter().map(Vec::len).sum();
    let reciprocals: f64 = parents.iter().map(|means| 1.0 / means.len() as f64).sum();
    let samples = || parents.iter().filter_map(|means| Sample::of(means));
    let freedom: f64 = samples().map(|sample| sample.n as f64 - 1.0).sum();
    let squares: f64 = samples().map(|sample| sample.variance * (sample.n as f64 - 1.0)).sum();
    Level {
        depth,
        members,
        members_per_group: parents.len() as f64 / reciprocals,
        variance_of_means: if freedom > 0.0 { squares / freedom } else { 0.0 },
        own_variance: 0.0,
        repeated: freedom > 0.0,
    }
}

fn interval(top_means: &[f64]) -> Result<Interval, Refusal> {
    let sample = Sample::of(top_means).ok_or(Refusal::NoValues)?;
    if sample.n < INTERVAL_VALUES_MIN {
        return Err(Refusal::TooFew { have: sample.n, needed: INTERVAL_VALUES_MIN });
    }
    let half = t_quantile(sample.n as f64 - 1.0) * sample.variance_of_mean().sqrt();
    let (low, high) = (sample.mean - half, sample.mean + half);
    Ok(Interval { low, high, method: Method::TopLevelMeans })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Hosts, starts and runs with standard deviations 3, 2 and 1.
    fn nested(random: &mut Random, members: [usize; 3]) -> Group {
        let [hosts, starts, runs] = members;
        let group = |random: &mut Random| {
            let host = 100.0 + 3.0 * random.normal();
            let starts = (0..starts).map(|_| {
                let start = host + 2.0 * random.normal();
                Group::Values((0..runs).map(|_| start + random.normal()).collect())
            });
            Group::Groups(starts.collect())
        };
        Group::Groups((0..hosts).map(|_| group(random)).collect())
    }

    #[test]
    fn the_parts_of_the_variance_come_out_within_a_tenth() {
        let mut random = Random::new(11);
        let weighed = Hierarchy::of(&nested(&mut random, [2000, 20, 20])).unwrap();
        for (level, expected) in weighed.levels.iter().zip([9.0, 4.0, 1.0]) {
            assert!((level.own_variance / expected - 1.0).abs() < 0.1, "{level:?}");
        }
    }

    /// By hand: means 2, 5 and 11 of pairs apart by 2, 2 and 6, so S1^2 = (2 + 2 + 18) / 3,
    /// S2^2 = 21, T2^2 = 21 - S1^2 / 2.
    #[test]
    fn a_small_case_is_as_computed_by_hand() {
        let pairs = [[1.0, 3.0], [4.0, 6.0], [8.0, 14.0]];
        let group = Group::Groups(pairs.map(|pair| Group::Values(pair.to_vec())).to_vec());
        let weighed = Hierarchy::of(&group).unwrap();
        let [outer, inner] = weighed.levels[..] else { panic!("two levels") };
        assert!((inner.variance_of_means - 22.0 / 3.0).abs() < 1e-12);
        assert!((outer.variance_of_means - 21.0).abs() < 1e-12);
        assert!((outer.own_variance - (21.0 - 22.0 / 6.0)).abs() < 1e-12);
        assert_eq!((weighed.mean, outer.members, inner.members), (6.0, 3, 6));
        // sqrt(100 / 1 x (22 / 3) / (52 / 3)) = 6.5
        assert_eq!(weighed.best_members(&[100.0, 1.0]), [None, Some(7)]);
    }

    fn three_levels<const N: usize>(values: &[[[f64; N]; 2]]) -> Group {
        let inner = |values: &[f64; N]| Group::Values(values.to_vec());
        let outer = |pair: &[[f64; N]; 2]| Group::Groups(pair.iter().map(inner).collect());
        Group::Groups(values.iter().map(outer).collect())
    }

    /// The worked example of the paper with three levels, whose S^2 and T^2 it prints to a digit.
    #[test]
    fn the_worked_example_of_the_paper_comes_out() {
        let weighed = Hierarchy::of(&three_levels(&[
            [[9.0, 5.0], [8.0, 3.0]],
            [[10.0, 6.0], [7.0, 11.0]],
            [[1.0, 12.0], [2.0, 4.0]],
        ]));
        let weighed = weighed.unwrap();
        assert!((weighed.mean - 6.5).abs() < 1e-12);
        let to_a_digit = |value: f64| (value * 10.0).round() / 10.0;
        let parts = |of: fn(&Level) -> f64| weighed.levels.iter().map(of).map(to_a_digit);
        assert!(parts(|level| level.variance_of_means).eq([3.6, 2.6, 16.5]));
        assert!(parts(|level| level.own_variance).eq([2.3, -5.7, 16.5]));
    }

    /// The case by which libkalibera, the library of the paper's authors, is tested: with costs of
    /// 100, 20 and 3, 4.2937 and 1.3023 members, rounded up. It needs two members at the top.
    #[test]
    fn the_best_repetitions_are_those_of_the_authors_library() {
        let group =
            three_levels(&[[[3.0, 4.0, 3.0], [1.2, 3.1, 3.0]], [[0.2, 1.0, 1.5], [1.0, 2.0, 3.0]]]);
        let hierarchy = Hierarchy {
            mean: group.mean(),
            interval: Interval { low: 0.0, high: 0.0, method: Method::TopLevelMeans },
            top_means: group.member_means(),
            levels: levels(&group, 3),
        };
        let expected = [0.7747, 0.262_777_8, 0.726_666_7];
        for (level, expected) in hierarchy.levels.iter().zip(expected) {
            assert!((level.own_variance - expected).abs() < 1e-4, "{level:?}");
        }
        assert_eq!(hierarchy.best_members(&[100.0, 20.0, 3.0]), [None, Some(2), Some(5)]);
    }

    #[test]
    fn rows_are_grouped_and_lone_levels_passed_over() {
        let row = |host: &'static str, run: &'static str, value| (vec![host, run], value);
        let rows = [
            row("a", "1", 1.0),
            row("a", "1", 3.0),
            row("a", "2", 4.0),
            row("a", "2", 6.0),
            row("a", "3", 8.0),
            row("a", "3", 14.0),
        ];
        let weighed = Hierarchy::of(&Group::of_rows(&rows)).unwrap();
        let repeated: Vec<bool> = weighed.levels.iter().map(|level| level.repeated).collect();
        assert_eq!((repeated, weighed.mean), (vec![false, true, true], 6.0));
        assert_eq!(weighed.top_means, [2.0, 5.0, 11.0]);
        let few = Hierarchy::of(&Group::of_rows(&rows[..4]));
        assert_eq!(few, Err(Refusal::TooFew { have: 2, needed: 3 }));
        let uneven = Group::Groups(vec![Group::Values(vec![1.0]), Group::Groups(Vec::new())]);
        assert_eq!(Hierarchy::of(&uneven), Err(Refusal::UnevenDepth));
    }

    #[test]
    fn the_two_bounds_of_a_ratio_agree_and_this_one_is_wider() {
        let mut random = Random::new(5);
        let left = Hierarchy::of(&nested(&mut random, [10, 4, 4])).unwrap();
        let right = Hierarchy::of(&nested(&mut random, [10, 4, 4])).unwrap();
        let (ratio, interval) = ratio(&left, &right).unwrap();
        let fieller = crate::Comparison::of(&left.top_means, &right.top_means).ratio.unwrap();
        assert!((ratio - fieller.value).abs() < 1e-12);
        let width = fieller.high.unwrap() - fieller.low.unwrap();
        let excess = 2.0 * interval.half_width() / width;
        assert!((1.0..1.15).contains(&excess), "{excess}");
    }
}
