//! Flags of the stages of the storage pipeline.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use weigh_model::Endpoint;
use weigh_model::units::parse_duration;

use super::serve_words::address;

/// A setting that is on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// Yes.
    On,
    /// No.
    Off,
}

/// How much goes together; of every stage.
#[derive(Args, Clone, Debug)]
pub struct GatheringFlags {
    /// Readings that go together at most: in a commit, or in a call to the next stage
    #[arg(
        long,
        value_name = "N",
        default_value_t = 500,
        value_parser = clap::value_parser!(u32).range(1..=100_000)
    )]
    pub batch: u32,
    /// How long the first of them may wait for others
    #[arg(long, value_name = "TIME", default_value = "0ms", value_parser = duration)]
    pub linger: Duration,
}

/// The flags of `weigh serve store`.
#[derive(Args)]
pub struct StoreFlags {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:0", value_parser = address)]
    listen: SocketAddr,
    #[command(flatten)]
    keeping: KeepingFlags,
    #[command(flatten)]
    gathering: GatheringFlags,
    /// File to which a record is appended for every message that carries our mark
    #[arg(long, value_name = "FILE")]
    hops: Option<PathBuf>,
    /// Takes requests on stdin and ends when it ends: for whoever started this stage
    #[arg(long, hide = true)]
    pub control: bool,
}

/// How readings are kept.
#[derive(Args, Clone, Debug)]
pub struct KeepingFlags {
    /// The file of the database, which is made if absent; or memory
    #[arg(long, value_name = "PATH|memory", default_value = MEMORY)]
    pub database: PathBuf,
    /// Whether a commit outlives a power cut (synchronous=FULL) or only the process (NORMAL)
    #[arg(long, value_name = "on|off")]
    pub durable: Option<Switch>,
    /// Keep each message that carries our mark once, however often it comes
    #[arg(long)]
    pub unique: bool,
    /// Readings that stay in memory; older ones are only counted
    #[arg(long, value_name = "N", default_value_t = KEPT_MAX)]
    pub keep: usize,
}

/// The flags of `weigh serve api`.
#[derive(Args)]
pub struct ApiFlags {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:0", value_parser = address)]
    listen: SocketAddr,
    /// The store; or memory, to keep readings itself
    #[arg(long, value_name = "grpc://HOST:PORT|memory", default_value = MEMORY)]
    store: String,
    /// Readings that stay in memory; older ones are only counted
    #[arg(long, value_name = "N", default_value_t = KEPT_MAX)]
    keep: usize,
    #[command(flatten)]
    gathering: GatheringFlags,
    /// File to which a record is appended for every message that carries our mark
    #[arg(long, value_name = "FILE")]
    hops: Option<PathBuf>,
    /// Takes requests on stdin and ends when it ends: for whoever started this stage
    #[arg(long, hide = true)]
    pub control: bool,
}

/// The flags of `weigh serve gateway`.
#[derive(Args)]
pub struct GatewayFlags {
    /// The broker; a USER's password is taken from WEIGH_PASSWORD
    #[arg(long, value_name = "mqtt://[USER@]HOST:PORT", value_parser = broker)]
    broker: Endpoint,
    /// The next stage: an api or a store
    #[arg(long, value_name = "http://HOST:PORT|grpc://HOST:PORT", value_parser = next)]
    to: Endpoint,
    #[command(flatten)]
    subscription: SubscriptionFlags,
    #[command(flatten)]
    gathering: GatheringFlags,
    /// File to which a record is appended for every message that carries our mark
    #[arg(long, value_name = "FILE")]
    hops: Option<PathBuf>,
    /// Takes requests on stdin and ends when it ends: for whoever started this stage
    #[arg(long, hide = true)]
    pub control: bool,
}

/// What the gateway asks of the broker.
#[derive(Args, Clone, Debug)]
pub struct SubscriptionFlags {
    /// What to subscribe to [default: #]
    #[arg(long, value_name = "FILTER")]
    pub filter: Option<String>,
    /// Highest quality of service to ask for [default: 1]
    #[arg(
        short,
        long,
        value_name = "0|1|2",
        value_parser = clap::value_parser!(u8).range(0..=2)
    )]
    pub qos: Option<u8>,
    /// Names the session, which outlives the gateway: another one with this name goes on with it
    /// [default: weigh-gateway]
    #[arg(long, value_name = "NAME")]
    pub client_id: Option<String>,
}

/// The flags of `weigh serve pipeline`.
#[derive(Args)]
pub struct PipelineFlags {
    /// The stages, in the order of a message
    #[arg(long, value_name = "LIST", default_value = "gateway,api,store", value_delimiter = ',')]
    pub stages: Vec<PipelineStage>,
    /// A broker that runs already; without it the reference broker is started
    #[arg(long, value_name = "mqtt://[USER@]HOST:PORT", value_parser = broker)]
    pub broker: Option<Endpoint>,
    #[command(flatten)]
    pub keeping: KeepingFlags,
    #[command(flatten)]
    pub subscription: SubscriptionFlags,
    #[command(flatten)]
    pub gathering: GatheringFlags,
    /// Folder for a file of hops of every stage
    #[arg(long, value_name = "DIR")]
    pub hops: Option<PathBuf>,
    /// Whether a process that dies is started again in its place
    #[arg(long, value_name = "on|off", default_value = "on")]
    pub restart: Switch,
}

/// A stage of a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum PipelineStage {
    /// From the broker to the next stage.
    Gateway,
    /// HTTP.
    Api,
    /// gRPC and the database.
    Store,
}

pub(super) fn broker(text: &str) -> Result<Endpoint, String> {
    endpoint(text, &["mqtt"])
}

pub(super) fn next(text: &str) -> Result<Endpoint, String> {
    endpoint(text, &["http", "grpc"])
}

/// A URL with one of these schemes. The stages speak no TLS, and only brokers ask who they are.
pub(super) fn endpoint(text: &str, schemes: &[&str]) -> Result<Endpoint, String> {
    let endpoint = Endpoint::parse(text)?;
    let typed: Vec<String> = schemes.iter().map(|one| format!("{one}://HOST:PORT")).collect();
    let typed = typed.join(" or ");
    if !schemes.contains(&&*endpoint.scheme) {
        return Err(format!("{}:// is not spoken here: type {typed}", endpoint.scheme));
    }
    if endpoint.credentials.is_some() && endpoint.scheme != "mqtt" {
        return Err(format!("the stages ask nobody who they are: type {typed}"));
    }
    if !endpoint.path.is_empty() && endpoint.scheme != "http" {
        return Err(format!("{} is a path, which there is none here: type {typed}", endpoint.path));
    }
    Ok(endpoint)
}

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let linger = Duration::from_nanos(parse_duration(text)?.0);
    if linger > LINGER_MAX {
        return Err(format!(
            "{text} is longer than {} s: readings wait for it",
            LINGER_MAX.as_secs()
        ));
    }
    Ok(linger)
}

/// What stands in place of a database or a store.
pub const MEMORY: &str = "memory";

/// The variable with the password of a broker's user.
pub const PASSWORD: &str = "WEIGH_PASSWORD";

/// Some 25 MB of readings of 200 bytes.
pub(super) const KEPT_MAX: usize = 100_000;

/// How often a process in the foreground looks for signals and at what it holds.
pub const LOOK_EVERY: Duration = Duration::from_millis(50);

pub(super) const LINGER_MAX: Duration = Duration::from_secs(10);
