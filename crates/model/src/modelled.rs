//! Input of an energy model: device, radio and battery, their coefficients with sources, and what
//! the devices of a trial did on the wire. None of it is measured with a meter.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::battery::Battery;
use crate::units::Nanos;

/// Device for which a plan's results are modelled: the table `[energy]`.
///
/// # Examples
///
/// ```
/// use weigh_model::modelled::EnergyAsked;
///
/// let asked: EnergyAsked = toml::from_str("device = \"pi-2b\"\nbattery = \"2000mAh@5V\"")?;
/// assert!(asked.battery.is_some() && asked.radio.is_none());
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnergyAsked {
    /// The name of a device: `pi-2b`.
    pub device: String,
    /// The name of a radio: `3g`; without one only the device is modelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub radio: Option<String>,
    /// The device's battery; without one there are no figures per charge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub battery: Option<Battery>,
    /// Interval between messages, for how long a charge lasts; default [`EVERY`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Nanos>,
    /// Processor to which the generator's time is assigned.
    #[serde(default)]
    pub cpu: Processor,
}

/// Processor to which the generator's time is assigned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Processor {
    /// Another machine's; the device's `cpu_scale` converts it.
    #[default]
    Scaled,
    /// The device's own: the generator runs on it.
    Here,
}

/// One message a minute.
pub const EVERY: Nanos = Nanos::from_secs(60);

/// Everything that modelled figures of a run are based on, as it is in its journal: a report never
/// reads files that may have changed since.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EnergyBasis {
    /// The device.
    pub device: EnergyPart,
    /// The radio, if one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub radio: Option<EnergyPart>,
    /// The battery, if one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub battery: Option<Battery>,
    /// Interval between messages in the duty cycle.
    pub every: Nanos,
    /// Processor to which the generator's time is assigned.
    #[serde(default)]
    pub cpu: Processor,
}

/// A device or a radio with its coefficients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EnergyPart {
    /// Name on the command line.
    pub name: String,
    /// Title for people.
    pub title: String,
    /// Description in one line.
    pub about: String,
    /// The voltage at which it is supplied and its charges were measured, volts.
    pub volts: f64,
    /// Processor cores that share `load`; at least 1.
    pub cores: u32,
    /// Correlation of the errors of its coefficients, 0 to 1: they come from one board, one network
    /// and one meter.
    pub correlation: f64,
    /// The path over which it should be measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The largest message for which its coefficient of a message was measured, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_bytes_max: Option<u64>,
    /// Reason for which it has no coefficient, if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_none: Option<String>,
    /// By name; missing ones are 0, or 1 for ratios.
    pub coefficients: BTreeMap<String, Coefficient>,
}

/// A number from the literature, with its uncertainty and source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Coefficient {
    /// Its value in joules, watts, seconds, joules a byte, or without a unit; 0 or more.
    pub value: f64,
    /// As published: `0.025 J/KB`.
    pub published: String,
    /// Half the width of its interval at 95 %: `10 %`, or `x2` for a factor either way.
    pub uncertainty: String,
    /// The factor, at least 1, within which 95 % of the probable values are.
    pub factor: f64,
    /// Source of the uncertainty.
    pub basis: String,
    /// Source of the value.
    pub source: String,
    /// Verification or repeated measurement of the value.
    pub verification: String,
    /// The row of the published table: coefficients of one row share one error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row: Option<String>,
}

/// Activity of the producers of a trial on the wire, for a model of their radios. Set-up, warm-up
/// and tear-down are included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    /// The trial's id.
    pub trial: String,
    /// Number of producers: each represents a device.
    pub devices: u64,
    /// Connections that the producers opened.
    pub connections: u64,
    /// Messages that the producers handed over.
    pub messages: u64,
    /// Bytes that the producers sent, from IP up: Ethernet is not on the air.
    pub up_bytes: u64,
    /// Bytes that the producers received, from IP up.
    pub down_bytes: u64,
    /// Bytes sent without set-up and tear-down.
    pub message_up_bytes: u64,
    /// Bytes received without set-up and tear-down.
    pub message_down_bytes: u64,
    /// Packets that the producers sent.
    pub up_packets: u64,
    /// Packets that the producers received.
    pub down_packets: u64,
    /// Packets of consumers, which the same generator made in the same processor time.
    pub other_packets: u64,
    /// From the first packet of each device to its last, total of all devices, nanoseconds.
    pub span_ns: u64,
    /// From the first packet of each connection to its last, total of all connections, nanoseconds.
    pub connected_ns: u64,
    /// Pauses of a device without packets in either direction.
    pub pauses: Pauses,
    /// Longest silence on a kept connection after which its protocol sends a keep-alive,
    /// nanoseconds; 0 if it sends none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub keep_alive_ns: u64,
    /// Bytes that a keep-alive sends, from IP up, TLS included: that of the protocol, or of TCP if
    /// the protocol has none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub keep_alive_up_bytes: u64,
    /// Bytes that a keep-alive receives.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub keep_alive_down_bytes: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Lengths and counts of silent periods. Pauses below [`Pauses::SHORTEST_NS`] are not recorded: no
