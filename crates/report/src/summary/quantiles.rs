//! Quantiles of conditions that trials do not keep: computed from recorded times, by the rules of
//! those that are kept.

use weigh_model::condition::{Condition, quantile_of, resolve};
use weigh_model::event::{Event, TrialFinished};
use weigh_model::ledger::Ledger;
use weigh_stats::Histogram;
use weigh_stats::quantile::quantile_with_loss;

/// Adds to `trial` the quantiles of `conditions` that it does not have yet. Those that the recorded
/// times do not support stay absent.
pub fn add<'c>(trial: &mut TrialFinished, conditions: impl IntoIterator<Item = &'c Condition>) {
    for condition in conditions {
        let named = resolve(&condition.metric, |name| trial.metrics.contains_key(name));
        let Some(q) = quantile_of(&named).filter(|_| !trial.metrics.contains_key(named.as_ref()))
        else {
            continue;
        };
        let value = of_trial(trial, &named, q);
        let name = named.into_owned();
        trial.metrics.extend(value.map(|value| (name, value)));
    }
}

/// Adds them to every finished trial of a journal.
pub(crate) fn add_to_all(events: &mut [Event], conditions: &[Condition]) {
    for event in events {
        if let Event::TrialFinished(trial) = event {
            add(trial, conditions);
        }
    }
}

/// The quantile `q` of the recorded time that `metric` begins with; infinite in the lost share.
fn of_trial(trial: &TrialFinished, metric: &str, q: f64) -> Option<f64> {
    let (time, _) = metric.split_once('.')?;
    let recorded = Histogram::from_base64(trial.histograms.get(time)?).ok()?;
    let lost = infinite(trial, time);
    if ((recorded.count() + lost) as f64) < 1.0 / (1.0 - q) {
        return None;
    }
    let value = quantile_with_loss(&recorded, lost, q);
    Some(value.map_or(f64::INFINITY, |value| value as f64))
}

/// Messages that are infinite in a recorded time, see [`Ledger::infinite`]. If a stored quantile is
/// infinite, such messages existed; their number is in the ledger.
pub(super) fn infinite(trial: &TrialFinished, time: &str) -> u64 {
    let ledger = &trial.ledger;
    let copies = copies(ledger);
    // The delivery times of a fleet without common clocks are withheld.
    let pattern = trial.point.get("load.pattern").and_then(|value| value.as_str());
    let delivers = trial.samples.contains_key("delivery_time_ns")
        || matches!(pattern, Some("deliver" | "poll"))
        || copies > 1;
    ledger.infinite(time, delivers, copies)
}

/// Subscribers that should get each message: the ledger counts pairs of both.
pub(crate) fn copies(ledger: &Ledger) -> u64 {
    (ledger.scheduled / ledger.messages.max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use weigh_model::Guarantee;

    use super::*;

    /// A trial that answered in 1 µs to `answered` µs, one message each, and lost `lost`.
    fn trial(answered: u64, lost: u64) -> TrialFinished {
        let mut times = Histogram::new();
        (1..=answered).for_each(|us| times.record(us * 1_000));
        TrialFinished {
            trial: "t".to_owned(),
            point: BTreeMap::new(),
            repetition: 0,
            seed: 1,
            guarantee: Guarantee::AtLeastOnce,
            durability: None,
            target: String::new(),
            metrics: BTreeMap::from([("response_time_ns.mean".to_owned(), 1.0)]),
            samples: BTreeMap::from([("response_time_ns".to_owned(), answered)]),
            ledger: Ledger { sent: answered + lost, lost: Some(lost), ..Ledger::zero() },
            warnings: Vec::new(),
            granted: BTreeMap::new(),
            server: None,
            counters: BTreeMap::new(),
            scene: BTreeMap::new(),
            histograms: BTreeMap::from([("response_time_ns".to_owned(), times.to_base64())]),
        }
    }

    fn figure(trial: &TrialFinished, text: &str) -> Option<f64> {
        let condition: Condition = text.parse().expect(text);
        let mut trial = trial.clone();
        add(&mut trial, [&condition]);
        trial.figure(&condition.metric)
    }

    #[test]
    fn any_quantile_comes_from_the_recorded_times() {
        let all = trial(1_000, 0);
        for (text, us) in [("p75 < 1s", 750.0), ("p(99.5) < 1s", 995.0), ("p25 < 1s", 250.0)] {
            let found = figure(&all, text).expect(text) / 1e3;
            assert!((found / us - 1.0).abs() < 0.001, "{text}: {found}");
        }
        assert_eq!(figure(&all, "p99.99 < 1s"), None, "it takes 10,000 messages");
    }

    #[test]
    fn lost_messages_are_infinitely_late() {
        let lossy = trial(900, 100);
        assert_eq!(figure(&lossy, "p92 < 1s"), Some(f64::INFINITY));
        let found = figure(&lossy, "p45 < 1s").expect("p45") / 1e3;
        assert!((found / 450.0 - 1.0).abs() < 0.001, "{found}: 45 % of 1,000, not of 900");
    }
}
