//! Resolves the keys of a load to the complete load: adds defaults, and reports contradictions.

use serde::{Deserialize, Serialize};
use weigh_model::body::BodySource;
use weigh_model::load::PollKeys;
pub use weigh_model::load::TIMEOUT;
use weigh_model::seal::Seal;
use weigh_model::units::Bytes;
use weigh_model::{Arrival, Join, Load, Nanos, Pattern, Rate, Split, Topology, Writes};

use crate::contradiction::{Contradiction, IN_FLIGHT_MAX};

/// The given keys of a load.
///
/// # Examples
///
/// A rate makes an open loop; the other keys get their defaults:
///
/// ```
/// use weigh_model::units::parse_rate;
/// use weigh_model::{Arrival, Pattern};
/// use weigh_plan::LoadWords;
///
/// let words = LoadWords { rate: Some(parse_rate("500/s")?), ..LoadWords::default() };
/// let load = words.decide("tcp", &[Pattern::Request]).map_err(|wrong| format!("{wrong:?}"))?;
/// assert_eq!(load.arrival, Arrival::Constant);
/// assert_eq!(load.duration, Some(weigh_plan::load::DURATION));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoadWords {
    /// See [`Load::pattern`]; the protocol's own if left out.
    pub pattern: Option<Pattern>,
    /// See [`Load::connections`]; [`CONNECTIONS`] if left out, 1 in `transfer`.
    pub connections: Option<u32>,
    /// See [`Load::subscribers`]; 1 in `deliver` and `poll` if left out, and in `transfer` if the
    /// protocol can deliver.
    pub subscribers: Option<u32>,
    /// See [`Load::topology`]; by the numbers of both sides if left out.
    pub topology: Option<Topology>,
    /// See [`Load::messages`].
    pub messages: Option<u64>,
    /// See [`Load::duration`]; [`DURATION`] if nothing else ends the load.
    pub duration: Option<Nanos>,
    /// See [`Load::warmup`]; [`WARMUP`] if left out, unless the load cannot have one.
    pub warmup: Option<Nanos>,
    /// See [`Load::arrival`]; if left out, constant with a rate, periodic with a rate per client,
    /// else closed.
    pub arrival: Option<Arrival>,
    /// See [`Load::rate`].
    pub rate: Option<Rate>,
    /// See [`Load::window`].
    pub window: Option<u32>,
    /// See [`Load::join`]; all connect before the load if left out.
    pub join: Option<Join>,
    /// See [`Load::writes`]; coalesced if left out.
    pub writes: Option<Writes>,
    /// See [`Load::poll`].
    #[serde(flatten)]
    pub poll: PollWords,
    /// See [`Load::stall`]; none if left out.
    pub stall: Option<Nanos>,
    /// See [`Load::batch`]; [`BATCH`] if left out.
    pub batch: Option<u32>,
    /// See [`Load::think`]; none if left out.
    pub think: Option<Nanos>,
    /// See [`Load::split`].
    pub split: Option<Split>,
    /// See [`Load::body`].
    #[serde(flatten)]
    pub body: BodyWords,
    /// See [`Load::size`].
    pub size: Option<Bytes>,
    /// See [`Load::timeout`]; [`TIMEOUT`] if left out.
    pub timeout: Option<Nanos>,
}

/// The given keys of a load's polling consumers.
///
/// # Examples
///
/// In a long poll, consumers request again at once:
///
/// ```
/// use weigh_model::{Nanos, Pattern};
/// use weigh_plan::{LoadWords, PollWords};
///
/// let poll = PollWords { wait: Some(Nanos::from_secs(30)), ..PollWords::default() };
/// let words = LoadWords { poll, ..LoadWords::default() };
/// let load = words.decide("http1", &[Pattern::Poll]).map_err(|wrong| format!("{wrong:?}"))?;
/// assert_eq!(load.poll.period, Some(Nanos(0)));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PollWords {
    /// See [`PollKeys::period`]; [`POLL_PERIOD`] if left out, none in a long poll.
    #[serde(rename = "poll_period")]
    pub period: Option<Nanos>,
    /// See [`PollKeys::wait`].
    #[serde(rename = "poll_wait")]
    pub wait: Option<Nanos>,
    /// See [`PollKeys::limit`]; [`POLL_LIMIT`] if left out.
    #[serde(rename = "poll_limit")]
    pub limit: Option<u32>,
}

