//! Counters that a broker publishes on topics, while they come in: when all of a trial is in them.

use std::collections::BTreeMap;
use std::time::Duration;

/// What a broker must have counted before its report is of the whole trial.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Expected {
    /// Messages that were handed to it since it was asked before.
    pub received: f64,
    /// Messages that came out of it since.
    pub forwarded: f64,
}

/// The counters of a broker. It publishes those that changed all at once, first those it kept and
/// then again at each of its reports.
pub struct Watch {
    /// Names by topic.
    topics: BTreeMap<String, String>,
    /// Values by name.
    pub values: BTreeMap<String, f64>,
    /// What the counters called `received` and `forwarded` show once the trial is in them; `None`
    /// where nobody knows what must have arrived.
    whole: Option<Expected>,
    reports_max: u32,
    reports: u32,
    heard: Option<Duration>,
}

impl Watch {
    /// Waits for these topics until `reports_max` reports, or one that shows `whole`.
    pub fn new(
        topics: BTreeMap<String, String>,
        whole: Option<Expected>,
        reports_max: u32,
    ) -> Watch {
        let values = BTreeMap::new();
        Watch { topics, values, whole, reports_max, reports: 0, heard: None }
    }

    /// A message that came so long after the watch began.
    pub fn hear(&mut self, topic: &[u8], body: &[u8], now: Duration) {
        if self.is_silent(now, BETWEEN_REPORTS) {
            self.reports += 1;
        }
        self.heard = Some(now);
        let name = std::str::from_utf8(topic).ok().and_then(|topic| self.topics.get(topic));
        let value = std::str::from_utf8(body).ok().and_then(number);
        if let (Some(name), Some(value)) = (name, value) {
            self.values.insert(name.clone(), value);
        }
    }

    /// True if all of the trial is in what was heard: a report shows that the broker had counted
    /// every message by then, or there were enough reports since the trial.
    pub fn stands_still(&self, now: Duration) -> bool {
        let is_enough = self.reports >= self.reports_max && self.is_silent(now, BETWEEN_REPORTS);
        is_enough || (self.is_whole() && self.is_silent(now, WITHIN_REPORT))
    }

    /// True if the broker has counted all that it must have got, and all that came out of it. Its
    /// other counters are of the same moment or later.
    pub fn is_whole(&self) -> bool {
        let Some(whole) = self.whole else { return false };
        let shows = |name: &str, least: f64| self.values.get(name).is_some_and(|own| *own >= least);
        let forwards = !self.topics.values().any(|name| name == "forwarded")
            || shows("forwarded", whole.forwarded);
        shows("received", whole.received) && forwards
    }

    /// True if a report came after the one that the broker had kept.
    pub fn has_reported(&self) -> bool {
        self.reports >= self.reports_max || self.is_whole()
    }

    /// Nothing more came for so long.
    fn is_silent(&self, now: Duration, least: Duration) -> bool {
        self.heard.is_none_or(|heard| now.saturating_sub(heard) > least)
    }
}

/// The number at the beginning of a text: `17`, `12 seconds`.
fn number(text: &str) -> Option<f64> {
    text.split_ascii_whitespace().next()?.parse().ok().filter(|own: &f64| own.is_finite())
}

/// Shorter than the second between reports that our profiles of Mosquitto set, and longer than
/// a report takes.
const BETWEEN_REPORTS: Duration = Duration::from_millis(300);

/// Longer than the messages of one report are apart.
const WITHIN_REPORT: Duration = Duration::from_millis(150);

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u64) -> Duration = Duration::from_millis;

    fn watch(received: f64) -> Watch {
        let topics = [("r", "received"), ("f", "forwarded"), ("d", "dropped")];
        let own = |(topic, name): (&str, &str)| (topic.to_owned(), name.to_owned());
        let whole = Expected { received, forwarded: received };
        Watch::new(topics.map(own).into(), Some(whole), 3)
    }

    fn report(watch: &mut Watch, at: u64, received: u64, dropped: u64) {
        let values = [("r", received), ("f", received), ("d", dropped), ("other", 7)];
        for (topic, value) in values {
            watch.hear(topic.as_bytes(), value.to_string().as_bytes(), AT(at));
        }
    }

    /// What was kept shows that everything had been counted: nothing more is waited for.
    #[test]
    fn counters_that_show_the_whole_trial_are_taken_at_once() {
        let mut watch = watch(1_000.0);
        report(&mut watch, 2, 1_000, 40);
        assert!(!watch.stands_still(AT(100)), "the report may not be whole yet");
        assert!(watch.stands_still(AT(160)) && watch.has_reported());
        assert_eq!(watch.values["dropped"], 40.0);
    }

    /// What was kept is older than the trial's end: the next report has it all.
    #[test]
    fn counters_from_before_the_end_are_not_taken() {
        let mut watch = watch(1_000.0);
        report(&mut watch, 2, 900, 0);
        assert!(!watch.stands_still(AT(1_500)));
        report(&mut watch, 1_800, 1_000, 100);
        assert!(watch.stands_still(AT(1_960)));
        assert_eq!(watch.values["dropped"], 100.0);
    }

    /// A broker that never got it all is believed after as many reports as before.
    #[test]
    fn messages_that_never_arrived_are_not_waited_for_without_end() {
        let mut watch = watch(1_000.0);
        for (number, at) in [2, 1_000, 2_000].into_iter().enumerate() {
            assert!(!watch.stands_still(AT(at + 250)), "{number}");
            report(&mut watch, at, 900, 0);
        }
        assert!(watch.stands_still(AT(2_400)) && !watch.is_whole());
    }
}
