//! Cells from the summary of a run: a calibration's, or any other whose cells can stand for a cost.

use weigh_advice::cells::{Cell, Cells, Machine, Repetition, SCHEMA};
use weigh_model::event::HostFacts;
use weigh_model::protocol::Guarantee;
use weigh_model::trial::Point;
use weigh_model::units::parse_size;
use weigh_protocols as registry;
use weigh_report::Summary;
use weigh_report::summary::Cell as Measured;
use weigh_report::summary::lateness::Lateness;

use super::offers::varied;
use crate::case::lanes::Lane;

/// The cells of a run that can stand for a cost. The second list has what was left out, and why.
pub fn cells(summary: &Summary, source: &str) -> (Cells, Vec<String>) {
    let mut left_out = Vec::new();
    let mut found = Vec::new();
    for cell in &summary.cells {
        match of_cell(cell, summary) {
            Ok(cell) => found.push(cell),
            Err(why) => left_out.push(format!("{}: {why}", cell.name)),
        }
    }
    let cells = Cells {
        schema: SCHEMA.to_owned(),
        source: source.to_owned(),
        made: summary.run.started.clone(),
        weigh: summary.run.version.clone(),
        machine: served_by(summary),
        is_shipped: false,
        cells: found,
    };
    (cells, left_out)
}

/// A machine, as far as costs depend on it. Runs do not record the architecture, so it is this
/// one's if nothing else differs.
pub fn machine(host: &HostFacts) -> Machine {
    Machine {
        architecture: std::env::consts::ARCH.to_owned(),
        cpu: host.cpu.clone(),
        cores: host.cores,
        kernel: host.kernel.clone(),
        virtualisation: host.virtualisation.clone(),
    }
}

/// The machine of the servers: this one, or one that an agent observed, of which no more is known
/// than that it is another.
fn served_by(summary: &Summary) -> Machine {
    let own = machine(&summary.run.host);
    match summary.cells.iter().any(|cell| cell.scene.contains_key(BOUND)) {
        true => {
            Machine { cpu: format!("of a server that an agent observed from {}", own.cpu), ..own }
        }
        false => own,
    }
}

fn of_cell(cell: &Measured, summary: &Summary) -> Result<Cell, String> {
    let told = |why: &str| Err(why.to_owned());
    let name = text(&cell.point, "protocol");
    let protocol = registry::find(&name).map_err(|_| "an unknown protocol".to_owned())?;
    if let Some(warning) = cell.invalidated_by(CPU) {
        return Err(warning.text.clone());
    }
    if ["path.name", "background", "relay"].iter().any(|key| cell.point.contains_key(*key)) {
        return told("it has a path, a relay or a background, which the cost model does not know");
    }
    let pattern = text(&cell.point, "load.pattern");
    let plan = &summary.run.plan.load;
    let pattern = if pattern.is_empty() { plan.pattern.to_string() } else { pattern };
    if !["hold", "publish", "request", "session", "deliver"].contains(&pattern.as_str()) {
        return Err(format!("its pattern is {pattern}"));
    }
    let prefix = format!("{}.", protocol.name());
    let own = cell.point.iter().filter_map(|(key, value)| {
        Some((key.strip_prefix(&prefix)?.to_owned(), value_text(value)))
    });
    let given: std::collections::BTreeMap<String, String> = own.collect();
    let against = crate::case::lanes::Against::Reference;
    let lane = Lane::new(protocol, against, given).map_err(|invalid| invalid.to_string())?;
    let tls = lane.settings.text("tls");
    let is_tls = !tls.is_empty() && tls != "off";
    let is_per_connection = pattern == "session" || protocol.renews(&lane.settings);
    let number = |key: &str, usual: u32| {
        cell.point.get(key).and_then(serde_json::Value::as_f64).unwrap_or(f64::from(usual))
    };
    let held =
        number("load.connections", plan.connections) + number("load.subscribers", plan.subscribers);
    let sends = pattern != "hold";
    let repetitions = repetitions(cell, &pattern, (is_tls, is_per_connection));
    let Some(repetitions) = repetitions else { return told("figures of repetitions are missing") };
    let mut settings = varied(protocol, &lane.given);
    // A setting that is left out has the default of the protocol, which is a lane too.
    for (key, _) in protocol.lanes().iter().flat_map(|lane| lane.iter()) {
        settings.entry((*key).to_owned()).or_insert_with(|| lane.settings.text(key).to_owned());
    }
    let words: Vec<String> = settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let is_twice = protocol.guarantee(&lane.settings) == Guarantee::ExactlyOnce;
    let target = text(&cell.point, "target");
    let ledger = &cell.ledger;
    Ok(Cell {
        protocol: protocol.name().to_owned(),
        target: if target.is_empty() { "reference".to_owned() } else { target },
        variant: if sends { words.join(",") } else { String::new() },
        is_tls,
        is_per_connection,
        size_bytes: if sends { size_of(cell, summary) } else { 0.0 },
        connections: if is_per_connection { 0.0 } else { held },
        arrivals: if is_twice { 2.0 } else { 1.0 },
        missed: ledger.lost.unwrap_or(0) + ledger.late + ledger.not_sent,
        p99_s: p99_s(cell),
        repetitions,
    })
}

