//! From what was said of a load to the whole load: defaults for what was left out, and an error
//! for what contradicts itself.

use serde::Deserialize;
use weigh_model::body::BodySource;
use weigh_model::units::Bytes;
use weigh_model::{Arrival, Load, Nanos, Pattern, Rate, Split, Topology};

use crate::contradiction::Contradiction;

/// What was said of a load.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoadWords {
    /// See [`Load::pattern`]; the protocol's own if left out.
    pub pattern: Option<Pattern>,
    /// See [`Load::connections`]; [`CONNECTIONS`] if left out.
    pub connections: Option<u32>,
    /// See [`Load::subscribers`]; 1 in `deliver` if left out.
    pub subscribers: Option<u32>,
    /// See [`Load::topology`]; fits the numbers of both if left out.
    pub topology: Option<Topology>,
    /// See [`Load::messages`].
    pub messages: Option<u64>,
    /// See [`Load::duration`]; [`DURATION`] if nothing else ends the load.
    pub duration: Option<Nanos>,
    /// See [`Load::warmup`]; [`WARMUP`] if left out and the load can have one.
    pub warmup: Option<Nanos>,
    /// See [`Load::arrival`]; constant with a rate, else closed, if left out.
    pub arrival: Option<Arrival>,
    /// See [`Load::rate`].
    pub rate: Option<Rate>,
    /// See [`Load::window`].
    pub window: Option<u32>,
    /// See [`Load::think`]; none if left out.
    pub think: Option<Nanos>,
    /// See [`Load::split`].
    pub split: Option<Split>,
    /// See [`Load::body`]; filler with a size, else readings, if left out.
    pub body: Option<BodySource>,
    /// See [`Load::size`].
    pub size: Option<Bytes>,
    /// See [`Load::timeout`]; [`TIMEOUT`] if left out.
    pub timeout: Option<Nanos>,
}

impl LoadWords {
    /// The whole load for a protocol that carries `patterns`, the first its default.
    ///
    /// # Errors
    /// Everything that contradicts itself.
    pub fn decide(&self, protocol: &str, patterns: &[Pattern]) -> Result<Load, Vec<Contradiction>> {
        let pattern = self.pattern.unwrap_or(patterns[0]);
        if !patterns.contains(&pattern) {
            let (protocol, known) = (protocol.to_owned(), patterns.to_vec());
            return Err(vec![Contradiction::NoSuchPattern { protocol, pattern, known }]);
        }
        let connections = self.connections.unwrap_or(CONNECTIONS);
        let subscribers = match pattern {
            Pattern::Deliver => self.subscribers.unwrap_or(1),
            _ => 0,
        };
        let arrival = self.arrival.clone().unwrap_or(match self.rate {
            Some(_) => Arrival::Constant,
            None => Arrival::Closed,
        });
        let has_end =
            self.messages.is_some() || matches!(arrival, Arrival::Steps(_) | Arrival::Trace(_));
        let load = Load {
            pattern,
            connections,
            subscribers,
            topology: self.topology.unwrap_or_else(|| topology(connections, subscribers)),
            messages: self.messages,
            duration: if has_end { self.duration } else { Some(self.duration.unwrap_or(DURATION)) },
            warmup: self.warmup.unwrap_or_else(|| warmup(pattern, &arrival)),
            arrival,
            rate: self.rate,
            window: self.window,
            think: self.think.unwrap_or(Nanos(0)),
            split: self.split.unwrap_or_default(),
            body: self.body.clone().unwrap_or(match self.size {
                Some(_) => BodySource::Filler,
                None => BodySource::Readings,
            }),
            size: self.size,
            timeout: self.timeout.unwrap_or(TIMEOUT),
        };
        let wrong = self.contradictions(&load);
        if wrong.is_empty() { Ok(load) } else { Err(wrong) }
    }

    fn contradictions(&self, load: &Load) -> Vec<Contradiction> {
        let arrival = || load.arrival.clone();
        let is_heard = load.pattern == Pattern::Deliver;
        let is_zero = |time: Option<Nanos>| time == Some(Nanos(0));
        let has_warmup = load.warmup.0 > 0;
        let has_no_warmup = matches!(load.arrival, Arrival::Burst | Arrival::Trace(_));
        let asks = load.rate.is_some() || load.messages.is_some();
        let holds = load.pattern == Pattern::Hold;
        let of_deliver = self.topology.is_some_and(|topology| topology != Topology::FanIn);
        [
            (
                load.rate.is_some() && !load.arrival.needs_rate(),
                Contradiction::RateUnused(arrival()),
            ),
            (
                load.rate.is_none() && load.arrival.needs_rate(),
                Contradiction::RateMissing(arrival()),
            ),
            (load.think.0 > 0 && load.arrival.is_open(), Contradiction::ThinkInOpenLoop(arrival())),
            (holds && asks, Contradiction::HoldSends),
            (load.connections == 0, Contradiction::NoConnections),
            (load.messages == Some(0), Contradiction::NoMessages),
            (self.messages.is_some() && self.duration.is_some(), Contradiction::TwoEnds),
            (
                !is_heard && self.subscribers.is_some_and(|n| n > 0),
                Contradiction::SubscribersUnheard,
            ),
            (!is_heard && of_deliver, Contradiction::TopologyUnheard),
            (is_heard && load.subscribers == 0, Contradiction::NoSubscribers),
            (
                is_heard
                    && load.topology == Topology::Pairs
                    && load.connections != load.subscribers,
                Contradiction::PairsUnequal,
            ),
            (
                load.arrival == Arrival::Burst && load.messages.is_none(),
                Contradiction::BurstWithoutTotal,
            ),
            (has_warmup && has_no_warmup, Contradiction::WarmupUnused(arrival())),
            (is_zero(load.duration), Contradiction::NoDuration),
            (load.timeout.0 == 0, Contradiction::NoTimeout),
        ]
        .into_iter()
        .filter_map(|(is_so, contradiction)| is_so.then_some(contradiction))
        .collect()
    }
}

fn topology(publishers: u32, subscribers: u32) -> Topology {
    match (publishers, subscribers) {
        (_, 0 | 1) => Topology::FanIn,
        (1, _) => Topology::FanOut,
        (x, y) if x == y => Topology::Pairs,
        _ => Topology::FanOut,
    }
}

fn warmup(pattern: Pattern, arrival: &Arrival) -> Nanos {
    let has_none = pattern == Pattern::Hold
        || matches!(arrival, Arrival::Burst | Arrival::Trace(_) | Arrival::Ramp(_));
    if has_none { Nanos(0) } else { WARMUP }
}

/// Connections if none are asked for: few enough that neither side of a closed loop fills its
/// core, see `docs/decisions/0006-two-connections.md`.
pub const CONNECTIONS: u32 = 2;

/// Measured time if neither a time nor a count is asked for.
pub const DURATION: Nanos = Nanos::from_secs(2);

/// Warm-up if none is asked for.
pub const WARMUP: Nanos = Nanos::from_millis(500);

/// After this a message is late, if nothing else is asked for.
pub const TIMEOUT: Nanos = Nanos::from_secs(5);