/// The given keys of a load's body.
///
/// # Examples
///
/// Readings, sealed for three participants:
///
/// ```
/// use weigh_model::Pattern;
/// use weigh_plan::{BodyWords, LoadWords};
///
/// let body = BodyWords { recipients: Some(3), ..BodyWords::default() };
/// let words = LoadWords { body, ..LoadWords::default() };
/// let load = words.decide("mqtt", &[Pattern::Publish]).map_err(|wrong| format!("{wrong:?}"))?;
/// assert_eq!(load.body.to_string(), "sealed,recipients=3:readings");
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BodyWords {
    /// See [`Load::body`]; filler with a size, else readings, if left out.
    #[serde(rename = "body")]
    pub source: Option<BodySource>,
    /// The source of a body to be sealed: instead of `source`.
    #[serde(rename = "body.sealed")]
    pub sealed: Option<BodySource>,
    /// See [`Seal::recipients`]; 0 leaves the body unencrypted, more seal it.
    #[serde(rename = "body.recipients")]
    pub recipients: Option<u32>,
    /// See [`Seal::cipher`].
    #[serde(rename = "body.cipher")]
    pub cipher: Option<String>,
    /// See [`Seal::is_signed`].
    #[serde(rename = "body.signed")]
    pub signed: Option<bool>,
    /// See [`Seal::has_policy`].
    #[serde(rename = "body.policy")]
    pub policy: Option<bool>,
}

impl LoadWords {
    /// Resolves the load for a protocol that supports `patterns`, the first by default.
    ///
    /// # Errors
    /// All contradictions.
    pub fn decide(&self, protocol: &str, patterns: &[Pattern]) -> Result<Load, Vec<Contradiction>> {
        let pattern = self.pattern.unwrap_or(patterns[0]);
        if !patterns.contains(&pattern) {
            let (protocol, known) = (protocol.to_owned(), patterns.to_vec());
            return Err(vec![Contradiction::NoSuchPattern { protocol, pattern, known }]);
        }
        let moves = pattern == Pattern::Transfer;
        let connections = self.connections.unwrap_or(if moves { 1 } else { CONNECTIONS });
        let subscribers = match pattern {
            Pattern::Deliver | Pattern::Poll => self.subscribers.unwrap_or(1),
            Pattern::Transfer => {
                self.subscribers.unwrap_or(u32::from(patterns[0] == Pattern::Deliver))
            }
            _ => 0,
        };
        let arrival = self.arrival.clone().unwrap_or(match self.rate {
            // Many devices with a rate of their own do not all send at the same instant.
            Some(rate) if rate.per_client => Arrival::Periodic,
            Some(_) => Arrival::Constant,
            None => Arrival::Closed,
        });
        let has_end =
            self.messages.is_some() || matches!(arrival, Arrival::Steps(_) | Arrival::Trace(_));
        let poll = self.poll.resolve();
        let load = Load {
            pattern,
            connections,
            subscribers,
            topology: self.topology.unwrap_or_else(|| match pattern {
                // In poll, all consumers read one list.
                Pattern::Poll if subscribers > 1 => Topology::FanOut,
                Pattern::Poll => Topology::FanIn,
                _ => topology(connections, subscribers),
            }),
            messages: self.messages,
            duration: if has_end { self.duration } else { Some(self.duration.unwrap_or(DURATION)) },
            warmup: self.warmup.unwrap_or_else(|| match self.join {
                Some(_) => Nanos(0),
                None => warmup(pattern, &arrival),
            }),
            arrival,
            rate: self.rate,
            window: self.window.or(moves.then_some(1)),
            join: self.join,
            writes: self.writes.unwrap_or_default(),
            poll: if pattern == Pattern::Poll { poll } else { PollKeys::default() },
            stall: self.stall.filter(|lasts| lasts.0 > 0),
            batch: (pattern == Pattern::Batch).then(|| self.batch.unwrap_or(BATCH)),
            think: self.think.unwrap_or(Nanos(0)),
            split: self.split.unwrap_or_default(),
            body: self.body.resolve(self.size),
            size: self.size,
            timeout: self.timeout.unwrap_or(match pattern {
                Pattern::Transfer => TRANSFER_TIMEOUT,
                // A fetched message has waited for one period at most.
                Pattern::Poll => poll.period.map_or(TIMEOUT, |period| TIMEOUT.max(period + period)),
                // The first messages wait for the whole stall, and then for the others.
                _ => self.stall.filter(|own| own.0 > 0).map_or(TIMEOUT, |own| own + STALL_DRAIN),
            }),
        };
        let wrong = self.contradictions(&load, patterns);
        if wrong.is_empty() { Ok(load) } else { Err(wrong) }
    }

