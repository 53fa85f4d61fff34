//! The pictures of a study: published and measured series as points on the same axes.

use weigh_stats::line::Line as Fitted;

use crate::measuring::Measuring;
use crate::outcome::{FigureOutcome, Line, Link, PointShown, Series};
use crate::selector;
use crate::study::{Figure, OurSeries, Study, TheirSeries};

pub(crate) fn draw(figure: &Figure, study: &Study, measuring: &Measuring<'_>) -> FigureOutcome {
    let theirs = figure.theirs.iter().map(|series| their(series, study));
    let ours = figure.ours.iter().map(|series| our(series, measuring));
    let mut series: Vec<Series> = theirs.chain(ours).collect();
    if figure.has_trend {
        series.iter_mut().for_each(|one| one.trend = trend(&one.points));
    }
    FigureOutcome {
        id: figure.id.clone(),
        title: figure.title.clone(),
        caption: figure.caption.clone(),
        x: figure.x.clone(),
        y: figure.y.clone(),
        series,
    }
}

fn their(series: &TheirSeries, study: &Study) -> Series {
    let cells: Vec<_> = series.cells.iter().map(|at| &study.published.cells[*at]).collect();
    let point = |cell: &&crate::published::Cell| {
        let y = cell.value * series.scale;
        let x = series.at.or_else(|| cell.x_value())?;
        Some(PointShown { x, y, low: None, high: None, is_valid: true })
    };
    let place = cells.first().map(|cell| format!("{}, {}", cell.table, cell.series));
    Series {
        label: series.label.clone(),
        is_theirs: true,
        points: cells.iter().filter_map(point).collect(),
        trend: None,
        missing: None,
        links: place.into_iter().map(|cell| Link { cell, ..Link::default() }).collect(),
    }
}

fn our(series: &OurSeries, measuring: &Measuring<'_>) -> Series {
    let mut shown = Series {
        label: series.label.clone(),
        is_theirs: false,
        points: Vec::new(),
        trend: None,
        missing: None,
        links: Vec::new(),
    };
    let cells = match measuring.points(&series.run, &series.at) {
        Ok(cells) => cells,
        Err(absent) => {
            shown.missing = Some(absent.reason);
            return shown;
        }
    };
    let mut without = 0;
    for (cell, point, link) in cells {
        let metric = cell.metrics.get(&series.metric);
        let x = point.get(&series.over).and_then(selector::number);
        let Some((x, metric, value)) =
            x.zip(metric).and_then(|(x, metric)| Some((x, metric, metric.value?)))
        else {
            without += 1;
            continue;
        };
        let scaled = |value: f64| value * series.scale;
        shown.points.push(PointShown {
            x,
            y: scaled(value),
            low: metric.low.map(scaled),
            high: metric.high.map(scaled),
            is_valid: cell.invalidated_by(&series.metric).is_none(),
        });
        shown.links.push(link);
    }
    shown.points.sort_by(|left, right| left.x.total_cmp(&right.x));
    shown.missing = missing(without, &series.metric);
    shown
}

/// Text for cells that have no such figure.
fn missing(cells: usize, metric: &str) -> Option<String> {
    match cells {
        0 => None,
        1 => Some(format!("one cell has no {metric}")),
        more => Some(format!("{more} cells have no {metric}")),
    }
}

/// The straight line through the valid points; through two of them any line goes.
fn trend(points: &[PointShown]) -> Option<Line> {
    let valid = points.iter().filter(|point| point.is_valid);
    let points: Vec<(f64, f64)> = valid.map(|point| (point.x, point.y)).collect();
    if points.len() < LINE_POINTS_MIN {
        return None;
    }
    let Fitted { slope, intercept, .. } = Fitted::through(&points)?;
    Some(Line { slope, intercept })
}

/// Points that a straight line says something of.
const LINE_POINTS_MIN: usize = 3;
