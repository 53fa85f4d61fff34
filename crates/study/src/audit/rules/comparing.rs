//! Rules about two sides: what completes, how often they were run, what is in flight, how long
//! their paths are.

use std::collections::BTreeSet;

use weigh_model::Rule;
use weigh_stats::Estimate;

use super::bench::Bench;
use super::loading::offered;
use super::omitting::round_trip;
use crate::audit::figure::{Evidence, Figure, Quantity, Statistic};
use crate::audit::vocabulary::{count, words_of};
use crate::audit::words;

/// L08: on one side messages are confirmed or delivered, on the other only handed over.
pub(super) fn completion(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    let is_rate =
        |figure: &&Figure| matches!(figure.quantity, Quantity::Throughput | Quantity::Span);
    let known: Vec<(&Figure, Completion)> = evidence
        .results()
        .filter(is_rate)
        .filter_map(|figure| Some((figure, completes(evidence, figure)?)))
        .collect();
    let sure = known.iter().find(|(_, completion)| *completion != Completion::HandedOver);
    let subjects: BTreeSet<String> = known.iter().map(|(figure, _)| figure.subject()).collect();
    if subjects.len() > 1 {
        bench.ask(Rule::L08);
    }
    for (figure, completion) in &known {
        let Some((other, _)) = sure.filter(|(other, _)| other.subjects != figure.subjects) else {
            continue;
        };
        if *completion == Completion::HandedOver {
            let seen = format!(
                "{}: {} counts messages handed over, {} of {} messages answered",
                figure.named(),
                figure.printed,
                other.printed,
                other.named()
            );
            bench.find(Rule::L08, figure, seen);
        }
    }
    for figure in evidence.results().filter(is_rate) {
        let known = evidence.known(figure, "complete").map(|known| known.value);
        if known == Some("not stated") {
            bench.ask(Rule::L08);
            let seen = format!(
                "{}: whether its times end when messages were handed over or when they arrived is \
                 not stated",
                figure.named()
            );
            bench.find(Rule::L08, figure, seen);
        }
    }
    lossy_times(bench);
}

/// L08: a share of errors of messages that are never answered: no error can be seen.
pub(super) fn silent_errors(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    for figure in evidence.results().filter(|figure| figure.quantity == Quantity::Failed) {
        let Some(completion) = completes(evidence, figure) else { continue };
        bench.ask(Rule::L08);
        if completion == Completion::HandedOver {
            let seen = format!(
                "{}: {} errors say nothing about messages that are only handed over, since no \
                answer could report an error",
                figure.named(),
                figure.printed
            );
            bench.find(Rule::L08, figure, seen);
        }
    }
}

/// Times of the same messages, of which one side, as the study itself says, lost a part.
fn lossy_times(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    let accepted = |figure: &Figure| {
        evidence.same_cell(figure).find(|other| other.quantity == Quantity::Accepted)
    };
    let times: Vec<(&Figure, &Figure)> = evidence
        .results()
        .filter(|figure| figure.quantity == Quantity::Span)
        .filter_map(|figure| Some((figure, accepted(figure)?)))
        .collect();
    for (figure, share) in &times {
        for (other, whole) in &times {
            let is_pair = figure.place.table == other.place.table
                && figure.keys == other.keys
                && figure.subjects != other.subjects;
            if !is_pair {
                continue;
            }
            bench.ask(Rule::L08);
            if share.value < 0.99 && whole.value > share.value + 0.01 {
                let seen = format!(
                    "{} took {} and {} {}, but of the first {} arrived, of the second {} ({})",
                    figure.named(),
                    figure.printed,
                    other.named(),
                    other.printed,
                    share.printed,
                    whole.printed,
                    share.place.table
                );
                bench.find(Rule::L08, figure, seen);
            }
        }
    }
}

