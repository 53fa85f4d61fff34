//! Compares a tool's output with the exact figures, line by line, and explains the difference.

use weigh_model::event::{Event, Interval, TrialFinished};
use weigh_model::numbers::{fixed, three_digits};
use weigh_model::{Load, Nanos};
use weigh_stats::histogram::Histogram;

/// The figures of one trial as a tool would print them.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The tool.
    pub tool: &'static str,
    /// Its lines.
    pub rows: Vec<Row>,
    /// The reason for the difference, from the numbers of this trial.
    pub why: String,
}

/// One line: its name, what the tool would print, and the exact figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its name in the tool.
    pub name: String,
    /// Figure that the tool would print.
    pub tool: String,
    /// Exact figure; `-` if there is none of this kind.
    pub exact: String,
}

/// Results of a trial from a run folder.
#[derive(Clone, Copy, Debug)]
pub struct Left<'l> {
    /// The load.
    pub load: &'l Load,
    /// The result.
    pub finished: &'l TrialFinished,
    /// Its time series.
    pub intervals: &'l [Interval],
}

/// Result and time series of a run with one trial; `None` without a result.
pub fn one_trial(events: Vec<Event>) -> Option<(TrialFinished, Vec<Interval>)> {
    let mut intervals = Vec::new();
    let mut trial = None;
    for event in events {
        match event {
            Event::Interval(interval) => intervals.push(interval),
            Event::TrialFinished(finished) => trial = Some(*finished),
            _ => {}
        }
    }
    Some((trial?, intervals))
}

impl Row {
    pub(crate) fn new(name: impl Into<String>, tool: String, exact: String) -> Row {
        Row { name: name.into(), tool, exact }
    }
}

impl Comparison {
    /// Formats a table of plain text, aligned, and the explanation below.
    pub fn text(&self) -> String {
        let exact = "exact".to_owned();
        let head = Row::new("", format!("as {} would print it", self.tool), exact);
        let all = || std::iter::once(&head).chain(&self.rows);
        let widest = |of: fn(&Row) -> &str| {
            all().map(|row| of(row).chars().count()).max().unwrap_or_default()
        };
        let (name, tool) = (widest(|row| &row.name), widest(|row| &row.tool));
        let exact = widest(|row| &row.exact);
        let lines = all().map(|row| {
            let Row { name: what, tool: theirs, exact: ours } = row;
            format!("{what:<name$}  {theirs:>tool$}  {ours:>exact$}\n")
        });
        lines.chain([format!("\n{}\n", self.why)]).collect()
    }
}

impl Left<'_> {
    /// A recorded time; empty if there is none of this name.
    pub(crate) fn times(&self, name: &str) -> Histogram {
        let text = self.finished.histograms.get(name);
        text.and_then(|text| Histogram::from_base64(text).ok()).unwrap_or_default()
    }

    pub(crate) fn metric(&self, name: &str) -> Option<f64> {
        self.finished.metrics.get(name).copied().filter(|value| value.is_finite())
    }

    /// Answers of every kind in each period of `every`, from the start of the load to `end`. An
    /// interval belongs to the period of its middle; `None` if intervals are longer than periods.
    pub(crate) fn answers_each(&self, every: Nanos, end: Nanos) -> Option<Vec<u64>> {
        let begun = |interval: &Interval| interval.at_ns - interval.length_ns.unwrap_or(0);
        let start = begun(self.intervals.first()?);
        let mut each = vec![0; end.0.div_ceil(every.0).max(1) as usize];
        for interval in self.intervals {
            let length = interval.length_ns.unwrap_or(0);
            if length > every.0 + every.0 / 2 {
                return None;
            }
            let middle = (interval.at_ns - length / 2).saturating_sub(start);
            let place = (middle / every.0).min(each.len() as u64 - 1) as usize;
            each[place] += interval.acknowledged + interval.errors;
        }
        Some(each)
    }
}

/// Formats a number: whole from 100 on, three digits below, without zeros at the end.
pub(crate) fn number(value: f64) -> String {
    let text = three_digits(value);
    match value.abs() < 100.0 && text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => fixed(value, 0),
    }
}

/// Nanoseconds as milliseconds.
pub(crate) fn ms(value_ns: Option<f64>) -> String {
    value_ns.map_or_else(|| NOTHING.to_owned(), |ns| format!("{} ms", number(ns / 1e6)))
}

/// Placeholder for a missing figure.
pub(crate) const NOTHING: &str = "-";

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::emulate::trial_facts::tests::load;
    use serde_json::json;

    /// A trial with these metrics and this service and response time.
    pub fn finished(metrics: serde_json::Value, times: &Histogram) -> TrialFinished {
        let text = times.to_base64();
        let zero: serde_json::Value = serde_json::to_value(weigh_model::Ledger::zero()).unwrap();
        let mut trial = json!({
            "trial": "t", "point": {}, "repetition": 0, "seed": 1, "guarantee": "at least once",
            "target": "x", "samples": {}, "ledger": zero, "doubts": [], "granted": {},
            "histograms": { "response_time_ns": text, "service_time_ns": text },
        });
        trial["metrics"] = metrics;
        trial["ledger"]["sent"] = times.count().into();
        serde_json::from_value(trial).unwrap()
    }

    /// Tenths of a second with this number of answers each.
    pub fn tenths(answers: &[u64]) -> Vec<Interval> {
        let interval = |(number, acknowledged): (u64, &u64)| Interval {
            at_ns: 50_000_000 + (number + 1) * 100_000_000,
            length_ns: Some(100_000_000),
            acknowledged: *acknowledged,
            ..Interval::default()
        };
        (0..).zip(answers).map(interval).collect()
    }

    #[test]
    fn answers_are_counted_by_the_second_that_they_came_in() {
        let (load, trial) = (load(&json!({})), finished(json!({}), &Histogram::new()));
        let each = [vec![10; 10], vec![7; 10], vec![1; 3]].concat();
        let intervals = tenths(&each);
        let left = Left { load: &load, finished: &trial, intervals: &intervals };
        let counted = left.answers_each(Nanos::from_secs(1), Nanos::from_millis(2_300));
        assert_eq!(counted, Some(vec![100, 70, 3]));
        let counted = left.answers_each(Nanos::from_millis(10), Nanos::from_secs(1));
        assert_eq!(counted, None, "intervals are longer than that");
    }

    #[test]
    fn lines_are_aligned_and_the_sentence_stands_below() {
        let rows = vec![
            Row::new("Latency 50%", "0 ms".into(), "0.05 ms".into()),
            Row::new("Req/Sec Avg", "100".into(), "20,000".into()),
        ];
        let text = Comparison { tool: "wrk", rows, why: "Because.".into() }.text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "             as wrk would print it    exact");
        assert_eq!(lines[1], "Latency 50%                   0 ms  0.05 ms");
        assert_eq!((lines[3], lines[4]), ("", "Because."));
    }
}
