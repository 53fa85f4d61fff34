//! Rules about the load: Little's law, rates that are settings, ramps, grids of saturation.

use std::collections::HashMap;

use weigh_model::Rule;

use super::bench::Bench;
use crate::audit::figure::{Evidence, Figure, Quantity, Statistic};
use crate::audit::vocabulary::{count, duration, rate};
use crate::audit::words;

/// L01: X (R + Z) / N of a closed loop is 1 within 2 %, for all values that are printed like this.
pub(super) fn little(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    for (throughput, latency) in pairs(evidence) {
        let Some(clients) = clients(evidence, throughput) else { continue };
        if offered(evidence, throughput).is_some() {
            continue;
        }
        bench.ask(Rule::L01);
        let think = evidence.known(throughput, "think").and_then(|known| duration(known.value));
        let cycle = |latency: f64| latency + think.unwrap_or(0.0);
        let (low, high) = throughput.bounds();
        let (least, most) = latency.bounds();
        let (least, most) = (low * cycle(least) / clients, high * cycle(most) / clients);
        // Where a load may pause, fewer in flight than clients are no contradiction.
        let pace = evidence.known(throughput, "pace").map(|known| known.value);
        let may_pause = think.is_none() && matches!(pace, Some("paced" | "paused"));
        if least <= 1.0 + LITTLE_MAX && (may_pause || most >= 1.0 - LITTLE_MAX) {
            continue;
        }
        let at_most = clients / cycle(latency.value);
        let pause = think.map_or(String::new(), |think| format!(" + {} pause", words::time(think)));
        let mut seen = format!(
            "{}: {} clients / ({} mean{pause}) gives {}, the table says {}: {}",
            throughput.named(),
            words::number(clients),
            words::time(latency.value),
            words::rate(at_most),
            words::rate(throughput.value),
            words::factor(throughput.value / at_most),
        );
        if let Some(ramp) = evidence.known(throughput, "ramp") {
            let in_flight = throughput.value * cycle(latency.value);
            seen += &format!(
                ", {} in flight (half is the mean of a ramp, and there is one of {})",
                words::number(in_flight),
                ramp.value
            );
        } else if think.is_none() && (0.8..1.0).contains(&most) {
            seen += "; the rest is a pause that is not stated, or time in the generator itself";
        }
        bench.find(Rule::L01, throughput, seen);
    }
}

/// L03: an achieved rate within 2 % of the offered one that is called a capacity, or is compared
/// with rates that were not set.
pub(super) fn setting(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    let rates = |figure: &&Figure| {
        figure.quantity == Quantity::Throughput && figure.statistic != Statistic::Deviation
    };
    for figure in evidence.results().filter(rates) {
        let Some((offered, how)) = offered(evidence, figure) else { continue };
        bench.ask(Rule::L03);
        let reached = figure.value / offered;
        if !(0.98..=1.005).contains(&reached) {
            continue;
        }
        let is_set = |subjects: &[String]| {
            let of_subjects = |other: &&Figure| other.subjects == subjects;
            let mut own = evidence.results().filter(rates).filter(of_subjects);
            own.any(|other| self::offered(evidence, other).is_some())
        };
        let compared = evidence
            .results()
            .filter(rates)
            .find(|other| other.subjects != figure.subjects && !is_set(&other.subjects));
        let claimed = match compared {
            _ if figure.is_limit => "and it is called a capacity".to_owned(),
            Some(other) => {
                format!("and it is compared with the {} of {}", other.printed, other.named())
            }
            None => continue,
        };
        let seen = format!(
            "{}: {how} offers {}, {} was reached: {}, {claimed}",
            figure.named(),
            words::rate(offered),
            words::rate(figure.value),
            words::percent(reached),
        );
        bench.find(Rule::L03, figure, seen);
    }
}

/// L04: a statistic over a window in which the clients changed by more than 5 %.
pub(super) fn ramp(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    for figure in evidence.results() {
        let is_statistic = matches!(figure.quantity, Quantity::Throughput | Quantity::Latency);
        if !is_statistic {
            continue;
        }
        let level = |statistic| {
            let mut cell = evidence.cell_of(figure);
            cell.find(|other| other.quantity == Quantity::Clients && other.statistic == statistic)
        };
        if let (Some(least), Some(most)) = (level(Statistic::Min), level(Statistic::Max)) {
            bench.ask(Rule::L04);
            if least.value < (1.0 - RAMP_MAX) * most.value {
                let seen = format!(
                    "{}: from {} to {} clients in one window",
                    figure.named(),
                    words::number(least.value),
                    words::number(most.value)
                );
                bench.find(Rule::L04, figure, seen);
            }
            continue;
        }
        let Some(ramp) = evidence.known(figure, "ramp") else { continue };
        bench.ask(Rule::L04);
        let Some(ramp_s) = duration(ramp.value).filter(|ramp| *ramp > 0.0) else { continue };
        let window = evidence.known(figure, "duration").and_then(|known| duration(known.value));
        let window = window.or_else(|| counted_window(evidence, figure));
        if window.is_some_and(|window| ramp_s < RAMP_MAX * window) {
            continue;
        }
        let share = window.map_or(String::new(), |window| match window < CUT_MAX * ramp_s {
            true => format!(", which ends after {}", words::time(window)),
            false => format!(
                ", {} of the window of {}",
                words::percent((ramp_s / window).min(1.0)),
                words::time(window)
            ),
        });
        let to = clients(evidence, figure)
            .map_or(String::new(), |clients| format!(" to {} clients", words::number(clients)));
        let seen = format!("{}: a ramp of {}{to}{share}", figure.named(), words::time(ramp_s));
        bench.find(Rule::L04, figure, seen);
    }
}

