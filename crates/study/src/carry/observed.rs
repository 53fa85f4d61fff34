//! Costs of a cell of a run: the amount of everything that may cost something,
//! repetition by repetition, and the total.

use serde_json::Value;
use weigh_advice::cost::Load;
use weigh_model::Nanos;
use weigh_model::trial::Point;
use weigh_model::units::parse_duration;
use weigh_report::summary::Cell;
use weigh_report::summary::lateness::Lateness;

use super::asked::{Asked, FamilyAsked, LaneAsked};
use crate::outcome::Link;
use crate::runs::RunMade;

/// A cell, as evidence.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    /// Which way of which family it is of.
    pub way: Way,
    /// Connections that stood all the time.
    pub connections: f64,
    /// Devices that there were: as many as connections, or as took turns where each message had its
    /// own.
    pub clients: f64,
    /// How often a message reached the server.
    pub arrivals: f64,
    /// Its repetitions.
    pub repetitions: Vec<Amounts>,
    /// Its p99, nanoseconds, in the worst repetition; `None` if there are no answers,
    /// infinite if there are and it is unknown.
    pub p99_ns: Option<f64>,
    /// True if the generator's own lag is in that: times are longer by it, and never shorter.
    pub p99_has_lag: bool,
    /// Measured time of the shortest repetition, seconds; `None` if unknown.
    pub window_s: Option<f64>,
    /// Messages that were lost or late, or not handed over.
    pub lost: u64,
    /// Its sources.
    pub link: Link,
}

/// A way of saying something, as points of cells and of searches have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Way {
    /// Its family's name.
    pub family: String,
    /// The value of the family's split.
    pub variant: String,
    /// True inside TLS.
    pub is_tls: bool,
    /// True where each message has a connection of its own.
    pub is_per_connection: bool,
}

impl Way {
    /// That of a point; `None` where no family has its protocol.
    pub fn of(point: &Point, asked: &Asked) -> Option<Way> {
        let protocol = text(point, "protocol");
        let family = asked.family.iter().find(|family| family.protocol == protocol)?;
        let tls = text(point, &format!("{protocol}.tls"));
        let keeps = text(point, &format!("{protocol}.keep_alive")) != "false";
        Some(Way {
            family: family.name.clone(),
            variant: family.split.as_ref().map_or(String::new(), |key| text(point, key)),
            is_tls: !tls.is_empty() && tls != "off",
            is_per_connection: text(point, PATTERN) == "session" || !keeps,
        })
    }

    /// That of a lane.
    pub fn of_lane(lane: &LaneAsked) -> Way {
        Way {
            family: lane.family.clone(),
            variant: lane.variant.clone(),
            is_tls: lane.tls,
            is_per_connection: lane.per_connection,
        }
    }
}

/// Events in one repetition, per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Amounts {
    /// Messages handed over.
    pub messages: f64,
    /// Connections opened, without TLS.
    pub opened: f64,
    /// Connections opened with a full TLS handshake.
    pub full: f64,
    /// Connections opened with a resumed one.
    pub resumed: f64,
    /// Deliveries to subscribers.
    pub deliveries: f64,
    /// Cores that the target used.
    pub cores: f64,
    /// The most memory that it had, bytes.
    pub memory: Option<f64>,
}

impl Observed {
    /// Reads this cell, or returns why it cannot be used.
    ///
    /// # Errors
    /// If the cell lacks figures, or no family has its protocol.
    pub fn of(cell: &Cell, from: (&str, &RunMade), asked: &Asked) -> Result<Observed, String> {
        let (run, made) = from;
        let told = |why: &str| format!("{run}, {}: {why}", cell.name);
        let way = Way::of(&cell.point, asked);
        let way = way.ok_or_else(|| told("no family has this protocol"))?;
        if let Some(warning) = cell.invalidated_by(CPU) {
            return Err(told(&warning.text));
        }
        let connections = ["load.connections", "load.subscribers"];
        let held: f64 = connections.iter().map(|key| number(&cell.point, key)).sum();
        let repetitions = amounts(cell, &way);
        let repetitions = repetitions.ok_or_else(|| told("figures of repetitions are missing"))?;
        let ledger = &cell.ledger;
        let times = ["response_time_ns.p99", "delivery_time_ns.p99", "session_time_ns.p99"];
        let p99 = times.iter().find_map(|name| Some((*name, cell.metrics.get(*name)?)));
        let p99_ns = p99.map(|(_, metric)| {
            let of_one = |value: &Option<f64>| value.unwrap_or(f64::INFINITY);
            metric.values.iter().map(of_one).reduce(f64::max).unwrap_or(f64::INFINITY)
        });
        // Answers that are too few for a p99 have one all the same, which nobody knows.
        let unknown = (ledger.acknowledged > 0).then_some(f64::INFINITY);
        let plan = &made.summary.run.plan.load;
        Ok(Observed {
            arrivals: arrivals(&way, &asked.family),
            connections: if way.is_per_connection { 0.0 } else { held },
            clients: held,
            way,
            repetitions,
            p99_ns: p99_ns.or(unknown),
            p99_has_lag: p99.is_some_and(|(name, _)| {
                cell.invalidated_by(name).is_some()
                    || Lateness::of(cell, name) != Lateness::Negligible
            }),
            window_s: window_s(cell, plan.duration),
            lost: ledger.lost.unwrap_or(ledger.sent) + ledger.late + ledger.not_sent,
            link: Link {
                run: run.to_owned(),
                folder: made.folder.clone(),
                cell: cell.name.clone(),
                trials: Vec::new(),
            },
        })
    }

