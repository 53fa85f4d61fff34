//! The two quantities that only paths have: bits per second, and shares of packets.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// Bits per second, at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BitRate(pub u64);

/// A share of packets, 0 to 1; written in percent.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Share(pub f64);

impl Share {
    /// No packets.
    pub const ZERO: Share = Share(0.0);
    /// All packets.
    pub const ALL: Share = Share(1.0);
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A share read from percent: rounded to what was typed, not to 17 digits.
        write!(f, "{}%", (self.0 * 1e11).round() / 1e9)
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (factor, prefix) = PREFIXES
            .into_iter()
            .find(|(factor, _)| self.0 >= *factor && self.0.is_multiple_of(factor / 10))
            .unwrap_or((1, ""));
        write!(f, "{}{prefix}bit/s", self.0 as f64 / factor as f64)
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Share, D::Error> {
        parse_share(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// Reads `1%`, `0.05%`.
///
/// # Errors
/// With what to type.
pub fn parse_share(text: &str) -> Result<Share, String> {
    let trimmed = text.trim();
    if let Ok(bare) = trimmed.parse::<f64>() {
        // Below 1 it is likely to be a share, from 1 on percent.
        let percent = if bare < 1.0 { bare * 100.0 } else { bare };
        return Err(format!("{text:?} has no unit: type {percent}%"));
    }
    let percent = trimmed.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    match percent {
        Some(percent) if (0.0..=100.0).contains(&percent) => Ok(Share(percent / 100.0)),
        Some(_) => Err(format!("{text:?} is not a share: type 0% to 100%")),
        None => Err(format!("{text:?} is not a share: type for example 1% or 0.05%")),
    }
}

/// Reads `10Mbit/s` and `10Mbit`, `64kbit/s`, `1Gbit/s`, `9600bit/s`; k, M and G are powers of
/// 1,000.
///
/// # Errors
/// With what to type.
pub fn parse_bit_rate(text: &str) -> Result<BitRate, String> {
    let trimmed = text.trim();
    if trimmed.parse::<f64>().is_ok() {
        return Err(format!("{text:?} has no unit: type {trimmed}kbit/s or {trimmed}Mbit/s"));
    }
    let wrong = || {
        format!(
            "unknown rate {text:?} of a link: type for example 10Mbit/s or \
                            64kbit/s"
        )
    };
    let number = trimmed.strip_suffix("/s").unwrap_or(trimmed);
    let number = number.strip_suffix("bit").ok_or_else(wrong)?;
    let (number, factor) = PREFIXES
        .into_iter()
        .find_map(|(factor, prefix)| Some((number.strip_suffix(prefix)?, factor)))
        .unwrap_or((number, 1));
    let rate = number.trim().parse::<f64>().map_err(|_| wrong())? * factor as f64;
    if (1.0..=1e12).contains(&rate) { Ok(BitRate(rate.round() as u64)) } else { Err(wrong()) }
}

const PREFIXES: [(u64, &str); 3] = [(1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_and_read_alike() {
        for text in ["10Mbit/s", "62.5kbit/s", "1Gbit/s", "1.6Mbit/s", "300bit/s", "1234bit/s"] {
            assert_eq!(parse_bit_rate(text).unwrap().to_string(), text);
        }
        assert_eq!(parse_bit_rate("1.6Mbit/s"), Ok(BitRate(1_600_000)));
        assert_eq!(parse_bit_rate("10Mbit"), parse_bit_rate("10Mbit/s"));
        for text in ["0.05%", "100%", "0%", "33.3%", "0.000001%"] {
            assert_eq!(parse_share(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn refused_with_what_to_type() {
        assert!(parse_bit_rate("10").unwrap_err().contains("type 10kbit/s"));
        for text in ["", "0bit/s", "-1Mbit/s", "10MB/s", "NaNbit/s", "infbit/s", "bit/s"] {
            assert!(parse_bit_rate(text).unwrap_err().contains("10Mbit/s"), "{text}");
        }
        assert!(parse_share("0.01").unwrap_err().contains("type 1%"));
        assert!(parse_share("5").unwrap_err().ends_with("type 5%"));
        for text in ["101%", "-1%", "%", "NaN%", "x"] {
            assert!(parse_share(text).is_err(), "{text}");
        }
    }
}
