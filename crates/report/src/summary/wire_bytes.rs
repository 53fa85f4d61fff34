//! Bytes of a message and of a session on the wire, by phase and by layer: made from the metrics
//! `wire.phases.PHASE.layers.LAYER_bytes` of every repetition, each divided by the messages or the
//! connections of that repetition.

use std::fmt::Write as _;

use weigh_model::metrics::{LAYERS, PHASES};

use super::cell::Cell;
use super::document::Summary;
use super::lateness::LATEST_HOST;

/// Divisor of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whole {
    /// Messages handed over, warm-up included.
    Message,
    /// Connections.
    Session,
}

/// The means over the repetitions of one cell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CellBytes {
    /// The index of the cell in the summary.
    pub(crate) cell: usize,
    /// Bytes by phase and layer, in the order of [`PHASES`] and [`LAYERS`].
    pub(crate) bytes: [[f64; LAYERS.len()]; PHASES.len()],
    /// Packets by phase.
    pub(crate) packets: [f64; PHASES.len()],
}

impl CellBytes {
    /// The cells with a capture.
    pub(crate) fn all(summary: &Summary, whole: Whole) -> Vec<CellBytes> {
        let cells = summary.cells.iter().enumerate();
        cells.filter_map(|(place, cell)| CellBytes::of(place, cell, whole)).collect()
    }

    fn of(place: usize, cell: &Cell, whole: Whole) -> Option<CellBytes> {
        let values = |name: &str| cell.metrics.get(name).map(|metric| metric.values.as_slice());
        let numbers = values(whole.number())?;
        let mean = |name: &str| {
            let each = values(name)?.iter().zip(numbers).map(|(value, number)| {
                let number = number.filter(|number| *number > 0.0)?;
                Some((*value)? / number)
            });
            let each: Vec<f64> = each.collect::<Option<_>>()?;
            (!each.is_empty()).then(|| each.iter().sum::<f64>() / each.len() as f64)
        };
        let mut found =
            CellBytes { cell: place, bytes: Default::default(), packets: [0.0; PHASES.len()] };
        for (at, phase) in PHASES.iter().enumerate() {
            found.packets[at] = mean(&format!("wire.phases.{}.packets", phase.key))?;
            for (layer_at, layer) in LAYERS.iter().enumerate() {
                let name = format!("wire.phases.{}.layers.{}_bytes", phase.key, layer.key);
                found.bytes[at][layer_at] = mean(&name).unwrap_or(0.0);
            }
        }
        // A journal from before bytes were counted by phase and layer has nothing to show.
        (found.total() > 0.0).then_some(found)
    }

    /// Bytes of a layer in all phases.
    pub(crate) fn layer(&self, layer: usize) -> f64 {
        self.bytes.iter().map(|phase| phase[layer]).sum()
    }

    /// All bytes.
    pub(crate) fn total(&self) -> f64 {
        self.bytes.iter().flatten().sum()
    }
}

impl Whole {
    /// The metric with their number.
    fn number(self) -> &'static str {
        match self {
            Whole::Message => "wire.messages",
            Whole::Session => "wire.connections",
        }
    }

    /// Name of one.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Whole::Message => "message",
            Whole::Session => "session",
        }
    }
}

/// The layers in which one of these cells has bytes, by their index in [`LAYERS`].
pub(crate) fn present(cells: &[CellBytes]) -> Vec<usize> {
    let has = |layer: &usize| cells.iter().any(|cell| cell.layer(*layer) > 0.0);
    (0..LAYERS.len()).filter(has).collect()
}

/// A mean number of bytes in full: without decimals if it is whole, else with two.
pub(crate) fn exact(bytes: f64) -> String {
    let hundredths = (bytes * 100.0).round() as u64;
    let mut text = crate::figures::count(hundredths / 100);
    if !hundredths.is_multiple_of(100) {
        let _ = write!(text, ".{:02}", hundredths % 100);
    }
    text
}