    fn contradictions(&self, load: &Load, patterns: &[Pattern]) -> Vec<Contradiction> {
        let arrival = || load.arrival.clone();
        let may_deliver = patterns.contains(&Pattern::Deliver);
        let is_heard = match load.pattern {
            Pattern::Transfer => may_deliver,
            pattern => pattern.delivers_to(1),
        };
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
            (!load.delivers() && of_deliver, Contradiction::TopologyUnheard),
            (
                load.pattern.delivers_to(0) && load.subscribers == 0,
                Contradiction::NoSubscribers(load.pattern),
            ),
            (
                load.pattern == Pattern::Transfer && load.size == Some(Bytes(0)),
                Contradiction::NoObject,
            ),
            (
                load.delivers()
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
        .chain(of_size(load))
        .chain(self.contradictions_of_seal(load))
        .chain(self.of_exchanges(load))
        .chain(of_turns(load))
        .filter_map(|(is_so, contradiction)| is_so.then_some(contradiction))
        .collect()
    }

    /// Contradictions of polling and batches.
    fn of_exchanges(&self, load: &Load) -> [(bool, Contradiction); 5] {
        let is_hasty = load
            .polling()
            .is_some_and(|polling| polling.wait.0 == 0 && polling.period < POLL_PERIOD_MIN);
        let is_long = load.poll.wait.is_some_and(|wait| wait > POLL_WAIT_MAX);
        let says_of_batches = self.batch.is_some();
        [
            (
                self.poll != PollWords::default() && load.pattern != Pattern::Poll,
                Contradiction::NothingPolls,
            ),
            (says_of_batches && load.pattern != Pattern::Batch, Contradiction::NothingGathers),
            (is_hasty, Contradiction::PeriodTooShort),
            (is_long, Contradiction::WaitTooLong),
            (load.stall.is_some() && load.pattern != Pattern::Deliver, Contradiction::NobodyStalls),
        ]
    }
}

impl LoadWords {
    /// Contradictions of seals.
    fn contradictions_of_seal(&self, load: &Load) -> impl Iterator<Item = (bool, Contradiction)> {
        let is_sealed = load.body.seal().is_some();
        let body = &self.body;
        let says_how = body.cipher.is_some() || body.signed.is_some() || body.policy.is_some();
        let says_nothing = !is_sealed && body.recipients.is_none();
        [
            (body.source.is_some() && body.sealed.is_some(), Contradiction::TwoBodies),
            (says_nothing && says_how, Contradiction::NothingSealed),
            (is_sealed && load.pattern == Pattern::Transfer, Contradiction::SealedPieces),
        ]
        .into_iter()
    }
}

impl PollWords {
    /// The keys with every default filled in.
    fn resolve(&self) -> PollKeys {
        let wait = self.wait.filter(|wait| wait.0 > 0);
        let unless_given = if wait.is_some() { Nanos(0) } else { POLL_PERIOD };
        let period = Some(self.period.unwrap_or(unless_given));
        PollKeys { period, wait, limit: Some(self.limit.unwrap_or(POLL_LIMIT)) }
    }
}

impl BodyWords {
    /// The source of bodies of this size, sealed as given.
    fn resolve(&self, size: Option<Bytes>) -> BodySource {
        let plain = match size {
            Some(_) => BodySource::Filler,
            None => BodySource::Readings,
        };
        let said = self.sealed.as_ref().or(self.source.as_ref()).unwrap_or(&plain);
        let is_sealed = match self.recipients {
            Some(recipients) => recipients > 0,
            None => self.sealed.is_some() || said.seal().is_some(),
        };
        let content = said.content().clone();
        if !is_sealed {
            return content;
        }
        let own = said.seal().unwrap_or_default();
        let seal = Seal {
            recipients: self.recipients.unwrap_or(own.recipients),
            cipher: self.cipher.as_ref().and_then(|name| name.parse().ok()).unwrap_or(own.cipher),
            is_signed: self.signed.unwrap_or(own.is_signed),
            has_policy: self.policy.unwrap_or(own.has_policy),
        };
        BodySource::Sealed(seal, Box::new(content))
    }
}

/// Loads that no generator can make, rejected before they take memory or time.
fn of_size(load: &Load) -> [(bool, Contradiction); 2] {
    let total = |rate: &Rate| rate.total_per_second(load.connections);
    let highest = match &load.arrival {
        Arrival::Steps(steps) => steps.iter().map(|step| total(&step.rate)).reduce(f64::max),
        _ => load.rate.as_ref().map(total),
    };
    let is_too_high = highest.is_some_and(|rate| rate > RATE_PER_SECOND_MAX);
    let in_flight = u64::from(load.window.unwrap_or(0)) * u64::from(load.connections);
    [
        (is_too_high, Contradiction::RateTooHigh(load.arrival.clone())),
        (in_flight > IN_FLIGHT_MAX, Contradiction::WindowTooLarge),
    ]
}

/// Contradictions of clients that join in groups, and of shares of a second.
fn of_turns(load: &Load) -> [(bool, Contradiction); 4] {
    let joins = load.join.is_some();
    let is_held = load.pattern == Pattern::Hold;
    let last = load.join.map_or(Nanos(0), |join| join.last_turn(load.connections));
    let never_comes = joins && is_held && load.duration.is_some_and(|lasts| last >= lasts);
    let is_mixed = joins && !is_held && load.messages.is_none();
    let has_own = matches!(load.arrival, Arrival::Ramp(_)) || load.warmup.0 > 0;
    let rate = load.rate.filter(|_| load.arrival == Arrival::EachSecond);
    let is_broken = rate.is_some_and(|rate| {
        let least = if rate.per_client { 1.0 } else { f64::from(load.connections) };
        rate.per_second.fract() != 0.0 || rate.per_second < least
    });
    [
        (joins && has_own, Contradiction::JoinsTwice),
        (is_mixed, Contradiction::JoinsWithoutTotal),
        (never_comes, Contradiction::JoinsTooLate(last)),
        (is_broken, Contradiction::ShareBroken),
    ]
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
    let has_none = matches!(pattern, Pattern::Hold | Pattern::Transfer)
        || matches!(arrival, Arrival::Burst | Arrival::Trace(_) | Arrival::Ramp(_));
    if has_none { Nanos(0) } else { WARMUP }
}

/// Default number of connections: few enough that neither side of a closed loop saturates its core,
/// see `docs/decisions/0006-two-connections.md`.
pub const CONNECTIONS: u32 = 2;

/// Default duration, without a count.
pub const DURATION: Nanos = Nanos::from_secs(2);

/// Default warm-up.
pub const WARMUP: Nanos = Nanos::from_millis(500);

/// Maximum rate of all clients together. A link of 100 Gbit/s carries 149 million of the smallest
/// Ethernet frames a second (84 B each with gap and preamble), and a message takes a core longer
/// than 10 ns, so no real rate comes near it.
pub const RATE_PER_SECOND_MAX: f64 = 100e6;

/// Maximum size of a body that is not streamed, bytes: the largest that an MQTT packet holds (MQTT
/// 5.0, section 1.5.5, is 268,435,455 B). A transfer streams its objects.
pub const BODY_BYTES_MAX: u64 = 1 << 28;

/// Default time from one request of a consumer to its next.
pub const POLL_PERIOD: Nanos = Nanos::from_secs(1);

/// Minimum poll period: below it, consumers only send requests, as in a long poll.
pub const POLL_PERIOD_MIN: Nanos = Nanos::from_millis(1);

/// Maximum time that a request is held.
pub const POLL_WAIT_MAX: Nanos = Nanos::from_secs(300);

/// Default maximum number of messages in one answer.
pub const POLL_LIMIT: u32 = 1000;

/// Default number of messages in one exchange of `batch`.
pub const BATCH: u32 = 100;

/// Default timeout of a transfer, whose objects may be large and their path slow: 1 MB takes 8 s at
/// 1 Mbit/s.
pub const TRANSFER_TIMEOUT: Nanos = Nanos::from_secs(60);

/// Default time after a stall for queued messages to reach the subscribers: for the largest usual
/// queue of a broker, at a few thousand messages a second.
pub const STALL_DRAIN: Nanos = Nanos::from_secs(20);
