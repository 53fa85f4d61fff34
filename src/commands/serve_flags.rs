//! Flags of the stages of the storage pipeline.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use weigh_model::Endpoint;
use weigh_model::units::parse_duration;

use super::serve_words::address;
use crate::planning::counts::counts;

/// A setting with the values on and off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// The setting is on.
    On,
    /// The setting is off.
    Off,
}

/// Batch size and waiting time of every stage.
#[derive(Args, Clone, Debug)]
pub struct GatheringFlags {
    /// Largest number of readings in one commit, or in one call to the next stage
    #[arg(
        long,
        value_name = "N",
        default_value_t = 500,
        value_parser = counts(1..=100_000_u32)
    )]
    pub batch: u32,
    /// Longest time that a reading waits for others
    #[arg(long, value_name = "TIME", default_value = "0ms", value_parser = duration)]
    pub linger: Duration,
}

/// Flags of `weigh serve store`.
#[derive(Args)]
pub struct StoreFlags {
    /// Address to listen on; port 0 takes a free port
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:0", value_parser = address)]
    pub(super) listen: SocketAddr,
    #[command(flatten)]
    pub(super) keeping: KeepingFlags,
    #[command(flatten)]
    pub(super) gathering: GatheringFlags,
    /// File to which a record of every marked message is appended
    #[arg(long, value_name = "FILE")]
    pub(super) hops: Option<PathBuf>,
    /// Take requests on standard input, and end when it ends
    #[arg(long, hide = true)]
    pub(super) control: bool,
}

/// Flags for the place of readings.
#[derive(Args, Clone, Debug)]
pub struct KeepingFlags {
    /// File of the database, made if absent; or memory
    #[arg(long, value_name = "PATH|memory", default_value = MEMORY)]
    pub database: PathBuf,
    /// Commit so that a power cut loses nothing (synchronous=FULL), or only a crash (NORMAL)
    #[arg(long, value_name = "on|off")]
    pub durable: Option<Switch>,
    /// Store each marked message once, however often it arrives
    #[arg(long)]
    pub unique: bool,
    /// Number of readings kept in memory; older ones are only counted
    #[arg(long, value_name = "N", default_value_t = KEPT_MAX,
        value_parser = counts(0..=usize::MAX))]
    pub keep: usize,
}

/// Flags of `weigh serve api`.
#[derive(Args)]
pub struct ApiFlags {
    /// Address to listen on; port 0 takes a free port
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:0", value_parser = address)]
    pub(super) listen: SocketAddr,
    /// Address of the store; or memory, to keep readings in this process
    #[arg(long, value_name = "grpc://HOST:PORT|memory", default_value = MEMORY)]
    pub(super) store: String,
    /// Number of readings kept in memory; older ones are only counted
    #[arg(long, value_name = "N", default_value_t = KEPT_MAX,
        value_parser = counts(0..=usize::MAX))]
    pub(super) keep: usize,
    #[command(flatten)]
    pub(super) gathering: GatheringFlags,
    /// File to which a record of every marked message is appended
    #[arg(long, value_name = "FILE")]
    pub(super) hops: Option<PathBuf>,
    /// Take requests on standard input, and end when it ends
    #[arg(long, hide = true)]
    pub(super) control: bool,
}

/// Flags of `weigh serve gateway`.
#[derive(Args)]
pub struct GatewayFlags {
    /// Broker; the password of USER comes from WEIGH_PASSWORD
    #[arg(long, value_name = "mqtt://[USER@]HOST:PORT", value_parser = broker)]
    pub(super) broker: Endpoint,
    /// Next stage: an api or a store
    #[arg(long, value_name = "http://HOST:PORT|grpc://HOST:PORT", value_parser = next)]
    pub(super) to: Endpoint,
    #[command(flatten)]
    pub(super) subscription: SubscriptionFlags,
    #[command(flatten)]
    pub(super) gathering: GatheringFlags,
    /// File to which a record of every marked message is appended
    #[arg(long, value_name = "FILE")]
    pub(super) hops: Option<PathBuf>,
    /// Take requests on standard input, and end when it ends
    #[arg(long, hide = true)]
    pub(super) control: bool,
}

