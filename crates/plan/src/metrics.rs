//! The figures that a condition or a precision may speak of: a sentence about one that nobody
//! measures would never hold, or never fail.

use weigh_model::condition::{Condition, HEADLINE, Limit, SHORT, quantile_of};
use weigh_model::metrics::{METRICS, Metric, PARTS, find, time_names};

use weigh_model::nearest::nearest;

use crate::wrong::Wrong;

/// Reads a condition about a figure that trials can have.
///
/// # Errors
/// If it cannot be read, or if no trial has such a figure, with the nearest name.
pub fn condition(text: &str) -> Result<Condition, Wrong> {
    let read = text.trim().parse::<Condition>();
    let read = read.map_err(|said| misnamed(text.trim()).unwrap_or_else(|| Wrong::split(&said)))?;
    check(&read.metric)?;
    Ok(read)
}

/// Reads a condition that one run alone can decide: a change needs another run.
///
/// # Errors
/// As [`condition`] has them, and for a change.
pub fn absolute(text: &str) -> Result<Condition, Wrong> {
    let read = condition(text)?;
    match read.limit {
        Limit::Value(_) => Ok(read),
        Limit::Change(_) => Err(Wrong::new(
            format!("{text:?} is a change against another run, and there is one run here"),
            "type a value with its unit, such as \"p99 > 50ms\", or compare two runs with \
             weigh diff A B --fail-if",
        )),
    }
}

/// Whether a trial can have this figure.
///
/// # Errors
/// If none has, with the nearest name.
pub fn check(metric: &str) -> Result<(), Wrong> {
    let (quantity, part) = metric.split_once('.').unwrap_or((metric, ""));
    let is_of_family = FAMILIES.contains(&quantity) && !part.is_empty();
    let is_known_time = quantity == HEADLINE || time_names().any(|time| time == quantity);
    let is_headline =
        quantity == HEADLINE && (PARTS.contains(&part) || quantile_of(metric).is_some());
    if is_headline || is_of_family || is_whole_name(metric) {
        return Ok(());
    }
    let text = format!("no trial has a figure {metric:?}");
    if is_known_time {
        return Err(Wrong::new(text, format!("its parts are: {}", PARTS.join(", "))));
    }
    let times: Vec<String> = time_names().map(|time| format!("{time}.{part}")).collect();
    let whole = whole_names();
    let whole: Vec<&str> = whole.iter().map(String::as_str).collect();
    let names = whole.iter().copied().chain(times.iter().map(String::as_str));
    let longer: Vec<&str> = whole.iter().copied().filter(|name| name.starts_with(metric)).collect();
    let mend = match nearest(metric, names) {
        _ if !longer.is_empty() => format!("did you mean {}?", few(&longer)),
        Some(near) => format!("did you mean {near}?"),
        None => MOST_ASKED.to_owned(),
    };
    Err(Wrong::new(text, mend))
}

/// What is wrong with the name of the figure that a sentence begins with, where something is: its
/// limit cannot be read without knowing the unit.
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
    let near = nearest(word, &mut names)?;
    Some(Wrong::new(format!("no trial has a figure {word:?}"), format!("did you mean {near}?")))
}

/// The first few of these names.
fn few(names: &[&str]) -> String {
    let shown = &names[..names.len().min(NAMES_MAX)];
    shown.join(" or ") + if shown.len() < names.len() { " or another" } else { "" }
}

/// Whether a metric outside the families has this name.
fn is_whole_name(name: &str) -> bool {
    find(name).is_some_and(|metric| !FAMILIES.contains(&metric.family()))
}

/// The names of metrics outside the families that are no recorded times.
fn whole_names() -> Vec<String> {
    let metrics = METRICS.iter().filter(|metric| !FAMILIES.contains(&metric.family()));
    metrics.flat_map(Metric::names).filter(|name| !name.contains('{')).collect()
}

/// What a sentence may begin with beside names of figures.
const WORDS: [&str; 3] = ["first", "latency", HEADLINE];

/// What most conditions are about, where a name is like none.
const MOST_ASKED: &str = "type p99, response_time p(95), loss, errors, throughput_out, cpu or \
     memory; docs/guide/conditions.md lists all figures";

/// Names that one message shows.
const NAMES_MAX: usize = 3;

/// What figures of path, wire, TCP, relay, stages, a background and a target's own counters begin
/// with. Which of them there are depends on testbed and target, so their names are not checked: one
/// that a trial lacks was not measured.
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
            let said = format!("{}; {}", wrong.text, wrong.mend);
            assert!(said.contains(part) && said.len() < 300, "{text}: {said}");
        }
        assert!(absolute("p99 > +5%").unwrap_err().mend.contains("weigh diff"));
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
        assert!(wrong.mend.contains("htop_cpu_percent.mean or"), "{wrong:?}");
        for name in ["wire", "wire.", "own_lag_ns.p99", "wires.bytes"] {
            assert!(check(name).is_err(), "{name}");
        }
    }
}
