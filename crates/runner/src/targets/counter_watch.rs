//! Counters that a broker publishes on topics: collects them until they include the whole trial.

use std::collections::BTreeMap;
use std::time::Duration;

/// Counts that a broker must reach before its report is of the whole trial.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Expected {
    /// Messages sent to it since its previous report was read.
    pub received: f64,
    /// Messages that it forwarded since.
    pub forwarded: f64,
}

/// The counters of a broker. It publishes all retained values at once, and changed ones at each of
/// its reports.
pub struct Watch {
    /// Names by topic.
    topics: BTreeMap<String, String>,
    /// Values by name.
    pub values: BTreeMap<String, f64>,
    /// Values of the counters `received` and `forwarded` once they include the trial; `None` if the
    /// number of arrivals is unknown.
    whole: Option<Expected>,
    reports_max: u32,
    reports: u32,
    heard: Option<Duration>,
}

impl Watch {
    /// Waits for these topics until `reports_max` reports, or one that includes `whole`.
    pub fn new(
        topics: BTreeMap<String, String>,
        whole: Option<Expected>,
        reports_max: u32,
    ) -> Watch {
        let values = BTreeMap::new();
        Watch { topics, values, whole, reports_max, reports: 0, heard: None }
    }

    /// Adds a message that came at `now` after the start.
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

    /// True if the whole trial is in the values: a report shows that the broker had counted every
    /// message, or there were enough reports since the trial.
    pub fn stands_still(&self, now: Duration) -> bool {
        let is_enough = self.reports >= self.reports_max && self.is_silent(now, BETWEEN_REPORTS);
        is_enough || (self.is_whole() && self.is_silent(now, WITHIN_REPORT))
    }

    /// True if the broker has counted all messages to and from it. Its other counters are of the
    /// same time or later.
    pub fn is_whole(&self) -> bool {
        let Some(whole) = self.whole else { return false };
        let shows = |name: &str, least: f64| self.values.get(name).is_some_and(|own| *own >= least);
        let forwards = !self.topics.values().any(|name| name == "forwarded")
            || shows("forwarded", whole.forwarded);
        shows("received", whole.received) && forwards
    }

    /// True if a report came after the retained one.
    pub fn has_reported(&self) -> bool {
        self.reports >= self.reports_max || self.is_whole()
    }

    /// True if no message came for this long.
    fn is_silent(&self, now: Duration, least: Duration) -> bool {
        self.heard.is_none_or(|heard| now.saturating_sub(heard) > least)
    }
}

/// The number at the start of a text: `17`, `12 seconds`.
fn number(text: &str) -> Option<f64> {
    text.split_ascii_whitespace().next()?.parse().ok().filter(|own: &f64| own.is_finite())
}

/// Shorter than the second between reports in the built-in profiles of Mosquitto, and longer than a
/// report takes.
const BETWEEN_REPORTS: Duration = Duration::from_millis(300);

/// Longer than the gap between messages of one report.
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

    /// The retained values include everything, so nothing more is awaited.
    #[test]
    fn counters_that_show_the_whole_trial_are_taken_at_once() {
        let mut watch = watch(1_000.0);
        report(&mut watch, 2, 1_000, 40);
        assert!(!watch.stands_still(AT(100)), "the report may not be whole yet");
        assert!(watch.stands_still(AT(160)) && watch.has_reported());
        assert_eq!(watch.values["dropped"], 40.0);
    }

    /// The retained values are older than the trial's end: the next report has everything.
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