/// Flags for the subscription at the broker.
#[derive(Args, Clone, Debug)]
pub struct SubscriptionFlags {
    /// Topic filter to subscribe to [default: #]
    #[arg(long, value_name = "FILTER")]
    pub filter: Option<String>,
    /// Highest QoS to subscribe with [default: 1]
    #[arg(
        short,
        long,
        value_name = "0|1|2",
        value_parser = clap::value_parser!(u8).range(0..=2)
    )]
    pub qos: Option<u8>,
    /// Client ID; another gateway with this ID resumes its session [default: weigh-gateway]
    #[arg(long, value_name = "NAME")]
    pub client_id: Option<String>,
}

/// Flags of `weigh serve pipeline`.
#[derive(Args)]
pub struct PipelineFlags {
    /// Stages, in the order of a message
    #[arg(long, value_name = "LIST", default_value = "gateway,api,store", value_delimiter = ',')]
    pub stages: Vec<PipelineStage>,
    /// Broker; the password of USER comes from WEIGH_PASSWORD
    #[arg(long, value_name = "mqtt://[USER@]HOST:PORT", value_parser = broker)]
    pub broker: Option<Endpoint>,
    #[command(flatten)]
    pub keeping: KeepingFlags,
    #[command(flatten)]
    pub subscription: SubscriptionFlags,
    #[command(flatten)]
    pub gathering: GatheringFlags,
    /// File to which a record of every marked message is appended
    #[arg(long, value_name = "DIR")]
    pub hops: Option<PathBuf>,
    /// Restart a process that dies
    #[arg(long, value_name = "on|off", default_value = "on")]
    pub restart: Switch,
}

/// A stage of the storage pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum PipelineStage {
    /// Forwards messages from the broker to the next stage.
    Gateway,
    /// Accepts readings over HTTP.
    Api,
    /// Stores readings, with gRPC and a database.
    Store,
}

pub(super) fn broker(text: &str) -> Result<Endpoint, String> {
    endpoint(text, &["mqtt"])
}

pub(super) fn next(text: &str) -> Result<Endpoint, String> {
    endpoint(text, &["http", "grpc"])
}

/// Reads a URL with one of these schemes. The stages do not support TLS, and only brokers ask for a
/// user.
pub(super) fn endpoint(text: &str, schemes: &[&str]) -> Result<Endpoint, String> {
    let endpoint = weigh_protocols::urls::endpoint(text)?;
    let typed: Vec<String> = schemes.iter().map(|one| format!("{one}://HOST:PORT")).collect();
    let typed = typed.join(" or ");
    if !schemes.contains(&&*endpoint.scheme) {
        return Err(format!("{}:// is not supported here: type {typed}", endpoint.scheme));
    }
    if endpoint.credentials.is_some() && endpoint.scheme != "mqtt" {
        return Err(format!("a user is not supported: type {typed}"));
    }
    if !endpoint.path.is_empty() && endpoint.scheme != "http" {
        return Err(format!("the path {} is not supported: type {typed}", endpoint.path));
    }
    Ok(endpoint)
}

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let linger = Duration::from_nanos(parse_duration(text)?.0);
    if linger > LINGER_MAX {
        return Err(format!(
            "{text} is too long, because readings wait for it: type at most {}s",
            LINGER_MAX.as_secs()
        ));
    }
    Ok(linger)
}

/// Word for memory in the place of a database or a store.
pub const MEMORY: &str = "memory";

/// Variable with the password of a broker's user.
pub const PASSWORD: &str = "WEIGH_PASSWORD";

/// Default number of readings in memory: some 25 MB at 200 bytes each.
pub(super) const KEPT_MAX: usize = 100_000;

/// Interval at which a process in the foreground checks for signals and for its children.
pub const LOOK_EVERY: Duration = Duration::from_millis(50);

pub(super) const LINGER_MAX: Duration = Duration::from_secs(10);
