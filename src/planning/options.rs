//! The flags that describe a load, and the load they describe.

use clap::Args;
use weigh_model::body::BodySource;
use weigh_model::protocol::Invalid;
use weigh_model::seal::RECIPIENTS_MAX;
use weigh_model::units::{Bytes, parse_duration, parse_rate, parse_size, parse_whole};
use weigh_model::{Arrival, Load, Nanos, Pattern, Rate, Split, Topology, Writes};
use weigh_plan::{Contradiction, LoadWords};

use crate::planning::counts::counts;
use weigh_runner::exit::Stop;

/// The flags that describe a load. Letters are those of autocannon, wrk, oha and emqtt-bench.
#[derive(Args, Clone, Debug)]
pub struct LoadOptions {
    /// Connections that produce messages [default: 2; 1 in transfer]
    #[arg(short = 'c', long, value_name = "N", value_parser = counts(0..=u32::MAX))]
    pub connections: Option<u32>,
    /// Publishers: the same as --connections
    #[arg(short = 'x', long, value_name = "N", conflicts_with = "connections",
        value_parser = counts(0..=u32::MAX))]
    pub publishers: Option<u32>,
    /// Subscribers of the patterns deliver and transfer, consumers that ask in poll [default: 1;
    /// none in a transfer over a protocol that is not for delivering]
    #[arg(short = 'y', long, value_name = "N", value_parser = counts(0..=u32::MAX))]
    pub subscribers: Option<u32>,
    /// Messages in total, such as 10000, 10k or 1e4
    #[arg(short = 'n', short_alias = 'a', long, value_name = "N", conflicts_with = "duration",
        value_parser = parse_whole)]
    pub messages: Option<u64>,
    /// How long to measure, such as 10s or 2m [default: 2s]
    #[arg(short = 'd', short_alias = 'z', long, value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Nanos>,
    /// Messages per second of all clients (1000/s, 5k/s, 50/1s) or of each (1/s/client)
    #[arg(short = 'R', long, value_name = "RATE", value_parser = parse_rate)]
    pub rate: Option<Rate>,
    /// Size of every body, such as 64B, 1KiB (1,024 bytes) or 1KB (1,000)
    #[arg(short = 's', long, value_name = "SIZE", value_parser = parse_size)]
    pub size: Option<u64>,
    /// Body: readings, filler, text:TEXT, template:TEXT ({seq} {client} {time}), lines:FILE
    /// (CSV or JSON lines), file:FILE, or any of these sealed: sealed:BODY, with
    /// sealed,recipients=N,cipher=NAME,unsigned,policy:BODY [default: readings; filler with --size]
    #[arg(long, value_name = "BODY")]
    body: Option<BodySource>,
    /// Seals every body for so many participants; 0 leaves it in the clear
    #[arg(long, value_name = "N",
        value_parser = counts(0..=RECIPIENTS_MAX))]
    seal_to: Option<u32>,
    /// request, publish, deliver, poll, batch, session, transfer or hold [default: what the
    /// protocol is for]
    #[arg(long, value_name = "PATTERN")]
    pub pattern: Option<Pattern>,
    /// Who hears whom in deliver, poll and transfer: fan-in, fan-out, pairs or shared [default:
    /// fan-in; fan-out with one publisher and several subscribers, and in poll; pairs where both
    /// are equally many and more than one]
    #[arg(long, value_name = "TOPOLOGY")]
    topology: Option<Topology>,
    /// When messages are due: closed, burst, constant, poisson, periodic, each-second, ramp:10s,
    /// steps:100/s@5s,200/s@5s or trace:FILE [default: closed; constant with --rate]
    #[arg(long, value_name = "ARRIVAL")]
    pub arrival: Option<Arrival>,
    /// Most messages in flight per connection, in batch exchanges [default: 1 in closed loops and
    /// in transfer, else no limit]
    #[arg(long, value_name = "N", value_parser = counts(1..=u32::MAX))]
    window: Option<u32>,
    /// Every message in a write of its own, even where several are due together
    #[arg(long)]
    single_writes: bool,
    /// In poll, from one request of a consumer to its next; in a long poll from the answer to the
    /// next request [default: 1s; none in a long poll]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    period: Option<Nanos>,
    /// In poll, how long the server holds a request to which it has nothing new: a long poll
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    wait: Option<Nanos>,
    /// In poll, messages in one answer at most; a full one is followed by the next request at once
    /// [default: 1000]
    #[arg(long, value_name = "N", value_parser = counts(1..=10_000))]
    poll_limit: Option<u32>,
    /// In batch, messages in one exchange [default: 100]
    #[arg(long, value_name = "N", value_parser = counts(1..=100_000))]
    batch: Option<u32>,
    /// Pause after each answer in closed loops
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    think: Option<Nanos>,
    /// The same load before the measurement, left out of every figure [default: 500ms; none in
    /// transfer]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    warmup: Option<Nanos>,
    /// How a total is split over clients: exact, or ceil (rounded up per client)
    #[arg(long, value_name = "SPLIT", default_value = "exact")]
    split: Split,
    /// Count a message as late when it is delivered later than this after its due time [default:
    /// 5s; 60s in transfer; more on slow paths: 10 x the round trips of a message]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub timeout: Option<Nanos>,
    /// How long subscribers read nothing, where a command asks for that.
    #[arg(skip)]
    stall: Option<Nanos>,
}

