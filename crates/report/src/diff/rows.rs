//! One metric of one cell in both runs: ratio, interval, verdict, and the test by ranks.

use std::collections::BTreeSet;

use weigh_model::condition::{LOSS_RATIO, LOST};
use weigh_model::metrics::{Better, better};
use weigh_stats::estimate::INTERVAL_VALUES_MIN;
use weigh_stats::{CONFIDENCE, Comparison, Method, Refusal};

use super::document::{Effect, Figure, Row};
use super::input::Side;
use crate::summary::comparisons::{is_shown, on_lag};
use crate::summary::headlines::HEADLINES;
use crate::summary::lint::asked::Asked;
use crate::summary::{Cell, Metric, Ratio, Verdict, lint};
use weigh_model::metrics::unit_of;

/// The same cell in both runs.
pub(crate) struct Pair<'r> {
    pub(crate) a: (&'r Cell, &'r Side),
    pub(crate) b: (&'r Cell, &'r Side),
    pub(crate) aa_limit: f64,
}

impl Pair<'_> {
    /// All metrics that one of the two has, and the losses.
    pub(crate) fn metrics(&self) -> Vec<String> {
        let names: BTreeSet<&String> =
            self.a.0.metrics.keys().chain(self.b.0.metrics.keys()).collect();
        let mut names: Vec<String> = names.into_iter().cloned().collect();
        if !names.iter().any(|name| name == LOSS_RATIO) {
            names.push(LOSS_RATIO.to_owned());
        }
        names
    }

    /// The headline metrics that one of the two has, as in the comparisons within a run; losses and
    /// errors only if there were any.
    pub(crate) fn headlines(&self) -> Vec<String> {
        let cells = [self.a.0, self.b.0];
        let have = |metric: &str| cells.iter().any(|cell| cell.metrics.contains_key(metric));
        let shown = HEADLINES.iter().filter(|metric| have(metric) && is_shown(metric, cells));
        let mut metrics: Vec<String> = shown.map(|metric| (*metric).to_owned()).collect();
        for rare in [LOSS_RATIO, "errors_ratio"] {
            let is_seen = |side| figure(side, rare).and_then(|f| f.value).is_some_and(|v| v > 0.0);
            if (is_seen(self.a) || is_seen(self.b)) && !metrics.iter().any(|m| m == rare) {
                metrics.push(rare.to_owned());
            }
        }
        metrics
    }

    /// Compares the two in one metric.
    pub(crate) fn row(&self, metric: &str) -> Row {
        self.row_within(metric, false)
    }

    /// Compares the two in one metric; with `allows_lag` the generator's own lag does not
    /// prevent a verdict, because the caller considers it.
    pub(crate) fn row_within(&self, metric: &str, allows_lag: bool) -> Row {
        let mut row = Row {
            cell: self.b.0.name.clone(),
            metric: metric.to_owned(),
            unit: unit_of(metric).to_owned(),
            a: figure(self.a, metric),
            b: figure(self.b, metric),
            ratio: None,
            verdict: Verdict::Refused,
            effect: None,
            method: None,
            reason: None,
            mann_whitney_p: None,
            mann_whitney_exact: None,
            shift: None,
        };
        match self.refusal(metric, &row, allows_lag) {
            Some(reason) => row.reason = Some(reason),
            None => self.weigh(metric, &mut row),
        }
        row.effect = effect(metric, row.verdict);
        row
    }

    /// Why the two cannot form a ratio.
    fn refusal(&self, metric: &str, row: &Row, allows_lag: bool) -> Option<String> {
        let ((a, side_a), (b, side_b)) = (self.a, self.b);
        match (&row.a, &row.b) {
            (None, None) => return Some("arrivals are not observed".to_owned()),
            (None, _) => return Some("not measured in A".to_owned()),
            (_, None) => return Some("not measured in B".to_owned()),
            _ => {}
        }
        let invalid = invalid("A", a, metric).or_else(|| invalid("B", b, metric));
        if let Some(reason) = invalid.filter(|_| !allows_lag) {
            return Some(reason);
        }
        let of_b = Asked::of(&b.point, &side_b.summary.run.plan);
        let of_a = Asked::of(&a.point, &side_a.summary.run.plan);
        if of_a.arrival.is_open() != of_b.arrival.is_open() {
            return Some(
                "one arrival process is open, the other closed: their times are not \
                         comparable"
                    .to_owned(),
            );
        }
        lint::pair::refusal_of(metric, (b, &of_b), (a, &of_a))
    }

    fn weigh(&self, metric: &str, row: &mut Row) {
        let (all_a, all_b) = (values(self.a, metric), values(self.b, metric));
        if let Some((verdict, reason)) = among_the_lost(&all_a, &all_b) {
            (row.verdict, row.reason) = (verdict, Some(reason));
            return;
        }
        let finite = |values: &[Option<f64>]| values.iter().copied().flatten().collect();
        let (of_a, of_b): (Vec<f64>, Vec<f64>) = (finite(&all_a), finite(&all_b));
        let weighed = Comparison::beyond(&of_b, &of_a, self.aa_limit);
        row.ratio = weighed.ratio.map(|r| Ratio { value: r.value, low: r.low, high: r.high });
        row.reason = weighed.refusal.map(|refusal| words(refusal, self.knows_repetitions(metric)));
        row.verdict = Verdict::from(weighed.verdict).or_equal(row.ratio);
        row.method = weighed.ratio.and_then(|r| r.interval()).map(|i| i.method.name());
        if let Some(rank) = weighed.rank {
            row.mann_whitney_p = Some(rank.p);
            row.mann_whitney_exact = Some(rank.exact);
            row.shift = Some(rank.shift);
        }
        if weighed.refusal == Some(Refusal::UnboundedRatio) {
            self.weigh_by_ranks(&of_a, &of_b, row);
        }
        let again = |sides: [&[f64]; 2]| Comparison::beyond(sides[0], sides[1], self.aa_limit);
        let (cells, sides) = ([self.b.0, self.a.0], [of_b, of_a]);
        if let Some(hangs) = on_lag(metric, row.verdict, cells, sides, again) {
            (row.verdict, row.reason) = (Verdict::TooClose, Some(hangs.reason));
        }
    }

    /// A figure that was 0 in A has no ratio, but ranks need none.
    fn weigh_by_ranks(&self, of_a: &[f64], of_b: &[f64], row: &mut Row) {
        let is_enough = of_a.len().min(of_b.len()) >= INTERVAL_VALUES_MIN;
        match (row.mann_whitney_p, row.shift) {
            (Some(p), Some(_)) if p < 1.0 - CONFIDENCE && is_enough => {
                let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
                let is_higher = mean(of_b) > mean(of_a);
                row.verdict = if is_higher { Verdict::Higher } else { Verdict::Lower };
                row.method = Some("Mann-Whitney");
                row.reason = Some(
                    "A is not significantly different from 0, so the ratio has no bounds: ranks \
                     decide"
                        .to_owned(),
                );
            }
            (Some(_), _) => {}
            // Without spread in either there is one value, and no change.
            _ if is_enough => {
                row.verdict = Verdict::TooClose;
                row.reason = Some("the same value in every repetition".to_owned());
            }
            _ => {}
        }
    }

    fn knows_repetitions(&self, metric: &str) -> bool {
        metric != LOSS_RATIO
            || [self.a, self.b].iter().all(|(cell, side)| {
                cell.metrics.contains_key(metric) || side.loss_ratios.contains_key(&cell.name)
            })
    }
}

