//! The question of a run in a sentence, and its answer in two, made from the verdicts.

use std::collections::BTreeMap;

use weigh_model::Guarantee;

use crate::figures::{count, three_digits};
use crate::pictures::{Matrix, headline_metric};
use crate::summary::{Cell, Comparison, Summary, Verdict};

/// What was asked: by the plan, or else by what it weighs.
pub(crate) fn question(summary: &Summary, matrix: &Matrix) -> String {
    let mut names: Vec<&str> = match matrix.axes.first() {
        Some(axis) => axis.lines.iter().map(|line| line.name.as_str()).collect(),
        None => matrix.labels.iter().map(String::as_str).collect(),
    };
    names.dedup();
    let plan = &summary.run.plan;
    let load = format!("{} over {} connections", plan.load.pattern.name(), plan.load.connections);
    let how = match matrix.axes.first() {
        Some(axis) => format!("along {}", Matrix::short(&axis.key)),
        None => format!("in {load}"),
    };
    match &names[..] {
        [] => "Nothing was weighed.".to_owned(),
        [one] => format!("How does {one} do {how}?"),
        few if few.len() <= NAMES_MAX => format!("How do {} compare {how}?", in_words(few)),
        many => format!("How do {} cases compare {how}?", many.len()),
    }
}

/// The answer: a sentence on time, and one on loss and cost.
pub(crate) fn answer(summary: &Summary, matrix: &Matrix) -> [String; 2] {
    if summary.cells.is_empty() {
        return ["No trial has a result.".to_owned(), "See what was not done, below.".to_owned()];
    }
    let metric = headline_metric(summary).unwrap_or("response_time_ns.p99");
    [sentence(verdict(summary, matrix, metric)), sentence(loss_and_cost(summary, matrix))]
}

/// What the verdicts of one metric say together. Cells are only ever compared within a guarantee,
/// so there is a part for each.
fn verdict(summary: &Summary, matrix: &Matrix, metric: &str) -> String {
    let of_metric: Vec<&Comparison> =
        summary.comparisons.iter().filter(|c| c.metric == metric).collect();
    if summary.cells.len() == 1 {
        return format!("{}: one case, and nothing to compare it with", spoken(metric));
    }
    let parts: Vec<String> = guarantees(&summary.cells)
        .into_iter()
        .filter_map(|guarantee| within(summary, matrix, &of_metric, guarantee))
        .collect();
    if parts.is_empty() {
        return nothing_to_say(metric, &of_metric);
    }
    format!("{}: {}", spoken(metric), parts.join("; "))
}

fn guarantees(cells: &[Cell]) -> Vec<Guarantee> {
    let mut all = Vec::new();
    for cell in cells {
        if !all.contains(&cell.guarantee) {
            all.push(cell.guarantee);
        }
    }
    all
}

/// Why not one pair could be compared.
fn nothing_to_say(metric: &str, comparisons: &[&Comparison]) -> String {
    let reason = comparisons.iter().find_map(|comparison| comparison.reason.as_deref());
    let because = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
    format!("{}: no two cases can be compared{because}", spoken(metric))
}

/// The pairs of one guarantee: who wins against whom.
fn within(
    summary: &Summary,
    matrix: &Matrix,
    comparisons: &[&Comparison],
    guarantee: Guarantee,
) -> Option<String> {
    let index: BTreeMap<&str, usize> =
        summary.cells.iter().enumerate().map(|(i, cell)| (cell.name.as_str(), i)).collect();
    let mut pairs: Vec<Pair> = Vec::new();
    for comparison in comparisons {
        let (left, right) = (index[comparison.left.as_str()], index[comparison.right.as_str()]);
        let is_here = summary.cells[left].guarantee == guarantee;
        if is_here && comparison.verdict != Verdict::Refused && at_one_place(matrix, left, right) {
            let (a, b) = (name(matrix, left), name(matrix, right));
            if a != b {
                add(&mut pairs, a, b, comparison);
            }
        }
    }
    if pairs.is_empty() {
        return None;
    }
    let prefix = format!("under “{guarantee}” ");
    pairs.sort_by_key(|pair| std::cmp::Reverse(pair.decided()));
    let shown: Vec<String> = pairs.iter().take(PAIRS_MAX).map(Pair::words).collect();
    let more = match pairs.len().saturating_sub(PAIRS_MAX) {
        0 => String::new(),
        more => format!(", and {more} more pairs below"),
    };
    Some(format!("{prefix}{}{more}", shown.join(", ")))
}

/// True where the two stand at the same place of every axis: along one, each is compared with
/// its neighbour, not with another load.
fn at_one_place(matrix: &Matrix, left: usize, right: usize) -> bool {
    matrix.axes.iter().all(|axis| {
        let place = |cell: usize| {
            let all = axis.lines.iter().flat_map(|line| &line.places);
            all.filter(|place| place.1 == cell).map(|place| place.0).next()
        };
        place(left) == place(right)
    })
}

/// The name of a cell's line along the first axis, or its own.
fn name(matrix: &Matrix, cell: usize) -> &str {
    let line = matrix.axes.first().and_then(|axis| {
        axis.lines.iter().find(|line| line.places.iter().any(|place| place.1 == cell))
    });
    line.map_or(&matrix.labels[cell], |line| &line.name)
}

/// Two lines, place by place.
struct Pair {
    left: String,
    right: String,
    lower: usize,
    higher: usize,
    close: usize,
    ratio_min: f64,
    ratio_max: f64,
}

