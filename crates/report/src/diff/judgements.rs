//! Decides whether a condition holds for two runs. A change must be both real and large: the
//! interval of the ratio must exclude 1, and the ratio itself must be beyond the limit. Undecided
//! conditions are distinguished from those that do not hold.

use std::collections::BTreeSet;

use weigh_model::Condition;
use weigh_model::condition::{Limit, Operator, quantile_of, resolve};

use super::digits::{figure_text, times};
use super::document::{Holds, Judgement, Row};
use super::rows::{Pair, figure};
use crate::figures::three_digits;
use crate::summary::judging::Seen;
use crate::summary::{Answer, Cell, Ratio, Verdict, judging, reading};
use weigh_model::metrics::unit_of;

/// Refuses a meaningless condition: the metric's name was checked before.
pub(crate) fn check(condition: &Condition, known: &BTreeSet<&str>) -> Result<(), String> {
    let is_known = |name: &str| known.contains(name);
    let metric = resolve(&condition.metric, is_known);
    let is_of_time = quantile_of(&metric).is_some()
        && metric.split_once('.').is_some_and(|(time, _)| known.contains(&*format!("{time}.mean")));
    if !is_known(&metric) && !is_of_time {
        let near = known
            .iter()
            .map(|name| (strsim::jaro_winkler(&metric, name), name))
            .max_by(|left, right| left.0.total_cmp(&right.0))
            .filter(|(likeness, _)| *likeness >= LIKENESS_MIN);
        let fix = near.map_or_else(
            || "type weigh diff A B --all to see the metrics".to_owned(),
            |(_, name)| format!("did you mean {name}?"),
        );
        return Err(format!("\"{condition}\": no case of either run has {metric}; {fix}"));
    }
    let is_equality = matches!(condition.operator, Operator::Equal | Operator::NotEqual);
    if is_equality && matches!(condition.limit, Limit::Change(_)) {
        return Err(format!(
            "\"{condition}\": two measurements are never equal; use < or >, such as \"{metric} > \
             +5%\""
        ));
    }
    Ok(())
}

/// The result of the condition in a cell that both runs have.
pub(crate) fn judge(condition: &Condition, pair: &Pair) -> Judgement {
    let has = |name: &str| [pair.a.0, pair.b.0].iter().any(|cell| cell.metrics.contains_key(name));
    let metric = resolve(&condition.metric, has);
    let (holds, text) = match condition.limit {
        Limit::Change(share) => of_change(condition, share, (pair, &metric)),
        Limit::Value(_) => of_value(condition, pair, &metric),
    };
    let (a, b) = (figure(pair.a, &metric), figure(pair.b, &metric));
    let is_measured = match condition.limit {
        Limit::Change(_) => a.is_some() && b.is_some(),
        Limit::Value(_) => b.is_some(),
    };
    let cell = pair.b.0.name.clone();
    Judgement { condition: condition.to_string(), cell, holds, text, is_measured }
}

/// A cell that one run lacks cannot be compared.
pub(crate) fn unmatched(condition: &Condition, cell: &Cell) -> Judgement {
    undecided(condition, cell, "only one of the runs has this case")
}

/// A cell that some runs of a side lack is not compared.
pub(crate) fn partial(condition: &Condition, cell: &Cell) -> Judgement {
    undecided(condition, cell, "not every run of its side has this case")
}

fn undecided(condition: &Condition, cell: &Cell, why: &str) -> Judgement {
    let (condition, cell, text) = (condition.to_string(), cell.name.clone(), why.to_owned());
    Judgement { condition, cell, holds: Holds::CannotTell, text, is_measured: false }
}

