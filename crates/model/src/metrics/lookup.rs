//! Finds the entry of the list that a name belongs to.

use super::list::METRICS;
use super::metric::{Better, Metric};
use super::slots::{is_one_way, is_statistic, said, takes};

/// The entry of the metric `name`.
pub fn find(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| fit(metric.name, name).is_some())
}

/// Returns the definition of the metric `name`, in a sentence or two.
pub fn definition(name: &str) -> String {
    if let Some(second) = name.strip_prefix("relay.").filter(|rest| rest.starts_with("wire.")) {
        return format!("{SECOND_HOP} {}", definition(second));
    }
    let found = METRICS.iter().find_map(|metric| Some((metric, fit(metric.name, name)?)));
    let Some((metric, slots)) = found else { return UNKNOWN.to_owned() };
    let mut text = metric.what.to_owned();
    for (slot, value) in slots {
        if is_statistic(slot) {
            text = format!("{text} {}", statistic(name, value));
        }
        if slot == "place" {
            text = text.replace("{both}", if is_one_way(value) { "" } else { BOTH });
        }
        text = text.replace(&format!("{{{slot}}}"), &said(slot, value));
    }
    text
}

/// Returns whether the metric `name` should be low or high.
pub fn better(name: &str) -> Better {
    find(name).map_or(Better::Neither, |metric| metric.better)
}

/// The heading of the metric `name` in tables, at most two lines: `response` and `p99`; empty if
/// the overview does not show it.
pub fn heading(name: &str) -> String {
    let Some(metric) = find(name).filter(|metric| !metric.heading.is_empty()) else {
        return String::new();
    };
    match name.split_once('.').filter(|_| metric.time().is_some()) {
        Some((_, statistic)) => format!("{}\n{statistic}", metric.heading),
        None => metric.heading.to_owned(),
    }
}

/// The recorded times; each has statistics: `response_time_ns`.
pub fn time_names() -> impl Iterator<Item = &'static str> + Clone {
    METRICS.iter().filter_map(Metric::time)
}

/// The values of the slots of `pattern` in `name`; `None` if it does not fit.
fn fit<'n>(pattern: &'static str, name: &'n str) -> Option<Vec<(&'static str, &'n str)>> {
    let Some((before, rest)) = pattern.split_once('{') else {
        return (pattern == name).then(Vec::new);
    };
    let name = name.strip_prefix(before)?;
    let (slot, after) = rest.split_once('}')?;
    let ends = (0..=name.len()).rev().filter(|end| name.is_char_boundary(*end));
    ends.map(|end| name.split_at(end)).filter(|(value, _)| takes(slot, value)).find_map(
        |(value, rest)| {
            let more = fit(after, rest)?;
            Some(std::iter::once((slot, value)).chain(more).collect())
        },
    )
}

/// Describes a statistic of the metric `name`, after the definition of its quantity.
fn statistic(name: &str, part: &str) -> String {
    let (whose, lost) = match name.split('.').next().unwrap_or_default() {
        "connect_time_ns" | "tls_handshake_time_ns" => ("connections", ""),
        "session_time_ns" => ("sessions", ""),
        "batch_time_ns" => ("batches", ""),
        "response_time_ns" | "delivery_time_ns" => {
            ("messages", "; lost messages count as infinite")
        }
        _ => ("messages", ""),
    };
    match part {
        "mean" => "Here the arithmetic mean of a repetition.".to_owned(),
        "max" => "Here the largest of a repetition.".to_owned(),
        _ => {
            let digits = part.trim_start_matches('p');
            let percent = match digits.len() {
                0..=2 => digits.to_owned(),
                _ => format!("{}.{}", &digits[..2], &digits[2..]),
            };
            format!("{percent} % of the {whose} of a repetition took at most this long{lost}.")
        }
    }
}

/// Definition of a metric that this version does not know.
const UNKNOWN: &str = "Measured by Weighbridge under this name.";

/// The wire after a relay is counted at the relay's own interface, as the client of the second hop.
const SECOND_HOP: &str = "Of the second hop, with the relay in the place of the clients:";

