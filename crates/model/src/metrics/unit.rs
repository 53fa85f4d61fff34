//! Units of metrics. The name of a metric ends with its unit, before the statistic: `_ns`,
//! `_bytes`, `_per_s`.

/// A unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    /// The end of a metric's name.
    pub suffix: &'static str,
    /// As in summaries: `B/message`; `1` is a plain number or a share.
    pub symbol: &'static str,
    /// As in OpenMetrics 1.0 (section "Units and Base Units"); empty for plain numbers.
    pub base: &'static str,
    /// A value times this is in the base unit.
    pub factor: f64,
}

impl Unit {
    /// Returns the unit at the end of a name, and which of the name's parts (split at dots) has it;
    /// `None` for plain numbers.
    pub fn of(name: &str) -> Option<(&'static Unit, usize)> {
        let parts: Vec<&str> = name.split('.').collect();
        let place = |unit: &Unit| parts.iter().rposition(|part| unit.ends(part));
        UNITS.iter().find_map(|unit| Some((unit, place(unit)?)))
    }

    fn ends(&self, part: &str) -> bool {
        part.strip_suffix(self.suffix).is_some_and(|rest| rest.is_empty() || rest.ends_with('_'))
    }
}

/// The unit of a metric as summaries hold it; statistics after a dot (`.p99`) do not count.
pub fn unit_of(name: &str) -> &'static str {
    match Unit::of(name) {
        _ if name.starts_with("counter.") => "count",
        Some((unit, _)) => unit.symbol,
        None => "1",
    }
}

const fn unit(suffix: &'static str, symbol: &'static str, base: &'static str, factor: f64) -> Unit {
    Unit { suffix, symbol, base, factor }
}

/// All units; the first whose suffix fits counts, so longer ones come first. A milliampere hour is
/// 3.6 coulombs (BIPM, The International System of Units, 9th edition). Bytes per connection are a
/// plain number in summaries, for compatibility.
pub const UNITS: &[Unit] = &[
    unit("bytes_per_message", "B/message", "bytes_per_message", 1.0),
    unit("bytes_per_session", "B/session", "bytes_per_session", 1.0),
    unit("bytes_per_connection", "1", "bytes_per_connection", 1.0),
    unit("packets_per_message", "packets/message", "", 1.0),
    unit("packets_per_session", "packets/session", "", 1.0),
    unit("us_per_message", "us/message", "seconds_per_message", 1e-6),
    unit("j_per_message", "J/message", "joules_per_message", 1.0),
    unit("j_per_session", "J/session", "joules_per_session", 1.0),
    unit("mah_per_session", "mAh/session", "coulombs_per_session", 3.6),
    unit("sessions_per_charge", "sessions/charge", "", 1.0),
    unit("messages_per_charge", "messages/charge", "", 1.0),
    unit("days_per_charge", "days/charge", "", 1.0),
    unit("bytes_per_s", "B/s", "bytes_per_second", 1.0),
    unit("per_s", "1/s", "per_second", 1.0),
    unit("percent", "%", "ratio", 0.01),
    unit("bytes", "B", "bytes", 1.0),
    unit("packets", "packets", "packets", 1.0),
    unit("ratio", "1", "ratio", 1.0),
    unit("ns", "ns", "seconds", 1e-9),
    unit("us", "us", "seconds", 1e-6),
    unit("ms", "ms", "seconds", 1e-3),
    unit("s", "s", "seconds", 1.0),
    unit("j", "J", "joules", 1.0),
    unit("w", "W", "watts", 1.0),
    unit("v", "V", "volts", 1.0),
    unit("connections", "connections", "", 1.0),
    unit("clients", "clients", "", 1.0),
    unit("messages", "messages", "", 1.0),
];

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
            ("rebalance_pause_s", "s"),
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