fn of_change(condition: &Condition, share: f64, (pair, metric): (&Pair, &str)) -> (Holds, String) {
    let because = |reason: String| (Holds::CannotTell, reason);
    let (a, b) = match seen_of_both(pair, metric) {
        Ok(both) => both,
        Err(why) => return because(why),
    };
    let row = pair.row_within(metric, a.withheld.is_some() || b.withheld.is_some());
    let is_above = matches!(condition.operator, Operator::Greater | Operator::GreaterOrEqual);
    let Some(Ratio { value, low: Some(low), high: Some(high) }) = row.ratio else {
        let reason = row.reason.clone().unwrap_or_default();
        if row.verdict == Verdict::TooClose {
            let holds = condition.holds_for_change(1.0) == Some(true);
            return (if holds { Holds::Yes } else { Holds::No }, reason);
        }
        // A ratio without bounds must still be beyond the limit itself.
        let beyond = row.ratio.map(|ratio| condition.holds_for_change(ratio.value) == Some(true));
        // A value above A's maximum, lag included, is also higher without the lag.
        let lag = Lag::of(&a.figure, &b.figure);
        let is_hidden = match row.verdict {
            Verdict::Higher => lag.least < 1.0,
            Verdict::Lower => lag.most > 1.0,
            _ => false,
        };
        let holds = match (without_bounds(&row, is_above), beyond) {
            _ if is_hidden => Holds::CannotTell,
            (Holds::Yes, Some(false)) | (Holds::No, Some(true)) => Holds::CannotTell,
            (holds, _) => holds,
        };
        return (holds, reason);
    };
    let lag = Lag::of(&a.figure, &b.figure);
    let figures = times(value, Some((low, high)));
    let holds = |ratio: f64| condition.holds_for_change(ratio) == Some(true);
    // A limit on the other side of 1, such as "> -5%" (not improved by 5 %), must itself be
    // excluded by the interval.
    let is_far = if is_above { share < 0.0 } else { share > 0.0 };
    // A difference below 1 % is practically none, but a limit below that may ask for it.
    let is_called =
        |verdict: Verdict| row.verdict == verdict || row.verdict == Verdict::PracticallyEqual;
    let is_real = |factor: f64| match (is_far, is_above) {
        (true, _) => holds(low * factor) && holds(high * factor),
        (false, true) => low * factor > 1.0 && is_called(Verdict::Higher),
        (false, false) => high * factor < 1.0 && is_called(Verdict::Lower),
    };
    // Twice the limit must be excluded: otherwise too little was measured to decide.
    let is_excluded = |factor: f64| match (is_far, is_above) {
        (true, _) => !holds(low * factor) && !holds(high * factor),
        (false, true) => high * factor - 1.0 <= 2.0 * share,
        (false, false) => low * factor - 1.0 >= 2.0 * share,
    };
    let factors = [lag.least, lag.most];
    let all = |test: &dyn Fn(f64) -> bool| factors.iter().all(|factor| test(*factor));
    match () {
        () if all(&|factor| holds(value * factor) && is_real(factor)) => (Holds::Yes, figures),
        () if all(&|factor| !holds(value * factor) && is_excluded(factor)) => (Holds::No, figures),
        () if lag.is_material() => because(format!(
            "{figures}, which may include the generator's own lag: the ratio is from {} to {}",
            three_digits(value * lag.least),
            if lag.most.is_finite() { three_digits(value * lag.most) } else { "any".to_owned() }
        )),
        () if holds(value) => because(match &row.reason {
            Some(reason) if row.verdict == Verdict::TooClose => format!("{figures}: {reason}"),
            _ => format!("{figures}: it may be chance; {MORE}"),
        }),
        () => because(format!("{figures}: it may be more; {MORE}")),
    }
}

/// The metric in both cells, or why one of them cannot decide the condition.
fn seen_of_both(pair: &Pair, metric: &str) -> Result<(Seen, Seen), String> {
    let of = |name: &str, cell: &Cell| {
        judging::seen(cell, metric).map_err(|why| format!("{name}: {why}"))
    };
    Ok((of("A", pair.a.0)?, of("B", pair.b.0)?))
}

/// Effect of the generator's own lag on a ratio: the smallest and the largest factor.
struct Lag {
    least: f64,
    most: f64,
}

impl Lag {
    fn of(a: &reading::Figure, b: &reading::Figure) -> Lag {
        // An infinite figure has no share of lag.
        let part = |own: &reading::Figure| match own.value.is_finite() && own.value > 0.0 {
            true => (own.lag / own.value).clamp(0.0, 1.0),
            false => 0.0,
        };
        Lag { least: 1.0 - part(b), most: 1.0 / (1.0 - part(a)) }
    }

    fn is_material(&self) -> bool {
        self.least < 1.0 || self.most > 1.0
    }
}

/// Without bounds of a ratio, ranks or lost quantiles may still show that a figure grew from 0, or
/// to infinity: beyond every limit on that side.
fn without_bounds(row: &Row, is_above: bool) -> Holds {
    let is_infinite = row.method.is_none();
    match (row.verdict, is_above) {
        (Verdict::Higher, true) => Holds::Yes,
        (Verdict::Higher, false) => Holds::No,
        (Verdict::Lower, true) if is_infinite => Holds::No,
        (Verdict::Lower, false) if is_infinite => Holds::Yes,
        _ => Holds::CannotTell,
    }
}

/// A limit in the metric's own unit is compared with B's figure only, like thresholds of a plan. An
/// infinite quantile is beyond every limit.
fn of_value(condition: &Condition, pair: &Pair, metric: &str) -> (Holds, String) {
    let (answer, judged) = judging::judge(condition, pair.b.0);
    let own = figure(pair.b, metric);
    let mut text = figure_text(own.as_ref(), unit_of(metric));
    let holds = match answer {
        Answer::Holds => Holds::Yes,
        Answer::Failed => Holds::No,
        Answer::Undecided => {
            let why = judged.reason.unwrap_or_default();
            let text = if own.is_some() { format!("{text}: {why}") } else { format!("B: {why}") };
            return (Holds::CannotTell, text);
        }
    };
    if let (Limit::Value(limit), Some(low), Some(high)) = (condition.limit, judged.low, judged.high)
        && low < high
        && (low..=high).contains(&limit)
    {
        text += ": too close to call, its interval includes the limit";
    }
    (holds, text)
}

/// What to do about an interval that is too wide.
const MORE: &str = "repeat more often";

/// Less similar names are not suggested.
const LIKENESS_MIN: f64 = 0.8;
