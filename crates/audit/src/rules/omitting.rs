//! Rules about what a table must say: the rate beside a CPU share, the share of the window that a
//! background covered, connections, the generator, the clocks.

use std::collections::BTreeSet;

use weigh_model::Rule;

use super::Bench;
use super::loading::offered;
use crate::figure::{Evidence, Figure, Quantity, Statistic};
use crate::vocabulary::{count, duration, share, words_of};
use crate::words;

/// L09: a CPU percentage without a rate in its cell.
pub(super) fn cpu_rate(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    for figure in evidence.results().filter(|figure| figure.quantity == Quantity::Cpu) {
        bench.ask(Rule::L09);
        let has_rate = evidence.cell_of(figure).any(|other| other.quantity == Quantity::Throughput)
            || offered(evidence, figure).is_some();
        if !has_rate {
            let seen = format!("{}: {}, at no stated rate", figure.cell(), figure.printed);
            bench.find(Rule::L09, figure, seen);
        }
    }
}

/// L11: figures under a background load that covered less than 99 % of the window, or of which
/// that is not said.
pub(super) fn background(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    for figure in evidence.results() {
        let load = figure.keys.get("load").filter(|load| !QUIET.contains(&load.as_str()));
        let is_behind = figure.keys.get("role").is_some_and(|role| role == "background");
        let Some(load) = load.filter(|_| !is_behind) else { continue };
        if !matches!(figure.quantity, Quantity::Latency | Quantity::Throughput) {
            continue;
        }
        bench.ask(Rule::L11);
        let said = evidence.known(figure, "background_share").and_then(|known| share(known.value));
        let covered = said.or_else(|| covered(evidence, figure, load));
        let seen = match covered {
            Some(covered) if covered >= COVERED_MIN => continue,
            Some(covered) => format!(
                "{} under {load}: the background was on for {} of the window",
                figure.named(),
                words::percent(covered)
            ),
            None => format!(
                "{} under {load}: how much of the window the background covered is not stated",
                figure.named()
            ),
        };
        bench.find(Rule::L11, figure, seen);
    }
}

/// L15: more than one connection for every two messages, which the table does not say.
pub(super) fn connections(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    let mut seen_subjects = BTreeSet::new();
    for figure in evidence.results() {
        let is_result = matches!(
            figure.quantity,
            Quantity::Latency | Quantity::Throughput | Quantity::Span | Quantity::Cpu
        );
        if !is_result {
            continue;
        }
        let known = evidence.known(figure, "connection");
        let is_renewed = |value: &str| {
            let words = words_of(value);
            ["false", "new"].contains(&value) || words == ["per", "message"]
        };
        let is_said = known.is_some_and(|known| known.is_said && is_renewed(known.value));
        let beside = |quantity| evidence.cell_of(figure).find(|other| other.quantity == quantity);
        let messages = beside(Quantity::Count).or_else(|| beside(Quantity::Expected));
        let counted = beside(Quantity::Connections).zip(messages);
        if known.is_none() && counted.is_none() {
            continue;
        }
        bench.ask(Rule::L15);
        if is_said {
            continue;
        }
        let place = (figure.place.table.clone(), figure.subjects.clone());
        if let Some((connections, messages)) = counted {
            let each = connections.value / messages.value.max(1.0);
            if each > CONNECTIONS_MAX && seen_subjects.insert(place) {
                let seen = format!(
                    "{}: {} connections for {} messages, {} each, and the table does not say so",
                    figure.named(),
                    words::number(connections.value),
                    words::number(messages.value),
                    words::number(each)
                );
                bench.find(Rule::L15, figure, seen);
            }
        } else if known.is_some_and(|known| is_renewed(known.value)) && seen_subjects.insert(place)
        {
            let seen = format!(
                "{}: one connection for every message, as is known from elsewhere; the table does \
                 not say so",
                figure.named()
            );
            bench.find(Rule::L15, figure, seen);
        }
    }
}

/// L19: a figure called a capacity, or one of a load as fast as possible, without a word on the
/// generator.
pub(super) fn generator(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    for figure in evidence.results().filter(|figure| figure.quantity == Quantity::Throughput) {
        let pace = evidence.known(figure, "pace").map(|known| known.value);
        let is_fastest = pace == Some("fastest") && figure.statistic != Statistic::Deviation;
        if !figure.is_limit && !is_fastest {
            continue;
        }
        bench.ask(Rule::L19);
        let known = evidence.known(figure, "generator").map(|known| known.value);
        let busy = known.and_then(share).filter(|_| known.is_some_and(|text| text.contains('%')));
        let seen = match (known, busy) {
            (_, Some(busy)) if busy >= GENERATOR_MAX => {
                format!("{}: the generator used {}", figure.printed, words::percent(busy))
            }
            (Some(text), _) if text != "same host" => continue,
            _ => format!(
                "{}: {} is {}, and nothing shows that the generator was not the limit",
                figure.cell(),
                figure.printed,
                if figure.is_limit { "called a limit" } else { "as fast as the tool could" }
            ),
        };
        bench.find(Rule::L19, figure, seen);
    }
}

/// L20: a time from one place to another without a bound on the clocks, or below it.
pub(super) fn clocks(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    for figure in &evidence.figures {
        let words = words_of(&figure.place.series);
        let is_delay = figure.is_claim && words.iter().any(|word| word == "delay");
        if figure.quantity != Quantity::OneWay && !is_delay {
            continue;
        }
        bench.ask(Rule::L20);
        let known = evidence.known(figure, "clock_bound").map(|known| known.value);
        let bound = known.and_then(duration);
        let seen = match (known, bound) {
            (Some("one"), _) => continue,
            (_, Some(bound)) if figure.is_claim || figure.value >= bound => continue,
            (_, Some(bound)) => {
                format!("{} is below the bound of {}", figure.printed, words::time(bound))
            }
            _ => format!(
                "{}: {} is a one-way time, and no bound on the clocks is stated",
                figure.cell(),
                figure.printed
            ),
        };
        bench.find(Rule::L20, figure, seen);
    }
}

/// The share of the window that a background of the same table covered, from the counts, means and
/// clients of both closed loops.
fn covered(evidence: &Evidence, figure: &Figure, load: &str) -> Option<f64> {
    let span = |of: &Figure| {
        let mean = evidence.cell_of(of).find(|other| {
            other.quantity == Quantity::Latency && other.statistic == Statistic::Mean
        })?;
        let samples = evidence.cell_of(of).find(|other| other.quantity == Quantity::Count)?;
        let clients = evidence.known(of, "clients").and_then(|known| count(known.value))?;
        Some(mean.value * samples.value / clients)
    };
    let behind = evidence.results_of(&figure.place.table).find(|other| {
        other.keys.get("role").is_some_and(|role| role == "background") && other.is_of(load)
    })?;
    Some(span(behind)? / span(figure)?)
}

/// Words for no background.
const QUIET: [&str; 5] = ["none", "no", "idle", "0", ""];

/// The share of the window that a background must cover.
const COVERED_MIN: f64 = 0.99;

/// Connections for each message, above which the connections are what is measured.
const CONNECTIONS_MAX: f64 = 0.5;

/// The share of a core from which a generator counts as full.
const GENERATOR_MAX: f64 = 0.9;
