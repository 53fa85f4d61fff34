//! Quantities as people write them. Every one has its unit; a number without one is refused, with
//! the text to type instead. Shown in a text they have the style of [`crate::numbers`]; what may be
//! typed again, and what plans and journals have, is `typed`.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::numbers::{rate, rough, size, span};

/// Nanoseconds: of a duration, or since the start of a trial on its one monotonic clock.
///
/// # Examples
///
/// ```
/// use weigh_model::Nanos;
/// use weigh_model::units::parse_duration;
///
/// assert_eq!(parse_duration("1.5s")?, Nanos::from_millis(1500));
/// assert_eq!(Nanos::from_millis(1500).to_string(), "1.5 s");
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// A moment that never comes.
    pub const NEVER: Nanos = Nanos(u64::MAX);

    /// `seconds` in nanoseconds, rounded to the nearest; negative values become 0.
    pub fn from_secs_f64(seconds: f64) -> Nanos {
        Nanos((seconds * 1e9).round().max(0.0) as u64)
    }

    /// `milliseconds` in nanoseconds.
    pub const fn from_millis(milliseconds: u64) -> Nanos {
        Nanos(milliseconds * 1_000_000)
    }

    /// `microseconds` in nanoseconds.
    pub const fn from_micros(microseconds: u64) -> Nanos {
        Nanos(microseconds * 1_000)
    }

    /// `seconds` in nanoseconds.
    pub const fn from_secs(seconds: u64) -> Nanos {
        Nanos(seconds * 1_000_000_000)
    }

    /// Seconds, as a floating-point number.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The span from `earlier` to this moment, 0 if `earlier` is later.
    pub fn since(self, earlier: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    fn sub(self, other: Nanos) -> Nanos {
        self.since(other)
    }
}

impl Nanos {
    /// An estimate for people: `12 s`, `3 min 20 s`, `2 h 5 min`.
    pub fn rough(self) -> String {
        rough(self.as_secs_f64())
    }

    /// What to type for this duration, one word: `2m30s`.
    pub fn typed(self) -> String {
        self.recorded().replace(' ', "")
    }

    /// As plans and journals have it: `2m 30s`.
    pub fn recorded(self) -> String {
        humantime::format_duration(Duration::from_nanos(self.0)).to_string()
    }
}

/// For people: `229.5 µs`, `2 min 30 s`.
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&span(self.0 as f64))
    }
}

impl Serialize for Nanos {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.recorded())
    }
}

impl<'de> Deserialize<'de> for Nanos {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Nanos, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_duration(&text).map_err(serde::de::Error::custom)
    }
}

/// A size in bytes, written with its unit.
///
/// # Examples
///
/// ```
/// use weigh_model::units::{Bytes, parse_size};
///
/// assert_eq!(parse_size("1KiB").map(Bytes), Ok(Bytes(1024)));
/// assert!(parse_size("1024").is_err(), "the unit is missing");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

impl Bytes {
    /// What to type for this size: `64B`.
    pub fn typed(self) -> String {
        format!("{}B", self.0)
    }
}

/// For people: `64 B`, `1 KiB`.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&size(self.0))
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.typed())
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_size(&text).map(Bytes).map_err(serde::de::Error::custom)
    }
}

/// Messages per second, of all clients together or of each.
///
/// # Examples
///
/// ```
/// use weigh_model::units::parse_rate;
///
/// assert_eq!(parse_rate("2/s/client")?.total_per_second(50), 100.0);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Messages per second; positive and finite.
    pub per_second: f64,
    /// True if every client sends at this rate, false if all clients share it.
    pub per_client: bool,
}

impl Rate {
    /// The rate of `clients` clients together, messages per second.
    pub fn total_per_second(self, clients: u32) -> f64 {
        if self.per_client { self.per_second * f64::from(clients) } else { self.per_second }
    }

    /// What to type for this rate: `61434/s`, `1/s/client`, `1e300/s`.
    pub fn typed(self) -> String {
        let client = if self.per_client { "/client" } else { "" };
        if self.per_second >= 1e15 {
            return format!("{:e}/s{client}", self.per_second);
        }
        format!("{}/s{client}", self.per_second)
    }
}

/// For people: `61,434/s`, `1/s per client`.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let client = if self.per_client { " per client" } else { "" };
        f.pad(&(rate(self.per_second) + client))
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.typed())
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Rate, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_rate(&text).map_err(serde::de::Error::custom)
    }
}

