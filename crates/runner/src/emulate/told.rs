//! What a trial came to, as far as other tools make something of it.

use weigh_model::{Load, Nanos};
use weigh_stats::histogram::Histogram;

use crate::emulate::htop;

/// What is known of a trial when it is over.
#[derive(Clone, Copy, Debug)]
pub struct Told<'t> {
    /// Its load.
    pub load: &'t Load,
    /// Messages that were handed to the transport.
    pub sent: u64,
    /// How long connecting took, before the first of them.
    pub set_up: Nanos,
    /// When the first of them was, and when the last one that was completed was.
    pub between: Option<(Nanos, Nanos)>,
    /// When the last of them was handed over.
    pub last_sent: Option<Nanos>,
    /// Sent to confirmed, nanoseconds.
    pub service: &'t Histogram,
    /// Due to confirmed, where every message has a connection of its own: who takes the time of
    /// such a call takes that of connecting with it. `None` where connections are kept.
    pub calls: Option<&'t Histogram>,
    /// Sent to delivered, where nothing confirms.
    pub one_way: &'t Histogram,
    /// Sent to an answer that is an error.
    pub errors: &'t Histogram,
    /// What each client did; empty where clients have no subscribers of their own.
    pub clients: &'t [Client],
    /// What htop showed, where somebody looked.
    pub htop: Option<htop::Shown>,
}

/// One client with a subscriber of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Client {
    /// Messages that it handed over.
    pub published: u64,
    /// When the first of them was; `None` if there was none.
    pub first_sent: Option<Nanos>,
    /// When the last of them was handed over, or confirmed where that is waited for.
    pub published_until: Option<Nanos>,
    /// Different messages that its subscriber got.
    pub received: u64,
    /// When the last of them arrived.
    pub last_arrived: Option<Nanos>,
}

impl Told<'_> {
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

    /// So many answers of so long each, between these two moments.
    pub fn with<T>(
        load: &Load,
        (count, each): (u64, Nanos),
        between: (Nanos, Nanos),
        look: impl FnOnce(&Told<'_>) -> T,
    ) -> T {
        let (mut service, none) = (Histogram::new(), Histogram::new());
        service.record_n(each.0, count);
        look(&Told {
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
