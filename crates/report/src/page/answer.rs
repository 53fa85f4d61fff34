//! The question of a run in a sentence, and its answer in two, made from the verdicts.

use std::collections::BTreeMap;

use weigh_model::Guarantee;

use crate::comparisons::LANE;
use crate::figures::{count, three_digits};
use crate::pictures::{Matrix, headline_metric, spoken};
use crate::summary::{Cell, Comparison, Summary, Verdict};

/// What was asked: by the plan, or else by what it weighs.
pub(crate) fn question(summary: &Summary, matrix: &Matrix) -> String {
    if let Some(question) = &summary.run.plan.question {
        return question.clone();
    }
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
        .filter_map(|guarantee| within(summary, matrix, &of_metric, (metric, guarantee)))
        .collect();
    if parts.is_empty() {
        return nothing_to_say(metric, &summary.cells, &of_metric);
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

/// Why not one pair could be compared: what stands between those that promise the same counts
/// more than that others do not.
fn nothing_to_say(metric: &str, cells: &[Cell], comparisons: &[&Comparison]) -> String {
    if cells.iter().all(|cell| !cell.valid) {
        return format!("{}: every case is invalid, so nothing is compared", spoken(metric));
    }
    let reasons = || comparisons.iter().filter_map(|comparison| comparison.reason.as_deref());
    let reason = reasons().find(|reason| !reason.starts_with("guarantees differ"));
    let reason = reason.or_else(|| reasons().next());
    let because = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
    format!("{}: no two cases can be compared{because}", spoken(metric))
}

/// The pairs of one guarantee: who wins against whom.
fn within(
    summary: &Summary,
    matrix: &Matrix,
    comparisons: &[&Comparison],
    (metric, guarantee): (&str, Guarantee),
) -> Option<String> {
    let index: BTreeMap<&str, usize> =
        summary.cells.iter().enumerate().map(|(i, cell)| (cell.name.as_str(), i)).collect();
    let mut pairs: Vec<Pair> = Vec::new();
    for comparison in comparisons {
        let number = |name: &str| index.get(name).copied();
        let (left, right) = (number(&comparison.left), number(&comparison.right));
        let Some((left, right)) = left.zip(right) else { continue };
        let is_here = summary.cells[left].guarantee == guarantee;
        let is_lane = comparison.factor == LANE;
        if is_here && is_lane && comparison.verdict != Verdict::Refused {
            let (a, b) = (name(matrix, left), name(matrix, right));
            if a != b {
                add(&mut pairs, a, b, comparison);
            }
        }
    }
    if pairs.is_empty() {
        return None;
    }
    let is_only = summary.cells.iter().all(|cell| cell.guarantee == guarantee);
    let prefix = if is_only { String::new() } else { format!("under “{guarantee}” ") };
    Some(prefix + &winner(&pairs, metric).unwrap_or_else(|| pair_by_pair(pairs)))
}

/// The one that leaves all others behind at every place, if there is one.
fn winner(pairs: &[Pair], metric: &str) -> Option<String> {
    let is_more_better = metric.contains("per_s") || metric.contains("acceptance");
    let names = || pairs.iter().flat_map(|pair| [&pair.left, &pair.right]);
    let leaves_behind = |pair: &Pair| {
        let wins = if is_more_better { pair.higher } else { pair.lower };
        wins == pair.lower + pair.higher + pair.close
    };
    let views = |name: &str| -> Vec<Pair> {
        pairs.iter().filter_map(|pair| pair.seen_from(name)).collect()
    };
    let best = names().find(|name| views(name).iter().all(leaves_behind))?;
    let views = views(best);
    let places = views.iter().map(|pair| pair.decided()).max().unwrap_or(1);
    let at = if places > 1 { format!(" at all {places} places") } else { String::new() };
    let word = if is_more_better { "highest" } else { "lowest" };
    let others: Vec<String> = views
        .iter()
        .take(PAIRS_MAX)
        .map(|pair| {
            let part = match pair.decided() {
                few if few < places => format!(" (compared at {few})"),
                _ => String::new(),
            };
            format!("{} times {}{part}", pair.ratio(), pair.right)
        })
        .collect();
    let more = match views.len().saturating_sub(PAIRS_MAX) {
        0 => String::new(),
        more => format!(", and {more} others"),
    };
    Some(format!("{best} is {word}{at}, {}{more}", in_words_of(&others)))
}

fn in_words_of(texts: &[String]) -> String {
    in_words(&texts.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Where nobody leads everywhere: the clearest pairs.
fn pair_by_pair(mut pairs: Vec<Pair>) -> String {
    pairs.sort_by_key(|pair| std::cmp::Reverse(pair.decided()));
    if pairs.iter().all(|pair| pair.decided() == 0) && pairs.len() > 1 {
        return format!("all {} pairs are too close to call", pairs.len());
    }
    let shown: Vec<String> = pairs.iter().take(PAIRS_MAX).map(Pair::words).collect();
    let more = match pairs.len().saturating_sub(PAIRS_MAX) {
        0 => String::new(),
        more => format!("; {more} more pairs stand below"),
    };
    format!("{}{more}", shown.join(", "))
}

/// The name of a cell's line along the first axis, or its own.
fn name(matrix: &Matrix, cell: usize) -> &str {
    let line = matrix.axes.first().and_then(|axis| {
        axis.lines.iter().find(|line| line.places.iter().any(|place| place.1 == cell))
    });
    line.map_or(&matrix.labels[cell], |line| &line.name)
}

/// Two lines, place by place.
#[derive(Clone)]
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

    /// The same pair with `name` on the left; `None` where it is not in it.
    fn seen_from(&self, name: &str) -> Option<Pair> {
        if self.left == name {
            return Some(self.clone());
        }
        (self.right == name).then(|| Pair {
            left: self.right.clone(),
            right: self.left.clone(),
            lower: self.higher,
            higher: self.lower,
            close: self.close,
            ratio_min: 1.0 / self.ratio_max,
            ratio_max: 1.0 / self.ratio_min,
        })
    }

    fn words(&self) -> String {
        let Pair { left, right, lower, higher, close, .. } = self;
        let all = lower + higher + close;
        let ratio = match self.ratio_min.is_finite() {
            true => format!(" ({} times)", self.ratio()),
            false => String::new(),
        };
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
                format!(
                    "{left} is lower than {right} at {lower} and higher at {higher} of {all} places"
                )
            }
        }
    }

    /// The ratios over all places: `0.500 to 0.750`.
    fn ratio(&self) -> String {
        let (low, high) = (three_digits(self.ratio_min), three_digits(self.ratio_max));
        if low == high { low } else { format!("{low} to {high}") }
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
        let pairs = [pair(2, 0, 0)];
        let won = winner(&pairs, "response_time_ns.p99").unwrap();
        assert_eq!(won, "a is lowest at all 2 places, 0.500 to 0.750 times b");
        let won = winner(&pairs, "throughput_out_per_s").unwrap();
        assert_eq!(won, "b is highest at all 2 places, 1.33 to 2.00 times a");
        assert_eq!(winner(&[pair(1, 0, 1)], "response_time_ns.p99"), None);
    }
}
