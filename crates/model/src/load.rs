//! The load: which clients send how many messages of what kind, and when.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::arrival::Arrival;
use crate::body::BodySource;
use crate::join::Join;
use crate::units::{Bytes, Nanos, Rate};

/// Kind of one operation.
///
/// # Examples
///
/// ```
/// use weigh_model::Pattern;
///
/// let pattern: Pattern = "deliver".parse()?;
/// assert!(pattern.delivers_to(1));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// Send a request and wait for the answer.
    Request,
    /// Send a message, confirmed as far as the protocol can.
    Publish,
    /// Publisher to server to subscribers.
    Deliver,
    /// Publisher to server; consumers request new messages again and again.
    Poll,
    /// Several messages in one exchange, confirmed together.
    Batch,
    /// Connect, one message, close.
    Session,
    /// One object of any size, piece by piece; also to subscribers if there are any.
    Transfer,
    /// Connected and idle.
    Hold,
}

impl Pattern {
    /// All patterns, in the order they are listed to a user.
    pub const ALL: [Pattern; 8] = [
        Pattern::Request,
        Pattern::Publish,
        Pattern::Deliver,
        Pattern::Poll,
        Pattern::Batch,
        Pattern::Session,
        Pattern::Transfer,
        Pattern::Hold,
    ];

    /// The word of the plan and the command line.
    pub fn name(self) -> &'static str {
        match self {
            Pattern::Request => "request",
            Pattern::Publish => "publish",
            Pattern::Deliver => "deliver",
            Pattern::Poll => "poll",
            Pattern::Batch => "batch",
            Pattern::Session => "session",
            Pattern::Transfer => "transfer",
            Pattern::Hold => "hold",
        }
    }

    /// True if this many subscribers observe arrivals: always in `deliver` and `poll`, and in a
    /// `transfer` that has some.
    pub fn delivers_to(self, subscribers: u64) -> bool {
        match self {
            Pattern::Deliver | Pattern::Poll => true,
            Pattern::Transfer => subscribers > 0,
            _ => false,
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Pattern {
    type Err = String;
    fn from_str(text: &str) -> Result<Pattern, String> {
        Pattern::ALL.into_iter().find(|pattern| pattern.name() == text).ok_or_else(|| {
            let names = Pattern::ALL.map(Pattern::name).join(", ");
            format!("unknown pattern {text:?}: type one of {names}")
        })
    }
}

/// Assignment of messages to subscribers in the patterns `deliver`, `poll` and `transfer`.
///
/// # Examples
///
/// Each message reaches one subscriber, or all of them:
///
/// ```
/// use weigh_model::{Load, Pattern, Topology};
///
/// let pairs = Load {
///     subscribers: 3,
///     topology: Topology::Pairs,
///     ..Load::closed(Pattern::Deliver, 3)
/// };
/// assert_eq!(pairs.copies(), 1);
/// assert_eq!(Load { topology: Topology::FanOut, ..pairs }.copies(), 3);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// All publishers to one subscriber (or to several that each get everything).
    FanIn,
    /// Every message to every subscriber.
    FanOut,
    /// Publisher i to subscriber i.
    Pairs,
    /// Every message to one of the subscribers (MQTT: a shared subscription).
    Shared,
}

impl FromStr for Topology {
    type Err = String;
    fn from_str(text: &str) -> Result<Topology, String> {
        match text {
            "fan-in" => Ok(Topology::FanIn),
            "fan-out" => Ok(Topology::FanOut),
            "pairs" => Ok(Topology::Pairs),
            "shared" => Ok(Topology::Shared),
            _ => Err(format!("unknown topology {text:?}: type fan-in, fan-out, pairs or shared")),
        }
    }
}

/// Division of a total among clients.
///
/// # Examples
///
/// 100 messages of 3 clients:
///
/// ```
/// use weigh_model::Split;
///
/// let shares = |split: Split| [0, 1, 2].map(|client| split.share(100, 3, client));
/// assert_eq!(shares(Split::Exact), [34, 33, 33]);
/// assert_eq!(shares(Split::Ceil), [34, 34, 34]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// The shares add up to the total; the first clients send one more if it does not divide.
    #[default]
    Exact,
    /// Every client sends the share rounded up, as mqtt-stresser does; the total grows.
    Ceil,
}