/// Reads `10s`, `500ms`, `1.5s`, `2m` (minutes), `1h30m`, `100us`, `1e3ms`.
///
/// # Errors
/// What is wrong with `text`, and what to type.
pub fn parse_duration(text: &str) -> Result<Nanos, String> {
    let text = text.trim();
    if is_bare_number(text) {
        return Err(format!("{text:?} has no unit: type {text}s or {text}ms"));
    }
    let plain = text.replace("µs", "us");
    let whole = humantime::parse_duration(&plain).ok();
    let duration = whole
        .or_else(|| fractions(&plain))
        .ok_or_else(|| format!("{text:?} is not a duration: type for example 10s, 500ms or 2m"))?;
    u64::try_from(duration.as_nanos())
        .map(Nanos)
        .map_err(|_| format!("{text:?} is longer than 584 years: type a shorter duration"))
}

/// Numbers with fractions or exponents, each with its unit: `1.5s`, `1m 0.5s`, `1e3ms`.
fn fractions(text: &str) -> Option<Duration> {
    let mut sum = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let (number, behind) = split_number(rest);
        let length = behind.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(behind.len());
        let one = humantime::parse_duration(&format!("1{}", &behind[..length])).ok()?;
        let seconds = number.parse::<f64>().ok()? * one.as_secs_f64();
        sum = sum.checked_add(Duration::try_from_secs_f64(seconds).ok()?)?;
        rest = behind[length..].trim_start();
    }
    (!text.is_empty()).then_some(sum)
}

/// The number that `text` begins with, and the rest: `1.5` and `s`, `1e3` and `ms`.
fn split_number(text: &str) -> (&str, &str) {
    let is_exponent = |at: usize| {
        text[at..].starts_with('e') && text[at + 1..].starts_with(|c: char| c.is_ascii_digit())
    };
    let is_part = |(at, c): &(usize, char)| c.is_ascii_digit() || *c == '.' || is_exponent(*at);
    let end = text.char_indices().find(|own| !is_part(own)).map_or(text.len(), |(at, _)| at);
    text.split_at(end)
}

/// Reads `64B`, `1KiB` (1,024 bytes), `1KB` (1,000 bytes), `1.5MiB`, `1e3B`; the result is in
/// bytes.
///
/// # Errors
/// What is wrong with `text`, and what to type.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    if is_bare_number(text) {
        return Err(format!("{text:?} has no unit: type {text}B, {text}KB or {text}KiB"));
    }
    let (number, unit) = split_number(text);
    let number = match number.parse::<f64>() {
        Ok(value) if number.contains('e') => value.to_string(),
        _ => number.to_owned(),
    };
    format!("{number}{unit}")
        .parse::<bytesize::ByteSize>()
        .map(|size| size.as_u64())
        .map_err(|_| format!("{text:?} is not a size: type for example 64B, 1KiB or 1KB"))
}

/// Reads `1000/s`, `5k/s`, `50/1s`, `600/m`, `1/s/client`; k is 1,000 and M is 1,000,000.
///
/// # Errors
/// With what to type.
pub fn parse_rate(text: &str) -> Result<Rate, String> {
    let text = text.trim();
    if parse_count(text).is_some() {
        return Err(format!(
            "{text:?} has no unit: type {text}/s in total, or {text}/s/client for each client"
        ));
    }
    let wrong = || format!("{text:?} is not a rate: type for example 1000/s, 5k/s or 1/s/client");
    let (shared, per_client) = match text.strip_suffix("/client") {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    let (count, span) = shared.split_once('/').ok_or_else(wrong)?;
    let count = parse_count(count).ok_or_else(wrong)?;
    let span = if span.starts_with(|c: char| c.is_ascii_digit()) {
        parse_duration(span).map_err(|_| wrong())?
    } else {
        parse_duration(&format!("1{span}")).map_err(|_| wrong())?
    };
    let per_second = count / span.as_secs_f64();
    if per_second.is_finite() && per_second > 0.0 {
        Ok(Rate { per_second, per_client })
    } else {
        Err(format!("cannot send at a rate of {text:?}: type a positive rate, such as 500/s"))
    }
}

/// Reads a whole number as people write it: `10000`, `10k`, `1.5M`, `5m` (5 million), `1e3`.
///
/// # Errors
/// With what to type.
pub fn parse_whole(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let wrong = |what: &str| Err(format!("{text:?} {what}: type for example 250, 10k, 5M or 1e3"));
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    match parse_count(text) {
        Some(count) if count < 0.0 => wrong("is below 0"),
        Some(count) if count.is_finite() && count >= WHOLE_MAX => wrong("is too large"),
        // Digits alone are read above: what is left of them does not fit.
        Some(_) if text.bytes().all(|byte| byte.is_ascii_digit()) => wrong("is too large"),
        Some(count) if count.fract() == 0.0 => Ok(count as u64),
        _ => wrong("is not a whole number"),
    }
}

/// Above this, not every whole number has its own floating-point number: 2^53.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// A count with an optional `k`, `M` or `m`: `250`, `5k`, `1.5M`.
fn parse_count(text: &str) -> Option<f64> {
    let (digits, factor) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 1e3),
        b'm' | b'M' => (&text[..text.len() - 1], 1e6),
        _ => (text, 1.0),
    };
    digits.parse::<f64>().ok().map(|count| count * factor)
}