/// Text for figures of both directions.
const BOTH: &str = ", both directions";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{LAYERS, PHASES, UNITS};

    #[test]
    fn an_entry_is_complete_and_its_name_its_own() {
        for (at, metric) in METRICS.iter().enumerate() {
            let Metric { name, what, source, heading, .. } = metric;
            assert!(what.ends_with('.') && what.len() > 10, "{name}: {what}");
            assert!(!source.is_empty() && !source.ends_with('.'), "{name}: {source}");
            assert!(heading.lines().count() <= 2, "{name}: {heading}");
            assert!(METRICS[..at].iter().all(|other| other.name != *name), "{name} twice");
            let letters =
                |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._{}|".contains(c);
            assert!(name.chars().all(letters), "{name}");
            let is_time = metric.time().is_some();
            assert!(!is_time || metric.unit() == "ns", "{name}: {}", metric.unit());
        }
        let used = |suffix: &str| {
            METRICS.iter().any(|own| {
                crate::metrics::Unit::of(own.name).is_some_and(|(unit, _)| unit.suffix == suffix)
            })
        };
        for unit in UNITS.iter().filter(|unit| unit.suffix != "ms") {
            assert!(used(unit.suffix), "no metric is in {}", unit.suffix);
        }
    }

    #[test]
    fn a_definition_names_quantity_and_statistic() {
        for (name, start, end) in [
            (
                "response_time_ns.p999",
                "From the due time",
                "took at most this long; lost messages count as infinite.",
            ),
            (
                "connect_time_ns.p50",
                "From",
                " 50 % of the connections of a repetition took at most this long.",
            ),
            ("send_lag_ns.max", "From the due time", "Here the largest of a repetition."),
            ("throughput_out_per_s", "Distinct messages", "are excluded."),
            ("tcp.round_trip_us.mean", "Smoothed", "mean of a repetition."),
            ("path.up.lost_packets", "Packets that", "from the clients to the target."),
            ("relay.wire.connections", "Of the second hop", "Connections seen on the wire."),
            (
                "target_memory_bytes.before",
                "Memory that the target held before",
                "subscribers stalled.",
            ),
            (
                "stage.gateway.held_time_ns.p50",
                "From a message's arrival at the gateway",
                "took at most this long.",
            ),
            ("counter.a.b", "The counter `a.b`", "what it counts."),
            ("of_a_later_version", UNKNOWN, UNKNOWN),
            ("wire.phases.none.packets", UNKNOWN, UNKNOWN),
        ] {
            let text = definition(name);
            assert!(text.starts_with(start) && text.ends_with(end), "{name}: {text}");
        }
        for (name, text) in [
            (
                "wire.phases.set_up.layers.link_bytes",
                "Bytes of the layer Ethernet headers, of the phase set-up, both directions, at the \
                 clients' interfaces.",
            ),
            (
                "wire.sent.ack_only_packets",
                "Packets that only acknowledge, from the clients to the target, at the clients' \
                 interfaces.",
            ),
            (
                "wire.phases.messages.sent_bytes",
                "Bytes from Ethernet up, from the clients to the target, of the phase messages, at \
                 the clients' interfaces.",
            ),
            (
                "wire.hops.publishers.packets",
                "Packets, of the connections of publishers alone, both directions, at the clients' \
                 interfaces.",
            ),
        ] {
            assert_eq!(definition(name), text);
        }
    }

    #[test]
    fn every_figure_of_the_wire_has_a_definition() {
        for figure in WIRE.split_whitespace() {
            for (layer, phase) in LAYERS.iter().flat_map(|l| PHASES.iter().map(move |p| (l, p))) {
                let name = figure.replace("LAYER", layer.key).replace("PHASE", phase.key);
                let text = definition(&format!("wire.{name}"));
                assert!(text != UNKNOWN && !text.contains('{'), "{name}: {text}");
            }
        }
    }

    const WIRE: &str = "
        messages connections dropped_packets header_bytes ack_only_packets retransmitted_packets
        packets bytes packets_per_message packets_per_session ack_only_packets_per_message
        ack_only_packets_per_session LAYER.bytes_per_message LAYER.bytes_per_session
        layers.LAYER_bytes sent.layers.LAYER_bytes received.layers.LAYER_bytes
        sent.packets sent.bytes sent.data_packets sent.ack_only_packets
        sent.retransmitted_packets sent.keep_alive_packets
        received.packets received.bytes received.data_packets received.ack_only_packets
        received.retransmitted_packets received.keep_alive_packets
        phases.PHASE.packets phases.PHASE.bytes phases.PHASE.sent_bytes
        phases.PHASE.received_bytes phases.PHASE.bytes_per_message
        phases.PHASE.bytes_per_session phases.PHASE.layers.LAYER_bytes";
}
