//! A second workload during a trial: its definition and its results.

use crate::numbers::count;
use std::collections::BTreeMap;
use std::fmt::Write;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::arrival::Arrival;
use crate::ledger::Ledger;
use crate::load::{Load, Pattern};
use crate::trial::Point;
use crate::units::Nanos;

/// A second workload, fully decided. It lasts as long as the measurement, or for a number of
/// messages that may end long before.
///
/// # Examples
///
/// 1,000 clients that publish 10 messages/s each at the measured target:
///
/// ```
/// use weigh_model::background::Background;
///
/// let background: Background = toml::from_str(r#"
///     protocol = "mqtt"
///     target = "same"
///     lead = "1s"
///     [load]
///     pattern = "publish"
///     connections = 1000
///     subscribers = 0
///     topology = "fan-in"
///     arrival = "constant"
///     rate = "10/s/client"
///     think = "0s"
///     split = "exact"
///     body = "readings"
///     timeout = "5s"
/// "#)?;
/// assert_eq!(background.offered_per_s(), Some(10_000.0));
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Background {
    /// The registry's name of its protocol.
    pub protocol: String,
    /// [`SAME`], `reference`, the name of a real server, or a URL without its secrets.
    pub target: String,
    /// The cores of its own target.
    #[serde(rename = "beside", default)]
    pub target_cores: TargetCores,
    /// Time that it runs at least before the measured window begins, warm-up included.
    pub lead: Nanos,
    /// Its load, without a duration and a warm-up.
    #[serde(with = "endless")]
    pub load: Load,
    /// The settings of its protocol that were given, below the protocol's name.
    #[serde(flatten)]
    pub settings: BTreeMap<String, Point>,
}

/// The cores on which the own target of a background runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TargetCores {
    /// On the cores of the measured target: both compete for the same processor.
    #[default]
    Target,
    /// On other cores than the measured target.
    Apart,
}

impl TargetCores {
    /// The words of a plan.
    pub const NAMES: [&str; 2] = ["target", "apart"];
}

impl Background {
    /// True if it goes to the measured target itself.
    pub fn is_at_same(&self) -> bool {
        self.target == SAME
    }

    /// Rate that it offers, in messages per second of all its clients; `None` for a closed loop,
    /// whose rate depends on answers, and for one that sends nothing.
    pub fn offered_per_s(&self) -> Option<f64> {
        let is_paced = self.load.arrival.is_open() && self.load.pattern != Pattern::Hold;
        let rate = self.load.rate.filter(|_| is_paced)?;
        Some(rate.total_per_second(self.load.connections))
    }

    /// Returns a description: `mqtt qos=1 at mosquitto, publish, 1,000 connections, 10/s per
    /// client`.
    pub fn words(&self) -> String {
        let mut words = self.protocol.clone();
        for (key, value) in self.settings.get(&self.protocol).into_iter().flatten() {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let _ = write!(words, " {key}={value}");
        }
        let at = if self.is_at_same() { "the measured target" } else { self.target.as_str() };
        let load = &self.load;
        let plural = if load.connections == 1 { "connection" } else { "connections" };
        let connections = count(u64::from(load.connections));
        let _ = write!(words, " at {at}, {}, {connections} {plural}", load.pattern);
        match load.rate {
            Some(rate) => {
                let _ = write!(words, ", {rate}");
            }
            None if load.pattern != Pattern::Hold => {
                let _ = write!(words, ", {}", load.arrival);
            }
            None => {}
        }
        if let Some(size) = load.size {
            let _ = write!(words, ", {size}");
        }
        if let Some(messages) = load.messages {
            let _ = write!(words, ", over after {} messages", count(messages));
        }
        words
    }

    /// Returns why a load cannot run as a background, and how to fix it.
    pub fn refusal(arrival: &Arrival, pattern: Pattern) -> Option<(String, &'static str)> {
        if pattern == Pattern::Transfer {
            let text = "an object may take longer than the measurement";
            return Some((text.to_owned(), "make background.load.pattern publish or request"));
        }
        match arrival {
            Arrival::Burst
            | Arrival::EachSecond
            | Arrival::Steps(_)
            | Arrival::Trace(_)
            | Arrival::Ramp(_) => Some((
                format!(
                    "the arrival {arrival} does not keep an even load until the measurement \
                         ends"
                ),
                "make background.load.arrival closed, constant, poisson or periodic",
            )),
            _ => None,
        }
    }
}

