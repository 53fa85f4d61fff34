//! The flags that describe a load, and the load they describe.

use clap::Args;
use weigh_model::body::BodySource;
use weigh_model::units::{Bytes, parse_duration, parse_rate, parse_size};
use weigh_model::{Arrival, Load, Nanos, Pattern, Rate, Split, Topology};

use crate::exit::Stop;

/// The flags that describe a load. Letters are those of autocannon, wrk, oha and emqtt-bench.
#[derive(Args, Clone, Debug)]
pub struct LoadOptions {
    /// Connections that produce messages [default: 8]
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
        let pattern = self.pattern.unwrap_or(patterns[0]);
        if !patterns.contains(&pattern) {
            let known: Vec<&str> = patterns.iter().map(|pattern| pattern.name()).collect();
            return Err(Stop::usage(format!(
                "--pattern: {protocol} has no {pattern}; type one of {}",
                known.join(", ")
            )));
        }
        let connections = self.publishers.or(self.connections).unwrap_or(CONNECTIONS);
        let subscribers = match pattern {
            Pattern::Deliver => self.subscribers.unwrap_or(1),
            _ => 0,
        };
        let arrival = self.arrival(pattern)?;
        let has_end =
            self.messages.is_some() || matches!(arrival, Arrival::Steps(_) | Arrival::Trace(_));
        let load = Load {
            pattern,
            connections,
            subscribers,
            topology: self.topology(connections, subscribers),
            messages: self.messages,
            duration: if has_end { self.duration } else { Some(self.duration.unwrap_or(DURATION)) },
            warmup: self.warmup(pattern, &arrival),
            arrival,
            rate: self.rate,
            window: self.window,
            think: self.think.unwrap_or(Nanos(0)),
            split: self.split,
            body: self.body(),
            size: self.size.map(Bytes),
            timeout: self.timeout,
        };
        self.check(&load)?;
        Ok(load)
    }

    fn arrival(&self, pattern: Pattern) -> Result<Arrival, Stop> {
        let arrival = match (&self.arrival, self.rate) {
            (Some(arrival), _) => arrival.clone(),
            (None, Some(_)) => Arrival::Constant,
            (None, None) => Arrival::Closed,
        };
        if self.rate.is_some() && !arrival.needs_rate() {
            return Err(Stop::usage(format!(
                "-R and --arrival {arrival} contradict each other: leave -R out, or type \
                 --arrival constant, poisson or periodic"
            )));
        }
        if arrival.needs_rate() && self.rate.is_none() {
            return Err(Stop::usage(format!(
                "--arrival {arrival} needs a rate: type -R 1000/s, or -R 1/s/client for each"
            )));
        }
        if self.think.is_some_and(|think| think.0 > 0) && arrival.is_open() {
            return Err(Stop::usage(format!(
                "--think is the pause of a closed loop, and --arrival {arrival} is open: leave \
                 one of them out"
            )));
        }
        if pattern == Pattern::Hold && (self.rate.is_some() || self.messages.is_some()) {
            return Err(Stop::usage(
                "--pattern hold sends no messages: leave -n and -R out and give -d",
            ));
        }
        Ok(arrival)
    }

    fn topology(&self, publishers: u32, subscribers: u32) -> Topology {
        self.topology.unwrap_or(match (publishers, subscribers) {
            (_, 0 | 1) => Topology::FanIn,
            (1, _) => Topology::FanOut,
            (x, y) if x == y => Topology::Pairs,
            _ => Topology::FanOut,
        })
    }

    fn warmup(&self, pattern: Pattern, arrival: &Arrival) -> Nanos {
        let has_none = pattern == Pattern::Hold
            || matches!(arrival, Arrival::Burst | Arrival::Trace(_) | Arrival::Ramp(_));
        self.warmup.unwrap_or(if has_none { Nanos(0) } else { WARMUP })
    }

    fn body(&self) -> BodySource {
        match (&self.body, self.size) {
            (Some(body), _) => body.clone(),
            (None, Some(_)) => BodySource::Filler,
            (None, None) => BodySource::Readings,
        }
    }

    fn check(&self, load: &Load) -> Result<(), Stop> {
        let contradiction = |text: &str| Err(Stop::usage(text));
        if load.connections == 0 {
            return contradiction("-c 0: there must be at least 1 connection");
        }
        if load.messages == Some(0) {
            return contradiction("-n 0: there must be at least 1 message");
        }
        if load.pattern != Pattern::Deliver && self.subscribers.is_some_and(|count| count > 0) {
            return contradiction(
                "-y: only the pattern deliver has subscribers: type --pattern deliver",
            );
        }
        if load.pattern == Pattern::Deliver && load.subscribers == 0 {
            return contradiction(
                "-y 0: deliver needs a subscriber; type --pattern publish for none",
            );
        }
        if load.topology == Topology::Pairs && load.connections != load.subscribers {
            return contradiction(
                "--topology pairs needs as many subscribers as publishers: make -x and -y equal",
            );
        }
        if load.arrival == Arrival::Burst && load.messages.is_none() {
            return contradiction("--arrival burst needs a total: type -n 10000");
        }
        if load.arrival == Arrival::Burst && load.warmup.0 > 0 {
            return contradiction("--warmup: a burst has no warm-up; leave it out");
        }
        if matches!(load.arrival, Arrival::Trace(_)) && load.warmup.0 > 0 {
            return contradiction("--warmup: a trace has no warm-up; leave it out");
        }
        if load.duration.is_some_and(|duration| duration.0 == 0) {
            return contradiction("-d 0s: there must be some time to measure in");
        }
        if load.timeout.0 == 0 {
            return contradiction("--timeout 0s: every message would be late; type --timeout 5s");
        }
        Ok(())
    }
}

/// Connections if none are asked for: few enough that neither side of a closed loop fills its
/// core, see `docs/decisions/0006-two-connections.md`.
pub const CONNECTIONS: u32 = 2;

/// Measured time if neither a time nor a count is asked for.
const DURATION: Nanos = Nanos::from_secs(2);

/// Warm-up if none is asked for.
const WARMUP: Nanos = Nanos::from_millis(500);
