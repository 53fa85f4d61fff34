//! Rules of whole numbers and orders: percentages of counts, statistics of one cell, errors,
//! header bytes, quantiles.

use weigh_model::Rule;
use weigh_model::warnings::Severity;
use weigh_stats::quantile::values_needed;

use super::bench::Bench;
use crate::audit::figure::{Evidence, Figure, Quantity, Statistic};
use crate::audit::vocabulary::{count, factor};
use crate::audit::words;

/// L06: is there a whole number of messages that gives the printed percentage?
pub(super) fn whole_counts(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    for figure in evidence.results() {
        let is_share = matches!(figure.quantity, Quantity::Accepted | Quantity::Failed);
        if !is_share || !figure.printed.contains(['p', '%']) {
            continue;
        }
        let Some((total, stated)) = denominator(evidence, figure) else { continue };
        bench.ask(Rule::L06);
        let received = evidence.cell_of(figure).find(|other| other.quantity == Quantity::Received);
        if let Some(received) = received.filter(|_| figure.quantity == Quantity::Accepted) {
            let share = received.value / total;
            if (share - figure.value).abs() > figure.rounding + TINY {
                let seen = format!(
                    "{}: {} of {} is {}, not {}",
                    figure.named(),
                    words::number(received.value),
                    words::number(total),
                    words::percent(share),
                    figure.printed
                );
                bench.find(Rule::L06, figure, seen);
            }
            continue;
        }
        if gives(figure, total).is_some() {
            continue;
        }
        let near = (figure.value * total).floor();
        let mut seen = format!(
            "{}: {} of {stated} {} would be {:.1} messages; {} are {:.2} % and {} are {:.2} %",
            figure.named(),
            figure.printed,
            words::number(total),
            figure.value * total,
            words::number(near),
            100.0 * near / total,
            words::number(near + 1.0),
            100.0 * (near + 1.0) / total,
        );
        if let Some((other, messages)) = other_total(evidence, figure) {
            seen += &format!(
                "; of the {} in {} it is {}",
                words::number(other.value),
                other.place.table,
                words::number(messages)
            );
        }
        bench.find(Rule::L06, figure, seen);
    }
}

/// L07: statistics of one cell in an order that no data have. Tables are taken together: the same
/// cell in two of them is the same cell.
pub(super) fn order(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    for cell in evidence.all_cells() {
        let mut figures = cell;
        figures.retain(|figure| is_ordered(figure));
        order_in_cell(bench, &figures);
    }
}

fn order_in_cell(bench: &mut Bench<'_>, figures: &[&Figure]) {
    let evidence = bench.evidence;
    for (index, first) in figures.iter().enumerate() {
        for second in &figures[index + 1..] {
            if first.quantity != second.quantity || first.statistic == second.statistic {
                continue;
            }
            let (low, high) = if must_not_exceed(first.statistic, second.statistic) {
                (first, second)
            } else if must_not_exceed(second.statistic, first.statistic) {
                (second, first)
            } else {
                continue;
            };
            bench.ask(Rule::L07);
            let slack = low.rounding + high.rounding + grid(evidence, low);
            if low.value > high.value + slack {
                let place = |figure: &Figure| match first.place.table == second.place.table {
                    true => String::new(),
                    false => format!(" ({})", figure.place.table),
                };
                let seen = format!(
                    "{}: the {} is {}{}, below the {} of {}{}",
                    high.cell(),
                    statistic_name(high.statistic),
                    high.printed,
                    place(high),
                    statistic_name(low.statistic),
                    low.printed,
                    place(low),
                );
                bench.find(Rule::L07, high, seen);
            }
        }
    }
}

/// L12: more than 0.1 % of errors in a cell whose latency does not say that it is of successes.
pub(super) fn errors(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    for figure in evidence.results().filter(|figure| figure.quantity == Quantity::Failed) {
        let latency = evidence.cell_of(figure).find(|other| {
            let is_read = matches!(other.statistic, Statistic::Mean | Statistic::Quantile(_));
            other.quantity == Quantity::Latency && is_read
        });
        let Some(latency) = latency else { continue };
        bench.ask(Rule::L12);
        let apart = evidence
            .known(latency, "errors")
            .is_some_and(|known| ["apart", "successes", "false", "none"].contains(&known.value));
        if figure.value > ERRORS_MAX && !apart {
            let seen = format!(
                "{}: {} of the samples are errors, and nothing says that they are not in the {} \
                 of {}",
                figure.cell(),
                words::percent(figure.value),
                statistic_name(latency.statistic),
                latency.printed
            );
            bench.find(Rule::L12, figure, seen);
        }
    }
}