/// The path between the parties of a cell and the state of the capture, in a sentence: figures of a
/// wire depend on them. `None` if there was neither.
pub(crate) fn scene_words(cell: &Cell) -> Option<String> {
    let of = |key: &str| cell.scene.get(key).map(String::as_str);
    let library = of("library").map(|name| format!("client library: {name}"));
    let watched = watched_words(cell);
    // Notes and warnings of their own say the other things.
    let is_apart =
        |key: &String| key == "library" || key == LATEST_HOST || key.starts_with("target.watched");
    if cell.scene.keys().all(is_apart) {
        let parts: Vec<String> = library.into_iter().chain(watched).collect();
        return (!parts.is_empty()).then(|| parts.join("; "));
    }
    let mut parts = vec![match of("path") {
        Some(path) => format!(
            "path {path}, up {}, down {}",
            of("path.up").unwrap_or_default(),
            of("path.down").unwrap_or_default()
        ),
        None if of("carrier").is_some() => {
            "generator and target in two network namespaces, joined by a wire without delay"
                .to_owned()
        }
        None if cell.metrics.contains_key("start_skew_bound_ns") => {
            "network: the one between the fleet and its target".to_owned()
        }
        None => "network: loopback, no emulated path".to_owned(),
    }];
    parts.extend(of("path.steps").map(str::to_owned));
    parts.extend(of("relay").map(|place| format!("a relay {place}")));
    let is_capped = cell.point.contains_key("target.cpu_percent");
    for (key, name, is_shown) in [
        ("target.cores", "cores", true),
        ("target.cores.quota", "CPU time", is_capped),
        ("target.memory", "memory", true),
    ] {
        let given = of(key).filter(|_| is_shown);
        parts.extend(given.map(|given| format!("target's {name}: {given}")));
    }
    if let (Some(link), Some(mtu)) = (of("link"), of("mtu_bytes")) {
        let offloads = of("offloads").unwrap_or("offloads unknown");
        parts.push(format!("packet headers: {link}; MTU {mtu}, {offloads}"));
    }
    parts.extend(library);
    parts.extend(watched);
    Some(parts.join("; "))
}

/// What was observed of an external server, and how accurately.
fn watched_words(cell: &Cell) -> Option<String> {
    let of = |key: &str| cell.scene.get(key).map(String::as_str);
    let mut text = format!("target observed: {}", of("target.watched")?);
    for (key, before, after) in [
        ("target.watched.cores", "of", "cores"),
        ("target.watched.clock_bound", "times accurate to", "of Weighbridge's"),
        ("target.watched.agent_cpu", "at the cost of", "there"),
    ] {
        if let Some(value) = of(key) {
            let _ = write!(text, ", {before} {value} {after}");
        }
    }
    Some(text)
}

/// The scenes of a run, each once with its cells (none if it applies to all).
pub(crate) fn scenes(summary: &Summary) -> Vec<(String, Vec<&str>)> {
    let mut told: Vec<(String, Vec<&str>)> = Vec::new();
    for cell in &summary.cells {
        let Some(text) = scene_words(cell) else { continue };
        match told.iter_mut().find(|(known, _)| *known == text) {
            Some((_, cells)) => cells.push(&cell.name),
            None => told.push((text, vec![&cell.name])),
        }
    }
    let is_everywhere = |cells: &Vec<&str>| cells.len() == summary.cells.len();
    told.iter_mut().filter(|(_, cells)| is_everywhere(cells)).for_each(|(_, cells)| cells.clear());
    told
}

/// Colours of [`LAYERS`] in the theme, the same in every picture and table.
pub(crate) const COLOURS: [&str; LAYERS.len()] =
    ["$c0", "$c1", "$c5", "$c2", "$c3", "$c4", "$c7", "$quiet", "$bad"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_told_in_full() {
        for (bytes, text) in [
            (0.0, "0"),
            (214.0, "214"),
            (1234.5, "1,234.50"),
            (0.336, "0.34"),
            (999.999, "1,000"),
            (1_000_000.0, "1,000,000"),
        ] {
            assert_eq!(exact(bytes), text);
        }
    }
}
