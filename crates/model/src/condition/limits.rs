//! Limits of conditions, in the unit of their metric: `50ms`, `1 %`, `20k/s`, or a change against
//! another run (`+5%`).

use crate::units::{parse_duration, parse_rate, parse_size};

/// The limit of a condition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// A value in the metric's own unit.
    Value(f64),
    /// A signed change against another run, as a share: `+5%` is 0.05. Only a comparison of two
    /// runs can decide it.
    Change(f64),
}

/// Reads the limit in the unit of `metric`, which its name ends with.
///
/// # Errors
/// The mistake, and what to type instead.
pub(super) fn limit(metric: &str, text: &str) -> Result<Limit, String> {
    refuse_what_is_no_number(text)?;
    if text.starts_with(['+', '-']) {
        return change(text);
    }
    let family = metric.split('.').next().unwrap_or(metric);
    let value = match () {
        () if family.ends_with("_ns") => time(text)? * 1e9,
        () if family.ends_with("_time_s") => time(text)?,
        () if family.ends_with("_ratio") => share(text)?,
        () if family.ends_with("_percent") => {
            number(text.strip_suffix('%').unwrap_or(text), "a percentage such as 90%")?
        }
        () if family.ends_with("_us_per_message") => match plain(text) {
            Some(value) => value,
            None => time(text)? * 1e6,
        },
        () if family.ends_with("_bytes_per_s") => plain(text)
            .or_else(|| parse_size(text.strip_suffix("/s")?).ok().map(|size| size as f64))
            .or_else(|| parse_rate(text).ok().map(|rate| rate.per_second))
            .ok_or_else(|| wanted(text, "a rate in bytes such as 5MB/s"))?,
        () if family.ends_with("_per_s") => match plain(text).or_else(|| thousands(text)) {
            Some(value) => value,
            None => parse_rate(text)?.per_second,
        },
        () if family.ends_with("_bytes") || family.contains("bytes_per") => plain(text)
            .or_else(|| parse_size(text).ok().map(|size| size as f64))
            .ok_or_else(|| wanted(text, "a size such as 64KiB"))?,
        () => plain(text).or_else(|| thousands(text)).ok_or_else(|| wanted(text, "a number"))?,
    };
    Ok(Limit::Value(value))
}

/// A change against another run: `+5%`.
fn change(text: &str) -> Result<Limit, String> {
    let share = text.strip_suffix('%').and_then(plain);
    match share {
        Some(share) => Ok(Limit::Change(share / 100.0)),
        None if text.starts_with('-') => Err(format!(
            "{text:?} is negative, but figures are not: type a limit from 0 on, or a change \
             against another run such as -5%"
        )),
        None => {
            Err(format!("{text:?} is not a change: type one in percent with its sign, such as +5%"))
        }
    }
}

fn refuse_what_is_no_number(text: &str) -> Result<(), String> {
    let word = text.trim_start_matches(['+', '-']).to_ascii_lowercase();
    let is_endless = word.starts_with("nan") || word.starts_with("inf");
    match is_endless {
        true => Err(format!("{text:?} is not a limit: type a finite number with its unit")),
        false => Ok(()),
    }
}

/// A time in seconds: `50ms`, `1.5ms`, `2m 30s`.
fn time(text: &str) -> Result<f64, String> {
    if text.ends_with('%') {
        return Err(format!(
            "{text:?} is a share, and this figure is a time: type a time such as 50ms, or a \
             change against another run such as +{text}"
        ));
    }
    if plain(text).is_some() {
        return Err(format!("{text:?} has no unit: type {text}ms or {text}s"));
    }
    let units = [("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    let decimal = units.iter().find_map(|(unit, seconds)| {
        let value = plain(text.strip_suffix(unit)?)?;
        Some(value * seconds)
    });
    match decimal {
        Some(seconds) => Ok((seconds * 1e9).round() / 1e9),
        None => parse_duration(text).map(|time| time.0 as f64 / 1e9),
    }
}

/// A share: `0.5`, `1 %`, `0`.
fn share(text: &str) -> Result<f64, String> {
    let wanted = "a share such as 1% or 0.01";
    match text.strip_suffix('%') {
        Some(percent) => Ok(number(percent, wanted)? / 100.0),
        None => number(text, wanted),
    }
}

/// `20k`, `1.5M`.
fn thousands(text: &str) -> Option<f64> {
    let (digits, factor) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1e3),
        None => (text.strip_suffix('M')?, 1e6),
    };
    plain(digits).map(|number| number * factor)
}

fn number(text: &str, form: &str) -> Result<f64, String> {
    plain(text).ok_or_else(|| wanted(text, form))
}

fn plain(text: &str) -> Option<f64> {
    text.trim().parse::<f64>().ok().filter(|value| value.is_finite())
}

fn wanted(text: &str, form: &str) -> String {
    format!("{text:?} is not in the unit of this figure: type {form}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_read_in_the_unit_of_its_metric() {
        for (metric, text, value) in [
            ("response_time_ns.p99", "1.5ms", 1.5e6),
            ("response_time_ns.p99", "2m", 1.2e11),
            ("response_time_ns.p99", "250us", 250e3),
            ("transfer_time_s", "1s 500ms", 1.5),
            ("loss_ratio", "0.1%", 0.001),
            ("throughput_out_per_s", "20k/s", 20_000.0),
            ("throughput_out_per_s", "20k", 20_000.0),
            ("throughput_out_per_s", "600/m", 10.0),
            ("goodput_bytes_per_s", "5MB/s", 5e6),
            ("target_memory_bytes.max", "1MiB", 1_048_576.0),
            ("target_cpu_percent.mean", "90%", 90.0),
            ("target_cpu_us_per_message", "3us", 3.0),
            ("lost", "10", 10.0),
        ] {
            match limit(metric, text) {
                Ok(Limit::Value(found)) => {
                    assert!((found - value).abs() <= 1e-9 * value, "{text}: {found}");
                }
                other => panic!("{metric} {text}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_wrong_limit_is_told_what_to_type() {
        for (text, part) in [
            ("NaN", "finite number"),
            ("inf", "finite number"),
            ("-1ms", "is negative"),
            ("+5", "+5%"),
            ("50", "50ms"),
            ("5%", "+5%"),
            ("fast", "500ms"),
        ] {
            let problem = limit("response_time_ns.p99", text).unwrap_err();
            assert!(problem.contains(part), "{text}: {problem}");
        }
        assert!(limit("loss_ratio", "none").unwrap_err().contains("1%"));
    }
}