/// L13: a comparison on fewer than five runs, or an effect within what varies from run to run.
pub(super) fn repetition(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    for table in evidence.tables() {
        let Some((figure, sides)) = compared(evidence, table) else { continue };
        bench.ask(Rule::L13);
        let stated = evidence.known(figure, "repetitions").and_then(|known| count(known.value));
        let listed = runs_in(evidence, table);
        let runs = stated.unwrap_or(0.0).max(listed as f64);
        if runs >= RUNS_MIN {
            continue;
        }
        let how = match (stated, listed) {
            (Some(runs), _) => format!("on {}", runs_in_words(runs)),
            (None, listed @ 1..) => format!("on {}", runs_in_words(listed as f64)),
            (None, _) => "and the number of runs is not stated".to_owned(),
        };
        bench.find(Rule::L13, figure, format!("{sides} are compared {how}"));
    }
    for change in effects(evidence) {
        bench.ask(Rule::L13);
        let Change { figure, base, half, runs } = change;
        let effect = figure.value / base.value - 1.0;
        if effect.abs() < half {
            let seen = format!(
                "{}: {} against {} is {:+.1} %, and the next of {runs} runs of the same test lies \
                 within +-{}",
                figure.named(),
                figure.printed,
                base.printed,
                effect * 100.0,
                words::percent(half)
            );
            bench.find(Rule::L13, figure, seen);
        }
    }
}

/// L16: messages in flight per client that are not the same on all sides.
pub(super) fn in_flight(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    for table in evidence.tables() {
        let mut windows: Vec<(String, &str, &Figure)> = Vec::new();
        for figure in evidence.figures.iter().filter(|figure| figure.place.table == table) {
            for subject in &figure.subjects {
                let own = || evidence.known(figure, "in_flight").map(|known| known.value);
                let window = match figure.is_claim {
                    true => evidence.known_of(figure, subject, "in_flight"),
                    false => own(),
                };
                let Some(window) = window else { continue };
                if !windows.iter().any(|(known, _, _)| known.eq_ignore_ascii_case(subject)) {
                    windows.push((subject.clone(), window, figure));
                }
            }
        }
        if windows.len() < 2 {
            continue;
        }
        bench.ask(Rule::L16);
        let (first, one, figure) = &windows[0];
        if let Some((second, other, _)) = windows.iter().find(|(_, other, _)| other != one) {
            let mut seen = format!("{first} has {one} in flight, {second} {other}");
            if [one, other].iter().any(|window| count(window) == Some(1.0)) {
                seen += &waiting(evidence, figure).unwrap_or_default();
            }
            bench.find(Rule::L16, figure, seen);
        }
    }
}

/// What waiting for each answer takes of the messages of `figure`, by the ping of the study.
fn waiting(evidence: &Evidence, figure: &Figure) -> Option<String> {
    let messages = evidence.known(figure, "messages").and_then(|known| count(known.value))?;
    let ping = round_trip(evidence)?;
    Some(format!(
        ": one at a time, {} messages wait {} for round trips of {} alone",
        words::number(messages),
        words::time(messages * ping.value),
        ping.printed
    ))
}

/// L16: closed loops with different numbers of clients in one column of a table.
pub(super) fn clients(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    let is_mean = |figure: &&Figure| {
        figure.quantity == Quantity::Latency && figure.statistic == Statistic::Mean
    };
    for table in evidence.tables() {
        let mut sides: Vec<(&Figure, f64)> = Vec::new();
        for figure in evidence.results_of(table).filter(is_mean) {
            let known = evidence.known(figure, "clients").and_then(|known| count(known.value));
            let is_axis = figure.keys.contains_key("clients");
            let Some(clients) = known.filter(|_| !is_axis) else { continue };
            if offered(evidence, figure).is_none() {
                sides.push((figure, clients));
            }
        }
        let Some((first, one)) = sides.first() else { continue };
        let is_other = |other: &&Figure| other.subjects != first.subjects;
        let mut others = sides.iter().filter(|(other, _)| is_other(other)).peekable();
        if others.peek().is_some() {
            bench.ask(Rule::L16);
        }
        if let Some((second, other)) = others.find(|(_, other)| other != one) {
            let seen = format!(
                "{} is {} of {} clients at once, {} is {} of {}",
                first.printed,
                first.named(),
                words::number(*one),
                second.printed,
                second.named(),
                words::number(*other)
            );
            bench.find(Rule::L16, first, seen);
        }
    }
}

