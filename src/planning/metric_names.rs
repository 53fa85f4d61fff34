//! Names of metrics on the command line, in any way that conditions know.

use weigh_model::Condition;
use weigh_runner::exit::Stop;

/// The flat name of a metric, `response_time_ns.p99`, from `response_time p(99)` or `p99`.
///
/// # Errors
/// If it is not a metric; the message begins with the `flag`.
pub fn flat_name(flag: &str, text: &str) -> Result<String, Stop> {
    let condition = format!("{text} > +0%").parse::<Condition>();
    let condition = condition.map_err(|problem| Stop::usage(format!("{flag}: {problem}")))?;
    Ok(condition.metric)
}

/// The message for a metric that none of the runs has, with the `names` that there are: those of
/// its family, or all.
pub fn unknown<'n>(
    flag: &str,
    metric: &str,
    whose: &str,
    names: impl IntoIterator<Item = &'n str>,
) -> Stop {
    let family = metric.split('.').next().unwrap_or(metric);
    let names: Vec<&str> = names.into_iter().collect();
    let near: Vec<&str> = names.iter().copied().filter(|name| name.starts_with(family)).collect();
    let shown = if near.is_empty() { names } else { near };
    Stop::usage(format!("{flag} {metric}: {whose} has it; there are {}", shown.join(", ")))
}