/// Record of a background during one trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackgroundRan {
    /// The id of the trial that was measured.
    pub trial: String,
    /// The point of that trial in the matrix.
    pub point: Point,
    /// Description of the background.
    pub words: String,
    /// Identification of its target.
    pub target: String,
    /// The share of the measured window in which it sent at least [`SHARE_MIN`] of what it
    /// offers; 1 is all of it.
    pub overlap_ratio: f64,
    /// Length of the measured window, draining included, nanoseconds.
    pub window_ns: u64,
    /// Rate that it offers, messages per second; absent for closed loops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_per_s: Option<f64>,
    /// Rate that it sent in the window, messages per second.
    pub sent_per_s: f64,
    /// True if its generator had no core of its own.
    pub shares_core: bool,
    /// The ledger of its messages, from its first to its last.
    pub ledger: Ledger,
    /// Its own figures by name, from its first message to its last; figures of the measured case
    /// are not included.
    pub metrics: BTreeMap<String, f64>,
    /// Messages sent, interval by interval.
    pub intervals: Vec<Sent>,
}

/// Messages sent in one interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// Begin, nanoseconds since the measured window began; negative before it.
    pub from_ns: i64,
    /// End, on the same clock.
    pub to_ns: i64,
    /// Messages handed to the transport.
    pub sent: u64,
    /// Connections open at the end of the interval.
    pub connections: u64,
}

/// Evidence in an interval that the background was there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sought {
    /// Messages per second.
    Rate(f64),
    /// The rate that it usually sends during the measurement: the median over its intervals in the
    /// window. Before and after it, a closed loop that shares a server has that server alone.
    OwnRate,
    /// Open connections.
    Connections(u64),
}

impl Sought {
    /// Returns what shows that `background` was there.
    pub fn of(background: &Background) -> Sought {
        match background.offered_per_s() {
            _ if background.load.pattern == Pattern::Hold => {
                Sought::Connections(background.load.connections.into())
            }
            Some(rate) => Sought::Rate(rate),
            None => Sought::OwnRate,
        }
    }
}

/// Share of a window from 0 to `window_ns` in which the background was there. Intervals in which
/// fewer than [`EXPECTED_MIN`] messages are expected are joined with those after them, so that
/// chance alone makes no gap: of 25 expected at random, fewer than half come once in 800 times.
pub fn overlap(intervals: &[Sent], window_ns: u64, sought: Sought) -> f64 {
    let window = i64::try_from(window_ns).unwrap_or(i64::MAX);
    if window == 0 {
        return 0.0;
    }
    let within = |(from, to): (i64, i64)| (to.min(window) - from.max(0)).max(0);
    let covered: i64 = match sought {
        Sought::Connections(asked) => {
            let stands = |told: &&Sent| told.connections >= asked;
            intervals.iter().filter(stands).map(|told| within((told.from_ns, told.to_ns))).sum()
        }
        Sought::Rate(_) | Sought::OwnRate => {
            let per_s = match sought {
                Sought::Rate(per_s) => per_s,
                _ => median_per_s(intervals, window),
            };
            if per_s <= 0.0 {
                // A closed loop that was silent for the whole window.
                return 0.0;
            }
            let joined = joined(intervals, per_s / 1e9);
            let is_there = |part: &&Sent| {
                let expected = per_s / 1e9 * length_ns(part);
                part.sent > 0 && part.sent as f64 >= SHARE_MIN * expected
            };
            joined.iter().filter(is_there).map(|part| within((part.from_ns, part.to_ns))).sum()
        }
    };
    covered as f64 / window as f64
}

/// Messages sent from 0 to `window_ns`: of an interval across a border, its part.
pub fn sent_within(intervals: &[Sent], window_ns: u64) -> f64 {
    let window = window_ns as f64;
    let part = |told: &Sent| {
        let inside = (told.to_ns as f64).min(window) - (told.from_ns as f64).max(0.0);
        told.sent as f64 * (inside.max(0.0) / length_ns(told).max(1.0)).min(1.0)
    };
    intervals.iter().map(part).sum()
}

