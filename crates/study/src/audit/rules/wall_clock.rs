//! Durations that a study states, against those that its counts and latencies give (L01).

use weigh_model::Rule;

use super::bench::Bench;
use crate::audit::figure::{Evidence, Figure, Quantity, Statistic};
use crate::audit::vocabulary::count;
use crate::audit::words;

/// L01: the number of exchanges, their latency and the number of clients give a time that is not
/// the stated one.
pub(super) fn stated_spans(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    let spans = || evidence.results().filter(|figure| figure.quantity == Quantity::Span);
    for least in spans().filter(|figure| figure.statistic == Statistic::Min) {
        let most = spans().find(|most| {
            let is_same = most.place.table == least.place.table && most.subjects == least.subjects;
            is_same && most.statistic == Statistic::Max
        });
        let Some(most) = most else { continue };
        for subject in &least.subjects {
            let Some(work) = work_of(evidence, least, subject) else { continue };
            bench.ask(Rule::L01);
            if (least.value..=most.value).contains(&work.wall_s) {
                continue;
            }
            let seen = format!(
                "{subject}: {} messages of {} over {} client{} take {}, the table says {} to {}; \
                 the sum of their latencies is {}",
                words::number(work.messages),
                work.latency.printed,
                words::number(work.clients),
                if work.clients == 1.0 { "" } else { "s" },
                words::time(work.wall_s),
                least.printed,
                most.printed,
                words::time(work.wall_s * work.clients),
            );
            bench.find(Rule::L01, least, seen);
        }
    }
}

struct Work<'e> {
    messages: f64,
    clients: f64,
    latency: &'e Figure,
    wall_s: f64,
}

/// What `subject` did in the time that `span` states.
fn work_of<'e>(evidence: &'e Evidence, span: &Figure, subject: &str) -> Option<Work<'e>> {
    let stated = |key: &str| {
        let fits = |fact: &&crate::audit::figure::Fact| {
            let in_table = fact.table.as_ref().is_none_or(|table| *table == span.place.table);
            let is_of = fact.subject.as_ref().is_some_and(|s| s.eq_ignore_ascii_case(subject));
            fact.key == key && in_table && is_of
        };
        evidence.facts.iter().find(fits).and_then(|fact| count(&fact.value))
    };
    let (messages, clients) = (stated("messages")?, stated("clients")?);
    let latency = evidence.results().find(|figure| {
        let is_mean = figure.quantity == Quantity::Latency && figure.statistic == Statistic::Mean;
        is_mean && figure.subjects.len() == 1 && figure.is_of(subject)
    })?;
    (clients > 0.0).then(|| Work {
        messages,
        clients,
        latency,
        wall_s: messages * latency.value / clients,
    })
}
