//! `weigh serve store`, `api`, `gateway` and `pipeline`: the services of the storage pipeline.

use std::io::BufRead;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use weigh_model::Endpoint;
use weigh_model::units::parse_duration;
use weigh_pipeline::{
    ApiSettings, Durability, Failed, GatewaySettings, Gathering, Holding, Place, Running,
    StoreSettings,
};
use weigh_stage::serve_lines::report_line;

use super::serve::{address, answer, say};
use crate::commands::serve_pipeline;
use weigh_runner::exit::{Exit, Stop};

/// A stage of the storage pipeline, or all of it.
#[derive(Subcommand)]
pub enum Stage {
    /// Keeps readings: the service of store.proto, over memory or SQLite.
    Store(StoreFlags),
    /// Takes readings by HTTP and JSON, and keeps them or hands them on to a store.
    Api(ApiFlags),
    /// Takes messages from a broker to an api or a store.
    Gateway(GatewayFlags),
    /// The whole: broker, gateway, api, store and database, each a process of its own.
    Pipeline(PipelineFlags),
}

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
    control: bool,
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
    control: bool,
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
    control: bool,
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

impl Stage {
    /// Serves until SIGINT, SIGTERM or, when controlled, the end of stdin.
    pub fn run(self) -> Result<Exit, Stop> {
        // The limit of open files; where it cannot be raised, clients wait.
        let _ = weigh_engine::io::descriptors::raise();
        match self {
            Stage::Store(flags) => hold("store", flags.control, || flags.start()),
            Stage::Api(flags) => hold("api", flags.control, || flags.start()),
            Stage::Gateway(flags) => hold("gateway", flags.control, || flags.start()),
            Stage::Pipeline(flags) => serve_pipeline::run(&flags),
        }
    }
}

impl StoreFlags {
    fn start(self) -> Result<Running, Stop> {
        let StoreFlags { listen, keeping, gathering, hops, .. } = self;
        let (place, is_unique) = (keeping.place()?, keeping.unique);
        let gathering = gathering.into();
        StoreSettings { listen, place, is_unique, gathering, hops }.start().map_err(stop)
    }
}

impl KeepingFlags {
    /// Where readings are kept.
    ///
    /// # Errors
    /// If settings contradict each other.
    pub fn place(&self) -> Result<Place, Stop> {
        if self.database.as_os_str() == MEMORY {
            if self.durable.is_some() {
                return Err(Stop::usage(
                    "--durable: memory outlives nothing: type --database PATH, or leave it out",
                ));
            }
            return Ok(Place::Memory { kept_max: self.keep });
        }
        if self.keep != KEPT_MAX {
            return Err(Stop::usage("--keep: a database keeps all readings; leave it out"));
        }
        let durability = match self.durable {
            None | Some(Switch::On) => Durability::Durable,
            Some(Switch::Off) => Durability::Quick,
        };
        Ok(Place::Database { path: self.database.clone(), durability })
    }
}

impl ApiFlags {
    fn start(self) -> Result<Running, Stop> {
        let ApiFlags { listen, store, keep, gathering, hops, .. } = self;
        let holding = if store == MEMORY {
            Holding::Memory { kept_max: keep }
        } else if keep != KEPT_MAX {
            return Err(Stop::usage("--keep: the store keeps the readings; leave it out"));
        } else {
            let endpoint = endpoint(&store, &["grpc"]);
            Holding::Store(endpoint.map_err(|text| Stop::usage(format!("--store: {text}")))?)
        };
        let gathering = gathering.into();
        ApiSettings { listen, holding, gathering, hops }.start().map_err(stop)
    }
}

impl GatewayFlags {
    fn start(self) -> Result<Running, Stop> {
        let GatewayFlags { mut broker, to, subscription, gathering, hops, .. } = self;
        let SubscriptionFlags { filter, qos, client_id } = subscription;
        // As their help says.
        let filter = filter.unwrap_or_else(|| "#".to_owned());
        let client_id = client_id.unwrap_or_else(|| "weigh-gateway".to_owned());
        let qos = qos.unwrap_or(1);
        if client_id.is_empty() || filter.is_empty() {
            return Err(Stop::usage("--client-id and --filter: neither may be empty"));
        }
        if let Some(who) = broker.credentials.as_mut().filter(|who| who.password.is_empty()) {
            who.password = std::env::var(PASSWORD).unwrap_or_default();
        }
        let gathering = gathering.into();
        let settings = GatewaySettings { broker, to, filter, qos, client_id, gathering, hops };
        settings.start().map_err(stop)
    }
}

impl From<GatheringFlags> for Gathering {
    fn from(flags: GatheringFlags) -> Gathering {
        Gathering { batch: flags.batch as usize, linger: flags.linger }
    }
}

/// How the program ends where a stage cannot run.
fn stop(failed: Failed) -> Stop {
    match failed {
        Failed::Typed(text) => Stop::usage(text),
        Failed::Found(text) => Stop::new(Exit::Target, text),
    }
}

/// Runs one stage in the foreground.
fn hold(
    name: &str,
    is_controlled: bool,
    start: impl FnOnce() -> Result<Running, Stop>,
) -> Result<Exit, Stop> {
    // Before anything is open, so that a signal that comes early is not lost.
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let running = start()?;
    eprintln!("weigh serve {name}: {}", running.settings_line());
    let requests = is_controlled.then(requests).transpose()?;
    say(running.first_line())?;
    let is_told = loop {
        if signals.pending().next().is_some() {
            break true;
        }
        if running.is_over() {
            break false;
        }
        let Some(requests) = &requests else {
            std::thread::sleep(LOOK_EVERY);
            continue;
        };
        match requests.recv_timeout(LOOK_EVERY) {
            Ok(request) => say(&answer(&request, || report_line(&running.report())))?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break true,
        }
    };
    say(&running.finish().to_string())?;
    if is_told {
        return Ok(Exit::Done);
    }
    Err(Stop::new(Exit::Target, format!("{name}: its work has ended by itself")))
}

/// What is asked on stdin, until it ends.
fn requests() -> Result<Receiver<String>, Stop> {
    let (asked, requests) = channel();
    let read = move || {
        let lines = std::io::stdin().lock().lines();
        for line in lines.map_while(Result::ok) {
            if asked.send(line).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("requests".to_owned()).spawn(read)?;
    Ok(requests)
}

fn broker(text: &str) -> Result<Endpoint, String> {
    endpoint(text, &["mqtt"])
}

fn next(text: &str) -> Result<Endpoint, String> {
    endpoint(text, &["http", "grpc"])
}

/// A URL with one of these schemes. The stages speak no TLS, and only brokers ask who they are.
fn endpoint(text: &str, schemes: &[&str]) -> Result<Endpoint, String> {
    let endpoint = weigh_protocols::urls::endpoint(text)?;
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

fn duration(text: &str) -> Result<Duration, String> {
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
const KEPT_MAX: usize = 100_000;
/// How often a process in the foreground looks for signals and at what it holds.
pub const LOOK_EVERY: Duration = Duration::from_millis(50);
const LINGER_MAX: Duration = Duration::from_secs(10);
