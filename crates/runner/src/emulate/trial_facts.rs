//! Facts of a trial that the arithmetic of other tools needs.

use weigh_model::{Load, Nanos};
use weigh_stats::histogram::Histogram;

use crate::emulate::htop;

/// Facts of a finished trial.
#[derive(Clone, Copy, Debug)]
pub struct TrialFacts<'t> {
    /// Its load.
    pub load: &'t Load,
    /// Messages that were sent.
    pub sent: u64,
    /// Time to connect, before the first message.
    pub set_up: Nanos,
    /// Time of the first message, and of the last completed one.
    pub between: Option<(Nanos, Nanos)>,
    /// Time at which the last message was sent.
    pub last_sent: Option<Nanos>,
    /// Service time, nanoseconds.
    pub service: &'t Histogram,
    /// Due to confirmed, if every message has a connection of its own: the time of such a call
    /// includes connecting. `None` if connections are kept.
    pub calls: Option<&'t Histogram>,
    /// Sent to delivered, without confirmations.
    pub one_way: &'t Histogram,
    /// Sent to an error response.
    pub errors: &'t Histogram,
    /// Facts of each client; empty if clients have no subscribers of their own.
    pub clients: &'t [Client],
    /// Figures of htop, if its readings were taken.
    pub htop: Option<htop::Shown>,
}

/// One client with a subscriber of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Client {
    /// Messages that it sent.
    pub published: u64,
    /// Time of the first one; `None` if there was none.
    pub first_sent: Option<Nanos>,
    /// Time at which the last one was sent, or confirmed in a closed loop.
    pub published_until: Option<Nanos>,
    /// Distinct messages that its subscriber received.
    pub received: u64,
    /// Time of the last arrival.
    pub last_arrived: Option<Nanos>,
}

impl TrialFacts<'_> {
    /// Answers of every kind.
    pub fn answers(&self) -> u64 {
        self.service.count() + self.errors.count()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::emulate::figures::figures;
    use serde_json::json;
    use weigh_model::{Emulation, Pattern};

    /// A closed loop of four connections, with these changes.
    pub fn load(changes: &serde_json::Value) -> Load {
        let closed = Load::closed(Pattern::Request, 4);
        let mut load = json!(Load { messages: Some(100), ..closed });
        for (key, value) in changes.as_object().into_iter().flatten() {
            load[key] = value.clone();
        }
        if load["duration"].is_string() {
            load.as_object_mut().unwrap().remove("messages");
        }
        serde_json::from_value(load).unwrap()
    }

    /// This number of answers with this duration each, between these two times.
    pub fn with<T>(
        load: &Load,
        (count, each): (u64, Nanos),
        between: (Nanos, Nanos),
        look: impl FnOnce(&TrialFacts<'_>) -> T,
    ) -> T {
        let (mut service, none) = (Histogram::new(), Histogram::new());
        service.record_n(each.0, count);
        look(&TrialFacts {
            load,
            sent: count,
            set_up: Nanos(0),
            between: Some(between),
            last_sent: Some(between.1),
            service: &service,
            calls: None,
            one_way: &none,
            errors: &none,
            clients: &[],
            htop: None,
        })
    }

    #[test]
    fn a_tool_says_nothing_of_a_load_that_it_could_not_make() {
        let between = (Nanos(0), Nanos::from_millis(5));
        let load = load(&json!({ "warmup": "1s" }));
        with(&load, (100, Nanos(50_000)), between, |told| {
            for own in Emulation::ALL {
                assert_eq!(figures(told, own), BTreeMap::new(), "{own}");
            }
        });
    }
}
