//! Two lanes in one metric, place by place, as one sentence for the terminal and the page, with the
//! result at every place.

use std::collections::{BTreeMap, BTreeSet};

use crate::figures::{between, three_digits};
use crate::summary::pairs::{BACKGROUND, LANE};
use crate::summary::{Comparison, Matrix, Ratio, Summary, Verdict};

/// Two lanes in one metric at all places where both were measured, or one lane along an axis.
#[derive(Clone, Debug)]
pub(crate) struct Meeting {
    pub(crate) left: String,
    pub(crate) right: String,
    factor: String,
    /// The comparisons with a verdict.
    seen: Vec<Comparison>,
    /// Number of places at which the two could not be compared.
    refused: usize,
}

impl Meeting {
    /// Whether there is a verdict at one place at least.
    pub(crate) fn is_compared(&self) -> bool {
        !self.seen.is_empty()
    }

    /// True if it is too close to call at every place with a verdict.
    pub(crate) fn is_close(&self) -> bool {
        self.seen.iter().all(|comparison| comparison.verdict == Verdict::TooClose)
    }

    /// Number of places at which the two met, refused ones included.
    pub(crate) fn places(&self) -> usize {
        self.seen.len() + self.refused
    }

    /// Two lanes: `mqtt qos=1 was 1.32 ± 0.04 times faster than http1`, and over several places
    /// `mqtt was 1.90 to 2.10 times faster than http1 at 2 of 4 places, http1 was 3.00 ± 0.10 times
    /// faster than mqtt at 1, too close to call at 1`. A range covers the places of its clause.
    pub(crate) fn words(&self, metric: &str) -> String {
        let (lower, higher) = (self.at(Verdict::Lower), self.at(Verdict::Higher));
        let mut order = [(Verdict::Lower, lower), (Verdict::Higher, higher)];
        order.sort_by_key(|(_, at)| std::cmp::Reverse(at.len()));
        let [(verdict, most), (opposite, others)] = order;
        let (close, equal) = (self.at(Verdict::TooClose), self.at(Verdict::PracticallyEqual));
        let mut parts = Vec::new();
        if most.is_empty() && close.is_empty() && !equal.is_empty() {
            parts.push(self.equality(&equal));
        } else if most.is_empty() {
            let ends =
                range(&close, false).map_or(String::new(), |ends| format!(" ({ends} times)"));
            let at = self.share(close.len());
            let (left, right) = (&self.left, &self.right);
            let why = match &close[..] {
                [only] => only.reason.as_ref().map_or(String::new(), |own| format!("; {own}")),
                _ => String::new(),
            };
            parts.push(format!("{left} and {right} are too close to call{at}{ends}{why}"));
            if !equal.is_empty() {
                parts.push(format!("practically equal at {}", equal.len()));
            }
        } else {
            let at = self.share(most.len());
            parts.push(self.clause(metric, verdict, &most) + &at + mark(&most));
            if !others.is_empty() {
                let said = self.clause(metric, opposite, &others);
                parts.push(format!("{said} at {}{}", others.len(), mark(&others)));
            }
            if !close.is_empty() {
                parts.push(format!("too close to call at {}", close.len()));
            }
            if !equal.is_empty() {
                parts.push(format!("practically equal at {}", equal.len()));
            }
        }
        if self.refused > 0 {
            parts.push(format!("not compared at {}", self.refused));
        }
        parts.join(", ")
    }

    /// `mqtt and http1 are practically equal at both places (0.999 to 1.00 times)`.
    fn equality(&self, equal: &[&Comparison]) -> String {
        let ends = range(equal, false).map_or(String::new(), |ends| format!(" ({ends} times)"));
        let at = self.share(equal.len());
        format!("{} and {} are practically equal{at}{ends}", self.left, self.right)
    }

    /// One lane along an axis: `mqtt qos=1 along connections: 1.02 to 1.31 times from one place to
    /// the next (rises at 4, too close to call at 1 of 5)`.
    pub(crate) fn steps(&self) -> String {
        // The left place is the smaller one: if it is lower, the figure rises.
        let parts = [
            (self.at(Verdict::Lower).len(), "rises"),
            (self.at(Verdict::Higher).len(), "falls"),
            (self.at(Verdict::TooClose).len(), "too close to call"),
            (self.at(Verdict::PracticallyEqual).len(), "practically equal"),
            (self.refused, "not compared"),
        ];
        let parts = parts.iter().filter(|(number, _)| *number > 0);
        let said: Vec<String> = parts.map(|(number, word)| format!("{word} at {number}")).collect();
        let all: Vec<&Comparison> = self.seen.iter().collect();
        format!(
            "{} along {}: {} times from one place to the next ({} of {}){}",
            self.left,
            self.factor.split(" and ").map(Matrix::short).collect::<Vec<_>>().join(" and "),
            range(&all, true).unwrap_or_else(|| "?".to_owned()),
            said.join(", "),
            self.places(),
            mark(&all)
        )
    }

    fn at(&self, verdict: Verdict) -> Vec<&Comparison> {
        self.seen.iter().filter(|comparison| comparison.verdict == verdict).collect()
    }

