//! Rules about what a table must say: the share of the window that a background covered,
//! connections, the generator, the clocks.

use std::collections::BTreeSet;

use weigh_model::Rule;

use super::bench::Bench;
use super::loading::axes;
use crate::audit::figure::{Evidence, Figure, Quantity, Statistic};
use crate::audit::vocabulary::{count, duration, share, words_of};
use crate::audit::words;

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
                "{} under {load}: the background was on for {} of the window{}",
                figure.named(),
                words::percent(covered),
                while_loaded(evidence, figure, covered).unwrap_or_default()
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
        let in_cell = |quantity| evidence.cell_of(figure).find(|other| other.quantity == quantity);
        let messages = in_cell(Quantity::Count).or_else(|| in_cell(Quantity::Expected));
        let counted = in_cell(Quantity::Connections).zip(messages);
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

/// L15: what grows along an axis of clients is the share of messages that need a connection.
pub(super) fn growing_setup(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    for table in evidence.tables() {
        for (axis, series) in axes(evidence, table, Quantity::Cpu) {
            let [(fewest, first), .., (most, last)] = series[..] else { continue };
            let number = |key| evidence.known(last, key).and_then(|known| count(known.value));
            let opened = number("connections_per_client").zip(number("messages"));
            let Some((each, messages)) = opened.filter(|_| axis == "clients") else { continue };
            bench.ask(Rule::L15);
            let share = |clients: f64| each / (messages / clients).ceil();
            let (few, many) = (share(fewest), share(most));
            if many < GROWTH_MIN * few {
                continue;
            }
            let seen = format!(
                "{}: from {fewest} to {most} clients the connections opened for a message go from \
                 {} to {} ({} messages a client at the end): what grows along clients is setting \
                 connections up",
                first.named(),
                words::number(few),
                words::number(many),
                words::number((messages / most).ceil()),
            );
            bench.find(Rule::L15, first, seen);
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
                "{}: {} is {}, without evidence that the generator was not the limit",
                figure.cell(),
                figure.printed,
                if figure.is_limit { "called a limit" } else { "as fast as the tool could" }
            ),
        };
        bench.find(Rule::L19, figure, seen);
    }
    let is_unstated = |figure: &&Figure| {
        let known = evidence.known(figure, "generator").map(|known| known.value);
        figure.quantity == Quantity::Cpu && known == Some("not stated")
    };
    if let Some(figure) = evidence.results().find(is_unstated) {
        bench.ask(Rule::L19);
        let seen = format!(
            "{}: it is not stated whether the generator of the load ran on the same processor",
            figure.cell()
        );
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
                "{}: {} is a one-way time, and no bound on the clocks is stated{}",
                figure.cell(),
                figure.printed,
                half_round_trip(evidence)
            ),
        };
        bench.find(Rule::L20, figure, seen);
    }
}

/// By how much a clock may be off that was set over the round trip of the same study.
fn half_round_trip(evidence: &Evidence) -> String {
    let Some(ping) = round_trip(evidence) else { return String::new() };
    format!(
        "; over a round trip of {} two-way exchanges alone bound an offset to {}",
        ping.printed,
        words::time(ping.value / 2.0)
    )
}

/// Mean round trip of the path, if it was pinged.
pub(super) fn round_trip(evidence: &Evidence) -> Option<&Figure> {
    let is_ping = |figure: &Figure| figure.keys.contains_key("ping");
    let is_mean = |figure: &&Figure| {
        figure.quantity == Quantity::Latency && figure.statistic == Statistic::Mean
    };
    evidence.results().filter(is_mean).find(|figure| is_ping(figure))
}

/// The mean while the background was on, from that without any and the share of the window.
fn while_loaded(evidence: &Evidence, figure: &Figure, covered: f64) -> Option<String> {
    let mean_of = |cell: &Figure| {
        evidence
            .cell_of(cell)
            .find(|other| other.quantity == Quantity::Latency && other.statistic == Statistic::Mean)
    };
    let samples = evidence.cell_of(figure).find(|other| other.quantity == Quantity::Count)?;
    let mean = mean_of(figure)?;
    let is_quiet = |other: &&Figure| {
        let load = other.keys.get("load");
        other.subjects == figure.subjects && load.is_some_and(|load| QUIET.contains(&load.as_str()))
    };
    let quiet = mean_of(evidence.results_of(&figure.place.table).find(is_quiet)?)?;
    let spent = mean.value * samples.value;
    let loaded = samples.value - (1.0 - covered) * spent / quiet.value;
    let while_on = (covered * spent / loaded).max(0.0);
    Some(format!(
        "; while it was on the mean was about {}, {:+.1} % and not {:+.1} %",
        words::time(while_on),
        100.0 * (while_on / quiet.value - 1.0),
        100.0 * (mean.value / quiet.value - 1.0)
    ))
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

/// By how much the connections for a message must grow along an axis.
const GROWTH_MIN: f64 = 10.0;

/// The share of a core from which a generator counts as full.
const GENERATOR_MAX: f64 = 0.9;
