//! Slots in the names of metrics, such as `{way}` in `path.{way}.packets`: their values, and how a
//! definition names them.

use super::quantiles::quantile_of;

/// A word of a name and its title.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// As in names of metrics: `set_up`.
    pub key: &'static str,
    /// As in text: `set-up`.
    pub title: &'static str,
}

/// Returns true if `value` is allowed in `slot`.
pub(super) fn takes(slot: &str, value: &str) -> bool {
    match slot {
        "part" => ["mean", "max"].contains(&value) || quantile_of(&format!(".{value}")).is_some(),
        "way" => titled(&WAYS, value).is_some(),
        "layer" => titled(&LAYERS, value).is_some(),
        "stage" => !value.is_empty() && !value.contains('.'),
        "any" => !value.is_empty(),
        "place" => value.is_empty() || value == "layers." || place(value).is_some(),
        statistics => statistics.split('|').any(|known| known == value),
    }
}

/// The text of the `value` in `slot` within a definition; a statistic follows the definition.
pub(super) fn said(slot: &str, value: &str) -> String {
    match slot {
        "way" => titled(&WAYS, value).unwrap_or_default().to_owned(),
        "layer" => titled(&LAYERS, value).unwrap_or_default().to_owned(),
        "place" => place(value).unwrap_or_default(),
        _ => value.to_owned(),
    }
}

/// Returns true if figures at this place of the wire are of one direction.
pub(super) fn is_one_way(place: &str) -> bool {
    titled(&DIRECTIONS, place.split('.').next().unwrap_or_default()).is_some()
}

/// Returns true if the value of this slot is a statistic.
pub(super) fn is_statistic(slot: &str) -> bool {
    slot == "part" || slot.contains('|')
}

/// The text of a place of the wire, which ends with a dot: `phases.set_up.`.
fn place(place: &str) -> Option<String> {
    let place = place.strip_suffix('.')?;
    let place = place.strip_suffix(".layers").unwrap_or(place);
    if let Some(direction) = titled(&DIRECTIONS, place) {
        return Some(format!(", {direction}"));
    }
    if let Some(seats) = place.strip_prefix("hops.").filter(|seats| !seats.contains('.')) {
        return Some(format!(", of the connections of {seats} alone"));
    }
    let phase = titled(&PHASES, place.strip_prefix("phases.").unwrap_or(place));
    let phase = phase.map(|title| format!(", of the phase {title}"));
    phase.or_else(|| Some(format!(", of the layer {}", titled(&LAYERS, place)?)))
}

fn titled(words: &[Word], key: &str) -> Option<&'static str> {
    words.iter().find(|word| word.key == key).map(|word| word.title)
}

/// Directions of a path.
const WAYS: [Word; 2] = [
    Word { key: "up", title: "from the clients to the target" },
    Word { key: "down", title: "from the target to the clients" },
];

/// Directions on the wire.
const DIRECTIONS: [Word; 2] = [
    Word { key: "sent", title: "from the clients to the target" },
    Word { key: "received", title: "from the target to the clients" },
];

/// The phases of a connection, in their order.
pub const PHASES: [Word; 3] = [
    Word { key: "set_up", title: "set-up" },
    Word { key: "messages", title: "messages" },
    Word { key: "tear_down", title: "tear-down" },
];

/// The layers of the wire from top to bottom: the payload first, then what each layer below adds to
/// it.
pub const LAYERS: [Word; 9] = [
    Word { key: "payload", title: "payload" },
    Word { key: "protocol", title: "protocol" },
    Word { key: "application", title: "protocol and payload" },
    Word { key: "tls_record", title: "TLS records" },
    Word { key: "tls_handshake", title: "TLS handshake" },
    Word { key: "transport", title: "TCP headers" },
    Word { key: "ip", title: "IP headers" },
    Word { key: "link", title: "Ethernet headers" },
    Word { key: "repeated", title: "sent again" },
];