/// L14: fewer header bytes than 20 for each segment of the payload.
pub(super) fn headers(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    let is_headers = |figure: &&Figure| figure.quantity == Quantity::HeaderBytes;
    for figure in evidence.results().filter(is_headers) {
        let payload = evidence.known(figure, "payload").and_then(|known| bytes(known.value));
        let Some(payload) = payload else { continue };
        bench.ask(Rule::L14);
        let (segments, least) = header_bound(evidence, figure, payload);
        if figure.value + figure.rounding < least {
            let seen = format!(
                "{}: {} header bytes for {} bytes of payload, which need {} segments and {} bytes",
                figure.named(),
                words::number(figure.value),
                words::number(payload),
                words::number(segments),
                words::number(least)
            );
            bench.find(Rule::L14, figure, seen);
        }
    }
    constant_headers(bench);
    headers_by_network(bench);
}

/// Header bytes of one subject that grow with the payload in one table and not in another: stack
/// and sizes are the same, so that what differs is how they were counted.
fn headers_by_network(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    let claims: Vec<&Figure> = evidence.figures.iter().filter(is_about_headers).collect();
    for (index, figure) in claims.iter().enumerate() {
        for subject in &figure.subjects {
            let said = |other: &Figure| {
                evidence.known_of(other, subject, "header_bytes").map(str::to_owned)
            };
            let is_pair = |other: &Figure| {
                let both = [said(other), said(figure)].map(Option::unwrap_or_default);
                both == ["growing", "constant"] || both == ["constant", "growing"]
            };
            let reversed = claims[..index].iter().find(|other| is_pair(other));
            let Some(other) = reversed else { continue };
            let words = |of: &Figure| said(of).unwrap_or_default();
            let seen = format!(
                "{subject}: header bytes are {} with the payload here and {} in {}: the same stack \
                 and sizes, so that what differs is the capture",
                words(figure),
                words(other),
                other.place.table
            );
            bench.find_as(Rule::L14, Severity::Warning, figure, seen);
        }
    }
}

fn is_about_headers(figure: &&Figure) -> bool {
    figure.is_claim && figure.place.series.contains("header")
}

/// Header bytes that are said to be the same for every payload.
fn constant_headers(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    let payloads = evidence.facts.iter().filter(|fact| fact.key == "payload");
    let sizes: Vec<f64> = payloads.filter_map(|fact| bytes(&fact.value)).collect();
    let most = sizes.iter().copied().fold(0.0, f64::max);
    let least = sizes.iter().copied().fold(f64::INFINITY, f64::min);
    let subjects = |figure: &'_ Figure| -> Vec<String> {
        let is_constant = |subject: &&String| {
            evidence.known_of(figure, subject, "header_bytes") == Some("constant")
        };
        figure.subjects.iter().filter(is_constant).cloned().collect()
    };
    let claims = evidence.figures.iter().filter(is_about_headers).filter(|_| most > least);
    let of_claim = |claim| subjects(claim).into_iter().map(move |subject| (claim, subject));
    for (figure, subject) in claims.flat_map(of_claim) {
        bench.ask(Rule::L14);
        let (segments, bound) = header_bound(evidence, figure, most);
        let (_, small) = header_bound(evidence, figure, least);
        if bound > small {
            let seen = format!(
                "{subject}: header bytes said to be constant from {} to {} bytes of payload; the \
                 latter needs {} segments, {} header bytes at least instead of {}",
                words::number(least),
                words::number(most),
                words::number(segments),
                words::number(bound),
                words::number(small)
            );
            bench.find(Rule::L14, figure, seen);
        }
    }
}

