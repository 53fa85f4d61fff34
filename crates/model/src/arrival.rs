//! Due times of messages: the shape of the load in time.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::units::{Nanos, Rate, parse_duration, parse_rate};

/// The arrival process of a load.
///
/// # Examples
///
/// ```
/// use weigh_model::Arrival;
///
/// let arrival: Arrival = "poisson".parse()?;
/// assert!(arrival.needs_rate() && arrival.is_open());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Arrival {
    /// `window` messages in flight on every connection; the next leaves when one completes and the
    /// think time is over. The latency of such a loop hides queueing (coordinated omission).
    Closed,
    /// All messages of every client at once, as fast as the socket takes them.
    Burst,
    /// Evenly spaced at the given rate.
    Constant,
    /// Independent exponential gaps with the mean of the given rate.
    Poisson,
    /// Every client at its own rate, each with its own phase drawn from the seed.
    Periodic,
    /// A closed loop in which every client sends its share of the rate at the beginning of each
    /// second, and then nothing until the next second.
    EachSecond,
    /// A closed loop that clients join evenly over this time.
    Ramp(Nanos),
    /// A constant rate that changes at fixed times.
    Steps(Vec<Step>),
    /// Due times read from a file, one number of seconds since the start per line.
    Trace(String),
}

/// One step of [`Arrival::Steps`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The rate of this step.
    pub rate: Rate,
    /// Duration of the step.
    pub hold: Nanos,
}

impl Arrival {
    /// True if the schedule never waits for answers, so that latency counts from a due time.
    pub fn is_open(&self) -> bool {
        !self.is_closed()
    }

    /// True if the next message of a slot waits for the answer to the last one.
    pub fn is_closed(&self) -> bool {
        matches!(self, Arrival::Closed | Arrival::EachSecond | Arrival::Ramp(_))
    }

    /// True if a schedule sets when each message is due: then the generator may be late.
    pub fn has_schedule(&self) -> bool {
        self.is_open() && !matches!(self, Arrival::Burst)
    }

    /// True if the arrival needs a rate.
    pub fn needs_rate(&self) -> bool {
        matches!(
            self,
            Arrival::Constant | Arrival::Poisson | Arrival::Periodic | Arrival::EachSecond
        )
    }
}

impl FromStr for Arrival {
    type Err = String;

    fn from_str(text: &str) -> Result<Arrival, String> {
        let (name, argument) = match text.split_once(':') {
            Some((name, argument)) => (name, Some(argument)),
            None => (text, None),
        };
        match (name, argument) {
            ("closed", None) => Ok(Arrival::Closed),
            ("burst", None) => Ok(Arrival::Burst),
            ("constant", None) => Ok(Arrival::Constant),
            ("poisson", None) => Ok(Arrival::Poisson),
            ("periodic", None) => Ok(Arrival::Periodic),
            ("each-second", None) => Ok(Arrival::EachSecond),
            ("ramp", Some(over)) => parse_duration(over).map(Arrival::Ramp),
            ("steps", Some(steps)) => parse_steps(steps).map(Arrival::Steps),
            ("trace", Some(path)) if !path.is_empty() => Ok(Arrival::Trace(path.to_owned())),
            ("ramp", None) => Err("a ramp needs its length: type ramp:10s".to_owned()),
            ("steps", None) => {
                Err("steps need rates and times: type steps:100/s@5s,200/s@5s".to_owned())
            }
            ("trace", _) => Err("a trace needs a file: type trace:FILE".to_owned()),
            _ => Err(format!(
                "unknown arrival {text:?}: type closed, burst, constant, poisson, periodic, \
                 each-second, ramp:10s, steps:100/s@5s,200/s@5s or trace:FILE"
            )),
        }
    }
}

impl fmt::Display for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Arrival::Closed => f.write_str("closed"),
            Arrival::Burst => f.write_str("burst"),
            Arrival::Constant => f.write_str("constant"),
            Arrival::Poisson => f.write_str("poisson"),
            Arrival::Periodic => f.write_str("periodic"),
            Arrival::EachSecond => f.write_str("each-second"),
            Arrival::Ramp(over) => write!(f, "ramp:{}", over.recorded()),
            Arrival::Steps(steps) => {
                f.write_str("steps:")?;
                for (index, step) in steps.iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    write!(f, "{comma}{}@{}", step.rate.typed(), step.hold.recorded())?;
                }
                Ok(())
            }
            Arrival::Trace(path) => write!(f, "trace:{path}"),
        }
    }
}

impl Serialize for Arrival {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Arrival {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Arrival, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

fn parse_steps(text: &str) -> Result<Vec<Step>, String> {
    text.split(',')
        .map(|step| {
            let (rate, hold) = step.split_once('@').ok_or_else(|| {
                let bare = !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit());
                let unit = if bare { "/s" } else { "" };
                let rate = format!("{step}{unit}");
                let rate = if parse_rate(&rate).is_ok() { &rate } else { "100/s" };
                format!("the step {step:?} has no time: type {rate}@5s")
            })?;
            let wrong = |problem: String| format!("the step {step:?}: {problem}");
            Ok(Step {
                rate: parse_rate(rate).map_err(wrong)?,
                hold: parse_duration(hold).map_err(wrong)?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_arrival_survives_being_written_and_read() {
        for text in [
            "closed",
            "burst",
            "constant",
            "poisson",
            "periodic",
            "each-second",
            "ramp:10s",
            "trace:due.csv",
        ] {
            assert_eq!(text.parse::<Arrival>().unwrap().to_string(), text);
        }
        let steps: Arrival = "steps:100/s@5s,2k/s/client@500ms".parse().unwrap();
        assert_eq!(steps.to_string().parse::<Arrival>().unwrap(), steps);
    }

    #[test]
    fn an_arrival_is_open_or_closed_and_only_some_have_a_rate() {
        for (text, is_open, needs_rate) in [
            ("closed", false, false),
            ("each-second", false, true),
            ("ramp:10s", false, false),
            ("burst", true, false),
            ("constant", true, true),
        ] {
            let arrival: Arrival = text.parse().unwrap();
            assert_eq!((arrival.is_open(), arrival.needs_rate()), (is_open, needs_rate), "{text}");
        }
    }

    #[test]
    fn a_step_without_its_time_is_answered_with_its_form() {
        for (wrong, fix) in
            [("100", "100/s@5s"), ("2k/s", "2k/s@5s"), ("fast", "100/s@5s"), ("", "100/s@5s")]
        {
            let error = format!("steps:{wrong}").parse::<Arrival>().unwrap_err();
            assert!(error.ends_with(&format!("type {fix}")), "{error}");
            assert!(format!("steps:{fix}").parse::<Arrival>().is_ok(), "{fix}");
        }
    }
}
