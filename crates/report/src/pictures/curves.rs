//! Percentile curves as HdrHistogram plots them: each step to the right is ten times fewer
//! messages.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use weigh_model::event::TrialFinished;
use weigh_model::ledger::Ledger;
use weigh_stats::Histogram;
use weigh_stats::quantile::quantile_with_loss;

use super::picture::{Kind, Picture, lean, part};
use super::scale;
use crate::figures::capital;
use crate::summary::lateness::is_withheld;
use crate::summary::matrix::COLOURS;
use crate::summary::quantiles::copies;
use crate::summary::{Matrix, Summary};

/// Data of the recorded times of all cells: points and bins, not the histograms, which would take a
/// quarter of a megabyte each.
pub(crate) struct Recorded {
    cells: Vec<BTreeMap<&'static str, Times>>,
}

/// A recorded time of one cell, all repetitions together.
pub(crate) struct Times {
    /// Number of messages with a time.
    pub(crate) count: u64,
    /// Messages that were lost: infinite delay.
    pub(crate) lost: u64,
    /// `log10(1 / (1 - q))` and the quantile in nanoseconds.
    curve: Vec<(f64, u64)>,
    /// Bins of equal width in powers of ten: from, to (both `log10` of nanoseconds), how many.
    pub(crate) bins: Vec<(f64, f64, u64)>,
}

impl Recorded {
    /// Reads the recorded times, cell by cell.
    ///
    /// A time whose median or p99 are mostly the generator's lateness is left out.
    pub(crate) fn of(summary: &Summary, trials: &[Vec<&TrialFinished>]) -> Recorded {
        let of_cell = |(index, trials): (usize, &Vec<&TrialFinished>)| {
            let mut times = read(trials);
            times.retain(|time, _| {
                let is_late = |part| is_withheld(&summary.cells[index], &format!("{time}.{part}"));
                !["p50", "p99"].into_iter().any(is_late)
            });
            times
        };
        Recorded { cells: trials.iter().enumerate().map(of_cell).collect() }
    }

    /// The recorded time of a cell.
    pub(crate) fn times(&self, cell: usize, time: &str) -> Option<&Times> {
        self.cells[cell].get(time)
    }
}

/// The times of curves and histograms: those that begin with the due time.
pub(crate) const TIMES: [&str; 2] = ["response_time_ns", "delivery_time_ns"];

fn read(trials: &[&TrialFinished]) -> BTreeMap<&'static str, Times> {
    let mut ledger = Ledger::zero();
    trials.iter().for_each(|trial| ledger.add(&trial.ledger));
    let mut read = BTreeMap::new();
    let mut merged = BTreeMap::new();
    for time in TIMES {
        let texts = trials.iter().filter_map(|trial| trial.histograms.get(time));
        let all = texts.filter_map(|text| Histogram::from_base64(text).ok());
        let sum = all.reduce(|mut sum, next| {
            sum.merge(&next);
            sum
        });
        merged.extend(sum.filter(|sum| !sum.is_empty()).map(|sum| (time, sum)));
    }
    let delivers = merged.contains_key("delivery_time_ns");
    let copies = copies(&ledger);
    for (time, histogram) in &merged {
        let lost = ledger.infinite(time, delivers, copies);
        let times = Times {
            count: histogram.count(),
            lost,
            curve: curve(histogram, lost),
            bins: bins(histogram),
        };
        read.insert(*time, times);
    }
    read
}

/// The quantiles from the median to the last one that the data support; points on a level are left
/// out.
fn curve(histogram: &Histogram, lost: u64) -> Vec<(f64, u64)> {
    let reach = ((histogram.count() + lost) as f64).log10().min(NINES_MAX);
    let mut places = vec![2f64.log10()];
    places.extend((4..).map(|step| f64::from(step) / 10.0).take_while(|x| *x <= reach));
    let quantile = |x: f64| quantile_with_loss(histogram, lost, 1.0 - 10f64.powf(-x));
    let mut curve: Vec<(f64, u64)> = Vec::new();
    for (x, value) in places.into_iter().map_while(|x| Some((x, quantile(x)?))) {
        let is_level = matches!(curve[..], [.., (_, a), (_, b)] if a == value && b == value);
        if is_level {
            curve.pop();
        }
        curve.push((x, value));
    }
    curve
}

fn bins(histogram: &Histogram) -> Vec<(f64, f64, u64)> {
    let log = |value: Option<u64>| (value.unwrap_or(1).max(1) as f64).log10();
    let (low, high) = (log(histogram.min()), log(histogram.max()));
    let steps = [1, 2, 5, 10, 20, 50, 100, 200, 500].map(|step| f64::from(step) / 1_000.0);
    let fits = steps.into_iter().find(|step| (high - low) / step <= BINS_MAX);
    let width = fits.unwrap_or(1.0).max(BIN_MIN);
    let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
    for (value, count) in histogram.recorded() {
        let bin = ((value.max(1) as f64).log10() / width).floor() as i64;
        *counts.entry(bin).or_default() += count;
    }
    let edge = |bin: i64| (bin as f64 * width * 1e4).round() / 1e4;
    counts.into_iter().map(|(bin, count)| (edge(bin), edge(bin + 1), count)).collect()
}

