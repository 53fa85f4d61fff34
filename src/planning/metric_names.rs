//! Names of metrics on the command line, in any way that conditions know.

use weigh_model::Condition;
use weigh_model::nearest::nearest;
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

/// The message for a metric that none of the runs has, as `typed` after `flag`, with the nearest of
/// the `names` that there are.
pub fn unknown<'n>(
    (flag, typed): (&str, &str),
    metric: &str,
    whose: &str,
    names: impl IntoIterator<Item = &'n str>,
) -> Stop {
    let family = metric.split('.').next().unwrap_or(metric);
    let names: Vec<&str> = names.into_iter().collect();
    let is_near = |name: &&str| name.starts_with(family) || name.contains(metric);
    let near: Vec<&str> = names.iter().copied().filter(is_near).collect();
    let near = match nearest(metric, names.iter().copied()) {
        Some(name) if near.is_empty() => vec![name],
        _ => near,
    };
    let fix = match near.len() {
        0 => "type weigh export RUN --format csv, which has all metrics of a run".to_owned(),
        1..=NAMES_MAX => format!("type {}", near.join(" or ")),
        many => {
            let first = near[..NAMES_MAX].join(", ");
            format!("type {first} or another of {many} (weigh export RUN --format csv)")
        }
    };
    let full = if typed == metric { String::new() } else { format!(", {metric}") };
    Stop::usage(format!("{flag} {typed}: {whose} has this metric{full}\nhelp: {fix}"))
}

/// Most names in an error.
const NAMES_MAX: usize = 6;
