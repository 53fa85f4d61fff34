//! What the user asks, resolved: the load, the cases to weigh, how often, when an axis is left,
//! what is observed and what must hold.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::background::Background;
use crate::condition::Condition;
use crate::counters::SysChoice;
use crate::emulation::Emulation;
use crate::load::Load;
use crate::lookout::Lookout;
use crate::metering::MeterChoice;
use crate::metrics::QUANTILES;
use crate::modelled::EnergyAsked;
use crate::trial::Point;
use crate::units::Nanos;

/// A resolved plan, as it is written to `plan.toml` of a run and to its journal. Nothing is left
/// open in it: axes have become cases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// What the run is called.
    pub name: String,
    /// What the user wants to know, in his words; the report begins with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// The seed of all chance in the run.
    pub seed: u64,
    /// What must hold of every cell; exit code 99 if it does not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<Condition>,
    /// The load, where a case does not say otherwise.
    pub load: Load,
    /// How often each case is weighed.
    pub repeat: Repeat,
    /// By axis (a plan key such as `load.connections`): conditions after which its larger values
    /// are not weighed any more, each lane for itself.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stop: BTreeMap<String, Vec<Condition>>,
    /// What is looked at beside the figures that every trial has.
    #[serde(default, skip_serializing_if = "Observe::is_default")]
    pub observe: Observe,
    /// Which device energy is modelled for; `None` for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<EnergyAsked>,
    /// The second workload beneath those cases that say so, where a case does not say otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<Background>,
    /// The points of the matrix, as journals and reports have them; the language of plans makes
    /// and reads them.
    #[serde(rename = "case")]
    pub cases: Vec<Point>,
}

/// Says no to what cannot be the name of a run, and so of its folder, without becoming another.
///
/// # Errors
/// If it has no letter and no digit, or has a slash, a backslash or a control character.
pub fn check_name(name: &str) -> Result<(), String> {
    if !name.chars().any(char::is_alphanumeric) {
        return Err(format!(
            "{name:?} is no name: type one with letters or digits, or none at all"
        ));
    }
    if name.chars().any(|c| matches!(c, '/' | '\\') || c.is_control()) {
        return Err(format!(
            "{name:?} would be a path: type a name without slashes; --runs DIR says where"
        ));
    }
    Ok(())
}

/// How often each case is weighed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    /// Repetitions of every case; at least 1.
    #[serde(alias = "count")]
    pub at_least: u32,
    /// Repetitions of a case whose figures are not precise enough after [`Repeat::at_least`];
    /// `None` is the same number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<u32>,
    /// How precise every cell must be before it is repeated no more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub until: Vec<Precision>,
    /// No trial begins after this time; the run then ends with what it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Nanos>,
    /// Pause before each trial.
    #[serde(default)]
    pub cool_down: Nanos,
    /// How long a target lives.
    #[serde(default)]
    pub target: TargetLife,
}

impl Repeat {
    /// So often, no more and no less, each with a fresh target.
    pub fn exactly(count: u32) -> Repeat {
        Repeat {
            at_least: count,
            at_most: None,
            until: Vec::new(),
            budget: None,
            cool_down: Nanos(0),
            target: TargetLife::Fresh,
        }
    }

    /// The most repetitions that a case can have.
    pub fn most(&self) -> u32 {
        self.at_most.unwrap_or(self.at_least).max(self.at_least)
    }
}

/// How long a target lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TargetLife {
    /// A process of its own for every trial: start-up differences are part of the spread.
    #[default]
    Fresh,
    /// One process for all trials of the run that ask for the same target.
    Kept,
}

/// A figure and how wide its interval may be: `response_time_ns.p99 within 5 %` asks that the
/// longer side of the interval, which is the ± of the table, is at most 5 % of the value.
#[derive(Clone, Debug, PartialEq)]
pub struct Precision {
    /// The metric.
    pub metric: String,
    /// The longer side of the interval over the value, at most; above 0.
    pub within: f64,
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} within {} %", self.metric, self.within * 100.0)
    }
}

