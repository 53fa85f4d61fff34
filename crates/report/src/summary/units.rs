//! Units of metrics, and a figure in the unit of its metric.

use weigh_model::condition::LOST;

use crate::figures::{bytes, three_digits, time};

/// The unit of a metric, from the end of its name; statistics after a dot (`.p99`) do not count.
pub fn unit_of(name: &str) -> &'static str {
    if name.starts_with("counter.") {
        return "count";
    }
    let parts = || name.rsplit('.');
    SUFFIXES
        .iter()
        .find(|(suffix, _)| {
            parts().any(|part| {
                part == *suffix || part.strip_suffix(suffix).is_some_and(|rest| rest.ends_with('_'))
            })
        })
        .map_or("1", |(_, unit)| unit)
}

/// Ends of metric names and their units; the first that fits counts, so longer ones come first.
const SUFFIXES: &[(&str, &str)] = &[
    ("bytes_per_message", "B/message"),
    ("bytes_per_session", "B/session"),
    ("packets_per_message", "packets/message"),
    ("packets_per_session", "packets/session"),
    ("us_per_message", "us/message"),
    ("j_per_message", "J/message"),
    ("j_per_session", "J/session"),
    ("mah_per_session", "mAh/session"),
    ("j_per_session", "J/session"),
    ("sessions_per_charge", "sessions/charge"),
    ("messages_per_charge", "messages/charge"),
    ("days_per_charge", "days/charge"),
    ("bytes_per_s", "B/s"),
    ("per_s", "1/s"),
    ("percent", "%"),
    ("bytes", "B"),
    ("packets", "packets"),
    ("ratio", "1"),
    ("ns", "ns"),
    ("us", "us"),
    ("ms", "ms"),
    ("s", "s"),
    ("j", "J"),
    ("w", "W"),
    ("v", "V"),
    ("connections", "connections"),
    ("clients", "clients"),
    ("messages", "messages"),
];

/// A figure in the unit of its metric.
pub(crate) fn figure_text(metric: &str, figure: f64, is_ascii: bool) -> String {
    match unit_of(metric) {
        "ns" => time(figure, is_ascii),
        "B" => bytes(figure),
        "1" if metric != LOST => format!("{} %", three_digits(figure * 100.0)),
        "%" => format!("{} %", three_digits(figure)),
        _ => three_digits(figure),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_follow_from_names() {
        for (name, unit) in [
            ("response_time_ns.p99", "ns"),
            ("throughput_out_per_s", "1/s"),
            ("goodput_bytes_per_s", "B/s"),
            ("acceptance_ratio", "1"),
            ("transfer_time_s", "s"),
            ("target_cpu_percent.mean", "%"),
            ("target_cpu_us_per_message", "us/message"),
            ("target_memory_bytes.max", "B"),
            ("target_memory_bytes.before", "B"),
            ("counter.dropped", "count"),
            ("subscriber_stall_s", "s"),
            ("wire.sent.packets", "packets"),
            ("wire.bytes_per_message", "B/message"),
            ("wire.phases.set_up.bytes_per_session", "B/session"),
            ("wire.phases.messages.layers.link_bytes", "B"),
            ("wire.messages", "messages"),
            ("wire.connections", "connections"),
            ("wire.payload.bytes_per_session", "B/session"),
            ("wire.packets_per_message", "packets/message"),
            ("wire.layers.link_bytes", "B"),
            ("wire.retransmitted_packets", "packets"),
            ("wire.too_early_packets", "packets"),
            ("late_time_ns.max", "ns"),
            ("energy_j_per_message", "J/message"),
            ("energy_mah_per_session", "mAh/session"),
            ("energy_above_idle_j_per_session", "J/session"),
            ("energy_above_idle_j", "J"),
            ("energy_idle_power_w", "W"),
            ("energy_voltage_v", "V"),
            ("modelled_energy_j_per_message", "J/message"),
            ("modelled_energy_j_per_session", "J/session"),
            ("modelled_energy_mah_per_session", "mAh/session"),
            ("modelled_sessions_per_charge", "sessions/charge"),
            ("modelled_messages_per_charge", "messages/charge"),
            ("modelled_lifetime_s", "s"),
            ("modelled_wake_j_per_message", "J/message"),
            ("modelled_days_per_charge", "days/charge"),
            ("capacity_per_s", "1/s"),
            ("htop_cpu_percent.mean", "%"),
            ("autocannon_time_s", "s"),
            ("mqtt_stresser_receive_ratio", "1"),
            ("mqtt_stresser_receive_per_s", "1/s"),
            ("mqtt_stresser_completed_clients", "clients"),
            ("sum_of_times_per_s", "1/s"),
            ("ramp_average_time_ns.p90", "ns"),
        ] {
            assert_eq!(unit_of(name), unit, "{name}");
        }
    }
}
