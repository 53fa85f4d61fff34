//! The charts of how many units a server carries: processor time against units, measured, composed
//! and extrapolated by the cost model.

use super::axis::Axis;
use super::chart::{Chart, Dash, Look, Mark, Stroke, Trace};
use super::numbers::with_interval;
use crate::carry::{CarryOutcome, LanePoint, LaneShown, Reach};
use crate::outcome::Outcome;

/// How to read the charts.
pub(super) const CAPTION: &str = "Grey: where one cell held that many devices. Filled marks: cells \
    that did. Hollow marks: cells with the rate of that many devices on fewer connections, or by \
    fewer that took turns. Lines: the cost model with its 95 % band, dashed where it extrapolates.";

/// All charts of all questions, with their names.
pub(super) fn charts(outcome: &Outcome) -> impl Iterator<Item = (String, Chart)> {
    outcome.carry.iter().flat_map(of_one)
}

/// A chart for the lanes without TLS, and one for those inside it, with their names.
pub(super) fn of_one(carry: &CarryOutcome) -> Vec<(String, Chart)> {
    let of = |is_tls| {
        let name = if is_tls { "tls" } else { "plain" };
        Some((format!("carry-{}-{name}", carry.id), chart(carry, is_tls)?))
    };
    [of(false), of(true)].into_iter().flatten().collect()
}

fn chart(carry: &CarryOutcome, is_tls: bool) -> Option<Chart> {
    let lanes: Vec<&LaneShown> =
        carry.lanes.iter().filter(|lane| lane.is_tls == is_tls && !lane.line.is_empty()).collect();
    let per_unit = f64::from(carry.sensors);
    let all = || lanes.iter().flat_map(|lane| &lane.line).map(|point| point.devices / per_unit);
    let (low, high) = (all().reduce(f64::min)?, all().reduce(f64::max)?);
    let x = Axis::logarithmic(format!("{}s of {} devices", carry.unit, carry.sensors), low, high);
    let y = Axis::linear("processor time (% of a core)".to_owned(), 0.0, 120.0 * carry.cores);
    let floors = lanes.iter().filter_map(|lane| lane.floor.as_ref());
    let measured = floors.map(|floor| floor.devices.min(floor.clients) / per_unit);
    let most = measured.filter(|units| *units > low).reduce(f64::max);
    let traces = lanes.iter().enumerate().map(|(nth, lane)| trace(lane, nth, per_unit)).collect();
    let inside = if is_tls { "inside TLS" } else { "without TLS" };
    let title = format!("Processor time against {}s, {inside}", carry.unit);
    Some(Chart { title, x, y, shade: most.map(|most| (low, most)), traces })
}

/// A lane: its line in two pieces, its band, and its points.
fn trace(lane: &LaneShown, nth: usize, per_unit: f64) -> Trace {
    let is_near = |point: &&LanePoint| point.reach != Reach::Beyond;
    let near = lane.line.iter().filter(is_near).count();
    let stroke = |points: &[LanePoint], dash, width| Stroke {
        points: points.iter().map(|point| (point.devices / per_unit, point.percent)).collect(),
        dash,
        width,
    };
    let mark = |point: &LanePoint| Mark {
        x: point.devices / per_unit,
        y: point.percent,
        low: Some(point.low),
        high: Some(point.high),
        look: if point.reach == Reach::Measured { Look::Solid } else { Look::Hollow },
        words: format!(
            "{}: {}",
            lane.label,
            with_interval(point.percent, (Some(point.low), Some(point.high)), "%")
        ),
    };
    let band = lane.line.iter().map(|point| (point.devices / per_unit, point.low, point.high));
    Trace {
        label: lane.label.clone(),
        colour: nth,
        shape: nth,
        band: band.collect(),
        // The pieces share a point, so that the line has no gap.
        strokes: vec![
            stroke(&lane.line[..near], Dash::Solid, 1.6),
            stroke(&lane.line[near.saturating_sub(1)..], Dash::Dashed, 1.2),
        ],
        fit: None,
        marks: lane.points.iter().map(mark).collect(),
    }
}