impl LoadOptions {
    /// The load for a lane of a protocol whose patterns are `patterns`, the first its default.
    pub fn load(&self, protocol: &str, patterns: &[Pattern]) -> Result<Load, Stop> {
        let pattern = self.pattern.unwrap_or(patterns[0]);
        let may_deliver = patterns.contains(&Pattern::Deliver);
        let delivers = match pattern {
            Pattern::Transfer => may_deliver,
            pattern => pattern.delivers_to(1),
        };
        let words = LoadWords {
            pattern: self.pattern,
            connections: self.publishers.or(self.connections),
            subscribers: self.subscribers.filter(|_| delivers || pattern != Pattern::Transfer),
            // Beside lanes that deliver there may be others, which it does not concern.
            topology: self.topology.filter(|_| delivers),
            messages: self.messages,
            duration: self.duration,
            warmup: self.warmup,
            arrival: self.arrival.clone(),
            rate: self.rate,
            window: self.window,
            writes: self.single_writes.then_some(Writes::Single),
            poll_period: self.period,
            poll_wait: self.wait,
            poll_limit: self.poll_limit,
            stall: self.stall,
            batch: self.batch,
            think: self.think,
            split: Some(self.split),
            body: self.body.clone(),
            recipients: self.seal_to,
            size: self.size.map(Bytes),
            timeout: self.timeout,
            ..LoadWords::default()
        };
        words.decide(protocol, patterns).map_err(|wrong| Stop::usage(in_flags(&wrong[0])))
    }

    /// The same load with subscribers that read nothing for `lasts`, by default for as long as
    /// messages are sent. What was not said is such that a queue overflows that has a limit: one
    /// publisher with many messages of 1 kB in flight.
    pub fn stalled(&self, lasts: Option<Nanos>) -> LoadOptions {
        let mut load = self.clone();
        load.pattern.get_or_insert(Pattern::Deliver);
        if load.connections.is_none() {
            load.publishers.get_or_insert(1);
        }
        if load.body.is_none() {
            load.size.get_or_insert(STALLED_BYTES);
        }
        if load.rate.is_none() && load.arrival.is_none() {
            load.window.get_or_insert(STALLED_WINDOW);
        }
        let may_last = load.messages.is_none() && load.arrival.as_ref().is_none_or(has_no_end);
        if may_last {
            load.duration.get_or_insert(STALLED);
        }
        load.stall = lasts.or(load.duration).or(Some(STALLED));
        load
    }