impl FromStr for Split {
    type Err = String;
    fn from_str(text: &str) -> Result<Split, String> {
        match text {
            "exact" => Ok(Split::Exact),
            "ceil" => Ok(Split::Ceil),
            _ => Err(format!("unknown split {text:?}: type exact or ceil")),
        }
    }
}

impl Split {
    /// The share of client `index` of `clients` in `total` messages.
    pub fn share(self, total: u64, clients: u32, index: u32) -> u64 {
        let clients = u64::from(clients.max(1));
        match self {
            Split::Exact => total / clients + u64::from(u64::from(index) < total % clients),
            Split::Ceil => total.div_ceil(clients),
        }
    }

    /// Sum of all shares.
    pub fn total(self, total: u64, clients: u32) -> u64 {
        match self {
            Split::Exact => total,
            Split::Ceil => total.div_ceil(u64::from(clients.max(1))) * u64::from(clients.max(1)),
        }
    }
}

/// Way of writing messages that are due together to a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Writes {
    /// In one write, as many as there are: cheap, and they reach the target in a burst.
    #[default]
    Coalesced,
    /// Each in its own write, as by a client that sends occasionally.
    Single,
}

impl FromStr for Writes {
    type Err = String;
    fn from_str(text: &str) -> Result<Writes, String> {
        match text {
            "coalesced" => Ok(Writes::Coalesced),
            "single" => Ok(Writes::Single),
            _ => Err(format!("unknown way to write {text:?}: type coalesced or single")),
        }
    }
}

impl Writes {
    /// True for the default.
    pub fn is_default(&self) -> bool {
        *self == Writes::default()
    }
}

/// The keys of a load that apply only to the consumers of a `poll`.
///
/// # Examples
///
/// A consumer that requests messages every 2 s, at most 10 at once:
///
/// ```
/// use weigh_model::load::PollKeys;
/// use weigh_model::{Load, Nanos, Pattern};
///
/// let poll = PollKeys { period: Some(Nanos::from_secs(2)), wait: None, limit: Some(10) };
/// let load = Load { subscribers: 1, poll, ..Load::closed(Pattern::Poll, 1) };
/// assert_eq!(load.polling().map(|polling| polling.limit), Some(10));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PollKeys {
    /// From one request of a consumer to its next, or in a long poll from the answer to the next
    /// request.
    #[serde(rename = "poll_period", default, skip_serializing_if = "Option::is_none")]
    pub period: Option<Nanos>,
    /// In a long poll: how long the server is to hold a request if it has nothing new.
    #[serde(rename = "poll_wait", default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Nanos>,
    /// The most messages in one answer.
    #[serde(rename = "poll_limit", default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Way in which the consumers of a `poll` make requests, with every default filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Polling {
    /// From one request to the next, or in a long poll from an answer to the next request.
    pub period: Nanos,
    /// Time that the server is to hold a request if it has nothing new; 0 is not at all.
    pub wait: Nanos,
    /// The most messages in one answer.
    pub limit: u32,
}

