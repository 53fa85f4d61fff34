//! Break-even values: where two options cost the same, along something that one can change. The
//! costs of both are computed on a grid; where they cross is interpolated, for the best values and
//! for every draw, so that the crossing has an interval.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weigh_model::numbers::{exact, rough, size, three_digits};
use weigh_stats::cost_model::ends;

use crate::criterion::Criterion;
use crate::drawn::Drawn;

/// What is varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Axis {
    /// Messages on one connection.
    MessagesPerConnection,
    /// Time between two messages of a device, seconds.
    Every,
    /// Size of a body, bytes.
    Size,
}

/// Where two options cost the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BreakEven {
    /// The one option.
    pub a: String,
    /// The other.
    pub b: String,
    /// What costs the same.
    pub criterion: Criterion,
    /// What is varied.
    pub axis: Axis,
    /// Value at which both cost the same.
    pub at: f64,
    /// Lower end of the 95 % interval; null if not enough draws cross.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// True if the costs do not cross there: one of them makes a step, as with one more keep-alive.
    #[serde(default)]
    pub is_jump: bool,
    /// The result in words.
    pub sentence: String,
}

impl Axis {
    /// Values from the least to the most that is looked at.
    pub fn range(self) -> [f64; 2] {
        match self {
            Axis::MessagesPerConnection => [1.0, 10_000.0],
            Axis::Every => [1.0, 86_400.0],
            Axis::Size => [16.0, 65_536.0],
        }
    }

    /// A value in words.
    fn words(self, value: f64) -> String {
        match self {
            Axis::MessagesPerConnection if value < 100.0 => three_digits(value),
            Axis::MessagesPerConnection => exact(value.round()),
            Axis::Every => rough(value.round()),
            Axis::Size => size(value.round() as u64),
        }
    }

    fn below(self, value: &str) -> String {
        match self {
            Axis::MessagesPerConnection => format!("Below {value} messages on a connection"),
            Axis::Every => format!("With less than {value} between two messages"),
            Axis::Size => format!("With bodies below {value}"),
        }
    }
}

/// Finds where `a` and `b` cost the same. `costs` has both costs at a value of the axis, or nothing
/// where one of them is not known; at the `jumps` one of them is not continuous. `None` if the same
/// option is always the cheaper one.
pub fn find(
    (a, b): (&str, &str),
    criterion: Criterion,
    axis: Axis,
    jumps: &[f64],
    costs: impl Fn(f64) -> Option<(Drawn, Drawn)>,
) -> Option<BreakEven> {
    let [from, to] = axis.range();
    let place = |step: usize| from * (to / from).powf(step as f64 / STEPS as f64);
    let around = jumps.iter().flat_map(|jump| [jump * (1.0 - CLOSE), jump * (1.0 + CLOSE)]);
    let around = around.filter(|own| (from..=to).contains(own));
    let mut places: Vec<f64> = (0..=STEPS).map(place).chain(around).collect();
    places.sort_unstable_by(f64::total_cmp);
    let known = |place: f64| {
        let (a, b) = costs(place)?;
        Some((place, a, b))
    };
    let grid: Vec<(f64, Drawn, Drawn)> = places.into_iter().filter_map(known).collect();
    let at = crossing(&grid, |(_, a, b)| a.value - b.value)?;
    let draws = grid.first()?.1.draws.len();
    let crossings = (0..draws)
        .filter_map(|draw| crossing(&grid, |(_, a, b)| a.draws[draw] - b.draws[draw]))
        .collect::<Vec<f64>>();
    let is_jump = jumps.iter().any(|jump| (at / jump - 1.0).abs() <= 2.0 * CLOSE);
    let is_sure = crossings.len() as f64 >= SURE * draws as f64;
    let interval = is_sure.then(|| ends(crossings));
    let is_a_first = grid.first().is_some_and(|(_, a, b)| a.value < b.value);
    let (first, second) = if is_a_first { (a, b) } else { (b, a) };
    let [low, high] =
        interval.map_or([None, None], |[low, high]| [Some(low.min(at)), Some(high.max(at))]);
    let words = |value: f64| axis.words(value);
    let around = match (low, high) {
        (Some(low), Some(high)) if words(low) == words(high) => String::new(),
        (Some(low), Some(high)) => format!(" (95 % CI {} to {})", words(low), words(high)),
        _ => " (not certain that they cross)".to_owned(),
    };
    let sentence = format!(
        "{}{around}, \"{first}\" takes fewer {} than \"{second}\"; above that, more.",
        axis.below(&words(at)),
        criterion.words(),
    );
    let mut sentence = match criterion {
        Criterion::Bytes => sentence,
        _ => sentence.replacen("takes fewer", "takes less", 1),
    };
    if is_jump {
        sentence +=
            " There a kept connection begins to send one more keep-alive between two messages.";
    }
    let [a, b] = [a, b].map(str::to_owned);
    Some(BreakEven { a, b, criterion, axis, at, low, high, is_jump, sentence })
}