    /// True if the timeout was given, and so stands however slow the path is.
    pub fn has_timeout(&self) -> bool {
        self.timeout.is_some()
    }

    /// True if it is said what is sent.
    pub fn says_body(&self) -> bool {
        self.body.is_some() || self.size.is_some() || self.seal_to.is_some()
    }

    /// Who hears whom, where that was said.
    pub fn topology(&self) -> Option<Topology> {
        self.topology
    }

    /// Says no to a topology and to subscribers that none of these loads heeds.
    pub fn check_topology<'l>(&self, loads: impl Iterator<Item = &'l Load>) -> Result<(), Stop> {
        let mut loads = loads;
        let unheard = match (self.topology, self.subscribers) {
            (Some(_), _) => Contradiction::TopologyUnheard,
            (None, Some(1..)) => Contradiction::SubscribersUnheard,
            _ => return Ok(()),
        };
        if loads.any(Load::delivers) {
            return Ok(());
        }
        Err(Stop::usage(in_flags(&unheard)))
    }
}

/// False for arrivals that say themselves when they are over.
fn has_no_end(arrival: &Arrival) -> bool {
    !matches!(arrival, Arrival::Steps(_) | Arrival::Trace(_) | Arrival::Burst)
}

/// How long a load with stalled subscribers lasts if nothing is said of it: in less a broker in
/// Java that has just been started takes too few messages to fill a queue.
const STALLED: Nanos = Nanos::from_secs(10);

/// Its bodies: those of the comparison of brokers in docs/guide/targets.md.
const STALLED_BYTES: u64 = 1000;

/// Its messages in flight: as many as Mosquitto takes by default (mosquitto.conf(5),
/// `max_inflight_messages`).
const STALLED_WINDOW: u32 = 20;

/// An error about a plan key, told by the flag that says the same.
pub fn with_flag(invalid: Invalid) -> Invalid {
    let Some((_, flag)) = FLAGS.iter().find(|(key, _)| *key == invalid.place) else {
        return invalid;
    };
    let mend = match invalid.mend.strip_prefix("give ") {
        Some(rest) => format!("type {flag} {rest}"),
        None => invalid.mend,
    };
    Invalid { place: (*flag).to_owned(), problem: invalid.problem, mend }
}

/// Plan keys and the flags that set them.
const FLAGS: &[(&str, &str)] = &[
    ("target.relay", "--relay"),
    ("target.cores", "--target-cores"),
    ("target.memory", "--target-memory"),
    ("target.abilities", "--abilities"),
    ("path", "--path"),
    ("load.pattern", "--pattern"),
    ("load.connections", "-c"),
    ("load.subscribers", "-y"),
    ("load.topology", "--topology"),
    ("load.arrival", "--arrival"),
    ("load.size", "-s"),
    ("load.body", "--body"),
    ("load.body.recipients", "--seal-to"),
    ("load.window", "--window"),
    ("load.poll_period", "--period"),
    ("load.batch", "--batch"),
    ("load.stall", "--stalled-subscriber"),
    ("mqtt.overload", "--overload"),
    ("energy.device", "--device"),
    ("energy.radio", "--radio"),
];