/// Joins adjacent intervals until enough messages are expected of each; the remainder at the end
/// belongs to the interval before.
fn joined(intervals: &[Sent], per_ns: f64) -> Vec<Sent> {
    let mut parts: Vec<Sent> = Vec::new();
    let is_short = |part: &Sent| length_ns(part) * per_ns < EXPECTED_MIN;
    for told in intervals {
        match parts.last_mut() {
            Some(last) if last.to_ns == told.from_ns && is_short(last) => {
                last.to_ns = told.to_ns;
                last.sent += told.sent;
            }
            _ => parts.push(*told),
        }
    }
    if let [.., before, last] = &mut parts[..]
        && before.to_ns == last.from_ns
        && is_short(last)
    {
        before.to_ns = last.to_ns;
        before.sent += last.sent;
        parts.pop();
    }
    parts
}

/// Median rate of the intervals that overlap the window and in which anything was sent.
fn median_per_s(intervals: &[Sent], window: i64) -> f64 {
    let is_within = |told: &&Sent| told.from_ns < window && told.to_ns > 0.max(told.from_ns);
    let sending = intervals.iter().filter(|told| told.sent > 0).filter(is_within);
    let mut rates: Vec<f64> =
        sending.map(|told| told.sent as f64 * 1e9 / length_ns(told)).collect();
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or(0.0)
}

fn length_ns(told: &Sent) -> f64 {
    told.to_ns.saturating_sub(told.from_ns) as f64
}

/// A load without an end of its own: fields that set its begin and end are not written.
mod endless {
    use super::*;
    use serde_json::Value;

    pub(super) fn serialize<S: Serializer>(load: &Load, serializer: S) -> Result<S::Ok, S::Error> {
        let mut value = serde_json::to_value(load).map_err(serde::ser::Error::custom)?;
        if let Value::Object(keys) = &mut value {
            LASTING.iter().for_each(|key| drop(keys.remove(*key)));
        }
        value.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(reader: D) -> Result<Load, D::Error> {
        let mut value = Value::deserialize(reader)?;
        if let Value::Object(keys) = &mut value {
            keys.insert("warmup".to_owned(), "0s".into());
        }
        serde_json::from_value(value).map_err(serde::de::Error::custom)
    }
}

/// The word for the measured target itself.
pub const SAME: &str = "same";

/// Keys of a load that a background does not have: it lasts as long as the measurement.
pub const LASTING: [&str; 2] = ["duration", "warmup"];

/// The least share of the offered rate at which a background counts as there.
pub const SHARE_MIN: f64 = 0.5;

/// Messages that must be expected of an interval before their absence is significant.
pub const EXPECTED_MIN: f64 = 25.0;

/// A result whose background covers less of its window gets a warning.
pub const OVERLAP_MIN: f64 = 0.99;

#[cfg(test)]
mod tests {
    use super::*;

    const TENTH: i64 = 100_000_000;

    /// Tenths of a second from `from` to `to`, each with `sent` messages.
    fn tenths(from: i64, to: i64, sent: u64) -> Vec<Sent> {
        let one =
            |at: i64| Sent { from_ns: at * TENTH, to_ns: (at + 1) * TENTH, sent, connections: 3 };
        (from..to).map(one).collect()
    }

    fn ratio(intervals: &[Sent]) -> f64 {
        overlap(intervals, 2_000_000_000, Sought::Rate(1_000.0))
    }

    #[test]
    fn what_begins_before_and_ends_after_covers_everything() {
        assert_eq!(ratio(&tenths(-10, 25, 100)), 1.0);
        assert_eq!(sent_within(&tenths(-10, 25, 100), 2_000_000_000), 2_000.0);
    }

    #[test]
    fn what_ends_early_or_begins_late_is_found() {
        assert_eq!(ratio(&tenths(-10, 15, 100)), 0.75);
        assert_eq!(ratio(&tenths(5, 25, 100)), 0.75);
        let silent = [tenths(-10, 12, 100), tenths(12, 25, 0)].concat();
        assert_eq!(ratio(&silent), 0.6);
        let slow = [tenths(-10, 12, 100), tenths(12, 25, 49)].concat();
        assert_eq!(ratio(&slow), 0.6);
        assert_eq!(ratio(&[]), 0.0);
    }