/// L10: the first loss along an axis is in a step of more than 5 % of the answer, or a capacity
/// rests on one trial.
pub(super) fn saturation(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    for table in evidence.tables() {
        for (axis, series) in axes(evidence, table, Quantity::Accepted) {
            let first = series.iter().position(|(_, figure)| figure.value < WHOLE);
            let Some(first) = first.filter(|first| *first > 0) else { continue };
            // A search ends where it has found something; a survey goes on.
            if series.len() - first > SEARCH_TAIL {
                continue;
            }
            bench.ask(Rule::L10);
            let ((good, _), (bad, figure)) = (series[first - 1], series[first]);
            let step = (bad - good) / bad;
            if step > STEP_MAX {
                let seen = format!(
                    "{}: no loss at {} {axis}, {} at {}: a step of {}, from one trial each",
                    figure.named(),
                    words::number(good),
                    figure.printed,
                    words::number(bad),
                    words::percent(step),
                );
                bench.find(Rule::L10, figure, seen);
            }
        }
    }
    for figure in evidence.results().filter(|figure| figure.is_limit) {
        let Some(trials) = evidence.known(figure, "trials").and_then(|known| count(known.value))
        else {
            continue;
        };
        bench.ask(Rule::L10);
        if trials < 2.0 {
            let seen = format!("{}: {} rests on a single trial", figure.named(), figure.printed);
            bench.find(Rule::L10, figure, seen);
        }
    }
}

/// The window that a count and a rate of one cell make, seconds.
pub(super) fn counted_window(evidence: &Evidence, figure: &Figure) -> Option<f64> {
    let of = |quantity| {
        evidence
            .cell_of(figure)
            .find(|other| other.quantity == quantity && other.statistic != Statistic::Deviation)
    };
    let (samples, rate) = (of(Quantity::Count)?, of(Quantity::Throughput)?);
    (rate.value > 0.0).then_some(samples.value / rate.value)
}

/// Throughput and mean latency of the same cell.
pub(super) fn pairs(evidence: &Evidence) -> Vec<(&Figure, &Figure)> {
    let throughputs = evidence.results().filter(|figure| {
        figure.quantity == Quantity::Throughput && figure.statistic != Statistic::Deviation
    });
    throughputs
        .filter_map(|throughput| {
            let latency = evidence.cell_of(throughput).find(|other| {
                other.quantity == Quantity::Latency && other.statistic == Statistic::Mean
            })?;
            (latency.value > 0.0).then_some((throughput, latency))
        })
        .collect()
}

/// Clients of a figure's cell, times what each has in flight.
pub(super) fn clients(evidence: &Evidence, figure: &Figure) -> Option<f64> {
    let of = |key| evidence.known(figure, key).and_then(|known| count(known.value));
    let counted = evidence
        .cell_of(figure)
        .find(|other| other.quantity == Quantity::Clients && other.statistic == Statistic::Mean);
    let clients = counted.map(|figure| figure.value).or_else(|| of("clients"))?;
    Some(clients * of("in_flight").unwrap_or(1.0)).filter(|clients| *clients > 0.0)
}

/// The rate that was offered, and how it is known.
pub(super) fn offered(evidence: &Evidence, figure: &Figure) -> Option<(f64, String)> {
    let of = |key| evidence.known(figure, key).map(|known| known.value);
    if let Some(text) = of("rate") {
        return rate(text).map(|rate| (rate, format!("a rate of {text}")));
    }
    let interval = of("interval").and_then(duration).filter(|interval| *interval > 0.0)?;
    let clients = of("clients").and_then(count)?;
    let how = format!("{} clients, each every {},", words::number(clients), words::time(interval));
    Some((clients / interval, how))
}

/// An axis, and the figures along it.
pub(super) type Axis<'e> = (String, Vec<(f64, &'e Figure)>);

/// The figures of `quantity` in `table` along each numeric axis on which at least three stand,
/// everything else being equal, in its order.
pub(super) fn axes<'e>(
    evidence: &'e Evidence,
    table: &'e str,
    quantity: Quantity,
) -> Vec<Axis<'e>> {
    let mut axes: Vec<Axis<'e>> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    let of_quantity = |figure: &&Figure| figure.quantity == quantity;
    for figure in evidence.results_of(table).filter(of_quantity) {
        for (axis, value) in &figure.keys {
            let Some(value) = count(value) else { continue };
            let others: Vec<_> = figure.keys.iter().filter(|(key, _)| *key != axis).collect();
            let alike = format!("{axis:?}{:?}{:?}{others:?}", figure.subjects, figure.statistic);
            let index = *known.entry(alike).or_insert_with(|| {
                axes.push((axis.clone(), Vec::new()));
                axes.len() - 1
            });
            axes[index].1.push((value, figure));
        }
    }
    axes.retain_mut(|(_, series)| {
        series.sort_by(|left, right| left.0.total_cmp(&right.0));
        series.len() >= AXIS_MIN && series.windows(2).all(|pair| pair[0].0 < pair[1].0)
    });
    axes
}

/// By how much Little's law may be off.
const LITTLE_MAX: f64 = 0.02;

/// The share of the window, or of the clients, by which a load may change.
const RAMP_MAX: f64 = 0.05;

/// The share of a ramp below which its window ends before it.
const CUT_MAX: f64 = 0.95;

/// The step of a grid, as a share of the answer.
const STEP_MAX: f64 = 0.05;

/// The share from which all messages count as accepted.
pub(super) const WHOLE: f64 = 0.999_95;

/// Points from the first loss to the end, above which a table is a survey and no search.
const SEARCH_TAIL: usize = 3;

/// Points that make an axis.
const AXIS_MIN: usize = 3;