/// L18: times over paths with a different number of relays, and no relay as a control.
pub(super) fn relays(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    let is_control =
        |figure: &Figure| figure.subjects.iter().any(|s| words_of(s).contains(&"relay".to_owned()));
    for table in evidence.tables() {
        let mut hops: Vec<(String, f64, &Figure)> = Vec::new();
        for figure in evidence.figures.iter().filter(|figure| figure.place.table == table) {
            let words = words_of(&figure.place.series);
            let is_time =
                matches!(figure.quantity, Quantity::Latency | Quantity::OneWay | Quantity::Span)
                    || figure.is_claim && words.iter().any(|word| TIMES.contains(&word.as_str()));
            if !is_time {
                continue;
            }
            for subject in &figure.subjects {
                let own = || evidence.known(figure, "relays").map(|known| known.value);
                let said = match figure.is_claim {
                    true => evidence.known_of(figure, subject, "relays"),
                    false => own(),
                };
                let relays = said.and_then(count).or_else(|| relays_by_nature(subject));
                let is_new = !hops.iter().any(|(known, _, _)| known == subject);
                if let Some(relays) = relays.filter(|_| is_new) {
                    hops.push((subject.clone(), relays, figure));
                }
            }
        }
        let Some((first, one, figure)) = hops.first().filter(|_| hops.len() > 1) else { continue };
        bench.ask(Rule::L18);
        let unequal = hops.iter().find(|(_, other, _)| other != one);
        if let Some((second, other, _)) = unequal
            && !evidence.figures.iter().any(is_control)
        {
            let seen = format!(
                "times of {first} (relays on its path: {}) and {second} ({}), without a control \
                 relay that only copies",
                words::number(*one),
                words::number(*other)
            );
            bench.find(Rule::L18, figure, seen);
        }
    }
}

/// When a message counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Completion {
    Confirmed,
    Delivered,
    HandedOver,
}

/// When a message of this figure counts as done, as far as it is known.
fn completes(evidence: &Evidence, figure: &Figure) -> Option<Completion> {
    if let Some(known) = evidence.known(figure, "complete") {
        let words = words_of(known.value);
        let has = |any: &[&str]| words.iter().any(|word| any.contains(&word.as_str()));
        return match () {
            () if has(&["delivered", "received"]) => Some(Completion::Delivered),
            () if has(&["confirmed", "acknowledged", "answered"]) => Some(Completion::Confirmed),
            () if has(&["handed", "sent", "published"]) => Some(Completion::HandedOver),
            () => None,
        };
    }
    if evidence.cell_of(figure).any(|other| other.quantity == Quantity::Received) {
        return Some(Completion::Delivered);
    }
    let words: Vec<String> = figure.subjects.iter().flat_map(|subject| words_of(subject)).collect();
    if words.iter().any(|word| ANSWERED.contains(&word.as_str())) {
        return Some(Completion::Confirmed);
    }
    match evidence.known(figure, "qos").and_then(|known| count(known.value)) {
        Some(0.0) => Some(Completion::HandedOver),
        Some(_) => Some(Completion::Confirmed),
        None => None,
    }
}

/// Relays on the path of a message, where the kind of the subject decides it.
fn relays_by_nature(subject: &str) -> Option<f64> {
    let words = words_of(subject);
    let is = |any: &[&str]| words.len() == 1 && any.contains(&words[0].as_str());
    match () {
        () if is(&["tcp", "udp", "socket"]) => Some(0.0),
        () if is(&["mqtt", "mqtts", "amqp", "kafka", "nats"]) => Some(1.0),
        () => None,
    }
}

