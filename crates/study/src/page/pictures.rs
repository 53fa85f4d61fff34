//! The figures of a study: the paper's points hollow and dashed, those measured here solid with
//! their intervals, on the same axes; numbered, each with its data behind a fold.

use std::fmt::Write as _;

use weigh_report::figures::count;
use weigh_report::page::document::escape;

use super::axis::Axis;
use super::chart::{Chart, Dash, Ground, Look, Mark, Stroke, Trace};
use super::numbers::{in_unit, printed, with_interval};
use super::prose::{counted, prose};
use crate::outcome::{AxisShown, FigureOutcome, Line, Outcome, PointShown, Series};

/// A figure as a file of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// Its name: that of the file.
    pub name: String,
    /// An SVG document.
    pub svg: String,
}

/// Every figure of the page that has a point, as a file of its own, dark on white.
pub fn drawn(outcome: &Outcome) -> Vec<Drawn> {
    let own = outcome.figures.iter().filter(|figure| has_points(figure));
    let own = own.map(|figure| (name_of(figure), chart(figure)));
    let all = own.chain(super::carry_charts::charts(outcome));
    all.map(|(name, chart)| Drawn { name, svg: chart.svg(Ground::File) }).collect()
}

/// All figures with a point, two or three beside each other; then why others have none.
pub(super) fn section(outcome: &Outcome) -> String {
    let drawn = outcome.figures.iter().filter(|figure| has_points(figure));
    let figures: Vec<String> =
        drawn.enumerate().map(|(nth, figure)| one(nth + 1, figure)).collect();
    let mut html = String::new();
    if !figures.is_empty() {
        html += "<p class=\"note\">Hollow marks and dashed lines: printed in the paper. Solid \
                 marks: measured here, with 95 % intervals where there are enough repetitions. A \
                 cross: a result that must not be used. Lines join three points or more; thin \
                 dotted lines are least-squares fits.</p>\n";
        if outcome.occasions.len() > 1 {
            html += "<p class=\"note\">Figures show the newest run alone; the answers rest on all \
                     runs.</p>\n";
        }
        html += &format!("<div class=\"figures\">\n{}</div>\n", figures.concat());
    }
    let undrawn: String = outcome
        .figures
        .iter()
        .filter(|figure| !has_points(figure))
        .map(|figure| {
            let (title, why) = (prose(&figure.title), prose(&missing(figure)));
            let name = escape(&name_of(figure));
            format!("<p class=\"note\" id=\"{name}\">Not drawn: {title}. {why}</p>\n")
        })
        .collect();
    html + &undrawn
}

/// How many figures have a number.
pub(super) fn numbered(outcome: &Outcome) -> usize {
    outcome.figures.iter().filter(|figure| has_points(figure)).count()
}

/// A figure with its number, its caption and what stands behind the fold.
pub(super) fn numbered_figure(
    (number, name): (usize, &str),
    chart: &Chart,
    caption: &str,
    data: &str,
) -> String {
    format!(
        "<figure id=\"{}\">{}<figcaption><b>Figure {number}.</b> {}. {caption}</figcaption>{data}\
         </figure>\n",
        escape(name),
        chart.svg(Ground::Page),
        escape(chart.title.trim_end_matches('.')),
    )
}

fn one(number: usize, figure: &FigureOutcome) -> String {
    let without = figure.series.iter().filter(|series| series.missing.is_some()).count();
    let lacking = match without {
        0 => String::new(),
        some => format!("{} missing or incomplete.", counted(some, "series is", "series are")),
    };
    let caption = format!("{} {lacking}", prose(figure.caption.trim()));
    let data = data(number, figure);
    numbered_figure((number, &name_of(figure)), &chart(figure), caption.trim(), &data)
}

fn has_points(figure: &FigureOutcome) -> bool {
    figure.series.iter().any(|series| !series.points.is_empty())
}

/// The name of a figure's place on the page.
fn name_of(figure: &FigureOutcome) -> String {
    format!("figure-{}", figure.id)
}