fn is_bare_number(text: &str) -> bool {
    text.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read_as_written() {
        assert_eq!(parse_duration("500ms"), Ok(Nanos::from_millis(500)));
        assert_eq!(parse_duration("100µs"), Ok(Nanos::from_micros(100)));
        assert_eq!(parse_duration("1m 30s"), Ok(Nanos::from_secs(90)));
        assert_eq!(parse_duration("1.5s"), Ok(Nanos::from_millis(1_500)));
        assert_eq!(parse_duration("5m"), Ok(Nanos::from_secs(300)));
        assert_eq!(parse_duration("1m 0.5s"), Ok(Nanos::from_millis(60_500)));
        assert_eq!(parse_duration("1e3ms"), Ok(Nanos::from_secs(1)));
        assert_eq!(parse_size("1KiB"), Ok(1024));
        assert_eq!(parse_size("1KB"), Ok(1000));
        assert_eq!(parse_size("64B"), Ok(64));
        assert_eq!(parse_size("1.5KiB"), Ok(1536));
        assert_eq!(parse_size("1e3B"), Ok(1000));
        assert_eq!(parse_size("10k"), Ok(10_000));
        assert_eq!(parse_rate("5k/s"), Ok(Rate { per_second: 5000.0, per_client: false }));
        assert_eq!(parse_rate("1e3/s"), Ok(Rate { per_second: 1000.0, per_client: false }));
        assert_eq!(parse_rate("1.5M/s"), Ok(Rate { per_second: 1.5e6, per_client: false }));
        assert_eq!(parse_rate("50/1s"), Ok(Rate { per_second: 50.0, per_client: false }));
        assert_eq!(parse_rate("600/m"), Ok(Rate { per_second: 10.0, per_client: false }));
        assert_eq!(parse_rate("1/s/client"), Ok(Rate { per_second: 1.0, per_client: true }));
    }

    #[test]
    fn what_is_shown_is_for_people_and_what_is_typed_is_read_again() {
        let nanos = Nanos::from_millis(150_500);
        assert_eq!(
            (nanos.to_string(), nanos.typed()),
            ("2 min 30.5 s".into(), "2m30s500ms".into())
        );
        assert_eq!(parse_duration(&nanos.typed()), Ok(nanos));
        assert_eq!(serde_json::to_string(&nanos).unwrap(), "\"2m 30s 500ms\"");
        let rate = Rate { per_second: 61_434.0, per_client: true };
        assert_eq!((&*rate.to_string(), &*rate.typed()), ("61,434/s per client", "61434/s/client"));
        assert_eq!(parse_rate(&rate.typed()), Ok(rate));
        assert_eq!(
            (Bytes(2048).to_string(), Bytes(2048).typed()),
            ("2 KiB".into(), "2048B".into())
        );
        assert_eq!(serde_json::to_string(&Bytes(2048)).unwrap(), "\"2048B\"");
    }

    #[test]
    fn whole_numbers_may_be_short() {
        for (text, number) in [
            ("0", 0),
            ("10k", 10_000),
            ("10K", 10_000),
            ("1.5M", 1_500_000),
            ("5m", 5_000_000),
            ("1e3", 1_000),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_whole(text), Ok(number), "{text}");
        }
        for (text, problem) in [
            ("-1", "below 0"),
            ("-5k", "below 0"),
            ("1.5", "not a whole number"),
            ("ten", "not a whole number"),
            ("", "not a whole number"),
            ("NaN", "not a whole number"),
            ("1e300", "too large"),
            ("18446744073709551616", "too large"),
        ] {
            let error = parse_whole(text).unwrap_err();
            assert!(error.contains(problem) && error.contains("type "), "{text}: {error}");
        }
    }

    #[test]
    fn a_bare_number_is_told_what_to_type() {
        assert!(parse_duration("10").unwrap_err().contains("type 10s"));
        assert!(parse_size("64").unwrap_err().contains("type 64B"));
        assert!(parse_rate("1000").unwrap_err().contains("type 1000/s"));
        assert!(parse_rate("10k").unwrap_err().contains("type 10k/s"));
    }

    #[test]
    fn nonsense_is_refused_not_guessed() {
        for text in ["", "x", "-5s", "5 parsecs", "1.5.2s", ".s", "5k"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
        for text in ["", "0/s", "-1/s", "1/parsec", "nan/s", "1/0s"] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
    }
}