    /// Which lane was ahead at the places `at`, where `verdict` is that on left, and by how much.
    fn clause(&self, metric: &str, verdict: Verdict, at: &[&Comparison]) -> String {
        let is_time = metric.contains("_time_ns");
        // The faster one is named first for times, the larger one for all else.
        let is_left_first = (verdict == Verdict::Lower) == is_time;
        let (one, other) = match is_left_first {
            true => (&self.left, &self.right),
            false => (&self.right, &self.left),
        };
        let ratio = range(at, is_time == is_left_first);
        match (metric, ratio) {
            (_, Some(ratio)) if is_time => format!("{one} was {ratio} times faster than {other}"),
            (_, None) if is_time => format!("{one} was faster than {other}"),
            ("throughput_out_per_s", Some(ratio)) => {
                format!("{one} delivered {ratio} times as much as {other}")
            }
            ("throughput_out_per_s", None) => format!("{one} delivered more than {other}"),
            (_, Some(ratio)) => format!("{one} took {ratio} times as much as {other}"),
            (_, None) => format!("{one} took more than {other}"),
        }
    }

    fn share(&self, part: usize) -> String {
        match self.places() {
            1 => String::new(),
            all if part == all => everywhere(all),
            all => format!(" at {part} of {all} places"),
        }
    }
}

/// ` at all 4 places`; empty if there is only one.
pub(crate) fn everywhere(places: usize) -> String {
    match places {
        0 | 1 => String::new(),
        2 => " at both places".to_owned(),
        all => format!(" at all {all} places"),
    }
}

/// A mark if a verdict is not significant among all.
fn mark(at: &[&Comparison]) -> &'static str {
    let is_called = |c: &&&Comparison| matches!(c.verdict, Verdict::Lower | Verdict::Higher);
    if at.iter().filter(is_called).all(|c| c.stands) { "" } else { " ?" }
}

/// The ratio of one place with its interval, or the range over several; inverted, right over left.
/// `None` if no place has a ratio.
fn range(at: &[&Comparison], is_inverted: bool) -> Option<String> {
    let turn = |ratio: Ratio| if is_inverted { inverse(ratio) } else { ratio };
    let ratios: Vec<Ratio> = at.iter().filter_map(|c| c.ratio).map(turn).collect();
    if let [ratio] = &ratios[..] {
        return Some(between(ratio.value, ratio.low.zip(ratio.high)));
    }
    let values = || ratios.iter().map(|ratio| ratio.value);
    let ends = [values().reduce(f64::min)?, values().reduce(f64::max)?];
    let [low, high] = ends.map(three_digits);
    Some(if low == high { low } else { format!("{low} to {high}") })
}

/// If 0 is a possible ratio, its inverse has no end.
fn inverse(ratio: Ratio) -> Ratio {
    let ends = ratio.low.zip(ratio.high);
    let ends = ends.filter(|(low, high)| *low > 0.0 && high.is_finite());
    let [low, high] = [ends.map(|(_, high)| 1.0 / high), ends.map(|(low, _)| 1.0 / low)];
    Ratio { value: 1.0 / ratio.value, low, high }
}

/// The comparison as seen from the other side.
fn turned(comparison: &Comparison) -> Comparison {
    let verdict = match comparison.verdict {
        Verdict::Lower => Verdict::Higher,
        Verdict::Higher => Verdict::Lower,
        same => same,
    };
    Comparison {
        left: comparison.right.clone(),
        right: comparison.left.clone(),
        ratio: comparison.ratio.map(inverse),
        verdict,
        ..comparison.clone()
    }
}

/// The name of every cell without its place along the axes.
pub(crate) struct Lanes<'a> {
    /// By the cell's name: its lane, and what distinguishes it from others of the same lane.
    names: BTreeMap<&'a str, String>,
}

