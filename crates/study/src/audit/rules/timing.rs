//! Whether times lie on a grid (L05).

use weigh_model::Rule;

use super::bench::Bench;
use super::loading::axes;
use crate::audit::circle;
use crate::audit::figure::{Figure, Quantity, Statistic};
use crate::audit::vocabulary::duration;
use crate::audit::words;

/// L05: times that come in steps, seen by Rayleigh's test on what is left of them after whole
/// periods, or stated as a grid that is coarse beside the mean.
pub(super) fn grid(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    for table in evidence.tables() {
        for quantity in [Quantity::Latency, Quantity::OneWay, Quantity::Span] {
            for (axis, series) in axes(evidence, table, quantity) {
                let figures: Vec<&Figure> = series.iter().map(|(_, figure)| *figure).collect();
                along_axis(bench, &axis, &figures);
            }
        }
    }
    for figure in evidence.results() {
        let is_time = matches!(figure.quantity, Quantity::Latency | Quantity::Span)
            && figure.statistic != Statistic::Deviation;
        let known = evidence.known(figure, "grid").filter(|_| is_time);
        let Some(step) = known.and_then(|known| duration(known.value)) else { continue };
        let is_read = matches!(figure.statistic, Statistic::Mean | Statistic::Plain);
        bench.ask(Rule::L05);
        if is_read && figure.value > 0.0 && step > GRID_MAX * figure.value {
            let seen = format!(
                "{}: {} on a grid of {}: {} of the value",
                figure.cell(),
                figure.printed,
                words::time(step),
                words::percent(step / figure.value)
            );
            bench.find(Rule::L05, figure, seen);
        }
    }
}

fn along_axis(bench: &mut Bench<'_>, axis: &str, figures: &[&Figure]) {
    if figures.len() < VALUES_MIN {
        return;
    }
    bench.ask(Rule::L05);
    let values: Vec<f64> = figures.iter().map(|figure| figure.value).collect();
    let digit = figures.iter().map(|figure| 2.0 * figure.rounding).fold(f64::INFINITY, f64::min);
    let (low, high) = values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(*v), high.max(*v)));
    for period in PERIODS {
        // What is printed no finer than the period, or does not reach over several, shows nothing.
        if period < DIGITS_MIN * digit || high - low < PERIODS_MIN * period {
            continue;
        }
        let test = circle::rayleigh(values.iter().map(|value| value / period));
        if test.p >= P_MAX {
            continue;
        }
        let figure = figures[0];
        let seen = format!(
            "{}: all {} times along {axis} are whole multiples of {} plus {} (deviation {}); \
             Rayleigh p = {:.1e}",
            figure.named(),
            values.len(),
            words::time(period),
            words::time(test.mean * period),
            words::time(test.deviation * period),
            test.p
        );
        bench.find(Rule::L05, figure, seen);
        return;
    }
}

/// Ticks that tools and systems have, seconds.
const PERIODS: [f64; 4] = [1.0, 0.1, 0.01, 0.001];

/// Times that a test of a grid needs.
const VALUES_MIN: usize = 6;

/// How many of the last printed digit a period must hold.
const DIGITS_MIN: f64 = 5.0;

/// Number of periods that the times must span, so that a common grid is not a coincidence.
const PERIODS_MIN: f64 = 5.0;

/// The chance below which a grid is one: with four periods and a hundred series in a study, one
/// study in fifty would be accused wrongly.
const P_MAX: f64 = 5e-5;

/// The share of a time that its grid may be.
const GRID_MAX: f64 = 0.05;
