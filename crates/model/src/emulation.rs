//! Figures as another tool would have printed them: the tools, what each needs of a load, and the
//! names of its figures. The load is never changed for them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::arrival::Arrival;
use crate::load::{Load, Pattern, Topology, Writes};
use crate::metrics::METRICS;
use crate::nearest::nearest;

/// A tool, or a common calculation, whose figures can be emulated.
///
/// # Examples
///
/// ```
/// use weigh_model::Emulation;
///
/// let tool: Emulation = "autocannon".parse()?;
/// assert_eq!(tool, Emulation::Autocannon);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Emulation {
    /// Value that a person reads off htop for the target's cores during the load.
    Htop,
    /// Time and rate of a tool that checks its counts once a second and ends only then.
    Autocannon,
    /// Per client: publishing, and then counting what was received.
    MqttStresser,
    /// Messages divided by the sum of all their times, whatever the number in flight.
    SumOfTimes,
    /// One average over a whole run, its ramp included.
    RampAverage,
}

/// Part that a load lacks for a figure, and how to fix it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lacking {
    /// The plan key.
    pub key: &'static str,
    /// The missing part.
    pub text: &'static str,
    /// What to type instead.
    pub fix: &'static str,
}

impl Emulation {
    /// All of them, in the order in which they are listed to a user.
    pub const ALL: [Emulation; 5] = [
        Emulation::Htop,
        Emulation::Autocannon,
        Emulation::MqttStresser,
        Emulation::SumOfTimes,
        Emulation::RampAverage,
    ];

    /// The word of the plan.
    pub fn name(self) -> &'static str {
        match self {
            Emulation::Htop => "htop",
            Emulation::Autocannon => "autocannon",
            Emulation::MqttStresser => "mqtt-stresser",
            Emulation::SumOfTimes => "sum-of-times",
            Emulation::RampAverage => "ramp-average",
        }
    }

    /// The metrics that it makes; times have one name for each statistic.
    pub fn metrics(self) -> impl Iterator<Item = &'static str> {
        METRICS.iter().map(|metric| metric.name).filter(move |name| self.has(name))
    }

    /// True if the metric belongs to it: the name begins with the word of the plan.
    fn has(self, metric: &str) -> bool {
        metric
            .strip_prefix(&*self.name().replace('-', "_"))
            .is_some_and(|rest| rest.starts_with('_'))
    }

    /// Returns the emulation that the metric belongs to, if any.
    pub fn of_metric(metric: &str) -> Option<Emulation> {
        Emulation::ALL.into_iter().find(|own| own.metrics().any(|name| name == metric))
    }

    /// Checks that the tool could have made such a load.
    ///
    /// # Errors
    /// If it could not: its figures would describe something that it never did.
    pub fn needs(self, load: &Load) -> Result<(), Lacking> {
        let lacking = |key, text, fix| Err(Lacking { key, text, fix });
        let is_asked = matches!(load.pattern, Pattern::Request | Pattern::Publish);
        match self {
            Emulation::Htop => Ok(()),
            _ if load.warmup.0 > 0 => lacking(
                "load.warmup",
                "the tool has no warm-up: what it counts begins with the load",
                "write load.warmup = \"0s\"",
            ),
            Emulation::Autocannon if !is_asked => lacking(
                "load.pattern",
                "autocannon waits for an answer to each request",
                "make load.pattern request or publish, or leave autocannon out",
            ),
            Emulation::MqttStresser => stresser_needs(load),
            Emulation::SumOfTimes if load.pattern == Pattern::Hold => lacking(
                "load.pattern",
                "idle connections have no times to add up",
                "leave sum-of-times out",
            ),
            Emulation::RampAverage if load.pattern == Pattern::Hold => lacking(
                "load.pattern",
                "idle connections have no samples",
                "leave ramp-average out",
            ),
            Emulation::Autocannon | Emulation::SumOfTimes | Emulation::RampAverage => Ok(()),
        }
    }
}

/// Its clients each have their own subscriber, send message by message, and count afterwards.
fn stresser_needs(load: &Load) -> Result<(), Lacking> {
    let lacking = |key, text, fix| Err(Lacking { key, text, fix });
    let is_one = load.connections == 1 && load.subscribers == 1;
    if load.pattern != Pattern::Deliver {
        return lacking(
            "load.pattern",
            "mqtt-stresser counts what its subscribers receive, and this load has no subscribers",
            "make load.pattern deliver, or leave mqtt-stresser out",
        );
    }
    if load.topology != Topology::Pairs && !is_one {
        return lacking(
            "load.topology",
            "each client of mqtt-stresser has its own subscriber",
            "make load.topology pairs with as many subscribers as connections",
        );
    }
    if load.messages.is_none() {
        return lacking(
            "load.messages",
            "mqtt-stresser ends after a number of messages",
            "write load.messages instead of load.duration",
        );
    }
    if load.arrival == Arrival::Burst && load.writes != Writes::Single {
        return lacking(
            "load.writes",
            "mqtt-stresser writes message by message; messages that leave in one write share one \
             time",
            "add load.writes = \"single\"",
        );
    }
    Ok(())
}

impl fmt::Display for Emulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Emulation {
    type Err = String;

    fn from_str(text: &str) -> Result<Emulation, String> {
        let all = Emulation::ALL.map(Emulation::name);
        Emulation::ALL.into_iter().find(|own| own.name() == text).ok_or_else(|| {
            let near = nearest(text, all.into_iter());
            let near = near.map_or_else(String::new, |near| format!("{near}; there are "));
            format!("unknown tool {text:?}: type {near}{}", all.join(", "))
        })
    }
}

impl Serialize for Emulation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Emulation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Emulation, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn load(changes: serde_json::Value) -> Load {
        let mut load = json!(Load {
            subscribers: 4,
            topology: Topology::Pairs,
            messages: Some(40),
            arrival: Arrival::Burst,
            writes: Writes::Single,
            ..Load::closed(Pattern::Deliver, 4)
        });
        for (key, value) in changes.as_object().into_iter().flatten() {
            load[key] = value.clone();
        }
        serde_json::from_value(load).unwrap()
    }

    #[test]
    fn a_name_is_read_back_and_another_one_is_told_the_nearest() {
        for own in Emulation::ALL {
            assert_eq!(own.name().parse(), Ok(own));
            assert!(own.metrics().all(|name| Emulation::of_metric(name) == Some(own)));
        }
        let error = "mqtt-streser".parse::<Emulation>().unwrap_err();
        assert!(error.contains("type mqtt-stresser"), "{error}");
        assert_eq!(Emulation::of_metric("target_cpu_percent.mean"), None);
    }

    #[test]
    fn a_load_that_the_tool_cannot_make_is_refused_by_the_key_that_is_wrong() {
        let lacks = |own: Emulation, changes| own.needs(&load(changes)).map_err(|why| why.key);
        assert_eq!(lacks(Emulation::MqttStresser, json!({})), Ok(()));
        for (changes, key) in [
            (json!({ "topology": "fan-in", "subscribers": 1 }), "load.topology"),
            (json!({ "writes": "coalesced" }), "load.writes"),
            (json!({ "pattern": "publish", "subscribers": 0 }), "load.pattern"),
            (json!({ "warmup": "1s" }), "load.warmup"),
        ] {
            assert_eq!(lacks(Emulation::MqttStresser, changes), Err(key));
        }
        assert_eq!(lacks(Emulation::Autocannon, json!({})), Err("load.pattern"));
        assert_eq!(lacks(Emulation::Htop, json!({ "warmup": "1s" })), Ok(()));
    }
}