/// Why the cell's result in this metric is invalid.
fn invalid(name: &str, cell: &Cell, metric: &str) -> Option<String> {
    match cell.invalidated_by(metric) {
        Some(warning) => Some(format!("invalid in {name} ({}): {}", warning.code, warning.text)),
        None => (!cell.valid).then(|| format!("invalid in {name}: see the warnings of that run")),
    }
}

/// The figure of a metric in one run; losses are from the ledger.
pub(crate) fn figure((cell, side): (&Cell, &Side), metric: &str) -> Option<Figure> {
    if let Some(measured) = cell.metrics.get(metric) {
        return Some(in_short(measured));
    }
    let lost = cell.ledger.lost.map(|lost| lost as f64);
    let once = |value| Figure { value: Some(value), low: None, high: None, n: 1 };
    match metric {
        LOST => lost.map(once),
        LOSS_RATIO if cell.ledger.sent == 0 => None,
        LOSS_RATIO => {
            let pooled = lost? / cell.ledger.sent as f64;
            let Some(ratios) = side.loss_ratios.get(&cell.name) else { return Some(once(pooled)) };
            // The figure is that of the ledger: repetitions that sent more have more weight.
            Some(Figure { value: Some(pooled), ..in_short(&Metric::new(metric, ratios)) })
        }
        _ => None,
    }
}