/// The first figure of a comparison in the table, and its sides in words.
fn compared<'e>(evidence: &'e Evidence, table: &'e str) -> Option<(&'e Figure, String)> {
    let in_table = || evidence.figures.iter().filter(move |figure| figure.place.table == table);
    let sides = |figure: &Figure| figure.subjects.join(" and ");
    let mut first: Vec<&Figure> = Vec::new();
    for figure in in_table().filter(|figure| is_measured(figure)) {
        let is_kind = |known: &&&Figure| {
            known.quantity == figure.quantity && known.statistic == figure.statistic
        };
        match first.iter().find(is_kind) {
            Some(known) if known.subjects != figure.subjects => {
                return Some((known, format!("{} and {}", sides(known), sides(figure))));
            }
            Some(_) => {}
            None => first.push(figure),
        }
    }
    let claim = in_table().find(|figure| figure.is_claim)?;
    let sides = if claim.subjects.is_empty() { "two sides".to_owned() } else { sides(claim) };
    Some((claim, sides))
}

fn is_measured(figure: &Figure) -> bool {
    let counts = [
        Quantity::Other,
        Quantity::Count,
        Quantity::Expected,
        Quantity::Received,
        Quantity::Clients,
        Quantity::Payload,
    ];
    !figure.is_claim && !figure.subjects.is_empty() && !counts.contains(&figure.quantity)
}

fn runs_in_words(runs: f64) -> String {
    if runs == 1.0 { "one run each".to_owned() } else { format!("{} runs", words::number(runs)) }
}

/// How many runs of the same cell the table lists.
fn runs_in(evidence: &Evidence, table: &str) -> usize {
    let runs: BTreeSet<&String> =
        evidence.results_of(table).filter_map(|figure| figure.keys.get("run")).collect();
    runs.len()
}

/// A figure beside another of the same subject under another background, and half the interval
/// in which the next run of the same test lies at 95 %, as a share.
struct Change<'e> {
    figure: &'e Figure,
    base: &'e Figure,
    half: f64,
    runs: usize,
}

fn effects(evidence: &Evidence) -> Vec<Change<'_>> {
    let means = |figure: &&Figure| {
        figure.quantity == Quantity::Latency && figure.statistic == Statistic::Mean
    };
    let mut changes = Vec::new();
    for figure in evidence.results().filter(means) {
        let Some(load) = figure.keys.get("load").filter(|load| *load != "none") else { continue };
        let base = evidence.results().filter(means).find(|base| {
            base.subjects == figure.subjects
                && base.place.table == figure.place.table
                && base.keys.get("load").is_some_and(|base| base != load)
        });
        let Some(base) = base else { continue };
        let of_subject = |run: &&Figure| {
            run.subjects == figure.subjects
                && run.keys.contains_key("run")
                && !run.keys.contains_key("load")
        };
        let values: Vec<f64> =
            evidence.results().filter(means).filter(of_subject).map(|run| run.value).collect();
        let Some(estimate) = Estimate::of_mean(&values) else { continue };
        let (Some(high), runs) = (estimate.high, values.len()) else { continue };
        // From the interval of the mean to that of one more run: sqrt(n + 1) as wide.
        let half = (high - estimate.value) * (runs as f64 + 1.0).sqrt() / estimate.value;
        changes.push(Change { figure, base, half, runs });
    }
    changes
}

/// Runs that a comparison needs.
const RUNS_MIN: f64 = 5.0;

/// Protocols in which every message is answered.
const ANSWERED: [&str; 9] =
    ["http", "https", "http1", "http2", "http3", "rpc", "grpc", "rest", "coap"];

/// Words of claims about times.
const TIMES: [&str; 5] = ["time", "latency", "delay", "rtt", "duration"];