    /// At 20 messages a second a tenth of one holds two, or none: 13 of them make a part.
    #[test]
    fn chance_makes_no_gap_in_a_thin_load() {
        let mut random = weigh_stats::random::Random::stream(7, 3);
        let mut thin = tenths(-20, 120, 0);
        for _ in 0..280 {
            let at = random.below(thin.len() as u64) as usize;
            thin[at].sent += 1;
        }
        assert!(thin.iter().any(|told| told.sent == 0));
        assert_eq!(overlap(&thin, 10_000_000_000, Sought::Rate(20.0)), 1.0);
    }

    #[test]
    fn a_closed_loop_is_measured_against_itself_and_holders_by_their_connections() {
        let ends = [tenths(-10, 10, 300), tenths(10, 25, 0)].concat();
        assert_eq!(overlap(&ends, 2_000_000_000, Sought::OwnRate), 0.5);
        let held = tenths(-10, 15, 0);
        assert_eq!(overlap(&held, 2_000_000_000, Sought::Connections(3)), 0.75);
        assert_eq!(overlap(&held, 2_000_000_000, Sought::Connections(4)), 0.0);
    }

    /// Ten loops under ten others at one server: half as fast while both are there as alone. Most
    /// of what they do lies after a short window, when the trial waits for its messages to be
    /// counted.
    #[test]
    fn a_closed_loop_that_is_alone_before_and_after_was_there_all_the_time() {
        let background = [tenths(-5, 0, 430), tenths(0, 6, 210), tenths(6, 30, 500)].concat();
        assert_eq!(overlap(&background, 600_000_000, Sought::OwnRate), 1.0);
        // One that ended within the window is found as before, however fast it was.
        let ended = [tenths(-5, 0, 430), tenths(0, 3, 210)].concat();
        assert_eq!(overlap(&ended, 600_000_000, Sought::OwnRate), 0.5);
        let paused = [tenths(-5, 4, 210), tenths(4, 6, 0), tenths(6, 30, 500)].concat();
        assert_eq!(overlap(&paused, 500_000_000, Sought::OwnRate), 0.8);
        let missed = [tenths(-5, 0, 430), tenths(0, 6, 0), tenths(6, 30, 500)].concat();
        assert_eq!(overlap(&missed, 600_000_000, Sought::OwnRate), 0.0);
    }

    #[test]
    fn it_is_read_back_as_it_was_written() {
        let text = "protocol = \"mqtt\"\ntarget = \"same\"\nbeside = \"apart\"\nlead = \"1s\"\n\
                    [load]\npattern = \"publish\"\nconnections = 1000\nsubscribers = 0\n\
                    topology = \"fan-in\"\narrival = \"constant\"\nrate = \"10/s/client\"\n\
                    think = \"0s\"\nsplit = \"exact\"\nbody = \"filler\"\nsize = \"64B\"\n\
                    timeout = \"5s\"\n[mqtt]\nqos = 1\n";
        let background: Background = toml::from_str(text).unwrap();
        assert_eq!(background.offered_per_s(), Some(10_000.0));
        assert_eq!(
            background.words(),
            "mqtt qos=1 at the measured target, publish, 1,000 connections, 10/s per client, 64 B"
        );
        let written = toml::to_string(&background).unwrap();
        assert!(!written.contains("warmup"), "{written}");
        assert_eq!(toml::from_str::<Background>(&written).unwrap(), background);
        let json = serde_json::to_string(&background).unwrap();
        assert_eq!(serde_json::from_str::<Background>(&json).unwrap(), background);
        let ending: Background =
            toml::from_str(&text.replace("think", "messages = 7\nthink")).unwrap();
        assert!(ending.words().ends_with(", 64 B, over after 7 messages"), "{}", ending.words());
        let written = toml::to_string(&ending).unwrap();
        assert_eq!(toml::from_str::<Background>(&written).unwrap(), ending);
    }
}
