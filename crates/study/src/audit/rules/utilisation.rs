//! Shares of a processor without the rate that they are for (L09), and what times elsewhere in the
//! study say of that rate.

use std::collections::HashMap;

use weigh_model::Rule;
use weigh_stats::line::Line;

use super::bench::Bench;
use super::loading::{axes, offered};
use crate::audit::figure::{Evidence, Figure, Quantity, Statistic};
use crate::audit::vocabulary::count;
use crate::audit::words;

/// L09: a CPU percentage without a rate in its cell.
pub(super) fn cpu_rate(bench: &mut Bench<'_>) {
    // What says most comes first: of each table only the first few are shown.
    sides(bench);
    windows(bench);
    closed_loop(bench);
    along_messages(bench);
    let evidence = bench.evidence;
    for figure in evidence.results().filter(|figure| figure.quantity == Quantity::Cpu) {
        bench.ask(Rule::L09);
        let has_rate = evidence.cell_of(figure).any(|other| other.quantity == Quantity::Throughput)
            || offered(evidence, figure).is_some();
        if has_rate {
            continue;
        }
        let mut seen = format!("{}: {}, without a stated rate", figure.cell(), figure.printed);
        if let Some(run) = run_of(evidence, figure) {
            seen += &format!(
                "; the run took {} ({}), which is {}",
                run.span.printed,
                run.span.place.table,
                words::rate(run.per_s)
            );
        }
        bench.find(Rule::L09, figure, seen);
    }
}

