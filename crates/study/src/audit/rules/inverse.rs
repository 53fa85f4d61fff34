//! Throughput that was computed from latencies (L02): right for one client, too small by their
//! number for several.

use std::collections::HashMap;

use weigh_model::Rule;
use weigh_model::warnings::Severity;

use super::bench::Bench;
use super::loading::{clients, pairs};
use crate::audit::figure::Figure;
use crate::audit::words;

/// L02: throughput that is one over the mean latency, with more than one client or with a number
/// of clients that is not stated.
pub(super) fn throughput_from_latency(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    for (throughput, latency) in pairs(evidence) {
        bench.ask(Rule::L02);
        if !is_inverse(throughput, latency) {
            continue;
        }
        let product = throughput.value * latency.value;
        let clients = clients(evidence, throughput);
        let who = match clients {
            Some(clients) if clients <= 1.0 => continue,
            Some(clients) => format!(
                "but there were {} clients: {}",
                words::number(clients),
                words::rate(clients / latency.value)
            ),
            None => "right for a single client, and the number of clients is not stated".to_owned(),
        };
        let seen = format!(
            "{}: {} x {} = {}: throughput is one over the mean latency; {who}",
            throughput.named(),
            words::rate(throughput.value),
            words::time(latency.value),
            words::number(product),
        );
        // With one client it would be right: only a stated number of them contradicts it.
        let severity = clients.map_or(Severity::Warning, |_| Rule::L02.severity());
        bench.find_as(Rule::L02, severity, throughput, seen);
    }
    order(bench);
}

/// Two sides of a table whose order is the reverse once the clients of both are counted.
fn order(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    let sides: Vec<(&Figure, f64, bool)> = pairs(evidence)
        .into_iter()
        .filter_map(|(throughput, latency)| {
            let clients = clients(evidence, throughput)?;
            let is_wrong = clients > 1.0 && is_inverse(throughput, latency);
            Some((throughput, clients / latency.value, is_wrong))
        })
        .collect();
    let place = |figure: &Figure| format!("{}{:?}", figure.place.table, figure.keys);
    let mut by_place: HashMap<String, Vec<(&Figure, f64)>> = HashMap::new();
    for (figure, by_law, _) in &sides {
        by_place.entry(place(figure)).or_default().push((figure, *by_law));
    }
    for (figure, by_law, _) in sides.iter().filter(|(.., is_wrong)| *is_wrong) {
        let others = by_place.get(&place(figure)).into_iter().flatten();
        let reversed = others
            .copied()
            .find(|(other, other_by_law)| other.value > figure.value && other_by_law < by_law);
        let Some((other, other_by_law)) = reversed else { continue };
        let seen = format!(
            "{} {} is below {} {}; by clients over latency it is {} against {}: the order is \
             the reverse",
            figure.named(),
            words::rate(figure.value),
            other.named(),
            words::rate(other.value),
            words::rate(*by_law),
            words::rate(other_by_law),
        );
        bench.find(Rule::L02, figure, seen);
    }
}

/// True if the throughput is one over the latency as far as both are printed. So coarse a latency
/// that much else would fit says nothing.
fn is_inverse(throughput: &Figure, latency: &Figure) -> bool {
    let (low, high) = throughput.bounds();
    let (least, most) = latency.bounds();
    let is_one = low * least <= 1.0 + INVERSE_MAX && high * most >= 1.0 - INVERSE_MAX;
    is_one && latency.rounding <= COARSE_MAX * latency.value
}

/// By how much throughput x latency may differ from 1, beside its rounding, to be taken for 1.
const INVERSE_MAX: f64 = 0.002;

/// The share of a latency that its rounding may be.
const COARSE_MAX: f64 = 0.05;
