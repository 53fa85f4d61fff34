//! The flags of a situation.

use std::path::Path;

use clap::{ArgAction, Args};
use weigh_advice::questions;
use weigh_advice::situation::{Device, ShareWord, Situation, TlsWish};
use weigh_model::battery::Battery;
use weigh_model::units::{Bytes, parse_duration, parse_size};
use weigh_model::{Durability, Guarantee, Nanos};
use weigh_runner::exit::Stop;
use weigh_runner::input_file::{self, TEXT_BYTES_MAX};

use crate::planning::counts::counts;

/// Flags about who sends what.
#[derive(Args, Clone, Debug)]
pub struct SituationFlags {
    /// Number of devices
    #[arg(long, value_name = "N", value_parser = counts(0..=u64::MAX))]
    devices: Option<u64>,
    /// Time between two messages of a device, such as 1m
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    every: Option<Nanos>,
    /// Size of a message, such as 125B
    #[arg(long, short = 's', value_name = "SIZE", value_parser = parse_size)]
    size: Option<u64>,
    /// Subscribers that get each message [default: 0, only the server gets it]
    #[arg(long, value_name = "N", value_parser = counts(0..=u64::MAX))]
    subscribers: Option<u64>,
    /// Network between devices and server: 3g, gigabit, internet, loopback, lte, lte-m, nb-iot,
    /// satellite, wifi, a .toml file, or numbers such as delay=30ms,loss=5%
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    /// Only with TLS, only without, or both: on, off, either
    #[arg(long, value_name = "WISH", value_parser = tls_wish)]
    tls: Option<TlsWish>,
    /// Silence after which the network forgets a connection [default: 5m]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    idle_limit: Option<Nanos>,
    /// A kept connection breaks and is opened again once in this time [default: never]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    reconnect: Option<Nanos>,
    /// The device sleeps between messages, and cannot keep a connection alive meanwhile
    #[arg(long, action = ArgAction::SetTrue)]
    sleeps: bool,
    #[command(flatten)]
    needs: NeedFlags,
    #[command(flatten)]
    machine: MachineFlags,
}

/// Flags about what must hold.
#[derive(Args, Clone, Debug)]
struct NeedFlags {
    /// Needed guarantee: at-most-once, at-least-once or exactly-once [default: at-least-once]
    #[arg(long, value_name = "WORD", value_parser = guarantee)]
    guarantee: Option<Guarantee>,
    /// Share of messages that may be lost; 0% demands a confirmation of each
    #[arg(long, value_name = "SHARE")]
    loss: Option<ShareWord>,
    /// What a confirmed message must survive: memory, page-cache, fsync
    #[arg(long, value_name = "WORD")]
    durability: Option<Durability>,
    /// Longest time to a confirmation at the 99th percentile
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    latency: Option<Nanos>,
    /// An ability that weigh probe must have found, such as retain; may be repeated
    #[arg(long, value_name = "ABILITY")]
    need: Vec<String>,
    /// What matters, the most important first: server-cpu, memory, bytes, energy, latency
    #[arg(long, value_name = "LIST", value_parser = parse_matters)]
    matters: Option<Matters>,
}

/// Flags about device and server.
#[derive(Args, Clone, Debug)]
struct MachineFlags {
    /// Device for modelled energy: nrf9160, pi-zero and others
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// Its radio: nb-iot, lte, wifi and others
    #[arg(long, value_name = "NAME")]
    radio: Option<String>,
    /// Its battery, such as 3000mAh@3.7V
    #[arg(long, value_name = "CHARGE@VOLTAGE")]
    battery: Option<Battery>,
    /// How long a charge must last, such as 2years
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    lifetime: Option<Nanos>,
    /// Cores of the server [default: 1]
    #[arg(long, value_name = "N")]
    cores: Option<f64>,
    /// Memory of the server [default: 2GiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    memory: Option<u64>,
    /// Share of cores and memory that may be used [default: 75%]
    #[arg(long, value_name = "SHARE")]
    headroom: Option<ShareWord>,
}

/// A list of criteria as one value.
#[derive(Clone, Debug)]
struct Matters(Vec<weigh_advice::Criterion>);

impl SituationFlags {
    /// True if one of the flags that have no default was given.
    pub fn says_traffic(&self) -> bool {
        self.devices.is_some() || self.every.is_some() || self.size.is_some()
    }

