//! A resolved plan: the load, the cases to measure, repetitions, stop rules, observations and
//! thresholds.

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
/// open: axes have become cases.
///
/// # Examples
///
/// The same case three times; a threshold on its 99th percentile:
///
/// ```
/// use std::collections::BTreeMap;
/// use weigh_model::plan::{Observe, Plan, Repeat};
/// use weigh_model::trial::Point;
/// use weigh_model::{Load, Pattern};
///
/// let keys = [("protocol", "tcp"), ("target", "reference")];
/// let plan = Plan {
///     name: "one-case".to_owned(),
///     question: None,
///     seed: 1,
///     thresholds: vec!["p99 < 50ms".parse()?],
///     load: Load { messages: Some(1000), ..Load::closed(Pattern::Request, 2) },
///     repeat: Repeat::exactly(3),
///     stop: BTreeMap::new(),
///     observe: Observe::default(),
///     energy: None,
///     background: None,
///     cases: vec![Point::from(keys.map(|(key, word)| (key.to_owned(), word.into())))],
/// };
/// assert_eq!(Plan::from_toml(&plan.to_toml()?)?, plan);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Name of the run.
    pub name: String,
    /// Question of the user, in the user's words; the report begins with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// The seed of all random numbers in the run.
    pub seed: u64,
    /// Conditions that every cell must meet; exit code 99 if one does not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<Condition>,
    /// The load, unless a case overrides it.
    pub load: Load,
    /// Repetitions of each case.
    pub repeat: Repeat,
    /// By axis (a plan key such as `load.connections`): conditions after which its larger values
    /// are not measured any more, in each lane separately.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stop: BTreeMap<String, Vec<Condition>>,
    /// Optional observations.
    #[serde(default, skip_serializing_if = "Observe::is_default")]
    pub observe: Observe,
    /// Device for which energy is modelled; `None` for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<EnergyAsked>,
    /// The background of those cases that have one, unless a case overrides it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<Background>,
    /// The points of the matrix, as in journals and reports; the crate `plan` makes and reads them.
    #[serde(rename = "case")]
    pub cases: Vec<Point>,
}

impl Plan {
    /// Reads what [`Plan::to_toml`] wrote. The language of plans that users write is that of
    /// `weigh_plan`. Compiled here once, not in each crate that reads plans.
    ///
    /// # Errors
    /// If the text is not TOML, or not a plan.
    pub fn from_toml(text: &str) -> Result<Plan, toml::de::Error> {
        toml::from_str(text)
    }

    /// The plan as `plan.toml` holds it.
    ///
    /// # Errors
    /// If TOML cannot hold a value: whole numbers of 2^63 and more.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string(self)
    }
}

/// Rejects names that cannot be the name of a run's folder without a change.
///
/// # Errors
/// If it has no letter and no digit, or has a slash, a backslash or a control character.
pub fn check_name(name: &str) -> Result<(), String> {
    if !name.chars().any(char::is_alphanumeric) {
        return Err(format!(
            "{name:?} is not a name: type one with letters or digits, or none at all"
        ));
    }
    if name.chars().any(|c| matches!(c, '/' | '\\') || c.is_control()) {
        return Err(format!(
            "{name:?} would be a path: type a name without slashes; --runs DIR says where"
        ));
    }
    Ok(())
}

/// Number of repetitions of each case.
///
/// # Examples
///
/// At least 5 repetitions, and up to 20 until the 99th percentile is precise to 5 %:
///
/// ```
/// use weigh_model::plan::Repeat;
///
/// let until = vec!["p99 within 5 %".parse()?];
/// let repeat = Repeat { at_most: Some(20), until, ..Repeat::exactly(5) };
/// assert_eq!(repeat.most(), 20);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    /// Repetitions of every case; at least 1.
    #[serde(alias = "count")]
    pub at_least: u32,
    /// Maximum repetitions of a case whose figures are not precise enough after
    /// [`Repeat::at_least`]; `None` is the same number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<u32>,
    /// Precision at which a cell is not repeated any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub until: Vec<Precision>,
    /// No trial begins after this time; the run then ends with its results so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Nanos>,
    /// Pause before each trial.
    #[serde(default)]
    pub cool_down: Nanos,
    /// Lifetime of a target.
    #[serde(default)]
    pub target: TargetLife,
}

impl Repeat {
    /// Exactly this number of repetitions, each with a fresh target.
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

/// Lifetime of a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TargetLife {
    /// A new process for every trial: start-up differences are part of the spread.
    #[default]
    Fresh,
    /// One process for all trials of the run that ask for the same target.
    Kept,
}

/// A figure and the maximum width of its interval: `response_time_ns.p99 within 5 %` asks that the
/// longer side of the interval, which is the ± of the table, is at most 5 % of the value.
///
/// # Examples
///
/// ```
/// use weigh_model::plan::Precision;
///
/// let precision: Precision = "throughput_out_per_s within 2 %".parse()?;
/// assert_eq!(precision.within, 0.02);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Precision {
    /// The metric.
    pub metric: String,
    /// Maximum of the longer side of the interval over the value; above 0.
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
                "{text:?} is not a precision: type a metric, within, and a share, such as \
                 \"response_time_ns.p99 within 5 %\""
            )
        };
        let (metric, share) = text.split_once(" within ").ok_or_else(wrong)?;
        let percent = share.trim().strip_suffix('%').ok_or_else(wrong)?;
        let percent: f64 = percent.trim().parse().map_err(|_| wrong())?;
        if !percent.is_finite() || percent <= 0.0 {
            return Err(wrong());
        }
        // A condition knows all names of a metric; its limit is not used.
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

/// Optional observations.
///
/// # Examples
///
/// ```
/// use weigh_model::Nanos;
/// use weigh_model::plan::Observe;
///
/// let observe = Observe { every: Some(Nanos::from_secs(1)), wire: true, ..Observe::default() };
/// assert!(observe.wire && !observe.pcap);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observe {
    /// Length of an interval of the time series; `None` adapts it to the length of the trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Nanos>,
    /// Keeps a record of every single message.
    #[serde(default)]
    pub messages: bool,
    /// Counts every byte on the wire, by layer; the parties then have network namespaces of their
    /// own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wire: bool,
    /// Writes the packets of every trial to a pcapng file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pcap: bool,
    /// The energy meter; `None` takes what there is and does not wait for an idle phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meter: Option<MeterChoice>,
    /// Time for which the idle machine is measured before and after a trial; `None` is a minute if
    /// a meter is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<Nanos>,
    /// Observation of external servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub target: Vec<Lookout>,
    /// Tools whose figures are emulated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub emulate: Vec<Emulation>,
    /// Choice whether the counters of external servers are read.
    #[serde(default, skip_serializing_if = "SysChoice::is_auto")]
    pub sys: SysChoice,
}

impl Observe {
    /// True if the plan asks for energy.
    pub fn asks_for_energy(&self) -> bool {
        match &self.meter {
            Some(choice) => *choice != MeterChoice::None,
            None => self.idle.is_some(),
        }
    }

    /// Length of each of a trial's two idle phases, if there is a meter.
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

/// Methodology, section 7.1: idle before and after, at least a minute each.
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
