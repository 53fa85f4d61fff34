//! What a cell was asked to do: the plan's load, as its point of the matrix changes it.

use serde_json::Value;
use weigh_model::plan::Plan;
use weigh_model::trial::Point;
use weigh_model::units::parse_duration;
use weigh_model::{Arrival, Nanos, Pattern};

/// The part of a load that rules ask for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Asked {
    pub(crate) arrival: Arrival,
    pub(crate) pattern: Pattern,
    pub(crate) connections: u64,
    pub(crate) subscribers: u64,
    /// Messages in flight per connection; `None` leaves it to arrival and protocol.
    pub(crate) window: Option<u64>,
    pub(crate) think: Nanos,
    /// Servers that a message passes on its way: relays, and those that deliver it.
    pub(crate) hops: u64,
}

impl Asked {
    /// What the cell at `point` was asked to do.
    pub(crate) fn of(point: &Point, plan: &Plan) -> Asked {
        let load = &plan.load;
        let text = |key: &str| point.get(key).and_then(Value::as_str);
        let number = |key: &str| point.get(key).and_then(Value::as_u64);
        let parsed = |key: &str| text(key).and_then(|text| text.parse().ok());
        let pattern =
            text("load.pattern").and_then(|text| text.parse().ok()).unwrap_or(load.pattern);
        // A point without subscribers is of a case that has none, whatever others have.
        let subscribers = number("load.subscribers").unwrap_or(u64::from(load.subscribers));
        let has_relay = point.get("target.relay").and_then(Value::as_bool) == Some(true);
        Asked {
            arrival: parsed("load.arrival").unwrap_or_else(|| load.arrival.clone()),
            pattern,
            hops: u64::from(pattern.delivers_to(subscribers)) + u64::from(has_relay),
            connections: number("load.connections").unwrap_or(u64::from(load.connections)),
            subscribers,
            window: number("load.window").or(load.window.map(u64::from)),
            think: text("load.think")
                .and_then(|text| parse_duration(text).ok())
                .unwrap_or(load.think),
        }
    }

    /// True where the schedule never waits for answers and has a rate.
    pub(crate) fn has_rate(&self) -> bool {
        self.arrival.is_open() && self.arrival != Arrival::Burst
    }

    /// Messages that a closed loop keeps in flight, all connections together.
    pub(crate) fn in_flight(&self) -> u64 {
        self.connections * self.window.unwrap_or(1)
    }
}
