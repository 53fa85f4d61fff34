//! The axis of a search in the flags of `weigh limit`: its ends, and which flag it takes the place
//! of.

use weigh_limit::{Axis, AxisKind};
use weigh_model::units::{Bytes, parse_rate, parse_size};
use weigh_model::{Arrival, Pattern, Rate};

use crate::planning::options::LoadOptions;
use weigh_runner::exit::Stop;
use weigh_runner::search::axis_load::has_rate;

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
            "--from {from}{unit} and --to {to}{unit} leave nothing to search\nhelp: type a \
             larger --to"
        )));
    }
    Ok(Axis::new(kind, from, to, 1.0)?)
}

fn load(kind: AxisKind, flag: &str, text: &str) -> Result<f64, Stop> {
    let wrong = |said: String| Stop::usage(format!("{flag}: {said}"));
    match kind {
        AxisKind::Rate => match parse_rate(text).map_err(wrong)? {
            Rate { per_client: true, .. } => Err(Stop::usage(format!(
                "{flag} {text}: the rate of all clients together is searched\nhelp: type {flag} \
                 1000/s"
            ))),
            Rate { per_second, .. } => Ok(per_second),
        },
        AxisKind::MessageSize => Ok(parse_size(text).map_err(wrong)? as f64),
        AxisKind::Connections | AxisKind::Burst | AxisKind::Subscribers => {
            let number = text.parse::<u32>().ok().filter(|number| *number > 0);
            let unit = kind.unit();
            number.map(f64::from).ok_or_else(|| {
                Stop::usage(format!(
                    "{flag} {text}\nhelp: type a whole number of{unit}, such as \
                     100"
                ))
            })
        }
    }
}

/// The load flags with the beginning of the axis in the place of what is searched.
///
/// # Errors
/// If a flag fixes what is searched, or there is no such axis in the pattern.
pub fn with_axis(options: &LoadOptions, axis: &Axis) -> Result<LoadOptions, Stop> {
    let mut words = options.words.clone();
    let kind = axis.kind();
    for (flag, is_given, instead) in [
        ("-n", words.messages.is_some(), "leave it out, or search a burst: --axis burst"),
        ("-d", words.duration.is_some(), "a goal says how long its trials are: type --trial 1s"),
    ] {
        if is_given {
            return Err(Stop::usage(format!("{flag}: {instead}")));
        }
    }
    let fixed = match kind {
        AxisKind::Rate => words.rate.map(|_| "-R"),
        AxisKind::Connections => words.connections.map(|_| "-c"),
        AxisKind::Burst => None,
        AxisKind::Subscribers => words.subscribers.map(|_| "-y"),
        AxisKind::MessageSize => words.size.map(|_| "-s"),
    };
    if let Some(flag) = fixed {
        return Err(Stop::usage(format!(
            "{flag}: {kind} is what is searched\nhelp: give its ends with --from and --to"
        )));
    }
    if words.pattern == Some(Pattern::Hold) && kind != AxisKind::Connections {
        return Err(Stop::usage(format!(
            "--pattern hold sends no messages and has no axis {kind}\nhelp: type --axis \
             connections"
        )));
    }
    let min = axis.min();
    match kind {
        AxisKind::Rate => {
            if let Some(closed) = words.arrival.as_ref().filter(|arrival| !has_rate(arrival)) {
                return Err(Stop::usage(format!(
                    "--arrival {closed} has no rate that could be searched\nhelp: type constant, \
                     poisson or periodic, or another --axis"
                )));
            }
            words.rate = Some(Rate { per_second: min, per_client: false });
        }
        AxisKind::Connections => words.connections = Some(min as u32),
        AxisKind::Burst => {
            words.messages = Some(min as u64);
            if words.rate.is_none() {
                words.arrival.get_or_insert(Arrival::Burst);
            }
        }
        AxisKind::Subscribers => words.subscribers = Some(min as u32),
        AxisKind::MessageSize => words.size = Some(Bytes(min as u64)),
    }
    Ok(LoadOptions { words })
}
