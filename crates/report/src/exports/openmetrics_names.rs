//! Converts Weighbridge's metric names to names of OpenMetrics 1.0: base units (section "Units and
//! Base Units": seconds, bytes, ratio), unit last, only letters, digits and underscores.

use weigh_model::metrics::Unit;

/// A metric with its OpenMetrics name.
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
    /// The family of a metric (`response_time_ns.p99`).
    pub(super) fn of(metric: &str) -> Family {
        let mut parts: Vec<&str> = metric.split('.').collect();
        let found = Unit::of(metric).filter(|(unit, _)| !unit.base.is_empty());
        let (unit, factor) = match found {
            Some((unit, place)) => {
                parts[place] = parts[place].trim_end_matches(unit.suffix).trim_end_matches('_');
                (unit.base, unit.factor)
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

#[cfg(test)]
mod tests {
    use weigh_model::metrics::METRICS;

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

    /// Names: section "MetricFamily Name", `[a-zA-Z_][a-zA-Z0-9_]*`; the unit is their end.
    #[test]
    fn every_metric_has_a_valid_name() {
        for metric in METRICS {
            let family = Family::of(&metric.name.replace(['{', '}', '|'], ""));
            let name = family.name("");
            assert!(name.starts_with("weigh_") && name.ends_with(family.unit), "{name}");
            assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{name}");
        }
    }
}
