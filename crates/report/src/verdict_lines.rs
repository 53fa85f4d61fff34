//! The verdicts as sentences for the terminal: which lane was how many times faster than which
//! other, one line for two lanes, however many places they met at.

use std::collections::{BTreeMap, BTreeSet};

use crate::comparisons::LANE;
use crate::figures::{between, count, three_digits};
use crate::pictures::{Matrix, headline_metric, spoken};
use crate::summary::{Comparison, Summary, Verdict};

/// All lines; empty where nothing was compared.
pub(crate) fn lines(summary: &Summary) -> Vec<String> {
    let matrix = Matrix::new(&summary.cells);
    let lanes = Lanes::of(summary, &matrix);
    let mut lines = Vec::new();
    let mut metrics: Vec<&str> = Vec::new();
    for comparison in &summary.comparisons {
        if !metrics.contains(&comparison.metric.as_str()) {
            metrics.push(&comparison.metric);
        }
    }
    for metric in metrics {
        let said = lanes.meetings(summary, metric, true);
        lines.extend(titled(spoken(metric), said.iter().map(|one| one.words(metric)).collect()));
    }
    if let Some(metric) = headline_metric(summary) {
        let said = lanes.meetings(summary, metric, false);
        let title = format!("{}, from place to place", spoken(metric));
        lines.extend(titled(title, said.iter().map(Meeting::steps).collect()));
    }
    let together = together(summary);
    if !lines.is_empty() && !together.is_empty() {
        lines.push(together);
    }
    lines
}

/// At most [`LINES_MAX`] lines below a title, the rest counted.
fn titled(title: String, mut lines: Vec<String>) -> Vec<String> {
    if lines.is_empty() {
        return lines;
    }
    let rest = lines.len().saturating_sub(LINES_MAX);
    lines.truncate(LINES_MAX);
    if rest > 0 {
        lines.push(format!("{rest} more: report.html and summary.json have them"));
    }
    let mut all = vec![format!("  {title}:")];
    all.extend(lines.into_iter().map(|line| format!("    {line}")));
    all
}

/// What so many verdicts mean for each; empty for a single one.
fn together(summary: &Summary) -> String {
    let of = &summary.multiplicity;
    if of.compared < 2 {
        return String::new();
    }
    let mut text = format!(
        "  {} comparisons, {} called different; were all equal, {:.1} would be called by chance",
        count(of.compared.into()),
        count(of.called.into()),
        of.expected_by_chance,
    );
    if of.standing < of.called {
        let standing = count(of.standing.into());
        text += &format!("; {standing} stand when all are taken together, ? marks the others");
    }
    text
}

/// The name of every cell without its place along the axes.
struct Lanes<'a> {
    /// By the cell's name: its lane, and what tells it from others of the same lane.
    names: BTreeMap<&'a str, String>,
}

impl<'a> Lanes<'a> {
    fn of(summary: &'a Summary, matrix: &Matrix) -> Lanes<'a> {
        let axes = matrix.axes.iter().map(|axis| axis.key.as_str());
        // Quantities that change together are no axis of the matrix, and yet places.
        let factors = summary.comparisons.iter().map(|comparison| comparison.factor.as_str());
        let factors = factors.filter(|factor| *factor != LANE).flat_map(|f| f.split(" and "));
        let places: BTreeSet<String> =
            axes.chain(factors).map(|key| format!("{}=", Matrix::short(key))).collect();
        let lane = |label: &String| {
            let is_place = |word: &&str| places.iter().any(|place| word.starts_with(place));
            label.split(' ').filter(|word| !is_place(word)).collect::<Vec<_>>().join(" ")
        };
        let names = summary.cells.iter().zip(&matrix.labels);
        Lanes { names: names.map(|(cell, label)| (cell.name.as_str(), lane(label))).collect() }
    }

    /// What every two lanes were to each other, or every lane to itself along an axis.
    fn meetings(&self, summary: &Summary, metric: &str, is_of_lanes: bool) -> Vec<Meeting> {
        let mut meetings: Vec<Meeting> = Vec::new();
        for comparison in &summary.comparisons {
            let is_wanted =
                comparison.metric == metric && (comparison.factor == LANE) == is_of_lanes;
            if !is_wanted || comparison.verdict == Verdict::Refused {
                continue;
            }
            let lane = |name: &str| self.names.get(name).cloned().unwrap_or_default();
            let (left, right) = (lane(&comparison.left), lane(&comparison.right));
            let factor = comparison.factor.as_str();
            let is_same =
                |m: &&mut Meeting| m.left == left && m.right == right && m.factor == factor;
            match meetings.iter_mut().find(is_same) {
                Some(known) => known.seen.push(comparison.clone()),
                None => meetings.push(Meeting {
                    left,
                    right,
                    factor: factor.to_owned(),
                    seen: vec![comparison.clone()],
                }),
            }
        }
        meetings
    }
}

/// Two lanes in one metric, place by place.
struct Meeting {
    left: String,
    right: String,
    factor: String,
    seen: Vec<Comparison>,
}

impl Meeting {
    fn number(&self, verdict: Verdict) -> usize {
        self.seen.iter().filter(|comparison| comparison.verdict == verdict).count()
    }