/// Two sides of a table whose percentages stand for rates of another size.
fn sides(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    let known: Vec<(&Figure, Run<'_>)> = evidence
        .results()
        .filter(|figure| figure.quantity == Quantity::Cpu)
        .filter_map(|figure| Some((figure, run_of(evidence, figure)?)))
        .collect();
    let mut first: HashMap<String, usize> = HashMap::new();
    for (index, (other, faster)) in known.iter().enumerate() {
        let place = format!("{}{:?}", other.place.table, other.keys);
        let (figure, run) = &known[*first.entry(place).or_insert(index)];
        if figure.subjects == other.subjects {
            continue;
        }
        let apart = (faster.per_s / run.per_s).max(run.per_s / faster.per_s);
        if apart > RATES_MAX {
            let seen = format!(
                "{} of {} is at {}, {} of {} at {}: {} apart ({})",
                figure.printed,
                figure.named(),
                words::rate(run.per_s),
                other.printed,
                other.named(),
                words::rate(faster.per_s),
                words::factor(apart),
                run.span.place.table
            );
            bench.find(Rule::L09, figure, seen);
        }
    }
}

/// A percentage along messages, whose runs are of different length: what rises is the share of the
/// window that the load filled.
fn windows(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    for table in evidence.tables() {
        for (axis, series) in axes(evidence, table, Quantity::Cpu) {
            let timed = series.iter().filter_map(|(_, cpu)| Some((*cpu, run_of(evidence, cpu)?)));
            let timed: Vec<(&Figure, Run<'_>)> = timed.collect();
            let [(first, short), .., (last, long)] = &timed[..] else { continue };
            if axis != "messages" || long.span.value < WINDOWS_MAX * short.span.value {
                continue;
            }
            let seen = format!(
                "{}: from {} to {} along messages the runs take from {} to {} ({}): in the same \
                window of the reading, the load covers a different share",
                first.named(),
                first.printed,
                last.printed,
                short.span.printed,
                long.span.printed,
                long.span.place.table
            );
            bench.find(Rule::L09, first, seen);
        }
    }
}

/// A percentage along the clients of a closed loop: U = N D / (R + Z) (P. J. Denning, J. P. Buzen,
/// "The Operational Analysis of Queueing Network Models", ACM Computing Surveys 10:3, 1978), so
/// that it says how long a cycle takes and nothing of what a message costs.
fn closed_loop(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    for table in evidence.tables() {
        for (axis, series) in axes(evidence, table, Quantity::Cpu) {
            let (clients, first) = series[0];
            let is_closed = evidence.known(first, "loop").is_some_and(|l| l.value == "closed");
            if axis != "clients" || !is_closed || first.statistic == Statistic::Max {
                continue;
            }
            let Some((apart_s, spans)) = apart(evidence, first) else { continue };
            let at = evidence.known(spans, "clients").and_then(|known| count(known.value));
            let full = series.iter().find(|(clients, _)| Some(*clients) == at);
            let Some((_, full)) = full else { continue };
            let demand_s = apart_s * full.value;
            let per_s = first.value / demand_s;
            let seen = format!(
                "{}: messages are {} apart at {} ({}), so that one takes {} of the processor; {} \
                 at {clients} clients is then {}, a cycle of {} for each: the loop sets the rate",
                first.named(),
                words::time(apart_s),
                full.printed,
                spans.place.table,
                words::time(demand_s),
                first.printed,
                words::rate(per_s),
                words::time(clients / per_s),
            );
            bench.find(Rule::L09, first, seen);
        }
    }
}

/// A closed loop along messages at several numbers of clients: the clients set the percentage, and
/// more messages only make the run longer.
fn along_messages(bench: &mut Bench<'_>) {
    let evidence = bench.evidence;
    for table in evidence.tables() {
        let mut levels: Vec<(f64, f64, &Figure)> = Vec::new();
        for (axis, series) in axes(evidence, table, Quantity::Cpu) {
            let first = series[0].1;
            let is_closed = evidence.known(first, "loop").is_some_and(|l| l.value == "closed");
            let clients = first.keys.get("clients").and_then(|clients| count(clients));
            if let Some(clients) = clients.filter(|_| axis == "messages" && is_closed) {
                let sum: f64 = series.iter().map(|(_, figure)| figure.value).sum();
                levels.push((clients, sum / series.len() as f64, first));
            }
        }
        levels.sort_by(|left, right| left.0.total_cmp(&right.0));
        let rises = levels.len() > 1 && levels.windows(2).all(|pair| pair[0].1 < pair[1].1);
        if !rises {
            continue;
        }
        let said = levels.iter().map(|(clients, mean, _)| {
            format!("{} at {} clients", words::percent(*mean), words::number(*clients))
        });
        let first = levels[0].2;
        let seen = format!(
            "{}: over all messages {}: in a closed loop the number of clients sets the share; more \
            messages only make the run longer",
            first.named(),
            said.collect::<Vec<_>>().join(", "),
        );
        bench.find(Rule::L09, first, seen);
    }
}

/// A run: its time, and its messages over it.
struct Run<'e> {
    span: &'e Figure,
    per_s: f64,
}

/// The run of the same cell, in whichever table its time stands.
fn run_of<'e>(evidence: &'e Evidence, figure: &Figure) -> Option<Run<'e>> {
    let messages = evidence.known(figure, "messages").and_then(|known| count(known.value))?;
    let mut cell = evidence.same_cell(figure);
    let span = cell.find(|other| other.quantity == Quantity::Span && other.value > 0.0)?;
    Some(Run { span, per_s: messages / span.value })
}

/// How far messages of the same subject are apart: the slope, by least squares, of times along
/// messages; with the first of those times.
pub(crate) fn apart<'e>(evidence: &'e Evidence, figure: &Figure) -> Option<(f64, &'e Figure)> {
    let of_subject = |series: &[(f64, &Figure)]| series[0].1.subjects == figure.subjects;
    let tables = evidence.tables().into_iter();
    let mut found = tables.flat_map(|table| axes(evidence, table, Quantity::Span));
    let (_, series) = found.find(|(axis, series)| axis == "messages" && of_subject(series))?;
    let points: Vec<(f64, f64)> = series.iter().map(|(x, figure)| (*x, figure.value)).collect();
    let slope = Line::through(&points)?.slope;
    (slope > 0.0).then(|| (slope, series[0].1))
}

/// By what factor two rates may differ whose percentages stand side by side.
const RATES_MAX: f64 = 1.1;

/// By what factor runs may differ in length whose percentages stand in one column.
const WINDOWS_MAX: f64 = 2.0;