/// A load, fully decided.
///
/// # Examples
///
/// 20 connections publish 5,000 messages/s together for 10 s, after a warm-up of 1 s:
///
/// ```
/// use weigh_model::units::parse_rate;
/// use weigh_model::{Load, Nanos, Pattern};
///
/// let load = Load {
///     duration: Some(Nanos::from_secs(10)),
///     warmup: Nanos::from_secs(1),
///     ..Load::open(Pattern::Publish, 20, parse_rate("5000/s")?)
/// };
/// assert!(load.arrival.is_open() && !load.delivers());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Kind of one operation.
    pub pattern: Pattern,
    /// Producing connections (publishers, requesters, holders); at least 1.
    pub connections: u32,
    /// Consuming connections: at least 1 in `deliver` and `poll`, any number in `transfer`, 0
    /// elsewhere.
    pub subscribers: u32,
    /// Assignment of messages to subscribers.
    pub topology: Topology,
    /// Measured messages in total, warm-up excluded. Exactly one of this and `duration` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
    /// Measured time, warm-up excluded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<Nanos>,
    /// Warm-up: the same load before the measurement, with its own mark and excluded from every
    /// figure.
    pub warmup: Nanos,
    /// Due times of messages.
    pub arrival: Arrival,
    /// Messages per second, if the arrival has a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Most messages in flight per connection, in `batch` most exchanges; `None` for the default of
    /// arrival and protocol: 1 in closed loops, as many as the protocol allows in open ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u32>,
    /// Pace at which clients join, group by group, each with its share of the load; `None` if all
    /// connect before the load starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join: Option<Join>,
    /// Way of writing messages that are due together; omitted if it is the default.
    #[serde(default, skip_serializing_if = "Writes::is_default")]
    pub writes: Writes,
    /// Keys of `poll`; empty elsewhere.
    #[serde(flatten)]
    pub poll: PollKeys,
    /// In `deliver`: time from the beginning of the measured window in which subscribers read
    /// nothing from their sockets, like a program that hangs; `None` is not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall: Option<Nanos>,
    /// In `batch`: messages in one exchange; the last one of a total holds the remainder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<u32>,
    /// Pause after each completed message in closed loops.
    pub think: Nanos,
    /// Division of the total among clients.
    pub split: Split,
    /// Source of the bodies.
    pub body: BodySource,
    /// Size of every body; `None` takes the size of the content and its mark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
    /// Tmax: a message delivered later than this after its due time is late.
    pub timeout: Nanos,
}

impl Load {
    /// A closed loop of this pattern with this many connections, one message in flight on each,
    /// without an end, subscribers or a warm-up; bodies are filler and late after 5 s. Set other
    /// fields on top: `Load { messages: Some(100), ..Load::closed(Pattern::Request, 1) }`.
    pub fn closed(pattern: Pattern, connections: u32) -> Load {
        Load {
            pattern,
            connections,
            subscribers: 0,
            topology: Topology::FanIn,
            messages: None,
            duration: None,
            warmup: Nanos(0),
            arrival: Arrival::Closed,
            rate: None,
            window: None,
            join: None,
            writes: Writes::default(),
            poll: PollKeys::default(),
            stall: None,
            batch: None,
            think: Nanos(0),
            split: Split::default(),
            body: BodySource::Filler,
            size: None,
            timeout: TIMEOUT,
        }
    }

    /// An open loop of this pattern, whose messages are due at this rate whatever happened to
    /// earlier ones.
    pub fn open(pattern: Pattern, connections: u32, rate: Rate) -> Load {
        let (arrival, rate) = (Arrival::Constant, Some(rate));
        Load { arrival, rate, ..Load::closed(pattern, connections) }
    }

    /// True if subscribers observe arrivals, see [`Pattern::delivers_to`].
    pub fn delivers(&self) -> bool {
        self.pattern.delivers_to(self.subscribers.into())
    }

    /// Subscribers that should get one message: the factor from messages to pairs.
    pub fn copies(&self) -> u64 {
        match self.topology {
            _ if !self.delivers() => 1,
            Topology::Pairs | Topology::Shared => 1,
            _ => u64::from(self.subscribers),
        }
    }

    /// Returns the time at which the client of this index joins, from the start of the load.
    pub fn turn(&self, client: u32) -> Nanos {
        self.join.map_or(Nanos(0), |join| join.turn(client))
    }

    /// True if each client has its own subscriber: then that one is connected first.
    pub fn brings_subscribers(&self) -> bool {
        self.join.is_some() && self.delivers() && self.topology == Topology::Pairs
    }

    /// Messages due per second from all clients together; `None` without a rate.
    pub fn offered_per_s(&self) -> Option<f64> {
        let rate = self.rate?;
        let clients = if rate.per_client { f64::from(self.connections) } else { 1.0 };
        Some(rate.per_second * clients)
    }

    /// Messages that client `index` sends at the beginning of each second, if the arrival is
    /// [`Arrival::EachSecond`].
    pub fn share_of_second(&self, index: u32) -> Option<u64> {
        let rate = self.rate.filter(|_| self.arrival == Arrival::EachSecond)?;
        let whole = rate.per_second as u64;
        Some(match rate.per_client {
            true => whole,
            false => Split::Exact.share(whole, self.connections, index),
        })
    }

