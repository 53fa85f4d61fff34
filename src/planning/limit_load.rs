//! Axis of a search from the flags of `weigh limit`: its ends, and the flag that it replaces.

use weigh_limit::{Axis, AxisKind};
use weigh_model::units::{Bytes, parse_rate, parse_size};
use weigh_model::{Arrival, Nanos, Pattern, Rate};

use crate::planning::options::LoadOptions;
use weigh_runner::exit::Stop;
use weigh_runner::search::axis_load::has_rate;

/// Returns the axis of the flags. The default ends are a load that every target carries and one
/// that few do.
///
/// # Errors
/// If an end is not a load of this axis, or the range is empty.
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
            "--from {from}{unit} and --to {to}{unit} leave no load to search\nhelp: type a larger \
             --to"
        )));
    }
    Ok(Axis::new(kind, from, to, 1.0)?)
}

fn load(kind: AxisKind, flag: &str, text: &str) -> Result<f64, Stop> {
    let wrong = |said: String| Stop::usage(format!("{flag}: {said}"));
    match kind {
        AxisKind::Rate => match parse_rate(text).map_err(wrong)? {
            Rate { per_client: true, .. } => Err(Stop::usage(format!(
                "{flag} {text}: the search varies the rate of all clients together\nhelp: type \
                 {flag} 1000/s"
            ))),
            Rate { per_second, .. } => Ok(per_second),
        },
        AxisKind::MessageSize => Ok(parse_size(text).map_err(wrong)? as f64),
        AxisKind::Connections | AxisKind::Burst | AxisKind::Subscribers => {
            let number = text.parse::<u32>().ok().filter(|number| *number > 0);
            let unit = kind.unit();
            number.map(f64::from).ok_or_else(|| {
                Stop::usage(format!(
                    "{flag} {text}: not a whole number above 0\nhelp: type a whole number \
                     of{unit}, such as 100"
                ))
            })
        }
    }
}

/// Returns the load flags with the start of the axis as the value that is searched.
///
/// # Errors
/// If a flag fixes the searched value, or the pattern does not have this axis.
pub fn with_axis(options: &LoadOptions, axis: &Axis) -> Result<LoadOptions, Stop> {
    let mut words = options.words.clone();
    let kind = axis.kind();
    for (flag, is_given, instead) in [
        (
            "-n",
            words.messages.is_some(),
            "the goal sets the number of messages: leave it out, or search a burst with --axis \
             burst",
        ),
        (
            "-d",
            words.duration.is_some(),
            "the goal sets the duration of its trials: type --trial 1s",
        ),
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
            "{flag}: the search itself varies the {kind}\nhelp: leave {flag} out, or limit the \
             search with --from and --to"
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
            // A warm-up at the burst's rate would fill the queue that the burst is to find empty.
            words.warmup.get_or_insert(Nanos(0));
            if words.rate.is_none() {
                words.arrival.get_or_insert(Arrival::Burst);
            }
        }
        AxisKind::Subscribers => words.subscribers = Some(min as u32),
        AxisKind::MessageSize => words.size = Some(Bytes(min as u64)),
    }
    Ok(LoadOptions { words })
}
