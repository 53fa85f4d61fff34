//! Whether the trials of a search are long enough to say anything, and short enough for its budget.

use weigh_limit::{AxisKind, Search};
use weigh_model::{Load, Nanos};

use crate::exit::Stop;

/// Refuses trials too short to say anything, and a budget in which none fits; `whole` is that of
/// all lanes.
///
/// # Errors
/// The flag, and what to type instead.
pub fn check_length(search: &Search, load: &Load, whole: Option<Nanos>) -> Result<(), Stop> {
    let shortest = search.goals.iter().map(|goal| goal.initial_trial_duration).min();
    let shortest = shortest.unwrap_or_default();
    if shortest < TRIAL_MIN {
        return Err(Stop::usage(format!(
            "--trial {shortest}: is too short to tell what piles up from what is under way: type \
             --trial {TRIAL_MIN} or more"
        )));
    }
    let messages = search.axis.min() * shortest.as_secs_f64();
    if search.axis.kind() == AxisKind::Rate && messages < 1.0 {
        return Err(Stop::usage(format!(
            "--from {}/s: not one message is due in a trial of {shortest}: type a larger --from or \
             a longer --trial",
            search.axis.min()
        )));
    }
    check_quantiles(search, messages)?;
    let takes = shortest + load.warmup;
    match (whole, search.budget) {
        (Some(whole), Some(share)) if share < takes => {
            let lanes = (whole.0 / share.0.max(1)).max(1);
            let needed = Nanos(takes.0.saturating_mul(lanes));
            Err(Stop::usage(format!(
                "--budget {whole}: not even the first trial of every lane fits, {shortest} and \
                 its warm-up each: type at least --budget {needed}, and much more for an answer"
            )))
        }
        _ => Ok(()),
    }
}

/// Refuses a quantile that the shortest trial at the smallest rate is too small to have.
fn check_quantiles(search: &Search, messages: f64) -> Result<(), Stop> {
    if search.axis.kind() != AxisKind::Rate {
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
                "--goal \"{condition}\": {part} needs {needed} messages, and the shortest trial at \
                 the smallest rate has {messages:.0}: type --from {from}/s or a longer --trial"
            )));
        }
    }
    Ok(())
}

/// Share of a message that a product of decimals may be short of.
const ROUNDING: f64 = 1e-6;

/// Two intervals of a time series.
const TRIAL_MIN: Nanos = Nanos::from_millis(200);