fn add(pairs: &mut Vec<Pair>, left: &str, right: &str, comparison: &Comparison) {
    let known = pairs.iter().position(|pair| pair.left == left && pair.right == right);
    let at = known.unwrap_or_else(|| {
        let (left, right) = (left.to_owned(), right.to_owned());
        let (ratio_min, ratio_max) = (f64::INFINITY, 0.0);
        pairs.push(Pair { left, right, lower: 0, higher: 0, close: 0, ratio_min, ratio_max });
        pairs.len() - 1
    });
    let pair = &mut pairs[at];
    match comparison.verdict {
        Verdict::Lower => pair.lower += 1,
        Verdict::Higher => pair.higher += 1,
        Verdict::TooClose | Verdict::Refused => pair.close += 1,
    }
    if let Some(ratio) = comparison.ratio {
        pair.ratio_min = pair.ratio_min.min(ratio.value);
        pair.ratio_max = pair.ratio_max.max(ratio.value);
    }
}

impl Pair {
    fn decided(&self) -> usize {
        self.lower + self.higher
    }

    fn words(&self) -> String {
        let Pair { left, right, lower, higher, close, .. } = self;
        let all = lower + higher + close;
        let ratio = self.ratio();
        match (lower, higher) {
            (0, 0) if all == 1 => format!("{left} and {right} are too close to call"),
            (0, 0) => format!("{left} and {right} are too close to call at all {all} places"),
            (_, 0) | (0, _) => {
                let (word, decided) =
                    if *lower > 0 { ("lower", lower) } else { ("higher", higher) };
                let places = match (decided, all) {
                    (1, 1) => String::new(),
                    (decided, all) if *decided == all => format!(" at all {all} places"),
                    (decided, all) => format!(" at {decided} of {all} places"),
                };
                format!("{left} is {word} than {right}{places}{ratio}")
            }
            (lower, higher) => {
                format!("{left} is lower than {right} at {lower} and higher at {higher} of {all} places")
            }
        }
    }

    fn ratio(&self) -> String {
        let (low, high) = (three_digits(self.ratio_min), three_digits(self.ratio_max));
        match self.ratio_min.is_finite() {
            false => String::new(),
            true if low == high => format!(" ({low} times)"),
            true => format!(" ({low} to {high} times)"),
        }
    }
}

fn loss_and_cost(summary: &Summary, matrix: &Matrix) -> String {
    let cost = "target_cpu_us_per_message";
    let measured = summary.cells.iter().filter(|cell| cell.metrics.contains_key(cost)).count();
    match measured {
        0 | 1 => loss(summary),
        _ => format!("{}; {}", loss(summary), lower_first(&verdict(summary, matrix, cost))),
    }
}

fn loss(summary: &Summary) -> String {
    let cells = &summary.cells;
    let lossy: Vec<&Cell> = cells.iter().filter(|cell| cell.ledger.lost > Some(0)).collect();
    let unknown = cells.iter().filter(|cell| cell.ledger.lost.is_none()).count();
    let mut text = match lossy.len() {
        0 => "no message was lost".to_owned(),
        n => {
            let lost: u64 = lossy.iter().filter_map(|cell| cell.ledger.lost).sum();
            let sent: u64 = lossy.iter().map(|cell| cell.ledger.sent).sum();
            let of = if cells.len() == 1 {
                String::new()
            } else {
                format!(" in {n} of {} cases", cells.len())
            };
            format!("{} of {} sent messages were lost{of}", count(lost), count(sent))
        }
    };
    if unknown > 0 {
        text += &format!(", and in {unknown} nobody can know");
    }
    text
}

/// The metric in words.
pub(crate) fn spoken(metric: &str) -> String {
    let (quantity, part) = metric.split_once('.').unwrap_or((metric, ""));
    let quantity = match quantity {
        "target_cpu_us_per_message" => "target CPU time of a message".to_owned(),
        "throughput_out_per_s" => "messages delivered per second".to_owned(),
        _ => quantity.trim_end_matches("_ns").replace('_', " "),
    };
    let part = match part {
        "" => String::new(),
        "p50" => "median ".to_owned(),
        "p999" => "99.9th percentile of ".to_owned(),
        _ => match part.strip_prefix('p').and_then(|digits| digits.parse::<u32>().ok()) {
            Some(digits) => format!("{digits}th percentile of "),
            None => format!("{part} of "),
        },
    };
    format!("{part}{quantity}")
}

fn sentence(text: String) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str() + "."
}

fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_lowercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

fn in_words(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}

/// More names than this make no sentence.
const NAMES_MAX: usize = 6;

/// Pairs that one sentence tells of.
const PAIRS_MAX: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_spoken() {
        assert_eq!(spoken("response_time_ns.p99"), "99th percentile of response time");
        assert_eq!(spoken("delivery_time_ns.p50"), "median delivery time");
        assert_eq!(spoken("target_cpu_us_per_message"), "target CPU time of a message");
    }

    #[test]
    fn a_pair_says_where_it_was_decided() {
        let pair = |lower, higher, close| Pair {
            left: "a".into(),
            right: "b".into(),
            lower,
            higher,
            close,
            ratio_min: 0.5,
            ratio_max: 0.75,
        };
        let words = |l, h, c| pair(l, h, c).words();
        assert_eq!(words(2, 0, 0), "a is lower than b at all 2 places (0.500 to 0.750 times)");
        assert_eq!(words(1, 0, 2), "a is lower than b at 1 of 3 places (0.500 to 0.750 times)");
        assert_eq!(words(1, 1, 0), "a is lower than b at 1 and higher at 1 of 2 places");
        assert_eq!(words(0, 0, 1), "a and b are too close to call");
    }
}
