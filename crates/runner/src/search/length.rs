//! Checks that the trials of a search are long enough for a result, and short enough for its
//! budget.

use weigh_limit::{AxisKind, Goal, Quantity, Search};
use weigh_model::condition::{Condition, Limit};
use weigh_model::numbers::{count, exact};
use weigh_model::{Load, Nanos};
use weigh_stats::quantile::values_needed;

use crate::exit::Stop;

/// Rejects trials that are too short for a result, and a budget in which none fits; `whole` is the
/// budget of all lanes.
///
/// # Errors
/// The flag, and what to type instead.
pub fn check_length(search: &Search, load: &Load, whole: Option<Nanos>) -> Result<(), Stop> {
    let shortest = search.goals.iter().map(|goal| goal.initial_trial_duration).min();
    let shortest = shortest.unwrap_or_default();
    if shortest < TRIAL_MIN {
        return Err(Stop::usage(format!(
            "--trial {}: is too short to distinguish a growing queue from messages in flight: type \
             --trial {} or more",
            shortest.typed(),
            TRIAL_MIN.typed()
        )));
    }
    let messages = search.axis.min() * shortest.as_secs_f64();
    if search.axis.kind() == AxisKind::Rate && messages < 1.0 {
        return Err(Stop::usage(format!(
            "--from {}/s: no message is due in a trial of {shortest}: type a larger --from or a \
             longer --trial",
            search.axis.min()
        )));
    }
    check_quantiles(search, messages)?;
    let first = search.quantity.map(|quantity| quantity.duration(search.axis.min()));
    let first = first.unwrap_or_default().max(shortest);
    let takes = Nanos(first.0.saturating_add(load.warmup.0));
    match (whole, search.budget) {
        (Some(whole), Some(share)) if share < takes => {
            let lanes = (whole.0 / share.0.max(1)).max(1);
            let needed = takes.0.saturating_mul(lanes).div_ceil(TENTH.0).saturating_mul(TENTH.0);
            let needed = Nanos(needed);
            let because = match search.quantity {
                Some(quantity) if first > shortest => of_quantile(search, quantity, share),
                _ => String::new(),
            };
            Err(Stop::usage(format!(
                "--budget {}: not even the first trial of every lane fits, {first} and its warm-up \
                 each: {because}type at least --budget {}, and much more for an answer",
                whole.typed(),
                needed.typed()
            )))
        }
        _ => Ok(()),
    }
}

/// Returns why the first trial takes longer than its lane's budget, and which load is large enough.
fn of_quantile(search: &Search, quantity: Quantity, share: Nanos) -> String {
    let (axis, unit) = (search.axis, search.axis.kind().unit());
    let Some(condition) = steepest(search).map(|(condition, _)| condition) else {
        return String::new();
    };
    let (min, needed) = (axis.min(), quantity.messages);
    let mut text = format!(
        "--goal \"{condition}\" needs {} messages, and the smallest load ({}{unit}) sends {} a \
         second; ",
        count(needed),
        exact(min),
        exact(quantity.per_s + quantity.per_s_of_load * min)
    );
    let seconds = share.as_secs_f64() / TRIALS_IN_BUDGET;
    let from = (needed as f64 / seconds - quantity.per_s) / quantity.per_s_of_load;
    if from.is_finite() && from <= axis.max() {
        let unit = if axis.kind() == AxisKind::Rate { "/s" } else { "" };
        text += &format!("type --from {:.0}{unit}, or ", from.ceil());
    } else {
        text += "send more often (-R), ask for a smaller quantile such as p50, or ";
    }
    text
}

/// The messages that a trial needs for every quantile in its goals, and their rate at a load of the
/// search; `None` if the rate is unknown.
///
/// # Errors
/// A smallest burst with too few messages for the quantile.
pub fn quantity(search: &Search, load: &Load) -> Result<Option<Quantity>, Stop> {
    let steepest = steepest(search);
    // A trial without a message has no result.
    let messages = steepest.map_or(1, |(_, messages)| messages);
    let rate = load.rate.filter(|_| load.arrival.is_open());
    let (per_s, per_s_of_load) = match (search.axis.kind(), rate) {
        (AxisKind::Rate, _) => (0.0, 1.0),
        (AxisKind::Burst, _) if search.axis.min() < messages as f64 => {
            let whose = steepest.map_or(String::new(), |(own, _)| format!("--goal \"{own}\": "));
            return Err(Stop::usage(format!(
                "{whose}needs {} messages, and the smallest burst has {}: type --from {messages}",
                count(messages),
                exact(search.axis.min())
            )));
        }
        (AxisKind::Burst, _) | (_, None) => return Ok(None),
        (AxisKind::Connections, Some(rate)) if rate.per_client => (0.0, rate.per_second),
        (_, Some(rate)) if rate.per_client => (rate.per_second * f64::from(load.connections), 0.0),
        (_, Some(rate)) => (rate.per_second, 0.0),
    };
    Ok(Some(Quantity { messages, per_s, per_s_of_load }))
}

