//! The figures that a run of a tool has, by name, each with its unit.

use super::{Prints, Tool};

/// What the names of figures begin with that the emulation of a tool reports.
pub const EMULATED: &str = "emulated.";

/// The unit of a figure of a tool: `s`, `bytes`, `ms`, `1/s`, or `1` for plain numbers.
pub fn unit_of(figure: &str) -> &'static str {
    let figure = figure.strip_prefix(EMULATED).unwrap_or(figure);
    let known = MEASURED.iter().chain(WIRE).chain(&REPORTED).find(|(name, _)| *name == figure);
    known.map_or("1", |(_, unit)| unit)
}

impl Tool {
    /// The group of commands of `weigh` that its emulation belongs to: `like` for those that take
    /// the flags of a tool.
    pub fn emulation_group(&self) -> Option<&'static str> {
        let first = self.emulation.first()?;
        (first != "compare").then_some("like")
    }

    /// The command of `weigh` that emulates it: `weigh like autocannon`.
    pub fn emulation_name(&self) -> String {
        let words = self.emulation_group().into_iter();
        let words = words.chain(self.emulation.first().map(String::as_str));
        words.fold("weigh".to_owned(), |name, word| name + " " + word)
    }

    /// The figures that a repetition of it can have, in the order in which they are shown.
    pub fn figures(&self) -> Vec<String> {
        let named = |list: &[(&'static str, &'static str)]| {
            list.iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>()
        };
        let mut figures = named(MEASURED);
        if self.is_heard() {
            figures.extend(named(WIRE));
        }
        let reported = self.prints.reported();
        figures.extend(reported.iter().map(|name| (*name).to_owned()));
        if !self.emulation.is_empty() {
            figures.extend(reported.iter().map(|name| format!("{EMULATED}{name}")));
        }
        figures
    }
}

impl Prints {
    /// The figures that a program of this kind reports.
    pub fn reported(self) -> &'static [&'static str] {
        match self {
            Prints::Nothing => &[],
            Prints::Autocannon => &[
                "reported_messages",
                "reported_time_s",
                "reported_per_s",
                "reported_latency_ms_mean",
                "reported_latency_ms_p50",
                "reported_latency_ms_max",
            ],
            Prints::MqttStresser => &[
                "reported_messages",
                "reported_received_ratio",
                "reported_publish_per_s",
                "reported_receive_per_s",
            ],
            Prints::Jmeter => &[
                "reported_messages",
                "reported_time_s",
                "reported_per_s",
                "reported_latency_ms_mean",
                "reported_latency_ms_max",
                "reported_errors_ratio",
            ],
        }
    }
}

/// What is measured of every program. Processor time is user and system time of all its starts,
/// with their children, start-up included.
const MEASURED: &[(&str, &str)] = &[
    ("messages", "1"),
    ("wall_s", "s"),
    ("wall_s_per_message", "s"),
    ("messages_per_s", "1/s"),
    ("cpu_s", "s"),
    ("cpu_s_per_message", "s"),
    ("max_rss_bytes", "bytes"),
];

/// What is counted of its packets, both directions together.
const WIRE: &[(&str, &str)] = &[
    ("wire_packets_per_message", "1"),
    ("wire_bytes_per_message", "bytes"),
    ("wire_connections_per_message", "1"),
];

/// What programs report.
const REPORTED: [(&str, &str); 10] = [
    ("reported_messages", "1"),
    ("reported_time_s", "s"),
    ("reported_per_s", "1/s"),
    ("reported_latency_ms_mean", "ms"),
    ("reported_latency_ms_p50", "ms"),
    ("reported_latency_ms_max", "ms"),
    ("reported_errors_ratio", "1"),
    ("reported_received_ratio", "1"),
    ("reported_publish_per_s", "1/s"),
    ("reported_receive_per_s", "1/s"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reported_figure_has_a_unit() {
        for prints in [Prints::Autocannon, Prints::MqttStresser, Prints::Jmeter] {
            for name in prints.reported() {
                assert!(REPORTED.iter().any(|(known, _)| known == name), "{name}");
            }
        }
        assert_eq!(unit_of("emulated.reported_per_s"), "1/s");
        assert_eq!(unit_of("cpu_s_per_message"), "s");
    }
}