/// Why series, or points of them, are missing, each reason once.
fn missing(figure: &FigureOutcome) -> String {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for series in &figure.series {
        let Some(why) = series.missing.as_deref() else { continue };
        let (why, label) = (why.trim_end_matches('.'), series.label.trim_end_matches('.'));
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, labels)) => labels.push(label),
            None => reasons.push((why, vec![label])),
        }
    }
    let sentence = |(why, labels): (&str, Vec<&str>)| format!("{}: {why}.", labels.join("; "));
    match reasons.is_empty() {
        true => String::new(),
        false => {
            let all: Vec<String> = reasons.into_iter().map(sentence).collect();
            format!("Missing here: {}", all.join(" "))
        }
    }
}

fn chart(figure: &FigureOutcome) -> Chart {
    let points = || figure.series.iter().flat_map(|series| &series.points);
    let nothing = std::iter::empty;
    let (x, y) = (&figure.x, &figure.y);
    let groups = groups(&figure.series);
    // How many of the group's series were seen, of the paper's and of those measured here.
    let mut seen = vec![[0; 2]; figure.series.len()];
    let traces = figure.series.iter().zip(groups).map(|(series, group)| {
        let nth = &mut seen[group][usize::from(series.is_theirs)];
        *nth += 1;
        (series, group, *nth - 1)
    });
    let traces: Vec<(&Series, usize, usize)> = traces.collect();
    let x = Axis::over(&x.label, &x.unit, x.is_log, points().map(|point| point.x), nothing());
    let ends = points().filter_map(|point| point.high);
    let y = Axis::over(&y.label, &y.unit, y.is_log, points().map(|point| point.y), ends);
    let drawn = traces.iter().filter(|(series, ..)| !series.points.is_empty());
    let traces = drawn.map(|(series, group, nth)| trace(series, (*group, *nth), figure, (&x, &y)));
    Chart { title: figure.title.clone(), traces: traces.collect(), x, y, shade: None }
}

fn trace(
    series: &Series,
    (group, nth): (usize, usize),
    figure: &FigureOutcome,
    axes: (&Axis, &Axis),
) -> Trace {
    let dash = match (series.is_theirs, nth % 3) {
        (true, _) => Dash::Dashed,
        (false, 0) => Dash::Solid,
        (false, 1) => Dash::Mixed,
        (false, _) => Dash::Dotted,
    };
    let mut strokes = Vec::new();
    if series.points.len() >= LINE_POINTS_MIN {
        let points = series.points.iter().map(|point| (point.x, point.y)).collect();
        strokes.push(Stroke { points, dash, width: if series.is_theirs { 1.2 } else { 1.6 } });
    }
    let look = |point: &PointShown| match (series.is_theirs, point.is_valid) {
        (true, _) => Look::Hollow,
        (false, true) => Look::Solid,
        (false, false) => Look::Cross,
    };
    let mark = |point: &PointShown| Mark {
        x: point.x,
        y: point.y,
        low: point.low,
        high: point.high,
        look: look(point),
        words: format!(
            "{}, {}: {}",
            series.label,
            along(point.x, &figure.x),
            value(series, point, &figure.y.unit)
        ),
    };
    Trace {
        label: series.label.clone(),
        colour: group,
        shape: group + nth,
        band: Vec::new(),
        strokes,
        fit: series.trend.map(|line| fitted(line, series, axes)),
        marks: series.points.iter().map(mark).collect(),
    }
}

/// The straight line between the ends of a series; where an axis is logarithmic it is bent.
fn fitted(line: Line, series: &Series, (x, y): (&Axis, &Axis)) -> Stroke {
    let xs = || series.points.iter().map(|point| point.x);
    let (low, high) = (xs().fold(f64::INFINITY, f64::min), xs().fold(f64::NEG_INFINITY, f64::max));
    let steps = if x.is_log() || y.is_log() { BENT_STEPS } else { 1 };
    let ends = x.place(low).zip(x.place(high));
    let at = |step: u32| {
        let part = f64::from(step) / f64::from(steps);
        ends.map_or(low + (high - low) * part, |(from, to)| x.value(from + (to - from) * part))
    };
    let points = (0..=steps).map(at).map(|x| (x, line.intercept + line.slope * x));
    Stroke { points: points.collect(), dash: Dash::Dotted, width: 0.9 }
}

