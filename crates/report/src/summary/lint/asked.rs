//! The load of a cell: the plan's load, changed by its point of the matrix.

use serde_json::Value;
use weigh_model::plan::Plan;
use weigh_model::trial::Point;
use weigh_model::units::parse_duration;
use weigh_model::{Arrival, Nanos, Pattern};

/// The part of a load that rules need.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Asked {
    pub(crate) arrival: Arrival,
    pub(crate) pattern: Pattern,
    pub(crate) connections: u64,
    pub(crate) subscribers: u64,
    /// Messages in flight per connection; `None` for the default of arrival and protocol.
    pub(crate) window: Option<u64>,
    pub(crate) think: Nanos,
    /// Servers that a message passes: relays, and those that deliver it.
    pub(crate) hops: u64,
}

impl Asked {
    /// The load of the cell at `point`.
    pub(crate) fn of(point: &Point, plan: &Plan) -> Asked {
        let load = &plan.load;
        let text = |key: &str| point.get(key).and_then(Value::as_str);
        let number = |key: &str| point.get(key).and_then(Value::as_u64);
        let parsed = |key: &str| text(key).and_then(|text| text.parse().ok());
        let pattern =
            text("load.pattern").and_then(|text| text.parse().ok()).unwrap_or(load.pattern);
        // A point without subscribers is of a case without them, even if other cases have some.
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

    /// True if the schedule never waits for answers and has a rate.
    pub(crate) fn has_rate(&self) -> bool {
        self.arrival.is_open() && self.arrival != Arrival::Burst
    }
}

/// True if messages go the same way in both: to a consumer, by push or by poll; to the server,
/// single or in batches.
pub(super) fn are_alike(left: Pattern, right: Pattern) -> bool {
    let both = [left, right];
    let all_are = |kinds: [Pattern; 2]| both.iter().all(|pattern| kinds.contains(pattern));
    left == right
        || all_are([Pattern::Deliver, Pattern::Poll])
        || all_are([Pattern::Publish, Pattern::Batch])
}
