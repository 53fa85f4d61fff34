//! Decides whether a condition holds for a cell: yes, no, or undecided. Used by thresholds,
//! `--fail-if` and goals of a search.

use weigh_model::Condition;
use weigh_model::condition::{LOSS_RATIO, LOST, quantile_of, quantile_word, resolve};
use weigh_model::ledger::NotSentCause;
use weigh_stats::quantile::values_needed;

use super::cell::Cell;
use super::lateness::{lag_name, lag_ns};
use super::reading::{Figure, Reading};
use super::threshold::{Answer, Judged};
use crate::figures::{count, three_digits, time};
use weigh_model::metrics::unit_of;

/// A figure as a condition may use it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Seen {
    /// The flat name of the figure: the headline latency is resolved.
    pub(crate) metric: String,
    /// The figure. The target's part is between `value - lag` and `value`.
    pub(crate) figure: Figure,
    /// Why the figure is not reported: too large a part of it is the generator's lateness.
    pub(crate) withheld: Option<String>,
}

/// The value of `metric` in `cell`, or why it cannot decide anything.
pub(crate) fn seen(cell: &Cell, metric: &str) -> Result<Seen, String> {
    let metric = resolve(metric, |name| cell.metrics.contains_key(name)).into_owned();
    if (metric == LOST || metric == LOSS_RATIO) && cell.ledger.sent == 0 {
        return Err("no message was sent".to_owned());
    }
    if let Some(why) = too_few(cell, &metric) {
        return Err(why);
    }
    if let Some(own) = cell.metrics.get(&metric)
        && own.n < cell.repetitions
    {
        let without = u64::from(cell.repetitions - own.n);
        let all = count(u64::from(cell.repetitions));
        return Err(format!("{} of {all} repetitions without a value", count(without)));
    }
    match Reading::of(cell, &metric) {
        Reading::Known(_) if !cell.valid => Err("the result is invalid".to_owned()),
        Reading::Known(figure) => Ok(Seen { metric, figure, withheld: None }),
        Reading::Absent(why) => Err(why),
        Reading::Withheld(why) => match at_most(cell, &metric) {
            Some(figure) => Ok(Seen { metric, figure, withheld: Some(why) }),
            None => Err(why),
        },
    }
}

/// If only the generator's lag prevents the use of a time from the due time, the target's time is
/// between that time without the lag and that time: a limit outside of both is decided.
fn at_most(cell: &Cell, metric: &str) -> Option<Figure> {
    if lag_name(metric).is_none() || !cell.valid {
        return None;
    }
    let own = cell.metrics.get(metric)?;
    let value = own.value?;
    let lag = lag_ns(cell, metric).unwrap_or(value).clamp(0.0, value);
    Some(Figure { value, low: own.low, high: own.high, lag })
}

/// Why a quantile cannot be computed from this number of messages.
fn too_few(cell: &Cell, metric: &str) -> Option<String> {
    let (q, word) = (quantile_of(metric)?, quantile_word(metric)?);
    let (family, _) = metric.split_once('.')?;
    let (have, needed) = (*cell.samples.get(family)?, values_needed(q));
    (have < needed).then(|| {
        let other = OTHERS.iter().find(|(q, _)| have >= values_needed(*q));
        let other = other.map_or(String::new(), |(_, other)| format!(" or use {other}"));
        format!(
            "{word} needs {} messages in each repetition, there were {}: send more messages{other}",
            count(needed),
            count(have)
        )
    })
}

/// The result of `condition` in `cell`. The estimate decides, whatever its interval, but if a limit
/// is within the generator's own lag nothing is decided.
pub(crate) fn judge(condition: &Condition, cell: &Cell) -> (Answer, Judged) {
    let seen = match seen(cell, &condition.metric) {
        Ok(seen) => seen,
        Err(why) => return (Answer::Undecided, Judged::without(cell.name.clone(), &why)),
    };
    let Figure { value, low, high, lag } = seen.figure;
    let judged = Judged {
        cell: cell.name.clone(),
        figure: Some(value).filter(|value| value.is_finite()),
        low,
        high,
        reason: (!value.is_finite()).then(|| IN_LOSS.to_owned()),
    };
    let ends = [value, value - lag].map(|value| condition.holds(value));
    let let_open = with_unsent(condition, cell, &seen.metric, ends[0]);
    let answer = match ends {
        _ if let_open.is_some() => {
            return (Answer::Undecided, Judged { reason: let_open, ..judged });
        }
        [Some(true), Some(true)] => Answer::Holds,
        [Some(false), Some(false)] => Answer::Failed,
        _ => {
            let why = seen.withheld.unwrap_or_else(|| lag_words(&seen.metric, lag));
            return (Answer::Undecided, Judged { reason: Some(why), ..judged });
        }
    };
    (answer, judged)
}

/// Why a limit of losses decides nothing: with the messages that were due and never sent because of
/// the target as lost ones, the answer would be another than without (`holds`).
fn with_unsent(
    condition: &Condition,
    cell: &Cell,
    metric: &str,
    holds: Option<bool>,
) -> Option<String> {
    let (ledger, unsent) = (&cell.ledger, cell.ledger.held_back());
    let lost = (ledger.lost? + unsent) as f64;
    let value = match metric {
        LOST => lost,
        LOSS_RATIO => lost / (ledger.sent + unsent) as f64,
        _ => return None,
    };
    let is_open = unsent > 0 && condition.holds(value) != holds;
    is_open.then(|| {
        let causes = ledger
            .not_sent_causes
            .iter()
            .filter(|(cause, count)| **cause != NotSentCause::Interrupted && **count > 0);
        let causes: Vec<String> = causes.map(|(cause, _)| cause.words()).collect();
        format!(
            "{} messages were due and never sent ({}), so nothing shows whether they would arrive",
            count(unsent),
            causes.join(", ")
        )
    })
}

/// The part of a figure that may be the generator's.
fn lag_words(metric: &str, lag: f64) -> String {
    let lag = if unit_of(metric) == "ns" { time(lag, false) } else { three_digits(lag) };
    format!("up to {lag} of it is the generator's own lag, and the limit is within that")
}

/// Quantiles that need fewer messages.
const OTHERS: [(f64, &str); 5] =
    [(0.999, "p99.9"), (0.99, "p99"), (0.95, "p95"), (0.9, "p90"), (0.5, "p50")];

/// Why a quantile has no finite value.
const IN_LOSS: &str = "in the lost share";
