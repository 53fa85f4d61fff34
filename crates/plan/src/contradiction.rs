//! Words of a load that cannot hold together.

use weigh_model::{Arrival, Pattern};

use crate::kind::Wrong;

/// What contradicts itself in a load.
#[derive(Clone, Debug, PartialEq)]
pub enum Contradiction {
    /// The protocol does not carry the pattern.
    NoSuchPattern {
        /// The protocol.
        protocol: String,
        /// What was asked for.
        pattern: Pattern,
        /// What it carries.
        known: Vec<Pattern>,
    },
    /// A rate beside an arrival that has none.
    RateUnused(Arrival),
    /// An arrival that needs a rate.
    RateMissing(Arrival),
    /// A pause of a closed loop in an open one.
    ThinkInOpenLoop(Arrival),
    /// A rate or a total where nothing is sent.
    HoldSends,
    /// No connection.
    NoConnections,
    /// No message.
    NoMessages,
    /// Both a time and a total.
    TwoEnds,
    /// Subscribers in a pattern that has none.
    SubscribersUnheard,
    /// Who hears whom in a pattern in which nobody hears.
    TopologyUnheard,
    /// `deliver` to nobody.
    NoSubscribers,
    /// Pairs of unequally many.
    PairsUnequal,
    /// A burst of no stated size.
    BurstWithoutTotal,
    /// A warm-up of an arrival that has none.
    WarmupUnused(Arrival),
    /// No time to measure in.
    NoDuration,
    /// Every message would be late.
    NoTimeout,
}

impl Contradiction {
    /// The plan keys that it is about; the first that was given is where it is told.
    pub fn keys(&self) -> &'static [&'static str] {
        match self {
            Contradiction::NoSuchPattern { .. } => &["load.pattern", "protocol"],
            Contradiction::RateUnused(_) => &["load.rate", "load.arrival"],
            Contradiction::RateMissing(_) => &["load.arrival"],
            Contradiction::ThinkInOpenLoop(_) => &["load.think"],
            Contradiction::HoldSends => &["load.rate", "load.messages", "load.pattern"],
            Contradiction::NoConnections => &["load.connections"],
            Contradiction::NoMessages => &["load.messages"],
            Contradiction::TwoEnds => &["load.duration", "load.messages"],
            Contradiction::SubscribersUnheard => &["load.subscribers"],
            Contradiction::TopologyUnheard => &["load.topology"],
            Contradiction::NoSubscribers => &["load.subscribers"],
            Contradiction::PairsUnequal => &["load.subscribers", "load.topology"],
            Contradiction::BurstWithoutTotal => &["load.arrival"],
            Contradiction::WarmupUnused(_) => &["load.warmup"],
            Contradiction::NoDuration => &["load.duration"],
            Contradiction::NoTimeout => &["load.timeout"],
        }
    }

    /// The same in the words of a plan.
    pub fn in_plan(&self) -> Wrong {
        let (text, mend) = match self {
            Contradiction::NoSuchPattern { protocol, pattern, known } => {
                let known: Vec<&str> = known.iter().map(|pattern| pattern.name()).collect();
                (
                    format!("{protocol} has no pattern {pattern}"),
                    format!("type one of {}", known.join(", ")),
                )
            }
            Contradiction::RateUnused(arrival) => (
                format!("the arrival {arrival} has no rate"),
                "leave load.rate out, or make load.arrival constant, poisson or periodic".into(),
            ),
            Contradiction::RateMissing(arrival) => (
                format!("the arrival {arrival} needs a rate"),
                "add load.rate = \"1000/s\", or \"1/s/client\" for each".into(),
            ),
            Contradiction::ThinkInOpenLoop(arrival) => (
                format!("a pause is of a closed loop, and the arrival {arrival} is open"),
                "leave one of them out".into(),
            ),
            Contradiction::HoldSends => (
                "the pattern hold sends no messages".into(),
                "leave rate and messages out and give a duration".into(),
            ),
            Contradiction::NoConnections => {
                ("nobody would send".into(), "give at least 1 connection".into())
            }
            Contradiction::NoMessages => {
                ("nothing would be sent".into(), "give at least 1 message".into())
            }
            Contradiction::TwoEnds => (
                "a load ends after a time or after so many messages, not both".into(),
                "leave load.duration or load.messages out".into(),
            ),
            Contradiction::SubscribersUnheard => (
                "only the pattern deliver has subscribers".into(),
                "make load.pattern deliver, or leave them out".into(),
            ),
            Contradiction::TopologyUnheard => (
                "only in the pattern deliver does anybody hear anybody".into(),
                "make load.pattern deliver, or leave the topology out".into(),
            ),
            Contradiction::NoSubscribers => (
                "deliver needs a subscriber".into(),
                "give at least 1, or make load.pattern publish".into(),
            ),
            Contradiction::PairsUnequal => (
                "pairs need as many subscribers as publishers".into(),
                "make load.connections and load.subscribers equal (zip advances them together)"
                    .into(),
            ),
            Contradiction::BurstWithoutTotal => {
                ("a burst needs a total".into(), "add load.messages = 10000".into())
            }
            Contradiction::WarmupUnused(arrival) => {
                (format!("the arrival {arrival} has no warm-up"), "leave it out".into())
            }
            Contradiction::NoDuration => {
                ("there must be some time to measure in".into(), "type for example \"2s\"".into())
            }
            Contradiction::NoTimeout => {
                ("every message would be late".into(), "type for example \"5s\"".into())
            }
        };
        Wrong::new(text, mend)
    }
}