    /// A mark where a verdict does not stand among all.
    fn mark(&self) -> &'static str {
        let is_called = |c: &&Comparison| matches!(c.verdict, Verdict::Lower | Verdict::Higher);
        if self.seen.iter().filter(is_called).all(|c| c.stands) { "" } else { " ?" }
    }

    /// Two lanes: `mqtt qos=1 was 1.32 ± 0.04 times faster than http1`.
    fn words(&self, metric: &str) -> String {
        let (lower, higher) = (self.number(Verdict::Lower), self.number(Verdict::Higher));
        let all = self.seen.len();
        let (left, right) = (&self.left, &self.right);
        if lower + higher == 0 {
            let at = if all > 1 { format!(" at all {all} places") } else { String::new() };
            let ends = self.ratio(false);
            return format!("{left} and {right} are too close to call{at} ({ends} times)");
        }
        let is_time = metric.contains("_time_ns");
        // The faster one is named first of times, the larger one of all else.
        let is_left_first = (lower >= higher) == is_time;
        let (one, other) = if is_left_first { (left, right) } else { (right, left) };
        let is_inverted = is_time == is_left_first;
        let ratio = self.ratio(is_inverted);
        let verb = match metric {
            _ if is_time => format!("was {ratio} times faster than {other}"),
            "throughput_out_per_s" => format!("delivered {ratio} times as much as {other}"),
            _ => format!("took {ratio} times as much as {other}"),
        };
        format!("{one} {verb}{}{}", self.places(lower.max(higher)), self.mark())
    }

    /// One lane along an axis: `mqtt qos=1 along connections: 1.02 to 1.31 times at each step
    /// (rises at 4 of 5, too close to call at 1)`.
    fn steps(&self) -> String {
        let all = self.seen.len();
        // The left place is the smaller one: where it is lower, the figure rises.
        let parts = [
            (self.number(Verdict::Lower), "rises"),
            (self.number(Verdict::Higher), "falls"),
            (self.number(Verdict::TooClose), "too close to call"),
        ];
        let parts = parts.iter().filter(|(number, _)| *number > 0);
        let said: Vec<String> = parts.map(|(number, word)| format!("{word} at {number}")).collect();
        format!(
            "{} along {}: {} times from one place to the next ({} of {all}){}",
            self.left,
            self.factor.split(" and ").map(Matrix::short).collect::<Vec<_>>().join(" and "),
            self.ratio(true),
            said.join(", "),
            self.mark()
        )
    }

    fn places(&self, decided: usize) -> String {
        match self.seen.len() {
            1 => String::new(),
            all if decided == all => format!(" at all {all} places"),
            all => format!(" at {decided} of {all} places"),
        }
    }

    /// The ratio of one place with its interval, or the range over several; inverted, right over
    /// left.
    fn ratio(&self, is_inverted: bool) -> String {
        let turn = |value: f64| if is_inverted { 1.0 / value } else { value };
        if let [Comparison { ratio: Some(ratio), .. }] = &self.seen[..] {
            // Where nothing at all is a possible ratio, its inverse has no end.
            let ends = ratio.low.zip(ratio.high);
            let ends = ends.filter(|(low, high)| *low > 0.0 && high.is_finite());
            return between(
                turn(ratio.value),
                ends.map(|(low, high)| match is_inverted {
                    true => (turn(high), turn(low)),
                    false => (low, high),
                }),
            );
        }
        let values = || self.seen.iter().filter_map(|c| Some(turn(c.ratio?.value)));
        let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
        let [low, high] = [low, high].map(three_digits);
        if low == high { low } else { format!("{low} to {high}") }
    }
}

/// Lines of one metric.
const LINES_MAX: usize = 12;