/// The condition whose quantile needs the most messages, and their number.
fn steepest(search: &Search) -> Option<(&Condition, u64)> {
    let conditions = search.goals.iter().flat_map(|goal| &goal.conditions);
    let with = conditions.filter_map(|own| Some((own, messages_needed(&own.metric)?)));
    with.max_by_key(|(_, messages)| *messages)
}

/// The messages that a quantile needs; `None` for other figures.
pub fn messages_needed(metric: &str) -> Option<u64> {
    let digits = metric.rsplit('.').next()?.strip_prefix('p')?;
    let number: f64 = digits.parse().ok().filter(|_| digits.bytes().all(|b| b.is_ascii_digit()))?;
    let scale = 10f64.powi(digits.len().max(2) as i32);
    Some(values_needed(number / scale))
}

/// Rejects a quantile for which the shortest trial at the smallest rate has too few messages,
/// unless the search lengthens its trials.
fn check_quantiles(search: &Search, messages: f64) -> Result<(), Stop> {
    if search.axis.kind() != AxisKind::Rate || search.quantity.is_some() {
        return Ok(());
    }
    let conditions = search.goals.iter().flat_map(|goal| &goal.conditions);
    for condition in conditions {
        let part = condition.metric.rsplit('.').next().unwrap_or_default();
        let needed = match part {
            "p90" => 10.0,
            "p95" => 20.0,
            "p99" => 100.0,
            "p999" => 1_000.0,
            _ => continue,
        };
        if messages + ROUNDING < needed {
            let from = (search.axis.min() * needed / messages).ceil();
            return Err(Stop::usage(format!(
                "--goal \"{condition}\": {part} needs {} messages, and the shortest trial at the \
                 smallest rate has {}: type --from {from}/s or a longer --trial",
                exact(needed),
                exact(messages.floor())
            )));
        }
    }
    Ok(())
}

/// Timeout of a trial of a search over loopback: later messages were queued, and miss every goal.
/// At least twice the longest time that a goal allows.
pub fn usual_timeout(goals: &[Goal]) -> Nanos {
    let conditions = goals.iter().flat_map(|goal| &goal.conditions);
    let times = conditions.filter_map(|own| match own.limit {
        Limit::Value(limit) if own.metric.contains("_time_ns") => Some(Nanos(2 * limit as u64)),
        _ => None,
    });
    times.max().unwrap_or_default().max(TIMEOUT)
}

const TIMEOUT: Nanos = Nanos::from_secs(2);

/// Unit to which a suggested budget is rounded up.
const TENTH: Nanos = Nanos::from_millis(100);

/// Share of a message by which a product of decimals may be short.
const ROUNDING: f64 = 1e-6;

/// Shortest trial of a search: two intervals of a time series.
const TRIAL_MIN: Nanos = Nanos::from_millis(200);

/// Minimum number of trials as long as the first one in a lane's budget.
const TRIALS_IN_BUDGET: f64 = 10.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_needs_the_messages_that_its_interval_needs() {
        assert_eq!(messages_needed("response_time_ns.p99"), Some(368));
        assert_eq!(messages_needed("delivery_time_ns.p999"), Some(3_688));
        assert_eq!(messages_needed("delivery_time_ns.p50"), Some(6));
        assert_eq!(messages_needed("delivery_time_ns.max"), None);
        assert_eq!(messages_needed("polls"), None);
    }

    #[test]
    fn a_time_that_a_goal_allows_is_waited_for() {
        let goal = |text: &str| Goal { conditions: vec![text.parse().unwrap()], ..Goal::minute() };
        assert_eq!(usual_timeout(&[Goal::minute()]), Nanos::from_secs(2));
        assert_eq!(usual_timeout(&[goal("errors == 0")]), Nanos::from_secs(2));
        let slow = goal("response_time p(99) < 3s");
        assert_eq!(usual_timeout(&[Goal::minute(), slow]), Nanos::from_secs(6));
    }
}
