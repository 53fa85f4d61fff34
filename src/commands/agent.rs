//! `weigh agent`: generates a part of the load of a fleet on this host.

use std::path::PathBuf;

use clap::Args;

use weigh_runner::exit::{Exit, Stop};

/// Flags of `weigh agent`.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct Agent {
    /// NATS server with JetStream on which the fleet meets: nats://HOST:PORT, or tls://HOST:PORT
    ///
    /// A token comes from WEIGH_BUS_TOKEN or --token-file.
    #[arg(long, value_name = "URL")]
    bus: String,
    /// Target that this host may load: HOST:PORT, HOST:*, *:PORT or a network; may be repeated
    ///
    /// The agent refuses every other target, whatever a coordinator asks for.
    #[arg(long, value_name = "HOST:PORT", required = true, num_args = 1..)]
    may_load: Vec<String>,
    /// Name of the fleet, if several share the bus
    #[arg(long, value_name = "NAME")]
    fleet_name: Option<String>,
    /// Number of this agent, from 0 [default: the scheduler's, or one that is free]
    ///
    /// Schedulers give it in JOB_COMPLETION_INDEX (Kubernetes), SLURM_PROCID,
    /// OMPI_COMM_WORLD_RANK or NOMAD_ALLOC_INDEX.
    #[arg(long, value_name = "N")]
    rank: Option<u32>,
    /// File with an nkey seed for the bus
    #[arg(long, value_name = "FILE", conflicts_with = "creds")]
    nkey: Option<PathBuf>,
    /// File with credentials for the bus: a user JWT and its seed
    #[arg(long, value_name = "FILE")]
    creds: Option<PathBuf>,
    /// File whose first line is the token for the bus
    #[arg(long, value_name = "FILE", conflicts_with_all = ["creds", "nkey"])]
    token_file: Option<PathBuf>,
    /// Certificate authority of the bus, in PEM
    #[arg(long, value_name = "FILE")]
    bus_ca: Option<PathBuf>,
    /// Certificate to show to the bus, in PEM, if its TLS asks for one
    #[arg(long, value_name = "FILE", requires = "bus_key")]
    bus_cert: Option<PathBuf>,
    /// Private key of --bus-cert, in PEM
    #[arg(long, value_name = "FILE", requires = "bus_cert")]
    bus_key: Option<PathBuf>,
    /// End after the first run
    #[arg(long)]
    once: bool,
}

impl Agent {
    /// Returns the error of a build without fleets.
    ///
    /// # Errors
    /// Always.
    #[cfg(not(feature = "fleet"))]
    pub fn run(self) -> Result<Exit, Stop> {
        let Agent { bus: _, may_load: _, fleet_name: _, rank: _, nkey: _, .. } = self;
        let (_, _, _, _) = (self.creds, self.token_file, self.bus_ca, self.once);
        let (_, _) = (self.bus_cert, self.bus_key);
        Err(Stop::unbuilt("fleet (weigh agent)"))
    }

    /// Obeys coordinators until SIGINT or SIGTERM, or until the first run is over.
    ///
    /// # Errors
    /// An option that is wrong, and a bus that cannot be used.
    #[cfg(feature = "fleet")]
    pub fn run(self) -> Result<Exit, Stop> {
        use std::sync::Arc;
        use std::sync::atomic::{AtomicBool, Ordering};

        use signal_hook::consts::{SIGINT, SIGTERM};
        use weigh_runner::fleet::agent::{self, AgentEnd, AgentRequest};
        use weigh_runner::fleet::request::BusChoice;

        use crate::help;
        use crate::planning::fleet_options::bus_token;

        let (stopped, terminated) = (Arc::new(AtomicBool::new(false)), Arc::default());
        signal_hook::flag::register(SIGTERM, Arc::clone(&terminated))?;
        for signal in [SIGINT, SIGTERM] {
            // The second signal ends the process at once.
            signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stopped))?;
            signal_hook::flag::register(signal, Arc::clone(&stopped))?;
        }
        let token = match &self.token_file {
            Some(path) => Some(token_in(path)?),
            None => bus_token(),
        };
        let bus = BusChoice {
            url: self.bus,
            name: self.fleet_name.unwrap_or_default(),
            nkey: self.nkey,
            creds: self.creds,
            token,
            ca: self.bus_ca,
            client_cert: self.bus_cert.zip(self.bus_key),
        };
        let (rank, may_load, once) = (self.rank, self.may_load, self.once);
        let request = AgentRequest { bus, rank, may_load, once };
        let version = weigh_runner::fleet::version(help::commit().as_deref());
        let end = agent::run(request, version, &stopped, &|text| eprintln!("weigh: {text}"))?;
        Ok(match end {
            // A scheduler must not take it for one that did what it was started for.
            AgentEnd::Stopped if once && terminated.load(Ordering::SeqCst) => Exit::Terminated,
            AgentEnd::Stopped if once => Exit::Interrupted,
            AgentEnd::Stopped | AgentEnd::RunOver => Exit::Done,
        })
    }
}

/// Reads the token: schedulers of containers hand secrets over as files.
#[cfg(feature = "fleet")]
fn token_in(path: &std::path::Path) -> Result<String, Stop> {
    let wrong = |problem: &dyn std::fmt::Display| {
        let path = path.display();
        let text = format!("--token-file {path}: {problem}\nhelp: name a file with a token");
        Stop::usage(text)
    };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
    match text.lines().next().map(str::trim) {
        Some(token) if !token.is_empty() => Ok(token.to_owned()),
        _ => Err(wrong(&"its first line is empty")),
    }
}

const AFTER_HELP: &str = "\
Start one on each host, then run the load from any of them:
  weigh fleet up --listen 0.0.0.0:4222
  weigh agent --bus nats://HOST:4222 --may-load BROKER:1883
  weigh compare mqtt://BROKER:1883 --fleet nats://HOST:4222 --agents 2 --i-may-load-this";
