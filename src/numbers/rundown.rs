//! Text on a terminal for the results of discharges.

use std::fmt::Write as _;

use weigh_model::numbers::{count, span};
use weigh_report::terminal::columns;
use weigh_runner::discharges::Report;
use weigh_runner::discharges::report::{
    DischargeReport, ENOUGH, Figure, LaneComparison, LaneFigure, LaneReport,
};

use crate::numbers::text::{at, significant, with_deviation};

/// Returns the report for a terminal of this width, ending in a line break.
pub fn render(report: &Report, width: usize) -> String {
    let battery = report.battery.map_or_else(
        || "battery not named: type --battery 2000mAh@5V for mAh per session".to_owned(),
        |battery| format!("battery {battery} by its label"),
    );
    let complete = report.discharges.iter().filter(|own| own.complete).count();
    let all = report.discharges.len();
    let mut text = format!("{}: {battery}; {complete} of {all} discharges count\n", report.plan);
    let heading = ["#", "ended", "sessions", "lifetime", "mAh/session", "lane"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    rows.extend(report.discharges.iter().map(of_discharge));
    text.push('\n');
    text += &columns(&rows, &(2..=4), width);
    for lane in &report.lanes {
        text.push('\n');
        text += &of_lane(lane);
    }
    if !report.comparisons.is_empty() {
        text.push('\n');
        report.comparisons.iter().for_each(|pair| text += &of_pair(pair));
    }
    if !report.warnings.is_empty() {
        text.push('\n');
        for warning in &report.warnings {
            let _ = writeln!(text, "warning: {} ({})", warning.text, warning.code);
        }
    }
    text
}

/// The cells of a line.
fn of_discharge(discharge: &DischargeReport) -> Vec<String> {
    let mah = discharge.gauge_mah_per_session.map(|mah| significant(mah) + " g");
    let mah = mah.or_else(|| discharge.rated_mah_per_session.map(significant));
    vec![
        format!("{}{}", discharge.number, if discharge.complete { "" } else { " not counted" }),
        discharge.ended.to_string(),
        count(discharge.sessions),
        time(discharge.lifetime_s),
        mah.unwrap_or_else(|| "-".to_owned()),
        discharge.lane.clone(),
    ]
}

fn of_lane(lane: &LaneReport) -> String {
    let mut text = format!("{}, n = {} (at least {ENOUGH} wanted)\n", lane.lane, lane.n);
    for figure in &lane.figures {
        let _ = writeln!(text, "  {:<30} {}", figure.name.words(), of_figure(figure));
    }
    text
}

fn of_figure(figure: &LaneFigure) -> String {
    let is_time = figure.name == Figure::LifetimeS;
    match (figure.low, figure.high) {
        (Some(low), Some(high)) if is_time => {
            format!("{} ({} … {}, {})", time(figure.value), time(low), time(high), figure.method)
        }
        (Some(low), Some(high)) => {
            let half = (high - low) / 2.0;
            let (value, method) = (with_deviation(figure.value, low, high), &figure.method);
            format!("{value} ({} … {}, {method})", at(low, half), at(high, half))
        }
        _ if is_time => format!("{} (no interval: {})", time(figure.value), figure.method),
        _ => format!("{} (no interval: {})", significant(figure.value), figure.method),
    }
}

fn of_pair(pair: &LaneComparison) -> String {
    let (left, right) = (&pair.left, &pair.right);
    let times = match (pair.ratio, pair.low, pair.high) {
        (Some(ratio), Some(low), Some(high)) => {
            let half = (high - low) / 2.0;
            let value = with_deviation(ratio, low, high);
            format!("{left} is {value} times {right} ({} … {})", at(low, half), at(high, half))
        }
        (Some(ratio), ..) => format!("{left} is {} times {right}", significant(ratio)),
        _ => format!("{left} and {right}"),
    };
    let refused = pair.refused.as_ref().map_or(String::new(), |why| format!(", {why}"));
    format!("{}: {times}: {}{refused}\n", pair.figure.words(), pair.verdict)
}

/// Returns a time such as `2 h 39 min 3 s`, with tenths below a minute.
fn time(seconds: f64) -> String {
    match seconds < 60.0 {
        true => format!("{seconds:.1} s"),
        false => span(seconds.round() * 1e9),
    }
}