/// Size of a body: as given, else that of the readings.
fn size_of(cell: &Measured, summary: &Summary) -> f64 {
    let given = text(&cell.point, "load.size");
    let given = parse_size(&given).ok().map(|size| size as f64);
    let planned = summary.run.plan.load.size.map(|size| size.0 as f64);
    given.or(planned).unwrap_or(READING_BYTES)
}

/// The p99 to a confirmation, where the generator's own lag is not in it.
fn p99_s(cell: &Measured) -> Option<f64> {
    let times = ["response_time_ns.p99", "delivery_time_ns.p99", "session_time_ns.p99"];
    let (name, metric) = times.iter().find_map(|name| Some((*name, cell.metrics.get(*name)?)))?;
    let is_late = Lateness::of(cell, name) != Lateness::Negligible;
    if is_late || cell.invalidated_by(name).is_some() {
        return None;
    }
    let all: Option<Vec<f64>> = metric.values.iter().copied().collect();
    Some(all?.into_iter().reduce(f64::max)? / 1e9)
}

fn repetitions(
    cell: &Measured,
    pattern: &str,
    (is_tls, is_per_connection): (bool, bool),
) -> Option<Vec<Repetition>> {
    let cores = cores(cell)?;
    let percent = values(cell, CPU)?;
    let of = |name: &str| values(cell, name).filter(|values| values.len() == percent.len());
    // Connections that only stand send nothing.
    let none = || (pattern == "hold").then(|| vec![0.0; percent.len()]);
    let messages = of("throughput_in_per_s").or_else(none)?;
    let out = if pattern == "deliver" { of("throughput_out_per_s") } else { None };
    let memory = of("target_memory_bytes.max");
    let [full, resumed] = ["tls_handshakes_full", "tls_handshakes_resumed"].map(of);
    let is_missing = is_tls && is_per_connection && full.is_none();
    (!is_missing).then_some(())?;
    let at = |values: &Option<Vec<f64>>, index: usize| values.as_ref().map_or(0.0, |v| v[index]);
    let of_one = |index: usize| {
        let opened = if is_per_connection { messages[index] } else { 0.0 };
        let (full, resumed) = (at(&full, index), at(&resumed, index));
        // Counted over the whole trial, warm-up included; the share is that of the window.
        let share = if full + resumed > 0.0 { full / (full + resumed) } else { 0.0 };
        let inside = if is_tls { opened } else { 0.0 };
        Repetition {
            messages: messages[index],
            opened: opened - inside,
            full: inside * share,
            resumed: inside * (1.0 - share),
            deliveries: at(&out, index),
            cores: percent[index] / 100.0 * cores,
            memory_bytes: memory.as_ref().map(|values| values[index]),
        }
    };
    Some((0..percent.len()).map(of_one).collect())
}

/// The cores of which the share is known that a server used: those that weigh gave it, or those
/// that an observer found.
fn cores(cell: &Measured) -> Option<f64> {
    let given = cell.point.get("target.cores").and_then(serde_json::Value::as_f64);
    let is_foreign = text(&cell.point, "target").contains("://");
    match given {
        Some(cores) => Some(cores),
        None if is_foreign => cell.scene.get(OBSERVED_CORES)?.parse().ok(),
        None => Some(1.0),
    }
}

/// The values of all repetitions; `None` where one has none.
fn values(cell: &Measured, name: &str) -> Option<Vec<f64>> {
    let values: Option<Vec<f64>> = cell.metrics.get(name)?.values.iter().copied().collect();
    values.filter(|values| !values.is_empty())
}

fn text(point: &Point, key: &str) -> String {
    point.get(key).map(value_text).unwrap_or_default()
}

fn value_text(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

const CPU: &str = "target_cpu_percent.mean";

/// Cores of an observed process, in a cell's scene.
const OBSERVED_CORES: &str = "target.watched.cores";

/// In the scene of a cell whose server an agent observed: how exact its times are.
const BOUND: &str = "target.watched.clock_bound";

/// Mean size of a hydroponic reading with its mark, bytes (data/hydroponics.jsonl).
const READING_BYTES: f64 = 72.0;