    /// The situation of a file, or the usual one, with these flags on top; `options` are protocols
    /// and targets.
    ///
    /// # Errors
    /// A file that cannot be read, and wishes that contradict each other.
    pub fn situation(&self, file: Option<&Path>, options: &[String]) -> Result<Situation, Stop> {
        let mut situation = match file {
            Some(file) => read(file)?,
            None => usual(),
        };
        self.put(&mut situation);
        if !options.is_empty() {
            situation.options = options.to_vec();
        }
        situation.check().map_err(Stop::usage)?;
        Ok(situation)
    }

    /// Puts what was given into a situation.
    fn put(&self, situation: &mut Situation) {
        let traffic = &mut situation.traffic;
        traffic.devices = self.devices.unwrap_or(traffic.devices);
        traffic.every = self.every.unwrap_or(traffic.every);
        traffic.size = self.size.map_or(traffic.size, Bytes);
        traffic.subscribers = self.subscribers.unwrap_or(traffic.subscribers);
        let network = &mut situation.network;
        network.path = self.path.clone().or(network.path.take());
        network.tls = self.tls.unwrap_or(network.tls);
        network.idle_limit = self.idle_limit.unwrap_or(network.idle_limit);
        network.reconnect = self.reconnect.or(network.reconnect);
        network.sleeps |= self.sleeps;
        let NeedFlags { guarantee, loss, durability, latency, need, matters } = &self.needs;
        let needs = &mut situation.needs;
        needs.guarantee = guarantee.unwrap_or(needs.guarantee);
        needs.loss = loss.or(needs.loss);
        needs.durability = durability.or(needs.durability);
        needs.latency = latency.or(needs.latency);
        needs.abilities.extend(need.iter().cloned());
        if let Some(Matters(list)) = matters {
            situation.matters.clone_from(list);
        }
        let MachineFlags { device, radio, battery, lifetime, cores, memory, headroom } =
            &self.machine;
        if device.is_some() || radio.is_some() || battery.is_some() || lifetime.is_some() {
            let known = situation.device.take();
            let text = |given: &Option<String>, known: Option<String>| {
                given.clone().or(known).unwrap_or_default()
            };
            situation.device = Some(Device {
                model: text(device, known.as_ref().map(|own| own.model.clone())),
                radio: text(radio, known.as_ref().map(|own| own.radio.clone())),
                battery: battery.or(known.as_ref().and_then(|own| own.battery)),
                lifetime: lifetime.or(known.as_ref().and_then(|own| own.lifetime)),
            });
        }
        let server = &mut situation.server;
        server.cores = cores.unwrap_or(server.cores);
        server.memory = memory.map_or(server.memory, Bytes);
        server.headroom = headroom.unwrap_or(server.headroom);
    }
}

/// A hundred devices with 125 B a minute: the start of the interview.
pub fn usual() -> Situation {
    Situation::new(100, Nanos::from_secs(60), Bytes(125))
}

fn read(file: &Path) -> Result<Situation, Stop> {
    let name = file.display().to_string();
    let text = input_file::text(file, TEXT_BYTES_MAX).map_err(|error| {
        Stop::usage(format!(
            "{name}: cannot be read: {error}\nhelp: check the path, or make a file with --save"
        ))
    })?;
    Situation::read(&name, &text).map_err(Stop::usage)
}

fn tls_wish(text: &str) -> Result<TlsWish, String> {
    match text {
        "on" => Ok(TlsWish::On),
        "off" => Ok(TlsWish::Off),
        "either" | "both" => Ok(TlsWish::Either),
        _ => Err(format!("{text:?}: type on, off or either")),
    }
}

fn guarantee(text: &str) -> Result<Guarantee, String> {
    match text.replace(' ', "-").as_str() {
        "at-most-once" => Ok(Guarantee::AtMostOnce),
        "at-least-once" => Ok(Guarantee::AtLeastOnce),
        "exactly-once" => Ok(Guarantee::ExactlyOnce),
        _ => Err(format!("{text:?}: type at-most-once, at-least-once or exactly-once")),
    }
}

fn parse_matters(text: &str) -> Result<Matters, String> {
    questions::matters(text).map(Matters)
}