    /// Load of the server in one repetition.
    pub fn load(&self, amounts: &Amounts) -> Load {
        Load {
            variant: self.way.variant.clone(),
            connections: self.connections,
            messages: amounts.messages,
            arrivals: self.arrivals,
            sealed: if self.way.is_tls { amounts.messages } else { 0.0 },
            deliveries: amounts.deliveries,
            opened: amounts.opened,
            full: amounts.full,
            resumed: amounts.resumed,
            ..Load::default()
        }
    }

    /// The mean over the repetitions.
    pub fn mean(&self, of: impl Fn(&Amounts) -> f64) -> f64 {
        self.repetitions.iter().map(of).sum::<f64>() / self.repetitions.len() as f64
    }

    /// True if every message arrived, and in time as far as that is known.
    pub fn meets(&self, asked: &Asked) -> bool {
        let is_quick = self.p99_ns.is_none_or(|p99| p99 <= asked.p99.0 as f64);
        self.lost == 0 && is_quick && self.mean(|each| each.messages) > 0.0
    }
}

/// How long a repetition was measured: as measured, else as asked for in the cell or in its plan.
fn window_s(cell: &Cell, planned: Option<Nanos>) -> Option<f64> {
    let measured = values(cell, "window_s").and_then(|all| all.into_iter().reduce(f64::min));
    let asked = cell.point.get("load.duration").and_then(Value::as_str);
    let asked = asked.and_then(|text| parse_duration(text).ok()).or(planned);
    measured.or(asked.map(Nanos::as_secs_f64))
}

/// How often a message of this way reaches the server.
pub(super) fn arrivals(way: &Way, families: &[FamilyAsked]) -> f64 {
    let family = families.iter().find(|family| family.name == way.family);
    family.and_then(|family| family.arrivals.get(&way.variant)).copied().unwrap_or(1.0)
}

/// A key of a point as a text, empty where it has none.
fn text(point: &Point, key: &str) -> String {
    match point.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

/// A key of a point as a number, 0 where it has none.
fn number(point: &Point, key: &str) -> f64 {
    point.get(key).and_then(Value::as_f64).unwrap_or(0.0)
}

fn amounts(cell: &Cell, way: &Way) -> Option<Vec<Amounts>> {
    let cores = cell.point.get("target.cores").and_then(Value::as_f64).unwrap_or(1.0);
    let pattern = text(&cell.point, PATTERN);
    let percent = values(cell, CPU)?;
    let of = |name: &str| values(cell, name).filter(|values| values.len() == percent.len());
    // Connections that only stand send nothing.
    let none = || (pattern == "hold").then(|| vec![0.0; percent.len()]);
    let messages = of("throughput_in_per_s").or_else(none)?;
    let out = if pattern == "deliver" { of("throughput_out_per_s") } else { None };
    let memory = of("target_memory_bytes.max");
    let [full, resumed] = ["tls_handshakes_full", "tls_handshakes_resumed"].map(of);
    let is_missing = way.is_tls && way.is_per_connection && full.is_none();
    (!is_missing).then_some(())?;
    let at = |values: &Option<Vec<f64>>, index: usize| values.as_ref().map_or(0.0, |v| v[index]);
    let of_one = |index: usize| {
        let opened = if way.is_per_connection { messages[index] } else { 0.0 };
        let (full, resumed) = (at(&full, index), at(&resumed, index));
        // Counted over the whole trial, warm-up included; the share is that of the window.
        let share = if full + resumed > 0.0 { full / (full + resumed) } else { 0.0 };
        let inside = if way.is_tls { opened } else { 0.0 };
        Amounts {
            messages: messages[index],
            opened: opened - inside,
            full: inside * share,
            resumed: inside * (1.0 - share),
            deliveries: at(&out, index),
            cores: percent[index] / 100.0 * cores,
            memory: memory.as_ref().map(|values| values[index]),
        }
    };
    Some((0..percent.len()).map(of_one).collect())
}

/// The values of all repetitions; `None` where one has none.
fn values(cell: &Cell, name: &str) -> Option<Vec<f64>> {
    let values: Option<Vec<f64>> = cell.metrics.get(name)?.values.iter().copied().collect();
    values.filter(|values| !values.is_empty())
}

const PATTERN: &str = "load.pattern";

const CPU: &str = "target_cpu_percent.mean";
