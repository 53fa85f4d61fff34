//! The pictures of a paper drawn again: their figures hollow and dashed, ours solid with their
//! intervals, on the same axes.

use serde_json::{Value, json};
use weigh_report::pictures::{Kind, Picture, lean, scale};

use crate::outcome::{AxisShown, FigureOutcome, Outcome, Series};

/// Every picture of the study that has a point. They refer to no data but their own, and can be
/// drawn on a page and by `weigh_charts::Artist` alike.
pub fn pictures(outcome: &Outcome) -> Vec<Picture> {
    let has_point = |figure: &&FigureOutcome| figure.series.iter().any(|s| !s.points.is_empty());
    let figures = outcome.figures.iter().filter(has_point).map(picture);
    figures.chain(super::carry::pictures(outcome)).collect()
}

/// The name of a figure's picture.
pub(super) fn name_of(figure: &FigureOutcome) -> String {
    format!("figure-{}", figure.id)
}

fn picture(figure: &FigureOutcome) -> Picture {
    let groups = groups(&figure.series);
    let mut series: Vec<Value> = Vec::new();
    // How many of the group's were seen, of theirs and of ours.
    let mut seen = vec![[0; 2]; figure.series.len()];
    for (own, group) in figure.series.iter().zip(&groups) {
        let nth = &mut seen[*group][usize::from(own.is_theirs)];
        series.push(line(own, *group, *nth));
        *nth += 1;
        series.extend(trend(own, *group, figure));
    }
    let drawn = figure.series.iter().filter(|own| !own.points.is_empty());
    let names: Vec<&str> = drawn.map(|own| own.label.as_str()).collect();
    Picture {
        name: name_of(figure),
        kind: Kind::Beside,
        subject: figure.id.clone(),
        part: String::new(),
        title: figure.title.clone(),
        note: note(figure),
        height: 372,
        about: json!({
            "unit": unit_of(&figure.y), "x": figure.x.label, "x_unit": figure.x.unit,
        }),
        option: json!({
            "grid": { "top": 34, "left": 74, "right": 22, "height": 284 },
            "legend": { "data": names },
            "tooltip": { "trigger": "item", "formatter": "@beside" },
            "xAxis": x(figure),
            "yAxis": y(figure),
            "series": series,
        }),
    }
}

/// How to read it, what to see in it, and what is missing.
fn note(figure: &FigureOutcome) -> String {
    let ours = || figure.series.iter().filter(|own| !own.is_theirs).flat_map(|own| &own.points);
    let has_intervals = ours().any(|point| point.low.is_some());
    let has_gaps = ours().any(|point| point.low.is_none());
    let mut note = figure.caption.trim().replace('`', "");
    let drawn = || figure.series.iter().filter(|own| !own.points.is_empty());
    let has = |theirs: bool| drawn().any(|own| own.is_theirs == theirs);
    if has(true) {
        note += " Hollow and dashed: the paper's.";
    }
    note += match (has(true), has(false)) {
        (_, false) => "",
        (true, true) => " Solid and dotted: ours",
        (false, true) => " All of it is ours: no figure of the paper is in it",
    };
    note += match (has(false), has_intervals, has_gaps) {
        (true, true, false) => "; intervals at 95 %.",
        (true, true, true) => {
            "; intervals at 95 % where a point rests on three repetitions or more."
        }
        (true, false, true) => "; no point rests on three repetitions, so none has an interval.",
        _ => "",
    };
    if figure.series.iter().any(|own| own.trend.is_some()) {
        note += " Thin and dotted: least squares.";
    }
    if figure.series.iter().flat_map(|own| &own.points).any(|point| !point.is_valid) {
        note += " A pin marks a figure that a doubt makes invalid.";
    }
    for own in &figure.series {
        if let Some(missing) = &own.missing {
            note += &format!(" {}: {missing}.", own.label.trim_end_matches('.'));
        }
    }
    note.trim().to_owned()
}

fn line(own: &Series, group: usize, nth: usize) -> Value {
    let points: Vec<Value> = own
        .points
        .iter()
        .map(|point| {
            let end = |end: Option<f64>| end.map_or(Value::Null, lean);
            let shown = json!([lean(point.x), lean(point.y), end(point.low), end(point.high)]);
            match point.is_valid {
                true => shown,
                false => json!({ "value": shown, "symbol": "pin" }),
            }
        })
        .collect();
    let dashes = if own.is_theirs { json!("dashed") } else { DASHES[nth % DASHES.len()].into() };
    let symbol = match own.is_theirs {
        true => THEIR_SYMBOLS[nth % THEIR_SYMBOLS.len()],
        false => SYMBOLS[nth % SYMBOLS.len()],
    };
    let count = points.len();
    json!({
        "type": "line", "name": own.label, "data": points, "color": colour(group),
        // A lone point has no line to find it by.
        "symbol": symbol, "symbolSize": if count == 1 { 11 } else { 8 },
        "hasIntervals": !own.is_theirs,
        "lineStyle": { "type": dashes, "width": if own.is_theirs { 1.5 } else { 2.0 } },
        "encode": { "x": 0, "y": 1 },
    })
}

