//! Moments in the past, as people write them: a day, a time, or how long ago.

use jiff::{SignedDuration, Timestamp};
use weigh_model::units::parse_duration;

/// Reads `2026-11-01`, `2026-11-01T12:00:00Z`, `12h` or `7d`; the last two count back from now.
///
/// # Errors
/// If it is none of them.
pub fn since(text: &str) -> Result<Timestamp, String> {
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time);
    }
    if let Ok(time) = format!("{text}T00:00:00Z").parse::<Timestamp>() {
        return Ok(time);
    }
    let hours = text.strip_suffix('d').and_then(|days| days.parse::<u64>().ok());
    let ago = match hours {
        Some(days) => Ok(SignedDuration::from_hours(24 * days.min(DAYS_MAX) as i64)),
        None => parse_duration(text).map(|time| SignedDuration::from_nanos(time.0 as i64)),
    };
    let ago = ago.map_err(|_| {
        format!("{text:?} is not a time: type 2026-11-01, 2026-11-01T12:00:00Z, 12h or 7d")
    })?;
    Timestamp::now().checked_sub(ago).map_err(|error| error.to_string())
}

/// A hundred years.
const DAYS_MAX: u64 = 36_500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_a_time_and_a_distance_are_moments() {
        assert_eq!(since("2026-11-01"), since("2026-11-01T00:00:00Z"));
        let yesterday = since("1d").unwrap();
        assert!(Timestamp::now().duration_since(yesterday) >= SignedDuration::from_hours(24));
        assert!(since("7d").unwrap() < since("12h").unwrap());
        assert!(since("yesterday").unwrap_err().contains("2026-11-01"));
    }
}
