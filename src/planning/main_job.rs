//! The load of `weigh compare` without arguments: what is not given is chosen so that all cases
//! together take about a minute. Reasons: `docs/decisions/0053-the-main-job.md`.

use weigh_model::counters::SysChoice;
use weigh_model::{Arrival, Nanos, Pattern, Rate};
use weigh_plan::LoadWords;
use weigh_testbed::hosts::NamespaceRights;

use crate::planning::options::{LoadOptions, has_no_end};

/// Returns the load with the defaults of the main job for what is not given: 100 connections that
/// publish at one rate.
pub fn load(options: &LoadOptions) -> LoadOptions {
    let mut words = options.words.clone();
    let is_published = words.pattern.is_none_or(|pattern| pattern == Pattern::Publish);
    words.pattern.get_or_insert(Pattern::Publish);
    if !is_published {
        return LoadOptions { words };
    }
    words.connections.get_or_insert(CONNECTIONS);
    if words.arrival.is_none() {
        words.rate.get_or_insert(RATE);
    }
    if words.messages.is_none() && words.arrival.as_ref().is_none_or(has_no_end) {
        words.duration.get_or_insert(DURATION);
    }
    if words.arrival.as_ref().is_none_or(has_warmup) {
        words.warmup.get_or_insert(WARMUP);
    }
    LoadOptions { words }
}

/// Returns the load of the same messages on their way to a subscriber; `None` if the user chose a
/// pattern.
pub fn delivery(given: &LoadOptions) -> Option<LoadOptions> {
    let words = load(given).words;
    let pattern = Some(Pattern::Deliver);
    given.words.pattern.is_none().then_some(LoadOptions { words: LoadWords { pattern, ..words } })
}

/// Returns when counters of a broker are read: only after losses, because it takes seconds until
/// they include a trial, unless the user chose otherwise.
pub fn counters(chosen: SysChoice) -> SysChoice {
    if chosen.is_auto() { SysChoice::Off } else { chosen }
}

/// Checks whether bytes on the wire can be counted here.
///
/// # Errors
/// Why not, and what to do about it, as one line.
pub fn can_count_bytes() -> Result<(), String> {
    NamespaceRights::look().map(drop).map_err(|error| {
        format!("bytes per message are left out, because packets cannot be captured: {error}")
    })
}

/// True for arrivals that may have a warm-up.
fn has_warmup(arrival: &Arrival) -> bool {
    matches!(arrival, Arrival::Closed | Arrival::Constant | Arrival::Poisson | Arrival::Periodic)
}

/// Enough connections that their memory exceeds the noise in that of a server.
const CONNECTIONS: u32 = 100;

/// A rate that every built-in server carries on one core of a small machine.
const RATE: Rate = Rate { per_second: 2_000.0, per_client: false };

/// Long enough for a p99 of 1,800 messages in each repetition.
const DURATION: Nanos = Nanos::from_millis(900);

const WARMUP: Nanos = Nanos::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::units::parse_rate;

    fn options(words: LoadWords) -> LoadOptions {
        LoadOptions { words }
    }

    #[test]
    fn what_is_not_given_is_the_main_job() {
        let words = load(&options(LoadWords::default())).words;
        assert_eq!(words.pattern, Some(Pattern::Publish));
        assert_eq!((words.connections, words.rate), (Some(100), Some(RATE)));
        assert_eq!((words.duration, words.warmup), (Some(DURATION), Some(WARMUP)));
        let delivered = delivery(&options(LoadWords::default())).unwrap().words;
        assert_eq!(delivered, LoadWords { pattern: Some(Pattern::Deliver), ..words });
    }

    #[test]
    fn what_is_given_stays() {
        let rate = Some(parse_rate("5/s").unwrap());
        let given = LoadWords { rate, messages: Some(7), ..LoadWords::default() };
        let words = load(&options(given)).words;
        assert_eq!((words.rate, words.messages, words.duration), (rate, Some(7), None));
        let closed = LoadWords { arrival: Some(Arrival::Closed), ..LoadWords::default() };
        assert_eq!(load(&options(closed)).words.rate, None);
        let burst = LoadWords { arrival: Some(Arrival::Burst), ..LoadWords::default() };
        let words = load(&options(burst)).words;
        assert_eq!((words.rate, words.duration, words.warmup), (None, None, None));
        let held = LoadWords { pattern: Some(Pattern::Hold), ..LoadWords::default() };
        assert_eq!(load(&options(held.clone())).words, held);
        assert!(delivery(&options(held)).is_none());
    }
}
