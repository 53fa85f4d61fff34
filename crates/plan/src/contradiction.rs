//! Contradictions between the keys of a load.

use weigh_model::{Arrival, Nanos, Pattern};

use crate::wrong::Wrong;

/// A contradiction in a load.
///
/// # Examples
///
/// ```
/// use weigh_model::Pattern;
/// use weigh_plan::{Contradiction, LoadWords};
///
/// let words = LoadWords { connections: Some(0), ..LoadWords::default() };
/// let wrong = words.decide("tcp", &[Pattern::Request]).unwrap_err();
/// assert_eq!(wrong, [Contradiction::NoConnections]);
/// assert_eq!(wrong[0].keys(), ["load.connections"]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Contradiction {
    /// The protocol does not support the pattern.
    NoSuchPattern {
        /// The protocol.
        protocol: String,
        /// The pattern of the plan.
        pattern: Pattern,
        /// The patterns that it supports.
        known: Vec<Pattern>,
    },
    /// A rate for an arrival without one.
    RateUnused(Arrival),
    /// An arrival that needs a rate.
    RateMissing(Arrival),
    /// A pause in an open loop.
    ThinkInOpenLoop(Arrival),
    /// A rate or a total with a pattern that sends nothing.
    HoldSends,
    /// No connection.
    NoConnections,
    /// No message.
    NoMessages,
    /// A duration and a total.
    TwoEnds,
    /// Subscribers in a pattern without them.
    SubscribersUnheard,
    /// A topology in a pattern without subscribers.
    TopologyUnheard,
    /// `deliver` without subscribers, or `poll` without consumers.
    NoSubscribers(Pattern),
    /// Keys of polling in a pattern without it.
    NothingPolls,
    /// The size of a batch in a pattern without batches.
    NothingGathers,
    /// A stall in a pattern without waiting subscribers.
    NobodyStalls,
    /// Clients that join in groups, with a ramp or a warm-up.
    JoinsTwice,
    /// Clients that join in groups, with a load limited by time.
    JoinsWithoutTotal,
    /// The last group would join after the end of the load.
    JoinsTooLate(Nanos),
    /// A share of a second that is not a whole number of messages per client.
    ShareBroken,
    /// A poll period so short that consumers would only send requests.
    PeriodTooShort,
    /// A wait so long that a server would hold requests too long.
    WaitTooLong,
    /// `transfer` of 0 bytes.
    NoObject,
    /// Pairs with unequal numbers of publishers and subscribers.
    PairsUnequal,
    /// A burst without a total.
    BurstWithoutTotal,
    /// A warm-up for an arrival without one.
    WarmupUnused(Arrival),
    /// No time to measure.
    NoDuration,
    /// A timeout of 0: every message would be late.
    NoTimeout,
    /// A rate that no generator can send.
    RateTooHigh(Arrival),
    /// More messages in flight than fit in memory.
    WindowTooLarge,
    /// Both a plain body and a sealed one.
    TwoBodies,
    /// Keys of a seal without a sealed body.
    NothingSealed,
    /// A seal around a streamed body.
    SealedPieces,
}