    /// Returns the way in which consumers poll; `None` if they do not.
    pub fn polling(&self) -> Option<Polling> {
        (self.pattern == Pattern::Poll).then(|| Polling {
            period: self.poll.period.unwrap_or(Nanos(0)),
            wait: self.poll.wait.unwrap_or(Nanos(0)),
            limit: self.poll.limit.unwrap_or(u32::MAX),
        })
    }

    /// Messages of one exchange; 1 if each has its own.
    pub fn batch_size(&self) -> u32 {
        match self.pattern {
            Pattern::Batch => self.batch.unwrap_or(1).max(1),
            _ => 1,
        }
    }

    /// The window in force when the protocol allows `room` messages in flight.
    pub fn window_within(&self, room: u32) -> u32 {
        let asked = match (self.window, self.arrival.is_open()) {
            (Some(window), _) => window,
            (None, true) => u32::MAX,
            (None, false) => 1,
        };
        asked.min(room)
    }
}

/// Default Tmax: a message later than this is late.
pub const TIMEOUT: Nanos = Nanos::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::parse_rate;

    #[test]
    fn a_transfer_delivers_where_somebody_hears_it() {
        let delivering = |subscribers| {
            Pattern::ALL.into_iter().filter(move |pattern| pattern.delivers_to(subscribers))
        };
        let always = [Pattern::Deliver, Pattern::Poll];
        assert_eq!(delivering(0).collect::<Vec<_>>(), always);
        let all = [Pattern::Deliver, Pattern::Poll, Pattern::Transfer];
        assert_eq!(delivering(1).collect::<Vec<_>>(), all);
    }

    /// 7 a second over 3 clients: 3, 2 and 2; or 7 of each.
    #[test]
    fn a_rate_of_each_second_is_shared_as_whole_messages() {
        let load = |rate: &str, arrival: &str| {
            let open = Load::open(Pattern::Request, 3, parse_rate(rate).unwrap());
            Load { arrival: arrival.parse().unwrap(), ..open }
        };
        let shares = |load: Load| (0..3).map(|i| load.share_of_second(i)).collect::<Vec<_>>();
        assert_eq!(shares(load("7/s", "each-second")), [Some(3), Some(2), Some(2)]);
        assert_eq!(shares(load("7/s/client", "each-second")), [Some(7); 3]);
        assert_eq!(shares(load("7/s", "constant")), [None; 3]);
    }

    /// The keys of polls are keys of the load, at their place, and unknown keys are rejected.
    #[test]
    fn a_poll_is_written_as_keys_of_the_load() {
        let poll = PollKeys { period: Some(Nanos::from_secs(2)), wait: None, limit: Some(10) };
        let load = Load { poll, ..Load::closed(Pattern::Poll, 1) };
        let text = serde_json::to_string(&load).unwrap();
        let keys = "\"poll_period\":\"2s\",\"poll_limit\":10,\"think\"";
        assert!(text.contains(keys), "{text}");
        assert_eq!(serde_json::from_str::<Load>(&text).unwrap(), load);
        let wrong = serde_json::from_str::<Load>(&text.replace("poll_limit", "poll_most"));
        assert!(wrong.unwrap_err().to_string().contains("unknown field `poll_most`"));
        let closed = serde_json::to_string(&Load::closed(Pattern::Request, 1)).unwrap();
        assert!(!closed.contains("poll"), "{closed}");
    }

    #[test]
    fn exact_shares_add_up_and_ceil_shares_are_equal() {
        let exact: Vec<u64> = (0..7).map(|i| Split::Exact.share(100, 7, i)).collect();
        assert_eq!(exact, [15, 15, 14, 14, 14, 14, 14]);
        assert_eq!(exact.iter().sum::<u64>(), Split::Exact.total(100, 7));
        assert_eq!(Split::Ceil.share(100, 7, 6), 15);
        assert_eq!(Split::Ceil.total(100, 7), 105);
    }
}
