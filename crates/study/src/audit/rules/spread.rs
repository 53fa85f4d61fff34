//! What varies from run to run (L13): the same cell printed twice, effects smaller than two runs of
//! one side are apart, intervals over what is one run.

use std::collections::{BTreeMap, HashMap};

use weigh_model::Rule;

use super::bench::Bench;
use crate::audit::figure::{Figure, Quantity, Statistic};
use crate::audit::vocabulary::count;
use crate::audit::words;

/// L13: differences that are within what runs of the same test differ by.
pub(super) fn within_runs(bench: &mut Bench<'_>) {
    printed_twice(bench);
    below_two_runs(bench);
    one_run(bench);
}

/// The same statistic of the same cell with two values, and no spread beside either.
fn printed_twice(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    for cell in evidence.all_cells() {
        let means = |figure: &&&Figure| is_measured(figure) && figure.statistic == Statistic::Mean;
        let means: Vec<&Figure> = cell.iter().filter(means).copied().collect();
        let Some((first, others)) = means.split_first() else { continue };
        let second = others.iter().find(|other| {
            let slack = first.rounding + other.rounding;
            other.quantity == first.quantity
                && other.place.table != first.place.table
                && (other.value - first.value).abs() > slack
        });
        let has_spread = cell.iter().any(|figure| figure.statistic == Statistic::Deviation);
        let Some(second) = second.filter(|_| !has_spread) else { continue };
        bench.ask(Rule::L13);
        let seen = format!(
            "{}: {} in {} and {} in {}, {} apart, and no spread is printed",
            first.cell(),
            first.printed,
            first.place.table,
            second.printed,
            second.place.table,
            words::percent((second.value / first.value - 1.0).abs()),
        );
        bench.find(Rule::L13, first, seen);
    }
}

/// A side that differs from another by less than two runs of that other side do.
fn below_two_runs(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    let runs: Vec<&Figure> =
        evidence.results().filter(|figure| figure.keys.contains_key("run")).collect();
    if runs.is_empty() {
        return;
    }
    // The first side at each place of each table: the others are compared with it.
    let mut bases: HashMap<String, &Figure> = HashMap::new();
    for figure in evidence.results().filter(|figure| is_side(figure)) {
        let place = format!(
            "{}{:?}{:?}{:?}",
            figure.place.table, figure.quantity, figure.statistic, figure.keys
        );
        let base = *bases.entry(place).or_insert(figure);
        if base.subjects == figure.subjects {
            continue;
        }
        let Some((low, high)) = runs_of(&runs, base) else { continue };
        bench.ask(Rule::L13);
        let effect = figure.value / base.value - 1.0;
        let apart = high.value / low.value - 1.0;
        if effect.abs() < apart {
            let seen = format!(
                "{} {} against {} {} is {:+.1} %, and two runs of {} gave {} and {}: {} apart",
                figure.named(),
                figure.printed,
                base.named(),
                base.printed,
                effect * 100.0,
                base.named(),
                words::number(low.value / unit_of(low)),
                words::number(high.value / unit_of(high)),
                words::percent(apart),
            );
            bench.find(Rule::L13, figure, seen);
        }
    }
}

/// An interval over the iterations of one run.
fn one_run(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    let over = evidence.facts.iter().find(|fact| fact.key == "interval_over");
    let Some((over, figure)) = over.zip(evidence.figures.first()) else { return };
    bench.ask(Rule::L13);
    let runs = evidence.known(figure, "repetitions").and_then(|known| count(known.value));
    if over.value.contains("run") {
        return;
    }
    let number = runs.map_or_else(String::new, |runs| format!("{} ", words::number(runs)));
    let seen = format!(
        "the intervals are over {number}{}: one run, whose values are not independent",
        over.value
    );
    bench.find(Rule::L13, figure, seen);
}

fn is_measured(figure: &Figure) -> bool {
    use Quantity::{Cpu, Latency, Span, Throughput};
    matches!(figure.quantity, Cpu | Latency | Span | Throughput)
}

/// True for a mean of one side that is not one of several numbered runs.
fn is_side(figure: &Figure) -> bool {
    let is_mean = matches!(figure.statistic, Statistic::Mean | Statistic::Plain);
    is_measured(figure)
        && is_mean
        && !figure.keys.contains_key("run")
        && !figure.subjects.is_empty()
}

/// The least and the most that numbered runs of the same test gave.
fn runs_of<'e>(all: &[&'e Figure], base: &Figure) -> Option<(&'e Figure, &'e Figure)> {
    let is_run = |figure: &&&Figure| {
        figure.subjects == base.subjects
            && figure.quantity == base.quantity
            && figure.statistic == base.statistic
    };
    let mut tests: BTreeMap<String, Vec<&Figure>> = BTreeMap::new();
    for figure in all.iter().filter(is_run).copied() {
        let others: Vec<_> = figure.keys.iter().filter(|(key, _)| *key != "run").collect();
        tests.entry(format!("{others:?}")).or_default().push(figure);
    }
    let runs = tests.into_values().find(|runs| runs.len() > 1)?;
    let by_value = |left: &&&Figure, right: &&&Figure| left.value.total_cmp(&right.value);
    Some((runs.iter().min_by(by_value)?, runs.iter().max_by(by_value)?))
}

/// The factor from the unit in which a figure is printed to that of its value.
fn unit_of(figure: &Figure) -> f64 {
    let printed = figure.printed.split([' ', '/']).next().and_then(count).unwrap_or(figure.value);
    if printed == 0.0 { 1.0 } else { figure.value / printed }
}
