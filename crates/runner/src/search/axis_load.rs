//! The axis of a search: checks that a load has it, and sets its value.

use weigh_limit::AxisKind;
use weigh_model::trial::Point;
use weigh_model::units::Bytes;
use weigh_model::{Arrival, Load, Nanos, Pattern, Rate, Topology};

use crate::exit::Stop;

/// True if these arrivals have a rate that can be searched.
pub fn has_rate(arrival: &Arrival) -> bool {
    matches!(arrival, Arrival::Constant | Arrival::Poisson | Arrival::Periodic)
}

/// Rejects an axis that a load of this protocol does not have.
///
/// # Errors
/// The axis, and what to type instead.
pub fn check(
    kind: AxisKind,
    protocol: &str,
    pattern: Pattern,
    topology: Option<Topology>,
) -> Result<(), Stop> {
    if kind != AxisKind::Subscribers {
        return Ok(());
    }
    if pattern != Pattern::Deliver {
        return Err(Stop::usage(format!(
            "--axis subscribers: {protocol} has none in the pattern {pattern}: type --pattern \
             deliver, or another axis"
        )));
    }
    if topology == Some(Topology::Pairs) {
        return Err(Stop::usage(
            "--axis subscribers: pairs need as many publishers: type --topology fan-out or shared",
        ));
    }
    Ok(())
}

/// Rejects a load whose other keys leave nothing to search on this axis.
///
/// # Errors
/// The key, and what to type instead.
pub fn check_free(kind: AxisKind, load: &Load) -> Result<(), Stop> {
    if kind == AxisKind::Rate && !has_rate(&load.arrival) {
        return Err(Stop::usage(format!(
            "an arrival of {} has no rate that could be searched: name constant, poisson or \
             periodic, or another axis",
            load.arrival
        )));
    }
    if kind != AxisKind::Burst && load.messages.is_some() {
        return Err(Stop::usage(
            "messages: the goal sets the length of its trials: leave them out, or search a burst",
        ));
    }
    Ok(())
}

/// The load of one trial of a search.
pub fn at(kind: AxisKind, base: &Load, load: f64, duration: Nanos) -> Load {
    let mut own = base.clone();
    own.duration = Some(duration);
    match kind {
        AxisKind::Rate => own.rate = Some(Rate { per_second: load, per_client: false }),
        AxisKind::Connections => own.connections = load as u32,
        AxisKind::Burst => {
            own.messages = Some(load as u64);
            own.duration = None;
        }
        AxisKind::Subscribers => own.subscribers = load as u32,
        AxisKind::MessageSize => own.size = Some(Bytes(load as u64)),
    }
    own
}

/// The point of a trial of a search: its lane, load and length.
pub fn point(kind: AxisKind, lane: &Point, load: &Load) -> Point {
    let mut point = lane.clone();
    let written = serde_json::to_value(load).unwrap_or_default();
    for key in searched(kind) {
        if let Some(value) = written.get(key) {
            point.insert(format!("load.{key}"), value.clone());
        }
    }
    point
}

/// True for the point of a trial of this lane, whatever its load and length.
pub fn is_of_lane(kind: AxisKind, lane: &Point, trial: &Point) -> bool {
    let is_searched = |key: &str| searched(kind).iter().any(|own| key == format!("load.{own}"));
    lane.iter().all(|(key, value)| is_searched(key) || trial.get(key) == Some(value))
}

/// Keys of the load that the trials of a search differ in.
fn searched(kind: AxisKind) -> [&'static str; 2] {
    let own = match kind {
        AxisKind::Rate => "rate",
        AxisKind::Connections => "connections",
        AxisKind::Burst => "messages",
        AxisKind::Subscribers => "subscribers",
        AxisKind::MessageSize => "size",
    };
    [own, "duration"]
}

/// True if a load has a fixed duration and does not wait for the target: then messages that are
/// queued at its end were not done in time.
pub fn can_pile_up(load: &Load) -> bool {
    load.arrival.is_open() && load.arrival != Arrival::Burst && load.messages.is_none()
}
