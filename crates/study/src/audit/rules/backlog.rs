//! What arrives of a burst: counts that do not grow with what is sent (L06), and limits on a burst
//! that another burst passes (L10).

use std::collections::HashMap;

use weigh_model::Rule;
use weigh_model::warnings::Severity;
use weigh_stats::line::Line;

use super::bench::Bench;
use super::loading::{WHOLE, axes};
use crate::audit::figure::{Evidence, Figure, Quantity};
use crate::audit::vocabulary::count;
use crate::audit::words;

/// L06: percentages along messages that are, turned back into counts, about the same count: a
/// buffer that is full, not a share that is lost.
pub(super) fn steady_counts(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    let rounded = rounding_subjects(evidence);
    for table in evidence.tables() {
        for (axis, series) in axes(evidence, table, Quantity::Accepted) {
            if axis != "messages" {
                continue;
            }
            let lossy = series.iter().filter(|(_, figure)| figure.value < WHOLE);
            let counts: Vec<(f64, f64, &Figure)> = lossy
                .map(|(stated, figure)| {
                    let sent = sent_of(evidence, &rounded, figure).unwrap_or(*stated);
                    (sent, figure.value * sent, *figure)
                })
                .collect();
            let [(least, ..), .., (most, ..)] = counts[..] else { continue };
            if counts.len() < COUNTS_MIN || most < REACH_MIN * least {
                continue;
            }
            bench.ask(Rule::L06);
            let r = correlation(&counts);
            if r < PROPORTIONAL_MIN {
                let figure = counts[0].2;
                let listed = counts.iter().map(|(_, arrived, _)| words::number(arrived.round()));
                let seen = format!(
                    "{}: of {} to {} messages sent, {} arrived: the counts do not go with what \
                     was sent (correlation {r:.2}), as a buffer of fixed size and not as a share",
                    figure.named(),
                    words::number(least),
                    words::number(most),
                    listed.collect::<Vec<_>>().join(", "),
                );
                // The percentages may well be right: they are only not what there is to say.
                bench.find_as(Rule::L06, Severity::Warning, figure, seen);
            }
        }
    }
}

/// L10: a number of messages that is called the most without loss, and a table in which more of
/// them arrive without loss.
pub(super) fn passed_elsewhere(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    let rounded = rounding_subjects(evidence);
    let limits = evidence.results().filter(|figure| {
        figure.is_limit && figure.quantity == Quantity::Received && !figure.subjects.is_empty()
    });
    for limit in limits {
        bench.ask(Rule::L10);
        let passed = evidence.results().filter(|figure| {
            let is_whole = figure.quantity == Quantity::Accepted && figure.value >= WHOLE;
            is_whole && figure.subjects == limit.subjects
        });
        let sent = passed.filter_map(|figure| Some((figure, sent_of(evidence, &rounded, figure)?)));
        let most = sent.max_by(|(_, left), (_, right)| left.total_cmp(right));
        let Some((figure, sent)) = most.filter(|(_, sent)| *sent > limit.value) else { continue };
        let seen = format!(
            "{}: {} is called the most without loss, but all of {} arrived in {} ({}): the limit \
             is not one of messages",
            limit.named(),
            limit.printed,
            words::number(sent),
            figure.place.table,
            figure.cell(),
        );
        bench.find(Rule::L10, limit, seen);
    }
}

/// How many messages were sent in a cell, as far as it is counted somewhere, or as far as the study
/// rounds up what each client sends.
fn sent_of(evidence: &Evidence, rounded: &Rounding<'_>, figure: &Figure) -> Option<f64> {
    let is_sent = |other: &&Figure| other.quantity == Quantity::Expected;
    let counted = evidence.cell_of(figure).chain(evidence.same_cell(figure)).find(is_sent);
    match counted {
        Some(counted) => Some(counted.value),
        None if rounded.get(&figure.subjects[..]) == Some(&true) => whole_of(figure),
        None => None,
    }
}

/// Whether what was sent, as far as it is counted, is rounded up for each client: by subjects.
type Rounding<'e> = HashMap<&'e [String], bool>;

fn rounding_subjects(evidence: &Evidence) -> Rounding<'_> {
    let mut rounded = Rounding::new();
    for sent in evidence.results().filter(|figure| figure.quantity == Quantity::Expected) {
        let Some(whole) = whole_of(sent) else { continue };
        *rounded.entry(&sent.subjects[..]).or_insert(true) &= whole == sent.value;
    }
    rounded
}

fn whole_of(figure: &Figure) -> Option<f64> {
    let number = |key| figure.keys.get(key).and_then(|value| count(value));
    rounded_up(number("messages")?, number("clients")?)
}

/// Messages over clients, rounded up, for each of the clients.
pub(crate) fn rounded_up(messages: f64, clients: f64) -> Option<f64> {
    (clients >= 1.0).then(|| (messages / clients).ceil() * clients)
}

/// Pearson's correlation of what was sent and what arrived; 0 where one of them never changes,
/// which then does not go with the other.
fn correlation(counts: &[(f64, f64, &Figure)]) -> f64 {
    let points: Vec<(f64, f64)> =
        counts.iter().map(|(sent, arrived, _)| (*sent, *arrived)).collect();
    let correlation = Line::through(&points).map(|line| line.correlation);
    correlation.filter(|correlation| correlation.is_finite()).unwrap_or(0.0)
}

/// Lossy points that a statement about their counts needs.
const COUNTS_MIN: usize = 4;

/// How far apart what was sent must be.
const REACH_MIN: f64 = 3.0;

/// The correlation from which counts go with what was sent: a share that is lost gives 1.
const PROPORTIONAL_MIN: f64 = 0.7;

#[cfg(test)]
mod tests {
    use crate::audit::{Source, audit};
    use weigh_model::Rule;

    fn codes(shares: [f64; 5]) -> Vec<Rule> {
        let rows = shares.iter().enumerate().map(|(index, share)| {
            let messages = 4000 * (index + 1);
            format!(
                "s,T,protocol=MQTT;clients=40;stat=acceptance,{messages},messages,{share},percent\n"
            )
        });
        let text = format!("study,table,series,x,x_unit,y,y_unit\n{}", rows.collect::<String>());
        let found = audit(&[Source { name: "t.csv".to_owned(), text }], &[]).unwrap();
        found.rules().into_iter().collect()
    }

    #[test]
    fn a_full_buffer_is_told_from_a_share_that_is_lost() {
        assert_eq!(codes([25.0, 12.5, 8.3, 6.2, 5.0]), [Rule::L06]);
        assert_eq!(codes([25.0, 25.5, 24.0, 26.0, 25.0]), []);
    }
}