impl<'a> Lanes<'a> {
    pub(crate) fn of(summary: &'a Summary, matrix: &Matrix) -> Lanes<'a> {
        let axes = matrix.axes.iter().map(|axis| axis.key.as_str());
        // Quantities that change together are not an axis of the matrix, but still places.
        let factors = summary.comparisons.iter().map(|comparison| comparison.factor.as_str());
        let factors = factors
            .filter(|factor| ![LANE, BACKGROUND].contains(factor))
            .flat_map(|f| f.split(" and "));
        let places: BTreeSet<String> =
            axes.chain(factors).map(|key| format!("{}=", Matrix::short(key))).collect();
        let lane = |label: &String| {
            let is_place = |word: &&str| places.iter().any(|place| word.starts_with(place));
            label.split(' ').filter(|word| !is_place(word)).collect::<Vec<_>>().join(" ")
        };
        let names = summary.cells.iter().zip(&matrix.labels);
        Lanes { names: names.map(|(cell, label)| (cell.name.as_str(), lane(label))).collect() }
    }

    /// The lane of the cell with this name.
    pub(crate) fn name(&self, cell: &str) -> &str {
        self.names.get(cell).map_or("", String::as_str)
    }

    /// The results between every two lanes, or of every lane along an axis. Lanes with different
    /// guarantees never meet, which is not a missing place.
    pub(crate) fn meetings(
        &self,
        summary: &Summary,
        metric: &str,
        is_of_lanes: bool,
    ) -> Vec<Meeting> {
        let mut meetings: Vec<Meeting> = Vec::new();
        for comparison in &summary.comparisons {
            let differ = comparison.reason.as_deref().is_some_and(|text| text.ends_with("(L08)"));
            let is_lane = comparison.factor == LANE;
            let is_apart = comparison.factor == BACKGROUND;
            if comparison.metric != metric || is_lane != is_of_lanes || differ || is_apart {
                continue;
            }
            let lanes = [&comparison.left, &comparison.right].map(|cell| self.name(cell));
            add(&mut meetings, lanes, comparison);
        }
        meetings
    }
}

fn add(meetings: &mut Vec<Meeting>, [left, right]: [&str; 2], comparison: &Comparison) {
    let factor = comparison.factor.as_str();
    let is_same =
        |m: &Meeting, [l, r]: [&str; 2]| m.left == l && m.right == r && m.factor == factor;
    let straight = meetings.iter().position(|m| is_same(m, [left, right]));
    let known = straight.or_else(|| meetings.iter().position(|m| is_same(m, [right, left])));
    let at = known.unwrap_or_else(|| {
        let (left, right, factor) = (left.to_owned(), right.to_owned(), factor.to_owned());
        meetings.push(Meeting { left, right, factor, seen: Vec::new(), refused: 0 });
        meetings.len() - 1
    });
    let is_turned = straight.is_none() && known.is_some();
    match comparison.verdict {
        Verdict::Refused => meetings[at].refused += 1,
        _ if is_turned => meetings[at].seen.push(turned(comparison)),
        _ => meetings[at].seen.push(comparison.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Left and right at one place: their ratio, and whether the verdict that follows stands.
    fn place(ratio: f64, stands: bool) -> Comparison {
        let ends = Ratio { value: ratio, low: Some(ratio * 0.99), high: Some(ratio * 1.01) };
        Comparison {
            metric: String::new(),
            left: "a".to_owned(),
            right: "b".to_owned(),
            factor: LANE.to_owned(),
            ratio: Some(ends),
            verdict: match ratio {
                low if low < 0.99 => Verdict::Lower,
                high if high > 1.01 => Verdict::Higher,
                _ => Verdict::TooClose,
            },
            reason: None,
            p: None,
            rank_p: None,
            shift: None,
            difference: None,
            stands,
        }
    }

    fn meeting([left, right]: [&str; 2], seen: Vec<Comparison>, refused: usize) -> Meeting {
        let (left, right) = (left.to_owned(), right.to_owned());
        Meeting { left, right, factor: LANE.to_owned(), seen, refused }
    }

    fn words(ratios: &[f64], refused: usize) -> String {
        let seen = ratios.iter().map(|ratio| place(*ratio, true)).collect();
        meeting(["a", "b"], seen, refused).words("response_time_ns.p99")
    }

    #[test]
    fn places_where_the_other_side_won_are_told() {
        assert_eq!(
            words(&[0.5, 0.5, 2.0, 3.0], 0),
            "a was 2.00 times faster than b at 2 of 4 places, b was 2.00 to 3.00 times faster than \
             a at 2"
        );
        assert_eq!(
            words(&[0.5, 2.0, 4.0, 1.0], 1),
            "b was 2.00 to 4.00 times faster than a at 2 of 5 places, a was 2.00 ± 0.02 times \
             faster than b at 1, too close to call at 1, not compared at 1"
        );
    }

    #[test]
    fn a_range_is_that_of_the_places_it_speaks_of() {
        assert_eq!(
            words(&[0.5, 1.005], 0),
            "a was 2.00 ± 0.02 times faster than b at 1 of 2 places, too close to call at 1"
        );
        assert_eq!(words(&[0.5, 0.25], 0), "a was 2.00 to 4.00 times faster than b at both places");
        assert_eq!(
            words(&[1.0, 1.005], 1),
            "a and b are too close to call at 2 of 3 places (1.00 times), not compared at 1"
        );
        assert_eq!(words(&[1.0], 0), "a and b are too close to call (1.00 ± 0.01 times)");
    }

    #[test]
    fn a_verdict_that_does_not_stand_is_marked() {
        let seen = vec![place(0.5, true), place(0.5, true), place(2.0, false)];
        let all = meeting(["a", "b"], seen, 0);
        assert!(all.words("service_time_ns.p50").ends_with("times faster than a at 1 ?"));
        assert!(all.words("throughput_out_per_s").starts_with("b delivered 2.00 times as much"));
    }

    #[test]
    fn a_place_told_from_the_other_side_is_the_same_place() {
        let mut meetings = Vec::new();
        add(&mut meetings, ["a", "b"], &place(0.5, true));
        add(&mut meetings, ["b", "a"], &place(2.0, true));
        assert_eq!(meetings.len(), 1);
        assert_eq!(meetings[0].at(Verdict::Lower).len(), 2);
    }
}
