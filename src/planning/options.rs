//! The flags that describe a load, and the load they describe.

use clap::Args;
use weigh_model::body::BodySource;
use weigh_model::protocol::Invalid;
use weigh_model::units::{Bytes, parse_duration, parse_rate, parse_size};
use weigh_model::{Arrival, Load, Nanos, Pattern, Rate, Split, Topology};
use weigh_plan::{Contradiction, LoadWords};

use crate::exit::Stop;

/// The flags that describe a load. Letters are those of autocannon, wrk, oha and emqtt-bench.
#[derive(Args, Clone, Debug)]
pub struct LoadOptions {
    /// Connections that produce messages [default: 2]
    #[arg(short = 'c', long, value_name = "N")]
    connections: Option<u32>,
    /// Publishers: the same as --connections
    #[arg(short = 'x', long, value_name = "N", conflicts_with = "connections")]
    publishers: Option<u32>,
    /// Subscribers of the pattern deliver [default: 1]
    #[arg(short = 'y', long, value_name = "N")]
    subscribers: Option<u32>,
    /// Messages in total
    #[arg(short = 'n', short_alias = 'a', long, value_name = "N", conflicts_with = "duration")]
    messages: Option<u64>,
    /// How long to measure, such as 10s or 2m [default: 2s]
    #[arg(short = 'd', short_alias = 'z', long, value_name = "TIME", value_parser = parse_duration)]
    duration: Option<Nanos>,
    /// Messages per second of all clients (1000/s, 5k/s, 50/1s) or of each (1/s/client)
    #[arg(short = 'R', long, value_name = "RATE", value_parser = parse_rate)]
    rate: Option<Rate>,
    /// Size of every body, such as 64B, 1KiB (1,024 bytes) or 1KB (1,000)
    #[arg(short = 's', long, value_name = "SIZE", value_parser = parse_size)]
    size: Option<u64>,
    /// Body: readings, filler, text:TEXT, template:TEXT ({seq} {client} {time}), lines:FILE
    /// (CSV or JSON lines), file:FILE [default: readings; filler with --size]
    #[arg(long, value_name = "BODY")]
    body: Option<BodySource>,
    /// request, publish, deliver, session or hold [default: what the protocol is for]
    #[arg(long, value_name = "PATTERN")]
    pub pattern: Option<Pattern>,
    /// Who hears whom in deliver: fan-in, fan-out, pairs or shared [default: fan-in; fan-out with
    /// one publisher and several subscribers; pairs where both are equally many and more than one]
    #[arg(long, value_name = "TOPOLOGY")]
    topology: Option<Topology>,
    /// When messages are due: closed, burst, constant, poisson, periodic, ramp:10s,
    /// steps:100/s@5s,200/s@5s or trace:FILE [default: closed; constant with --rate]
    #[arg(long, value_name = "ARRIVAL")]
    arrival: Option<Arrival>,
    /// Most messages in flight per connection [default: 1 in closed loops, else no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    window: Option<u32>,
    /// Pause after each answer in closed loops
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    think: Option<Nanos>,
    /// The same load before the measurement, left out of every figure [default: 500ms]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    warmup: Option<Nanos>,
    /// How a total is split over clients: exact, or ceil (rounded up per client)
    #[arg(long, value_name = "SPLIT", default_value = "exact")]
    split: Split,
    /// A message delivered later than this after its due time is late
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_duration)]
    timeout: Nanos,
}

impl LoadOptions {
    /// The load for a lane of a protocol whose patterns are `patterns`, the first its default.
    pub fn load(&self, protocol: &str, patterns: &[Pattern]) -> Result<Load, Stop> {
        let delivers = self.pattern.unwrap_or(patterns[0]) == Pattern::Deliver;
        let words = LoadWords {
            pattern: self.pattern,
            connections: self.publishers.or(self.connections),
            subscribers: self.subscribers,
            // Beside lanes that deliver there may be others, which it does not concern.
            topology: self.topology.filter(|_| delivers),
            messages: self.messages,
            duration: self.duration,
            warmup: self.warmup,
            arrival: self.arrival.clone(),
            rate: self.rate,
            window: self.window,
            think: self.think,
            split: Some(self.split),
            body: self.body.clone(),
            size: self.size.map(Bytes),
            timeout: Some(self.timeout),
        };
        words.decide(protocol, patterns).map_err(|wrong| Stop::usage(in_flags(&wrong[0])))
    }

    /// Says no to a topology that none of these loads heeds.
    pub fn check_topology<'l>(&self, loads: impl Iterator<Item = &'l Load>) -> Result<(), Stop> {
        let mut loads = loads;
        if self.topology.is_some() && !loads.any(|load| load.pattern == Pattern::Deliver) {
            return Err(Stop::usage(in_flags(&Contradiction::TopologyUnheard)));
        }
        Ok(())
    }
}

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
const FLAGS: [(&str, &str); 9] = [
    ("load.pattern", "--pattern"),
    ("load.connections", "-c"),
    ("load.subscribers", "-y"),
    ("load.topology", "--topology"),
    ("load.arrival", "--arrival"),
    ("load.size", "-s"),
    ("load.body", "--body"),
    ("load.window", "--window"),
    ("mqtt.overload", "--overload"),
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
                 --arrival constant, poisson or periodic"
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
            "-y: only the pattern deliver has subscribers: type --pattern deliver"
        }
        Contradiction::TopologyUnheard => {
            "--topology: only in the pattern deliver does anybody hear: type --pattern deliver"
        }
        Contradiction::NoSubscribers => {
            "-y 0: deliver needs a subscriber; type --pattern publish for none"
        }
        Contradiction::PairsUnequal => {
            "--topology pairs needs as many subscribers as publishers: make -x and -y equal"
        }
        Contradiction::BurstWithoutTotal => "--arrival burst needs a total: type -n 10000",
        Contradiction::NoDuration => "-d 0s: there must be some time to measure in",
        Contradiction::NoTimeout => "--timeout 0s: every message would be late; type --timeout 5s",
    };
    text.to_owned()
}