/// The straight line between the ends of a series; along a logarithmic axis it is bent.
fn trend(own: &Series, group: usize, figure: &FigureOutcome) -> Option<Value> {
    let straight = own.trend?;
    let xs = || own.points.iter().map(|point| point.x);
    let (low, high) = (xs().reduce(f64::min)?, xs().reduce(f64::max)?);
    let steps = if figure.x.is_log || figure.y.is_log { BENT_STEPS } else { 1 };
    let place = |step: u32| match f64::from(step) / f64::from(steps) {
        _ if step == steps => high,
        part if figure.x.is_log && low > 0.0 => low * (high / low).powf(part),
        part => low + (high - low) * part,
    };
    let line = (0..=steps).map(|step| {
        let x = place(step);
        (x, straight.intercept + straight.slope * x)
    });
    // A logarithmic axis has no place for 0 and below.
    let shown =
        line.filter(|(x, y)| (*x > 0.0 || !figure.x.is_log) && (*y > 0.0 || !figure.y.is_log));
    let data: Vec<Value> = shown.map(|(x, y)| json!([lean(x), lean(y)])).collect();
    Some(json!({
        "type": "line", "name": format!("{}, trend", own.label), "data": data,
        "color": colour(group), "symbol": "none", "silent": true,
        "lineStyle": { "type": "dotted", "width": 1, "opacity": 0.7 },
    }))
}

fn colour(group: usize) -> String {
    format!("$c{}", group % COLOURS)
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

fn unit_of(axis: &AxisShown) -> &str {
    match axis.unit.as_str() {
        "" => "1",
        "percent" => "%",
        unit => unit,
    }
}

fn x(figure: &FigureOutcome) -> Value {
    let xs = || figure.series.iter().flat_map(|own| own.points.iter().map(|point| point.x));
    let positive = xs().filter(|x| *x > 0.0);
    let (low, high) = (positive.fold(f64::INFINITY, f64::min), xs().fold(0.0, f64::max));
    let mut x = match figure.x.is_log && low.is_finite() {
        true => scale::logarithmic(low, high),
        false => json!({ "type": "value" }),
    };
    x["name"] = json!(figure.x.label);
    x["nameLocation"] = json!("middle");
    x["nameGap"] = json!(30);
    x["axisLabel"]["formatter"] = json!("@xmark");
    x["splitLine"] = json!({ "show": false });
    x["axisLine"] = json!({ "show": true });
    x
}

fn y(figure: &FigureOutcome) -> Value {
    let points = || figure.series.iter().flat_map(|own| &own.points);
    let ys = || points().map(|point| point.y);
    let most = ys().fold(0.0, f64::max);
    // The ends of intervals have their place too, but one that is endless must not hide the rest.
    let ends = points().filter_map(|point| point.high).filter(|end| *end <= ENDS_MAX * most);
    let positive = ys().filter(|y| *y > 0.0);
    let (low, high) = (positive.fold(f64::INFINITY, f64::min), ends.fold(most, f64::max));
    let mut y = match figure.y.is_log && low.is_finite() {
        true => scale::logarithmic(low, high),
        false => json!({ "type": "value", "axisLabel": { "formatter": "@mark" } }),
    };
    if !figure.y.is_log && high > most {
        y["max"] = lean(round_above(high));
    }
    if figure.y.unit == "B" {
        y["axisLabel"]["formatter"] = json!("@octets");
    }
    y["splitNumber"] = json!(5);
    y["name"] = json!(figure.y.label);
    y["nameTextStyle"] = json!({ "align": "left", "padding": [0, 0, 0, -62] });
    y["nameGap"] = json!(12);
    y
}

/// The next number above at which the axis has a mark: the chart library divides it by about five
/// steps of 1, 2, 3 or 5 times a power of ten.
fn round_above(value: f64) -> f64 {
    let size = 10f64.powf((value / STEPS).log10().floor());
    let step = match value / STEPS / size {
        one if one < 1.5 => 1.0,
        two if two < 2.5 => 2.0,
        three if three < 4.0 => 3.0,
        five if five < 7.0 => 5.0,
        _ => 10.0,
    } * size;
    (value / step).ceil() * step
}

/// Steps of an axis, about.
const STEPS: f64 = 5.0;

/// Intervals that end beyond so many times the largest figure are drawn as far as the axis goes.
const ENDS_MAX: f64 = 3.0;

/// Pieces of a line that is drawn bent.
const BENT_STEPS: u32 = 24;

/// Colours before they begin again.
const COLOURS: usize = 8;

/// Lines and marks of our series that share a colour.
const DASHES: [&str; 2] = ["solid", "dotted"];
const SYMBOLS: [&str; 3] = ["circle", "rect", "triangle"];

/// Marks of their series that share a colour.
const THEIR_SYMBOLS: [&str; 3] = ["emptyCircle", "emptyRect", "emptyTriangle"];