/// Which series have a colour in common: those whose labels begin alike, up to a comma or a
/// bracket, as `HTTP (paper)` and `HTTP, as published`.
fn groups(series: &[Series]) -> Vec<usize> {
    let mut keys: Vec<String> = Vec::new();
    let key = |label: &str| {
        let end = label.find([',', '(']).unwrap_or(label.len());
        label[..end].trim().to_lowercase()
    };
    let mut place = |key: String| match keys.iter().position(|known| *known == key) {
        Some(place) => place,
        None => {
            keys.push(key);
            keys.len() - 1
        }
    };
    series.iter().map(|own| place(key(&own.label))).collect()
}

/// The figures that are drawn, a row for each place along, and the fitted lines.
fn data(number: usize, figure: &FigureOutcome) -> String {
    let drawn = || figure.series.iter().filter(|series| !series.points.is_empty());
    let mut xs: Vec<f64> =
        drawn().flat_map(|series| series.points.iter().map(|point| point.x)).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let heads: String =
        drawn().map(|series| format!("<th scope=\"col\">{}</th>", escape(&series.label))).collect();
    let mut html = format!(
        "<details><summary>Data of figure {number}</summary><div class=\"wide\" tabindex=\"0\" \
         role=\"region\" aria-label=\"Data of figure {number}\"><table>\n<thead><tr><th \
         scope=\"col\">{}</th>{heads}</tr></thead>\n<tbody>\n",
        escape(&figure.x.label),
    );
    for x in xs {
        let cells: String = drawn().map(|series| cell(series, x, &figure.y.unit)).collect();
        let x = escape(&in_unit_or_whole(x, &figure.x.unit));
        let _ = writeln!(html, "<tr><th scope=\"row\">{x}</th>{cells}</tr>");
    }
    html += "</tbody></table></div>\n";
    let missing = missing(figure);
    if !missing.is_empty() {
        let _ = writeln!(html, "<p>{}</p>", prose(&missing));
    }
    for (series, line) in drawn().filter_map(|series| Some((series, series.trend?))) {
        let _ = writeln!(
            html,
            "<p class=\"note\">{}: least squares, slope {} for {}, {} at 0.</p>",
            escape(&series.label),
            escape(&in_unit(line.slope, &figure.y.unit)),
            escape(&each(&figure.x)),
            escape(&in_unit(line.intercept, &figure.y.unit)),
        );
    }
    html + "</details>"
}

/// One step along an axis: `each client`, `each 1.00 s of poll period`.
fn each(axis: &AxisShown) -> String {
    match axis.unit.as_str() {
        "" => format!("each {}", axis.label.strip_suffix('s').unwrap_or(&axis.label)),
        unit => format!("each {} of {}", in_unit(1.0, unit), axis.label),
    }
}

fn cell(series: &Series, x: f64, unit: &str) -> String {
    let Some(point) = series.points.iter().find(|point| point.x == x) else {
        return "<td>–</td>".to_owned();
    };
    let (class, mark) = if point.is_valid { ("", "") } else { (" class=\"bad\"", "× ") };
    format!("<td{class}>{mark}{}</td>", escape(&value(series, point, unit)))
}

fn value(series: &Series, point: &PointShown, unit: &str) -> String {
    match series.is_theirs {
        true => printed(point.y, unit),
        false => with_interval(point.y, (point.low, point.high), unit),
    }
}

/// A place along: `50 clients`, `poll period 250 ms`.
fn along(x: f64, axis: &AxisShown) -> String {
    let value = in_unit_or_whole(x, &axis.unit);
    match axis.unit.as_str() {
        "" => format!("{value} {}", axis.label),
        _ => format!("{} {value}", axis.label),
    }
}

/// Whole numbers without a unit in full, all else with three digits.
fn in_unit_or_whole(x: f64, unit: &str) -> String {
    match unit.is_empty() && x.fract() == 0.0 && (0.0..1e15).contains(&x) {
        true => count(x as u64),
        false => in_unit(x, unit),
    }
}

/// A line through fewer points would suggest a law.
const LINE_POINTS_MIN: usize = 3;

/// Pieces of a line that is drawn bent.
const BENT_STEPS: u32 = 24;