impl Contradiction {
    /// The plan keys of the contradiction; it is reported at the first of them that is given.
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
            Contradiction::NoSubscribers(_) => &["load.subscribers"],
            Contradiction::NothingPolls => {
                &["load.poll_period", "load.poll_wait", "load.poll_limit"]
            }
            Contradiction::NothingGathers => &["load.batch"],
            Contradiction::NobodyStalls => &["load.stall"],
            Contradiction::JoinsTwice => &["load.join", "load.warmup", "load.arrival"],
            Contradiction::JoinsWithoutTotal | Contradiction::JoinsTooLate(_) => &["load.join"],
            Contradiction::ShareBroken => &["load.rate"],
            Contradiction::PeriodTooShort => &["load.poll_period"],
            Contradiction::WaitTooLong => &["load.poll_wait"],
            Contradiction::NoObject => &["load.size"],
            Contradiction::PairsUnequal => &["load.subscribers", "load.topology"],
            Contradiction::BurstWithoutTotal => &["load.arrival"],
            Contradiction::WarmupUnused(_) => &["load.warmup"],
            Contradiction::NoDuration => &["load.duration"],
            Contradiction::NoTimeout => &["load.timeout"],
            Contradiction::RateTooHigh(Arrival::Steps(_)) => &["load.arrival"],
            Contradiction::RateTooHigh(_) => &["load.rate"],
            Contradiction::WindowTooLarge => &["load.window"],
            Contradiction::TwoBodies => &["load.body.sealed", "load.body"],
            Contradiction::NothingSealed => {
                &["load.body.cipher", "load.body.signed", "load.body.policy"]
            }
            Contradiction::SealedPieces => &["load.body.sealed", "load.body", "load.pattern"],
        }
    }

    /// The contradiction as an error of a plan.
    pub fn in_plan(&self) -> Wrong {
        let (text, fix) = match self {
            Contradiction::NoSuchPattern { protocol, pattern, known } => {
                let known: Vec<&str> = known.iter().map(|pattern| pattern.name()).collect();
                (
                    format!("{protocol} has no pattern {pattern}"),
                    format!("type one of {}", known.join(", ")),
                )
            }
            Contradiction::RateUnused(arrival) => (
                format!("the arrival {arrival} has no rate"),
                "leave load.rate out, or make load.arrival constant, poisson, periodic or \
                 each-second"
                    .into(),
            ),
            Contradiction::RateMissing(arrival) => (
                format!("the arrival {arrival} needs a rate"),
                "add load.rate = \"1000/s\" (in total) or \"1/s/client\" (each client)".into(),
            ),
            Contradiction::ThinkInOpenLoop(arrival) => (
                format!(
                    "a pause applies to closed loops, and the arrival {arrival} is an open \
                         loop"
                ),
                "leave load.think out, or load.rate for a closed loop".into(),
            ),
            Contradiction::HoldSends => (
                "the pattern hold sends no messages".into(),
                "leave load.rate and load.messages out and set load.duration".into(),
            ),
            Contradiction::NoConnections => {
                ("no client would send".into(), "type at least load.connections = 1".into())
            }
            Contradiction::NoMessages => {
                ("nothing would be sent".into(), "type at least load.messages = 1".into())
            }
            Contradiction::TwoEnds => (
                "a load ends after a duration or after a number of messages, not both".into(),
                "leave load.duration or load.messages out".into(),
            ),
            Contradiction::SubscribersUnheard => (
                "only deliver and poll have subscribers, and transfer if the protocol can \
                 deliver"
                    .into(),
                "type load.pattern = \"deliver\" or load.pattern = \"poll\", or leave \
                 load.subscribers out"
                    .into(),
            ),
            Contradiction::TopologyUnheard => (
                "a topology applies only to patterns with subscribers".into(),
                "type load.pattern = \"deliver\" or load.pattern = \"poll\", or leave the \
                 topology out"
                    .into(),
            ),
            Contradiction::NoObject => {
                let fix = "type at least load.size = \"1B\"";
                ("a transfer of 0 bytes moves nothing".into(), fix.into())
            }
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
                let fix = "type for example load.duration = \"2s\"";
                ("the measured time is 0".into(), fix.into())
            }
            Contradiction::NoTimeout => {
                let fix = "type for example load.timeout = \"5s\"";
                ("every message would be late".into(), fix.into())
            }
            Contradiction::TwoBodies => (
                "the body is given twice, unencrypted and sealed".into(),
                "leave one of them out: body.recipients = 0 leaves a body unencrypted".into(),
            ),
            Contradiction::NothingSealed => (
                "it configures a seal, but no body is sealed".into(),
                "add body = { sealed = \"readings\" }, or leave it out".into(),
            ),
            Contradiction::SealedPieces => (
                "a transfer streams its object, and a sealed object cannot be streamed".into(),
                "type load.pattern = \"deliver\" or load.pattern = \"request\", or leave the \
                 seal out"
                    .into(),
            ),
            other => return other.of_turns(),
        };
        Wrong::new(text, fix)
    }

    /// Errors of clients that join in groups, and of shares of a second.
    fn of_turns(&self) -> Wrong {
        match self {
            Contradiction::JoinsTwice => Wrong::new(
                "clients that join in groups start one group after another: there is no ramp and \
                 no warm-up in addition",
                "leave one of them out",
            ),
            Contradiction::JoinsWithoutTotal => Wrong::new(
                "a load limited by time would be measured while clients still join",
                "set load.messages instead of load.duration, or leave load.join out",
            ),
            Contradiction::JoinsTooLate(last) => Wrong::new(
                format!("the last clients would join after {last}, when the load has ended"),
                "type a longer load.duration, or larger groups",
            ),
            Contradiction::ShareBroken => Wrong::new(
                "in each second every client sends a whole number of messages, at least 1",
                "type a whole number such as \"100/s\", at least as large as load.connections",
            ),
            Contradiction::RateTooHigh(_) => Wrong::new(
                "no network carries this rate",
                "type at most load.rate = \"100M/s\" of all clients together",
            ),
            Contradiction::WindowTooLarge => Wrong::new(
                format!("more than {IN_FLIGHT_MAX} messages would be in flight at once"),
                "make load.window times load.connections smaller",
            ),
            other => other.of_consumers(),
        }
    }

    /// Errors of polling consumers and batches.
    fn of_consumers(&self) -> Wrong {
        match self {
            Contradiction::NoSubscribers(pattern) => Wrong::new(
                format!("{pattern} needs a subscriber"),
                "type at least load.subscribers = 1, or load.pattern = \"publish\"",
            ),
            Contradiction::NothingGathers => Wrong::new(
                "only the pattern batch sends several messages in one exchange",
                "type load.pattern = \"batch\", or leave it out",
            ),
            Contradiction::NobodyStalls => Wrong::new(
                "only the pattern deliver has subscribers that could stop reading",
                "type load.pattern = \"deliver\", or leave load.stall out",
            ),
            Contradiction::PeriodTooShort => Wrong::new(
                "consumers would only send requests",
                "type at least load.poll_period = \"1ms\", or let the server hold requests: \
                 load.poll_wait = \"30s\"",
            ),
            Contradiction::WaitTooLong => Wrong::new(
                "the wait of a long poll is too long",
                "type at most load.poll_wait = \"5m\"",
            ),
            _ => Wrong::new(
                "only the pattern poll has polling consumers",
                "type load.pattern = \"poll\", or leave it out",
            ),
        }
    }
}

/// Maximum number of messages in flight, of all clients, if a window is set: each takes some 100
/// bytes of memory.
pub const IN_FLIGHT_MAX: u64 = 1 << 24;
