//! What a load on the axis of a search means for a trial: which flag it takes the place of, and how
//! it is put into the load.

use weigh_limit::{Axis, AxisKind};
use weigh_model::trial::Point;
use weigh_model::units::{Bytes, parse_rate, parse_size};
use weigh_model::{Arrival, Load, Nanos, Pattern, Rate, Topology};

use crate::exit::Stop;
use crate::planning::options::LoadOptions;

/// The axis that the flags ask for. Without ends it goes from a load that every target takes to one
/// that few do.
///
/// # Errors
/// If an end is no load of this axis, or there is nothing between them.
pub fn axis(kind: AxisKind, from: Option<&str>, to: Option<&str>) -> Result<Axis, Stop> {
    let (least, most) = match kind {
        AxisKind::Rate => (100.0, 1e6),
        AxisKind::Connections => (1.0, 10_000.0),
        AxisKind::Burst => (10.0, 1e6),
        AxisKind::Subscribers => (1.0, 1_000.0),
        AxisKind::MessageSize => (64.0, 1_048_576.0),
    };
    let from = from.map_or(Ok(least), |text| load(kind, "--from", text))?;
    let to = to.map_or(Ok(most), |text| load(kind, "--to", text))?;
    if from >= to {
        let unit = kind.unit();
        return Err(Stop::usage(format!(
            "--from {from}{unit} and --to {to}{unit} leave nothing to search: type a larger --to"
        )));
    }
    Ok(Axis::new(kind, from, to, 1.0)?)
}

fn load(kind: AxisKind, flag: &str, text: &str) -> Result<f64, Stop> {
    let wrong = |said: String| Stop::usage(format!("{flag}: {said}"));
    match kind {
        AxisKind::Rate => match parse_rate(text).map_err(wrong)? {
            Rate { per_client: true, .. } => Err(Stop::usage(format!(
                "{flag} {text}: the rate of all clients together is searched: type {flag} 1000/s"
            ))),
            Rate { per_second, .. } => Ok(per_second),
        },
        AxisKind::MessageSize => Ok(parse_size(text).map_err(wrong)? as f64),
        AxisKind::Connections | AxisKind::Burst | AxisKind::Subscribers => {
            let number = text.parse::<u32>().ok().filter(|number| *number > 0);
            let unit = kind.unit();
            number.map(f64::from).ok_or_else(|| {
                Stop::usage(format!("{flag} {text}: type a whole number of{unit}, such as 100"))
            })
        }
    }
}

/// The load flags with the beginning of the axis in the place of what is searched.
///
/// # Errors
/// If a flag fixes what is searched, or there is no such axis in the pattern.
pub fn with_axis(options: &LoadOptions, axis: &Axis) -> Result<LoadOptions, Stop> {
    let mut options = options.clone();
    let kind = axis.kind();
    for (flag, is_given, instead) in [
        ("-n", options.messages.is_some(), "leave it out, or search a burst: --axis burst"),
        ("-d", options.duration.is_some(), "a goal says how long its trials are: type --trial 1s"),
    ] {
        if is_given {
            return Err(Stop::usage(format!("{flag}: {instead}")));
        }
    }
    let fixed = match kind {
        AxisKind::Rate => options.rate.map(|_| "-R"),
        AxisKind::Connections => options.connections.or(options.publishers).map(|_| "-c"),
        AxisKind::Burst => None,
        AxisKind::Subscribers => options.subscribers.map(|_| "-y"),
        AxisKind::MessageSize => options.size.map(|_| "-s"),
    };
    if let Some(flag) = fixed {
        return Err(Stop::usage(format!(
            "{flag}: {kind} is what is searched: give its ends with --from and --to"
        )));
    }
    if options.pattern == Some(Pattern::Hold) && kind != AxisKind::Connections {
        return Err(Stop::usage(format!(
            "--pattern hold sends no messages and has no axis {kind}: type --axis connections"
        )));
    }
    let min = axis.min();
    match kind {
        AxisKind::Rate => {
            if let Some(closed) = options.arrival.as_ref().filter(|arrival| !has_rate(arrival)) {
                return Err(Stop::usage(format!(
                    "--arrival {closed} has no rate that could be searched: type constant, \
                     poisson or periodic, or another --axis"
                )));
            }
            options.rate = Some(Rate { per_second: min, per_client: false });
        }
        AxisKind::Connections => options.connections = Some(min as u32),
        AxisKind::Burst => {
            options.messages = Some(min as u64);
            if options.rate.is_none() {
                options.arrival.get_or_insert(Arrival::Burst);
            }
        }
        AxisKind::Subscribers => options.subscribers = Some(min as u32),
        AxisKind::MessageSize => options.size = Some(min as u64),
    }
    Ok(options)
}

fn has_rate(arrival: &Arrival) -> bool {
    matches!(arrival, Arrival::Constant | Arrival::Poisson | Arrival::Periodic)
}

/// Refuses an axis that a load of this protocol does not have.
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

/// Refuses a load whose other keys leave nothing to search along this axis.
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
            "messages: a goal says how long its trials are: leave them out, or search a burst",
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

/// The point of a trial of a search: its lane, with its load and its length.
pub fn point(kind: AxisKind, lane: &Point, load: &Load) -> Point {
    let mut point = lane.clone();
    let key = match kind {
        AxisKind::Rate => "rate",
        AxisKind::Connections => "connections",
        AxisKind::Burst => "messages",
        AxisKind::Subscribers => "subscribers",
        AxisKind::MessageSize => "size",
    };
    let written = serde_json::to_value(load).unwrap_or_default();
    for key in [key, "duration"] {
        if let Some(value) = written.get(key) {
            point.insert(format!("load.{key}"), value.clone());
        }
    }
    point
}

/// True if a load lasts for a time and comes whether the target keeps up or not: then what has
/// piled up at its end has not been done in time.
pub fn can_pile_up(load: &Load) -> bool {
    load.arrival.is_open() && load.arrival != Arrival::Burst && load.messages.is_none()
}
