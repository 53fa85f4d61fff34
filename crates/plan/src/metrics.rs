//! Checks the figures in conditions and precisions: a condition on an unknown figure would never
//! hold, or never fail.

use weigh_model::condition::{Condition, HEADLINE, Limit, SHORT, quantile_of};
use weigh_model::metrics::{METRICS, Metric, PARTS, find, time_names};

use weigh_model::nearest::nearest;

use crate::wrong::Wrong;

/// Parses a condition on a figure that trials can have.
///
/// # Errors
/// An invalid condition; an unknown figure, with the nearest name.
pub fn condition(text: &str) -> Result<Condition, Wrong> {
    let read = text.trim().parse::<Condition>();
    let read = read.map_err(|said| misnamed(text.trim()).unwrap_or_else(|| Wrong::split(&said)))?;
    check(&read.metric)?;
    Ok(read)
}

/// Parses a condition that one run alone can decide.
///
/// # Errors
/// Errors of [`condition`]; a change, which needs another run.
pub fn absolute(text: &str) -> Result<Condition, Wrong> {
    let read = condition(text)?;
    match read.limit {
        Limit::Value(_) => Ok(read),
        Limit::Change(_) => Err(Wrong::new(
            format!("{text:?} compares with another run, and there is only one run here"),
            "type a value with its unit, such as \"p99 > 50ms\", or compare two runs with \
             weigh diff A B --fail-if",
        )),
    }
}

/// Checks that a trial can have this figure.
///
/// # Errors
/// An unknown figure, with the nearest name.
pub fn check(metric: &str) -> Result<(), Wrong> {
    let (quantity, part) = metric.split_once('.').unwrap_or((metric, ""));
    let is_of_family = FAMILIES.contains(&quantity) && !part.is_empty();
    let is_known_time = quantity == HEADLINE || time_names().any(|time| time == quantity);
    let is_headline =
        quantity == HEADLINE && (PARTS.contains(&part) || quantile_of(metric).is_some());
    if is_headline || is_of_family || is_whole_name(metric) {
        return Ok(());
    }
    let text = format!("unknown figure {metric:?}");
    if is_known_time {
        return Err(Wrong::new(text, format!("its parts are: {}", PARTS.join(", "))));
    }
    let times: Vec<String> = time_names().map(|time| format!("{time}.{part}")).collect();
    let whole = whole_names();
    let whole: Vec<&str> = whole.iter().map(String::as_str).collect();
    let names = whole.iter().copied().chain(times.iter().map(String::as_str));
    let longer: Vec<&str> = whole.iter().copied().filter(|name| name.starts_with(metric)).collect();
    let fix = match nearest(metric, names) {
        _ if !longer.is_empty() => format!("did you mean {}?", few(&longer)),
        Some(near) => format!("did you mean {near}?"),
        None => MOST_ASKED.to_owned(),
    };
    Err(Wrong::new(text, fix))
}

/// The error for an unknown figure at the start of a condition, if it is unknown: its limit cannot
/// be parsed without its unit.
pub fn misnamed(sentence: &str) -> Option<Wrong> {
    let end = sentence.find(['<', '>', '=', '!', ' ', '.']).unwrap_or(sentence.len());
    let word = &sentence[..end];
    let short = time_names().map(|time| time.trim_end_matches("_ns"));
    let families = METRICS.iter().map(Metric::family);
    let aliases = SHORT.iter().map(|(short, _)| *short);
    let mut names = short.chain(families).chain(WORDS).chain(aliases);
    if word.is_empty() || names.clone().any(|name| name == word) {
        return None;
    }
    if format!("{HEADLINE} {word} > 0s").parse::<Condition>().is_ok() {
        // A quantile or another statistic of the headline latency.
        return None;
    }
    let fix = match nearest(word, &mut names) {
        Some(near) => format!("did you mean {near}?"),
        None if sentence.contains(['<', '>', '=']) => MOST_ASKED.to_owned(),
        None => return None,
    };
    Some(Wrong::new(format!("unknown figure {word:?}"), fix))
}

/// The first few of these names.
fn few(names: &[&str]) -> String {
    let shown = &names[..names.len().min(NAMES_MAX)];
    shown.join(" or ") + if shown.len() < names.len() { " or another" } else { "" }
}

/// True if a metric outside the families has this name.
fn is_whole_name(name: &str) -> bool {
    find(name).is_some_and(|metric| !FAMILIES.contains(&metric.family()))
}

/// Names of metrics outside the families, except recorded times.
fn whole_names() -> Vec<String> {
    let metrics = METRICS.iter().filter(|metric| !FAMILIES.contains(&metric.family()));
    metrics.flat_map(Metric::names).filter(|name| !name.contains('{')).collect()
}

/// Words at the start of a condition besides names of figures.
const WORDS: [&str; 3] = ["first", "latency", HEADLINE];

/// Frequent figures, suggested if no name is similar.
const MOST_ASKED: &str = "type p99, response_time p(95), loss, errors, throughput_out, cpu or \
     memory; docs/guide/conditions.md lists all figures";

/// Maximum number of names in one message.
const NAMES_MAX: usize = 3;

/// Prefixes of figures of path, wire, TCP, relay, stages, a background and a target's own counters.
/// They depend on testbed and target, so their names are not checked: a missing one was not
/// measured.
const FAMILIES: [&str; 7] = ["wire", "path", "tcp", "relay", "stage", "background", "counter"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read_and_checked_at_one_door() {
        for (text, metric) in [
            ("p99 < 50ms", "latency_time_ns.p99"),
            ("p99.99 < 50ms", "latency_time_ns.p9999"),
            ("response_time_ns.p75 < 1s", "response_time_ns.p75"),
            ("throughput_out > 20k/s", "throughput_out_per_s"),
            ("loss == 0", "loss_ratio"),
            ("cpu < 90%", "target_cpu_percent.mean"),
            ("memory < 64MiB", "target_memory_bytes.max"),
        ] {
            assert_eq!(condition(text).unwrap().metric, metric, "{text}");
        }
        for (text, part) in [
            ("respnse_time p(95) < 5ms", "response_time"),
            ("los == 0", "loss_ratio or lost?"),
            ("throughput_uot > 5/s", "throughput_out"),
            ("zzz > 5", "docs/guide/conditions.md"),
            ("p99 < NaN", "finite number"),
        ] {
            let wrong = condition(text).unwrap_err();
            let said = format!("{}; {}", wrong.text, wrong.fix);
            assert!(said.contains(part) && said.len() < 300, "{text}: {said}");
        }
        assert!(absolute("p99 > +5%").unwrap_err().fix.contains("weigh diff"));
    }

    #[test]
    fn figures_of_the_stage_have_names_and_what_no_trial_has_does_not() {
        for name in ["wire.bytes_per_message", "tcp.round_trip_us.p50", "background.overlap_ratio"]
        {
            assert_eq!((check(name).err(), misnamed(name)), (None, None), "{name}");
        }
        assert_eq!(check("tls_handshake_time_ns.p95"), Ok(()));
        assert_eq!(check("htop_cpu_percent.mean"), Ok(()));
        let wrong = check("htop_cpu_percent").unwrap_err();
        assert!(wrong.fix.contains("htop_cpu_percent.mean or"), "{wrong:?}");
        for name in ["wire", "wire.", "own_lag_ns.p99", "wires.bytes"] {
            assert!(check(name).is_err(), "{name}");
        }
    }
}
