//! What the metrics of a path and of a relay are.

use super::wire_words;

/// What the metric `name` is; `None` if it is neither one of a path nor one of a relay.
pub(crate) fn definition(name: &str) -> Option<String> {
    if let Some(rest) = name.strip_prefix("relay.") {
        let second_hop = || {
            let what = wire_words::definition(rest)?;
            Some(format!("{SECOND_HOP} {what}"))
        };
        return found(RELAY, rest).or_else(second_hop);
    }
    let rest = name.strip_prefix("path.")?;
    let (way, part) = rest.split_once('.').unwrap_or(("", rest));
    let way = match way {
        "up" => "from the clients to the target",
        "down" => "from the target to the clients",
        _ => return found(FORWARDER, rest),
    };
    let what = found(WAY, part)?;
    Some(format!("{what}, {way}."))
}

fn found(known: &[(&str, &str)], name: &str) -> Option<String> {
    known.iter().find(|(key, _)| *key == name).map(|(_, what)| (*what).to_owned())
}

/// The wire behind a relay is counted at the relay's own interface, which is its client there.
const SECOND_HOP: &str = "Of the second hop, with the relay in the place of the clients:";

/// Counts of one way of a path.
const WAY: &[(&str, &str)] = &[
    ("asked_ratio", "Share of the path's rate that the load asked for: from 1 on it is full"),
    ("packets", "Packets that came to the path"),
    ("lost_packets", "Packets that the path lost by its chance"),
    ("queue_full_packets", "Packets that the path dropped because its queue was full"),
    ("doubled_packets", "Packets that the path delivered twice by its chance"),
];

/// What the forwarder, who is the path, did and cost.
const FORWARDER: &[(&str, &str)] = &[
    (
        "late_packets",
        "Packets that the forwarder handed on more than 1 ms after they were due: its own error, \
         all hosts together.",
    ),
    (
        "lateness_ns.mean",
        "From when the path says that a packet is due to when the forwarder wrote it: the mean of \
         all packets, all hosts together.",
    ),
    (
        "forwarder_cpu_ns",
        "Processor time of the forwarder's thread over the trial, charged neither to generator \
         nor target.",
    ),
];

/// What a relay between generator and target carried.
const RELAY: &[(&str, &str)] = &[
    ("connections", "Connections that the relay took and made again towards the target."),
    ("broken_connections", "Of these, those that could not be made to the target or broke."),
    ("up_bytes", "Bytes that the relay carried from the generator to the target."),
    ("down_bytes", "Bytes that the relay carried from the target to the generator."),
    (
        "waiting_bytes.max",
        "The most bytes that waited in the relay for one end to take them, since the relay was \
         started.",
    ),
];