fn in_short(metric: &Metric) -> Figure {
    Figure { value: metric.value, low: metric.low, high: metric.high, n: metric.n }
}

/// The value of every repetition; `None` for one in the lost share.
fn values((cell, side): (&Cell, &Side), metric: &str) -> Vec<Option<f64>> {
    if let Some(measured) = cell.metrics.get(metric) {
        return measured.values.clone();
    }
    match side.loss_ratios.get(&cell.name).filter(|_| metric == LOSS_RATIO) {
        Some(ratios) => ratios.iter().copied().map(Some).collect(),
        None => figure((cell, side), metric).map(|figure| figure.value).into_iter().collect(),
    }
}

/// A quantile in the lost share is infinite, and has no ratio. If it is so in every repetition of
/// one run and in none of the other, that is an answer.
fn among_the_lost(a: &[Option<f64>], b: &[Option<f64>]) -> Option<(Verdict, String)> {
    let lost = |values: &[Option<f64>]| values.iter().filter(|value| value.is_none()).count();
    let (lost_a, lost_b) = (lost(a), lost(b));
    if lost_a + lost_b == 0 {
        return None;
    }
    let reason = format!(
        "it is in the lost share in {lost_a} of {} repetitions of A and {lost_b} of {} of B",
        a.len(),
        b.len()
    );
    let is_enough = a.len().min(b.len()) >= INTERVAL_VALUES_MIN;
    let verdict = match () {
        () if is_enough && lost_a == 0 && lost_b == b.len() => Verdict::Higher,
        () if is_enough && lost_b == 0 && lost_a == a.len() => Verdict::Lower,
        () => Verdict::Refused,
    };
    Some((verdict, reason))
}

fn words(refusal: Refusal, knows_repetitions: bool) -> String {
    match refusal {
        _ if !knows_repetitions => {
            "a summary does not have the losses of repetitions: keep the journal too".to_owned()
        }
        Refusal::FewValues => {
            format!("fewer than {INTERVAL_VALUES_MIN} repetitions on one side: no verdict")
        }
        Refusal::UnboundedRatio => "A is not significantly different from 0, so the ratio has no \
                                    bounds"
            .to_owned(),
        other => other.to_string(),
    }
}

/// Whether a verdict is good, by the metric's better direction.
fn effect(metric: &str, verdict: Verdict) -> Option<Effect> {
    match (verdict, better(metric)) {
        (Verdict::Higher, Better::Higher) | (Verdict::Lower, Better::Lower) => Some(Effect::Better),
        (Verdict::Higher, Better::Lower) | (Verdict::Lower, Better::Higher) => Some(Effect::Worse),
        _ => None,
    }
}

/// Order of the rows: what became worse, by its factor; then changes without a better direction,
/// undecided ones, those too close to call, and improvements at the end.
pub(crate) fn badness(row: &Row) -> f64 {
    let change = row.ratio.map(|ratio| ratio.value.ln().abs()).filter(|change| change.is_finite());
    match (row.effect, row.verdict) {
        (Some(Effect::Worse), _) => WORSE + change.unwrap_or(NO_RATIO),
        (None, Verdict::Higher | Verdict::Lower) => CHANGED + change.unwrap_or(0.0).min(1.0),
        (None, Verdict::Refused) => 1.0,
        (None, Verdict::TooClose | Verdict::PracticallyEqual) => 0.0,
        (Some(Effect::Better), _) => -1.0 - change.unwrap_or(NO_RATIO),
    }
}

const WORSE: f64 = 10.0;

const CHANGED: f64 = 2.0;

/// From 0 to something, or from finite to infinite: worse than any factor.
const NO_RATIO: f64 = 1e6;

/// Method of the intervals of the ratios, for the legend.
pub(crate) fn method() -> &'static str {
    Method::Fieller.name()
}