/// What contradicts itself, in the words of the command line.
fn in_flags(contradiction: &Contradiction) -> String {
    let text = match contradiction {
        Contradiction::NoSuchPattern { protocol, pattern, known } => {
            let known: Vec<&str> = known.iter().map(|pattern| pattern.name()).collect();
            let known = known.join(", ");
            return format!("--pattern: {protocol} has no {pattern}; type one of {known}");
        }
        Contradiction::RateUnused(arrival) => {
            return format!(
                "-R and --arrival {arrival} contradict each other: leave -R out, or type \
                 --arrival constant, poisson, periodic or each-second"
            );
        }
        Contradiction::RateMissing(arrival) => {
            return format!(
                "--arrival {arrival} needs a rate: type -R 1000/s, or -R 1/s/client for each"
            );
        }
        Contradiction::ThinkInOpenLoop(arrival) => {
            return format!(
                "--think is the pause of a closed loop, and --arrival {arrival} is open: leave \
                 one of them out"
            );
        }
        Contradiction::WarmupUnused(Arrival::Burst) => {
            "--warmup: a burst has no warm-up; leave it out"
        }
        Contradiction::WarmupUnused(_) => "--warmup: a trace has no warm-up; leave it out",
        Contradiction::HoldSends => {
            "--pattern hold sends no messages: leave -n and -R out and give -d"
        }
        Contradiction::NoConnections => "-c 0: there must be at least 1 connection",
        Contradiction::NoMessages => "-n 0: there must be at least 1 message",
        Contradiction::TwoEnds => "-n and -d: a load ends after one of them; leave the other out",
        Contradiction::SubscribersUnheard => {
            "-y: only deliver and poll have subscribers, and transfer where the protocol can \
             deliver: type --pattern deliver or poll"
        }
        Contradiction::TopologyUnheard => {
            "--topology: only where there are subscribers does anybody hear: type --pattern \
             deliver or poll"
        }
        Contradiction::NoSubscribers(pattern) => {
            return format!("-y 0: {pattern} needs a subscriber; type --pattern publish for none");
        }
        Contradiction::NoObject => "-s 0B: a transfer of nothing: type at least -s 1B",
        Contradiction::PairsUnequal => {
            "--topology pairs needs as many subscribers as publishers: make -x and -y equal"
        }
        Contradiction::BurstWithoutTotal => "--arrival burst needs a total: type -n 10000",
        Contradiction::NoDuration => "-d 0s: there must be some time to measure in",
        Contradiction::NoTimeout => "--timeout 0s: every message would be late; type --timeout 5s",
        Contradiction::TwoBodies | Contradiction::NothingSealed => {
            "--body: how a body is sealed stands in it; type --body sealed,recipients=2:readings"
        }
        Contradiction::SealedPieces => {
            "--body sealed: a transfer is made piece by piece, and a sealed object whole; \
             type --pattern deliver, or make a file with weigh seal and send that"
        }
        other => of_exchanges(other),
    };
    text.to_owned()
}

/// The same of consumers that ask and messages that leave together.
fn of_exchanges(contradiction: &Contradiction) -> &'static str {
    match contradiction {
        Contradiction::NothingGathers => {
            "--batch: only in batch do several messages go in one exchange: type --pattern batch"
        }
        Contradiction::PeriodTooShort => {
            "--period: consumers would do nothing but ask: type at least --period 1ms, or --wait \
             30s for a long poll"
        }
        Contradiction::NobodyStalls => {
            "--stalled-subscriber: only in deliver are there subscribers that could stop reading: \
             type --pattern deliver, or leave it out"
        }
        Contradiction::WaitTooLong => "--wait: type at most --wait 5m",
        Contradiction::RateTooHigh(Arrival::Steps(_)) => {
            "--arrival steps: no network carries so many messages a second: type at most 100M/s"
        }
        Contradiction::RateTooHigh(_) => {
            "-R: no network carries so many messages a second: type at most -R 100M/s, of all \
             clients together"
        }
        Contradiction::WindowTooLarge => {
            "--window: more than 16,777,216 messages would be in flight at once: make --window \
             times -c smaller"
        }
        Contradiction::ShareBroken => {
            "-R: in each second every client sends a whole number of messages: type a whole number \
             such as -R 100/s, at least as large as -c"
        }
        // No flag makes clients come group by group.
        Contradiction::JoinsTwice
        | Contradiction::JoinsWithoutTotal
        | Contradiction::JoinsTooLate(_) => "load.join: write it in a plan (weigh run)",
        _ => "--period, --wait and --poll-limit are of consumers that ask: type --pattern poll",
    }
}
