//! Words of a load that cannot hold together.

use weigh_model::{Arrival, Nanos, Pattern};

use crate::wrong::Wrong;

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
    /// `deliver` to nobody, or nobody that polls.
    NoSubscribers(Pattern),
    /// How consumers ask, in a pattern in which none does.
    NothingPolls,
    /// The size of a batch in a pattern without.
    NothingGathers,
    /// Subscribers that read nothing, in a pattern in which none waits for what comes.
    NobodyStalls,
    /// Clients that come group by group, and a ramp or a warm-up beside.
    JoinsTwice,
    /// Clients that come group by group to a load of a time.
    JoinsWithoutTotal,
    /// The last group would come when the load is over.
    JoinsTooLate(Nanos),
    /// A share of a second that is no whole number of messages for every client.
    ShareBroken,
    /// Consumers would do nothing but ask.
    PeriodTooShort,
    /// A server would hold a request for too long.
    WaitTooLong,
    /// `transfer` of nothing.
    NoObject,
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
    /// A rate that nothing can send.
    RateTooHigh(Arrival),
    /// More messages in flight than memory has room for.
    WindowTooLarge,
    /// A body, and another one that is sealed.
    TwoBodies,
    /// What is said of a seal, and nothing is sealed.
    NothingSealed,
    /// A seal around what is made piece by piece.
    SealedPieces,
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
                "leave load.rate out, or make load.arrival constant, poisson, periodic or \
                 each-second"
                    .into(),
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
                "leave load.rate and load.messages out and give load.duration".into(),
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
                "only deliver and poll have subscribers, and transfer where the protocol can \
                 deliver"
                    .into(),
                "type load.pattern = \"deliver\" or load.pattern = \"poll\", or leave them \
                 out"
                .into(),
            ),
            Contradiction::TopologyUnheard => (
                "only where there are subscribers does anybody hear anybody".into(),
                "type load.pattern = \"deliver\" or load.pattern = \"poll\", or leave the \
                 topology out"
                    .into(),
            ),
            Contradiction::NoObject => {
                let mend = "type at least load.size = \"1B\"";
                ("a transfer of 0 bytes moves nothing".into(), mend.into())
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
                let mend = "type for example load.duration = \"2s\"";
                ("there must be some time to measure in".into(), mend.into())
            }
            Contradiction::NoTimeout => {
                let mend = "type for example load.timeout = \"5s\"";
                ("every message would be late".into(), mend.into())
            }
            Contradiction::TwoBodies => (
                "the body is given twice, in the clear and sealed".into(),
                "leave one of them out: body.recipients = 0 leaves a body in the clear".into(),
            ),
            Contradiction::NothingSealed => (
                "it says how a body is sealed, and no body is".into(),
                "add body = { sealed = \"readings\" }, or leave it out".into(),
            ),
            Contradiction::SealedPieces => (
                "a transfer makes its object piece by piece, and a sealed object is made whole"
                    .into(),
                "type load.pattern = \"deliver\" or load.pattern = \"request\", or leave the \
                 seal out"
                    .into(),
            ),
            other => return other.of_turns(),
        };
        Wrong::new(text, mend)
    }

    /// The words about clients that come group by group, and about shares of a second.
    fn of_turns(&self) -> Wrong {
        match self {
            Contradiction::JoinsTwice => Wrong::new(
                "clients that come group by group begin each at its turn: there is no ramp and no \
                 warm-up beside that",
                "leave one of them out",
            ),
            Contradiction::JoinsWithoutTotal => Wrong::new(
                "a load of a time would be measured while its clients still come",
                "give load.messages instead of load.duration, or leave load.join out",
            ),
            Contradiction::JoinsTooLate(last) => Wrong::new(
                format!("the last clients would come after {last}, when the load is over"),
                "give a longer load.duration, or larger groups",
            ),
            Contradiction::ShareBroken => Wrong::new(
                "in each second every client sends a whole number of messages, at least 1",
                "give a whole number such as \"100/s\", at least as large as load.connections",
            ),
            Contradiction::RateTooHigh(_) => Wrong::new(
                "no network carries so many messages a second",
                "type at most load.rate = \"100M/s\" of all clients together",
            ),
            Contradiction::WindowTooLarge => Wrong::new(
                format!("more than {IN_FLIGHT_MAX} messages would be in flight at once"),
                "make load.window times load.connections smaller",
            ),
            other => other.of_consumers(),
        }
    }

    /// The words about consumers that ask and messages that leave together.
    fn of_consumers(&self) -> Wrong {
        match self {
            Contradiction::NoSubscribers(pattern) => Wrong::new(
                format!("{pattern} needs a subscriber"),
                "type at least load.subscribers = 1, or load.pattern = \"publish\"",
            ),
            Contradiction::NothingGathers => Wrong::new(
                "only in batch do several messages go in one exchange",
                "type load.pattern = \"batch\", or leave it out",
            ),
            Contradiction::NobodyStalls => Wrong::new(
                "only in deliver are there subscribers that could stop reading",
                "type load.pattern = \"deliver\", or leave it out",
            ),
            Contradiction::PeriodTooShort => Wrong::new(
                "consumers would do nothing but ask",
                "type at least load.poll_period = \"1ms\", or let the server hold requests: \
                 load.poll_wait = \"30s\"",
            ),
            Contradiction::WaitTooLong => Wrong::new(
                "no server is asked to hold a request for so long",
                "type at most load.poll_wait = \"5m\"",
            ),
            _ => Wrong::new(
                "only in poll do consumers ask",
                "type load.pattern = \"poll\", or leave it out",
            ),
        }
    }
}

/// Messages in flight at most, of all clients together, where a window is asked for: each takes
/// some 100 bytes of memory.
pub const IN_FLIGHT_MAX: u64 = 1 << 24;
