//! A metric along a key of the plan: a line for each remaining point, bars for the intervals.

use serde_json::{Value, json};

use super::picture::{Kind, Picture, of_repetitions, part};
use super::scale;
use crate::figures::capital;
use crate::summary::matrix::{Axis, COLOURS, Line};
use crate::summary::{Matrix, Metric, Summary};
use weigh_model::metrics::unit_of;

/// The pictures of one metric: one for every axis, or several where there are many lines.
pub(crate) fn pictures(summary: &Summary, matrix: &Matrix, metric: &str) -> Vec<Picture> {
    matrix.axes.iter().flat_map(|axis| of_axis(summary, axis, metric)).collect()
}

fn of_axis(summary: &Summary, axis: &Axis, metric: &str) -> Vec<Picture> {
    let has = |(_, line): &(usize, &Line)| of_line(summary, line, metric).count() > 1;
    let lines: Vec<(usize, &Line)> = axis.lines.iter().enumerate().filter(has).collect();
    let chunks = lines.chunks(COLOURS).enumerate();
    let make = |(index, chunk): (usize, &[(usize, &Line)])| {
        let first = index * COLOURS;
        let part = part(first, first + chunk.len(), lines.len());
        picture(summary, axis, metric, chunk, part, index)
    };
    chunks.map(make).collect()
}

fn picture(
    summary: &Summary,
    axis: &Axis,
    metric: &str,
    lines: &[(usize, &Line)],
    part: String,
    index: usize,
) -> Picture {
    let figures = || lines.iter().flat_map(|(_, line)| of_line(summary, line, metric));
    let means = || figures().filter_map(|figure| figure.value);
    let low = means().fold(f64::INFINITY, f64::min);
    let high = means().fold(0.0, f64::max);
    let reach = figures().filter_map(|figure| figure.high).fold(0.0, f64::max);
    let number = if part.is_empty() { String::new() } else { format!("-{}", index + 1) };
    let short = Matrix::short(&axis.key);
    let mut y = scale::axis(low, high, reach);
    y["splitNumber"] = json!(5);
    // The bundle takes the line, its name, its colour and its intervals from the data shared by all
    // pictures.
    let series: Vec<Value> =
        lines.iter().map(|(line, _)| json!({ "$line": [metric, axis.number, line] })).collect();
    let lines_shown = if part.is_empty() { String::new() } else { format!(" Lines {part}.") };
    Picture {
        name: format!("axis-{}-{metric}{number}", axis.key),
        kind: Kind::Axis,
        subject: metric.to_owned(),
        title: format!("{} along {short}", capital(metric)),
        note: format!(
            "Means with their intervals at 95 % ({}).{}{lines_shown}",
            of_repetitions(figures()),
            if figures().any(|figure| figure.value.is_none()) { INFINITE } else { "" }
        ),
        part,
        height: 330,
        about: json!({ "unit": unit_of(metric), "x": short, "x_unit": axis.unit }),
        option: json!({
            "grid": { "top": 10, "left": 74, "right": 22, "height": 270 },
            "legend": {},
            "tooltip": { "trigger": "axis", "formatter": "@axis" },
            "xAxis": x(axis, short),
            "yAxis": y,
            "series": series,
        }),
    }
}

/// The axis: logarithmic if its ends are far apart.
fn x(axis: &Axis, short: &str) -> Value {
    let places = || axis.lines.iter().flat_map(|line| line.places.iter().map(|place| place.0));
    let low = places().fold(f64::INFINITY, f64::min);
    let high = places().fold(0.0, f64::max);
    let is_wide = low > 0.0 && high / low > 50.0;
    let mut x = if is_wide { scale::logarithmic(low, high) } else { json!({ "type": "value" }) };
    x["name"] = json!(short);
    x["nameLocation"] = json!("middle");
    x["nameGap"] = json!(30);
    x["scale"] = json!(true);
    x["axisLabel"]["formatter"] = json!("@xmark");
    x["splitLine"] = json!({ "show": false });
    x["axisLine"] = json!({ "show": true });
    x
}

fn of_line<'a>(
    summary: &'a Summary,
    line: &'a Line,
    metric: &'a str,
) -> impl Iterator<Item = &'a Metric> {
    line.places.iter().filter_map(move |(_, cell)| summary.cells[*cell].shown(metric))
}

const INFINITE: &str = " A quantile in the lost share is infinite and has no point.";
