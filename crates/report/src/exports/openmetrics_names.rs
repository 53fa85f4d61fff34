//! From our metric names, unit last in our units, to names of OpenMetrics 1.0: base units
//! (section "Units and Base Units": seconds, bytes, ratio), unit last, nothing but letters,
//! digits and underscores.

/// A metric as OpenMetrics names it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Family {
    /// Its name without the unit: `weigh_response_time_p99`.
    stem: String,
    /// Its unit; empty for plain numbers.
    pub(super) unit: &'static str,
    /// Values are multiplied by this.
    pub(super) factor: f64,
}

impl Family {
    /// The family of one of our metrics (`response_time_ns.p99`).
    pub(super) fn of(metric: &str) -> Family {
        let mut parts: Vec<&str> = metric.split('.').collect();
        let found = UNITS.iter().find_map(|(suffix, unit, factor)| {
            let place = parts.iter().rposition(|part| ends_with_word(part, suffix))?;
            Some((place, suffix, *unit, *factor))
        });
        let (unit, factor) = match found {
            Some((place, suffix, unit, factor)) => {
                parts[place] = parts[place].trim_end_matches(suffix).trim_end_matches('_');
                (unit, factor)
            }
            None => ("", 1.0),
        };
        parts.retain(|part| !part.is_empty());
        Family { stem: format!("weigh_{}", plain(&parts.join("_"))), unit, factor }
    }

    /// The whole name, with a word before the unit: `low` gives `weigh_..._p99_low_seconds`.
    pub(super) fn name(&self, word: &str) -> String {
        let parts = [self.stem.as_str(), word, self.unit];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join("_")
    }
}

/// `text` as the name of a metric or a label.
pub(super) fn plain(text: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = text.chars().map(letter).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}

fn ends_with_word(part: &str, suffix: &str) -> bool {
    part == suffix || part.strip_suffix(suffix).is_some_and(|rest| rest.ends_with('_'))
}

/// Ends of our names, the unit they become, and the factor; the first that fits counts. One
/// milliampere hour is 3.6 coulombs (BIPM, The International System of Units, 9th edition).
const UNITS: &[(&str, &str, f64)] = &[
    ("bytes_per_message", "bytes_per_message", 1.0),
    ("us_per_message", "seconds_per_message", 1e-6),
    ("j_per_message", "joules_per_message", 1.0),
    ("j_per_session", "joules_per_session", 1.0),
    ("mah_per_session", "coulombs_per_session", 3.6),
    ("bytes_per_connection", "bytes_per_connection", 1.0),
    ("bytes_per_s", "bytes_per_second", 1.0),
    ("per_s", "per_second", 1.0),
    ("percent", "ratio", 0.01),
    ("bytes", "bytes", 1.0),
    ("packets", "packets", 1.0),
    ("ratio", "ratio", 1.0),
    ("ns", "seconds", 1e-9),
    ("us", "seconds", 1e-6),
    ("ms", "seconds", 1e-3),
    ("s", "seconds", 1.0),
    ("j", "joules", 1.0),
    ("w", "watts", 1.0),
    ("v", "volts", 1.0),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_base_units_and_last() {
        for (metric, name, factor) in [
            ("response_time_ns.p99", "weigh_response_time_p99_seconds", 1e-9),
            ("throughput_out_per_s", "weigh_throughput_out_per_second", 1.0),
            ("goodput_bytes_per_s", "weigh_goodput_bytes_per_second", 1.0),
            ("acceptance_ratio", "weigh_acceptance_ratio", 1.0),
            ("transfer_time_s", "weigh_transfer_time_seconds", 1.0),
            ("target_cpu_percent.mean", "weigh_target_cpu_mean_ratio", 0.01),
            ("target_cpu_us_per_message", "weigh_target_cpu_seconds_per_message", 1e-6),
            ("target_memory_bytes.max", "weigh_target_memory_max_bytes", 1.0),
            ("wire.layers.link_bytes", "weigh_wire_layers_link_bytes", 1.0),
            ("connections_held", "weigh_connections_held", 1.0),
        ] {
            let family = Family::of(metric);
            assert_eq!((family.name("").as_str(), family.factor), (name, factor));
        }
        let low = Family::of("response_time_ns.p99").name("low");
        assert_eq!(low, "weigh_response_time_p99_low_seconds");
        assert_eq!(plain("5.mqtt-qos"), "_5_mqtt_qos");
    }
}