impl FromStr for Precision {
    type Err = String;

    /// Reads `response_time_ns.p99 within 5 %`, `throughput_out_per_s within 2%`; `p99` alone is
    /// that of the response time.
    fn from_str(text: &str) -> Result<Precision, String> {
        let wrong = || {
            format!(
                "{text:?} says no precision: type a metric, within, and a share, such as \
                 \"response_time_ns.p99 within 5 %\""
            )
        };
        let (metric, share) = text.split_once(" within ").ok_or_else(wrong)?;
        let percent = share.trim().strip_suffix('%').ok_or_else(wrong)?;
        let percent: f64 = percent.trim().parse().map_err(|_| wrong())?;
        if !percent.is_finite() || percent <= 0.0 {
            return Err(wrong());
        }
        // A condition knows all ways to write a metric; its limit is of no interest here.
        let metric = metric.trim();
        let metric = if QUANTILES.iter().any(|(part, _)| *part == metric) {
            format!("response_time_ns.{metric}")
        } else {
            format!("{metric} > +0%").parse::<Condition>()?.metric
        };
        Ok(Precision { metric, within: percent / 100.0 })
    }
}

impl Serialize for Precision {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Precision {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Precision, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// What is looked at beside the figures that every trial has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observe {
    /// How long an interval of the time series is; `None` fits it to the length of the trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Nanos>,
    /// Keeps a record of every single message.
    #[serde(default)]
    pub messages: bool,
    /// Counts every byte on the wire, by layer; the parties are then hosts of their own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wire: bool,
    /// Keeps the packets of every trial as a pcapng file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pcap: bool,
    /// The meter of energy; `None` takes what there is and waits for no idle phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meter: Option<MeterChoice>,
    /// How long the machine is measured doing nothing, before a trial and again after it; `None` is
    /// a minute where a meter is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<Nanos>,
    /// What is watched of targets that somebody else runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub target: Vec<Lookout>,
    /// Whose figures are told beside the exact ones, as emulations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub emulate: Vec<Emulation>,
    /// Whether servers given by URL are asked for their own counters.
    #[serde(default, skip_serializing_if = "SysChoice::is_auto")]
    pub sys: SysChoice,
}

impl Observe {
    /// True if somebody wants to know of energy.
    pub fn asks_for_energy(&self) -> bool {
        match &self.meter {
            Some(choice) => *choice != MeterChoice::None,
            None => self.idle.is_some(),
        }
    }

    /// How long each of a trial's two idle phases is, where there is a meter.
    pub fn idle_each(&self) -> Nanos {
        match self.idle {
            _ if !self.asks_for_energy() => Nanos(0),
            Some(idle) => idle,
            None => IDLE,
        }
    }

    fn is_default(&self) -> bool {
        *self == Observe::default()
    }
}

/// Methodology, part 7.1: idle before and after, at least a minute each.
const IDLE: Nanos = Nanos::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precisions_are_read_as_conditions_are() {
        for (text, metric, within) in [
            ("p99 within 5 %", "response_time_ns.p99", 0.05),
            ("response_time p(99) within 5%", "response_time_ns.p99", 0.05),
            ("throughput_out_per_s within 2.5 %", "throughput_out_per_s", 0.025),
        ] {
            let precision: Precision = text.parse().unwrap();
            assert_eq!((precision.metric.as_str(), precision.within), (metric, within), "{text}");
            assert_eq!(precision.to_string().parse(), Ok(precision));
        }
        for text in ["p99", "p99 within 5", "p99 within -1 %", "response_time within 5 %"] {
            assert!(text.parse::<Precision>().is_err(), "{text}");
        }
    }

    #[test]
    fn an_older_count_is_read_as_at_least() {
        let repeat: Repeat = toml::from_str("count = 5\ncool_down = \"1s\"").unwrap();
        assert_eq!((repeat.at_least, repeat.most()), (5, 5));
    }
}