/// L17: quantiles that the number of samples cannot bear.
pub(super) fn quantiles(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    for figure in evidence.results() {
        let Statistic::Quantile(quantile) = figure.statistic else { continue };
        let counted = evidence.cell_of(figure).find(|other| other.quantity == Quantity::Count);
        let stated = || evidence.known(figure, "messages").and_then(|known| count(known.value));
        let Some(samples) = counted.map(|counted| counted.value).or_else(stated) else { continue };
        bench.ask(Rule::L17);
        let needed = values_needed(quantile) as f64;
        if quantile < 1.0 && samples < needed {
            let seen = format!(
                "{}: the {} needs {} samples, there were {}",
                figure.cell(),
                statistic_name(figure.statistic),
                words::number(needed),
                words::number(samples)
            );
            bench.find(Rule::L17, figure, seen);
        }
    }
}

/// The number that a percentage is of, and what it is called.
fn denominator<'e>(evidence: &'e Evidence, figure: &'e Figure) -> Option<(f64, &'static str)> {
    let in_cell = |quantity| evidence.cell_of(figure).find(|other| other.quantity == quantity);
    let counted = in_cell(Quantity::Expected).or_else(|| in_cell(Quantity::Count));
    let total = match counted {
        Some(counted) => (counted.value, "the counted"),
        None => (count(figure.keys.get("messages")?)?, "the stated"),
    };
    Some(total).filter(|(total, _)| *total >= 1.0)
}

/// The whole number of `total` that is printed as this percentage.
fn gives(figure: &Figure, total: f64) -> Option<f64> {
    let (low, high) = figure.bounds();
    let first = (low * total - TINY * total).ceil().max(0.0);
    (first <= high * total + TINY * total && first <= total).then_some(first)
}

/// Another total for the same messages in the study, of which the percentage is possible.
fn other_total<'e>(evidence: &'e Evidence, figure: &Figure) -> Option<(&'e Figure, f64)> {
    let mut cell = evidence.same_cell(figure);
    let other = cell.find(|other| other.quantity == Quantity::Expected)?;
    Some((other, gives(figure, other.value)?))
}

fn header_bound(evidence: &Evidence, figure: &Figure, payload: f64) -> (f64, f64) {
    let mss = evidence.known(figure, "mss").and_then(|known| count(known.value));
    let segments = (payload / mss.unwrap_or(MSS_BYTES)).ceil().max(1.0);
    (segments, segments * TCP_HEADER_BYTES)
}

fn bytes(text: &str) -> Option<f64> {
    let value = count(text)?;
    let unit = text.trim().trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').trim();
    Some(value * factor(unit))
}

fn grid(evidence: &Evidence, figure: &Figure) -> f64 {
    let known = evidence.known(figure, "grid");
    known.and_then(|known| crate::audit::vocabulary::duration(known.value)).unwrap_or(0.0)
}

/// True if, whatever the data, `low` lies at or below `high`.
fn must_not_exceed(low: Statistic, high: Statistic) -> bool {
    match (low, high) {
        (Statistic::Quantile(low), Statistic::Quantile(high)) => low < high,
        (Statistic::Min, Statistic::Mean | Statistic::Quantile(_) | Statistic::Max) => true,
        (Statistic::Mean | Statistic::Quantile(_), Statistic::Max) => true,
        _ => false,
    }
}

/// True if the figure is a statistic that others of its quantity bound.
fn is_ordered(figure: &Figure) -> bool {
    let is_measured = matches!(
        figure.quantity,
        Quantity::Latency
            | Quantity::OneWay
            | Quantity::Cpu
            | Quantity::Span
            | Quantity::Throughput
    );
    is_measured && !matches!(figure.statistic, Statistic::Deviation | Statistic::Plain)
}

fn statistic_name(statistic: Statistic) -> String {
    match statistic {
        Statistic::Mean => "mean".to_owned(),
        Statistic::Quantile(0.5) => "median".to_owned(),
        Statistic::Quantile(quantile) => format!("p{}", (quantile * 1e5).round() / 1e3),
        Statistic::Max => "maximum".to_owned(),
        Statistic::Min => "minimum".to_owned(),
        Statistic::Deviation => "deviation".to_owned(),
        Statistic::Plain => "figure".to_owned(),
    }
}

/// What the rounding of a quotient in binary may cost.
const TINY: f64 = 1e-9;

/// The share of errors that may be in a latency.
const ERRORS_MAX: f64 = 0.001;

/// The largest segment on Ethernet: 1,500 bytes less IPv4 and TCP headers without options.
const MSS_BYTES: f64 = 1460.0;

/// A TCP header without options (RFC 9293, section 3.1).
const TCP_HEADER_BYTES: f64 = 20.0;