/// The curves of both times, for every group of cells.
pub(crate) fn pictures(summary: &Summary, matrix: &Matrix, recorded: &Recorded) -> Vec<Picture> {
    let mut pictures = Vec::new();
    for time in TIMES {
        for (number, group) in matrix.groups.iter().enumerate() {
            let has = |cell: &&usize| {
                recorded.times(**cell, time).is_some_and(|times| !times.curve.is_empty())
            };
            let cells: Vec<usize> = group.cells.iter().filter(has).copied().collect();
            for (index, chunk) in cells.chunks(COLOURS).enumerate() {
                let first = index * COLOURS;
                let part = part(first, first + chunk.len(), cells.len());
                let mut picture = picture(time, &group.name, matrix, recorded, chunk);
                let names = [(matrix.groups.len() > 1, number), (!part.is_empty(), index)];
                for (_, number) in names.iter().filter(|(is_needed, _)| *is_needed) {
                    picture.name += &format!("-{}", number + 1);
                }
                picture.part = part;
                if summary.cells.iter().any(|cell| cell.repetitions > 1) {
                    picture.note += POOLED;
                }
                pictures.push(picture);
            }
        }
    }
    pictures
}

fn picture(
    time: &str,
    group: &str,
    matrix: &Matrix,
    recorded: &Recorded,
    cells: &[usize],
) -> Picture {
    let having: Vec<(usize, &Times)> =
        cells.iter().filter_map(|cell| Some((*cell, recorded.times(*cell, time)?))).collect();
    let values = || having.iter().flat_map(|(_, times)| times.curve.iter().map(|point| point.1));
    let low = values().min().unwrap_or(1).max(1) as f64;
    let high = values().max().unwrap_or(1).max(1) as f64;
    let reach = having.iter().flat_map(|(_, times)| times.curve.last()).map(|point| point.0);
    let reach = reach.fold(2.0, f64::max);
    let series: Vec<Value> =
        having.iter().map(|(cell, times)| series(matrix, *cell, times)).collect();
    let marks = [2f64.log10(), 1.0, 2.0, 3.0, 4.0, 5.0].into_iter();
    let marks: Vec<Value> = marks.filter(|x| *x <= reach).map(lean).collect();
    let at = if group.is_empty() { String::new() } else { format!(", {group}") };
    let note =
        "A curve that ends early: the remaining messages were lost, or too few were measured.";
    Picture {
        name: format!("curve-{time}"),
        kind: Kind::Curve,
        subject: time.to_owned(),
        part: String::new(),
        title: format!("{} by percentile{at}", capital(time)),
        note: note.to_owned(),
        height: 350,
        about: json!({ "unit": "ns", "group": group }),
        option: json!({
            "grid": { "top": 10, "left": 70, "right": 26, "height": 290 },
            "legend": {},
            "tooltip": { "trigger": "axis", "formatter": "@curve" },
            "xAxis": {
                "type": "value", "min": lean(2f64.log10()), "max": lean(reach),
                "name": "percentile", "nameLocation": "middle", "nameGap": 30,
                "axisLabel": { "formatter": "@percentile", "customValues": marks },
                "axisTick": { "customValues": marks },
            },
            "yAxis": scale::logarithmic(low, high),
            "series": series,
        }),
    }
}

fn series(matrix: &Matrix, cell: usize, times: &Times) -> Value {
    let data: Vec<Value> =
        times.curve.iter().map(|(x, value)| json!([lean(*x), lean(*value as f64)])).collect();
    let colour = matrix.colours[cell];
    json!({
        "type": "line", "name": matrix.labels[cell], "color": format!("$c{colour}"),
        "look": colour, "showSymbol": false, "symbolSize": 7, "lineStyle": { "width": 2 },
        "data": data,
    })
}

/// What to add if cases have several repetitions.
const POOLED: &str = " This picture pools the repetitions; the figures in the tables do not.";

/// Beyond p99.999 there are too few messages.
const NINES_MAX: f64 = 5.0;

/// Maximum number of bins of a histogram, and their minimum width: five times the resolution of
/// recorded times.
const BINS_MAX: f64 = 60.0;

const BIN_MIN: f64 = 0.002;

#[cfg(test)]
mod tests {
    use super::*;

    /// 1,000 values from 1 to 1,000 µs: the q-quantile is q ms, and with as many lost again the
    /// median is the largest of all and nothing is above it.
    #[test]
    fn a_curve_ends_where_the_lost_share_begins() {
        let mut histogram = Histogram::new();
        (1..=1_000).for_each(|step| histogram.record(step * 1_000));
        let whole = curve(&histogram, 0);
        let (x, value) = whole[0];
        assert!((x - 0.301).abs() < 1e-3 && value.abs_diff(500_000) < 1_000, "{whole:?}");
        let at_90 = whole.iter().find(|(x, _)| (*x - 1.0).abs() < 1e-9).unwrap();
        assert!(at_90.1.abs_diff(900_000) < 1_000, "{whole:?}");
        assert!((whole.last().unwrap().0 - 3.0).abs() < 1e-9, "1,000 values carry p99.9");
        assert_eq!(curve(&histogram, 1_000).len(), 1);
    }

    #[test]
    fn bins_hold_every_value() {
        let mut histogram = Histogram::new();
        (0..10_000u64).for_each(|step| histogram.record(1 << (step % 40)));
        let bins = bins(&histogram);
        assert_eq!(bins.iter().map(|(.., count)| count).sum::<u64>(), 10_000);
        assert!(bins.len() <= 61 && bins.iter().all(|(from, to, _)| from < to), "{bins:?}");
    }
}