/// The first place at which the difference changes its sign, interpolated on a logarithmic scale.
fn crossing(
    grid: &[(f64, Drawn, Drawn)],
    difference: impl Fn(&(f64, Drawn, Drawn)) -> f64,
) -> Option<f64> {
    let sides: Vec<(f64, f64)> = grid.iter().map(|own| (own.0.ln(), difference(own))).collect();
    sides.windows(2).find_map(|two| {
        let ((from, before), (to, behind)) = (two[0], two[1]);
        let crosses = before != 0.0 && before.signum() != behind.signum();
        crosses.then(|| (from + (to - from) * before / (before - behind)).exp())
    })
}

/// Places on the axis.
const STEPS: usize = 64;

/// How close to a jump both of its sides are computed, as a share.
const CLOSE: f64 = 1e-6;

/// An interval needs this share of the draws to cross.
const SURE: f64 = 0.95;

#[cfg(test)]
mod tests {
    use super::*;

    /// 400 B to open and 100 B a message against 100 B and 200 B: equal at three messages.
    #[test]
    fn two_lines_cross_where_their_costs_are_equal() {
        let line = |open: f64, each: f64, n: f64| Drawn::exact(open / n + each);
        let axis = Axis::MessagesPerConnection;
        let costs = |n: f64| Some((line(400.0, 100.0, n), line(100.0, 200.0, n)));
        let found = find(("mqtt", "http"), Criterion::Bytes, axis, &[], costs).unwrap();
        assert!((found.at - 3.0).abs() < 0.01 && !found.is_jump, "{found:?}");
        assert_eq!((found.low.is_some(), found.high.is_some()), (true, true));
        assert!(found.sentence.starts_with("Below 3"), "{}", found.sentence);
        let rest = "\"http\" takes fewer bytes than \"mqtt\"; above that, more.";
        assert!(found.sentence.ends_with(rest), "{}", found.sentence);
        let never = |n: f64| Some((line(400.0, 200.0, n), line(100.0, 100.0, n)));
        assert_eq!(find(("a", "b"), Criterion::Bytes, axis, &[], never), None);
        assert_eq!(find(("a", "b"), Criterion::Bytes, axis, &[], |_| None), None);
    }

    /// A keep-alive more from 300 s on: there the other option becomes the cheaper one.
    #[test]
    fn a_jump_is_where_it_is() {
        let pings = |every: f64| if every > 300.0 { 160.0 } else { 0.0 };
        let costs = |every: f64| Some((Drawn::exact(300.0 + pings(every)), Drawn::exact(400.0)));
        let found = find(("mqtt", "http"), Criterion::Bytes, Axis::Every, &[300.0], costs).unwrap();
        assert!((found.at / 300.0 - 1.0).abs() < 1e-5 && found.is_jump, "{found:?}");
        assert!(found.sentence.contains("less than 5 min"), "{}", found.sentence);
    }

    /// The cost of opening is known to a factor: so is the crossing.
    #[test]
    fn what_is_uncertain_has_an_interval() {
        let open = Drawn::between(200.0, 600.0, &crate::drawn::uniform("open"));
        let costs =
            |n: f64| Some((open.map(|open| open / n + 100.0), Drawn::exact(100.0 / n + 200.0)));
        let axis = Axis::MessagesPerConnection;
        let found = find(("a", "b"), Criterion::Bytes, axis, &[], costs).unwrap();
        assert!((found.at - 3.0).abs() < 0.01, "{found:?}");
        let (low, high) = (found.low.unwrap(), found.high.unwrap());
        assert!((1.05..1.2).contains(&low) && (4.8..4.95).contains(&high), "{low} to {high}");
    }
}