/// radio goes to sleep in them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(u16, u64, u64)>", into = "Vec<(u16, u64, u64)>")]
pub struct Pauses {
    /// By length, in steps of an eighth of a doubling: count, and sum in nanoseconds. Written as a
    /// list, because keys of JSON are strings.
    steps: BTreeMap<u16, (u64, u64)>,
}

impl From<Vec<(u16, u64, u64)>> for Pauses {
    fn from(steps: Vec<(u16, u64, u64)>) -> Pauses {
        let steps = steps.into_iter().map(|(at, count, sum_ns)| (at, (count, sum_ns)));
        Pauses { steps: steps.collect() }
    }
}

impl From<Pauses> for Vec<(u16, u64, u64)> {
    fn from(pauses: Pauses) -> Self {
        let steps = pauses.steps.into_iter();
        steps.map(|(at, (count, sum_ns))| (at, count, sum_ns)).collect()
    }
}

impl Pauses {
    /// 50 ms: the shortest tail of a built-in radio is five times as long.
    pub const SHORTEST_NS: u64 = 50_000_000;

    /// Notes a pause of this length.
    pub fn note(&mut self, length_ns: u64) {
        if length_ns < Pauses::SHORTEST_NS {
            return;
        }
        let doublings = (length_ns as f64 / Pauses::SHORTEST_NS as f64).log2();
        let step = self.steps.entry((doublings * STEPS_PER_DOUBLING) as u16).or_default();
        step.0 += 1;
        step.1 = step.1.saturating_add(length_ns);
    }

    /// Adds the pauses of another connection or device.
    pub fn absorb(&mut self, other: &Pauses) {
        for (at, (count, sum_ns)) in &other.steps {
            let step = self.steps.entry(*at).or_default();
            step.0 += count;
            step.1 = step.1.saturating_add(*sum_ns);
        }
    }

    /// Count of pauses longer than `limit_s` seconds, and their sum in seconds. Pauses within the
    /// step of the limit count by their mean, which is at most 9 % off.
    pub fn longer_than(&self, limit_s: f64) -> (f64, f64) {
        let mean_s = |count: u64, sum_ns: u64| sum_ns as f64 / 1e9 / count as f64;
        let longer = self.steps.values().filter(|(count, sum)| mean_s(*count, *sum) > limit_s);
        longer.fold((0.0, 0.0), |(count, sum_s), step| {
            (count + step.0 as f64, sum_s + step.1 as f64 / 1e9)
        })
    }
}

/// Resolution of pause lengths: 9 % each.
const STEPS_PER_DOUBLING: f64 = 8.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_counted_by_length() {
        let mut pauses = Pauses::default();
        for length_ms in [10, 49, 60, 60, 1_000, 13_000, 20_000] {
            pauses.note(length_ms * 1_000_000);
        }
        let mut other = Pauses::default();
        other.note(13_000_000_000);
        pauses.absorb(&other);
        let (count, sum_s) = pauses.longer_than(0.0);
        assert!(count == 6.0 && (sum_s - 47.12).abs() < 1e-9, "{count} {sum_s}");
        assert_eq!(pauses.longer_than(12.5), (3.0, 46.0));
        assert_eq!(pauses.longer_than(30.0), (0.0, 0.0));
    }

    #[test]
    fn what_is_left_out_of_a_plan_has_a_default() {
        let asked: EnergyAsked = toml::from_str("device = \"pi-2b\"").unwrap();
        assert_eq!((asked.cpu, asked.every, asked.battery), (Processor::Scaled, None, None));
        let text = toml::to_string(&asked).unwrap();
        assert_eq!(toml::from_str::<EnergyAsked>(&text).unwrap(), asked);
    }
}
