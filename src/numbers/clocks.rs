//! Text on a terminal for two clocks and the one-way delays between their hosts.

use std::fmt::Write as _;
use weigh_model::numbers::{count, span};

use weigh_observe::clocks::one_way::{ClockReport, OneWayFigure};
use weigh_observe::clocks::{Direction, OneWay};

use crate::numbers::text::at;

/// Returns the offset and the drift of two clocks, with their bounds.
pub fn clocks(report: &ClockReport) -> String {
    let mut text = String::new();
    let bound = report.offset_bound_ns;
    let line = |text: &mut String, name: &str, value: String| {
        let _ = writeln!(text, "  {name:<24} {value}");
    };
    let exchanges = count(report.exchanges as u64);
    let watched = format!("{exchanges} exchanges over {}", span(report.seconds * 1e9));
    line(&mut text, "watched", watched);
    line(&mut text, "smallest round trip", milliseconds(report.round_trip_ns_min as f64, bound));
    let offset = |offset_ns| {
        let (value, bound) = (milliseconds(offset_ns, bound), milliseconds(bound, bound));
        format!("{value} ± {bound}")
    };
    line(&mut text, "other clock ahead, first", offset(report.offset_ns_first));
    line(&mut text, "other clock ahead, last", offset(report.offset_ns_last));
    let (drift, bound) = (report.drift_ppm, report.drift_bound_ppm);
    line(&mut text, "drift", format!("{} ± {} ppm", at(drift, bound), at(bound, bound)));
    text + "  ± is a bound, not an interval: it holds for every path, also if its directions \
            differ\n"
}

/// Returns the one-way delays.
pub fn one_way(report: &OneWay) -> String {
    let way = match report.direction {
        Direction::There => "to the host that answered",
        Direction::Back => "from the host that answered",
    };
    let mut text = format!(
        "{} messages {way}, {} lost\n",
        count((report.received + report.lost) as u64),
        count(report.lost as u64)
    );
    for figure in report.delays.iter().chain(&report.spread) {
        let _ = writeln!(text, "  {:<28} {}", figure.name, of_figure(figure));
    }
    text + "the clocks\n" + &clocks(&report.clocks)
}

fn of_figure(figure: &OneWayFigure) -> String {
    let bound = figure.bound;
    match (figure.value, &figure.refused) {
        (Some(value), _) => {
            format!("{} ± {} (clocks)", milliseconds(value, bound), milliseconds(bound, bound))
        }
        (None, Some(reason)) => format!("refused: {reason}"),
        (None, None) => "absent".to_owned(),
    }
}

/// Returns milliseconds with two significant digits of the bound.
fn milliseconds(ns: f64, bound_ns: f64) -> String {
    format!("{} ms", at(ns / 1e6, bound_ns / 1e6))
}
