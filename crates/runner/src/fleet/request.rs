//! The fleet that a user asks for, and how to reach its bus.

use std::path::PathBuf;
use std::time::Duration;

/// A fleet that is to generate the load of a run.
///
/// # Examples
///
/// ```
/// use weigh_runner::fleet::request::{BusChoice, FleetRequest};
///
/// let bus = BusChoice { url: "nats://127.0.0.1:4222".to_owned(), ..BusChoice::default() };
/// let request = FleetRequest::new(bus, 4);
/// assert_eq!((request.agents, request.retries), (4, 2));
/// ```
#[derive(Clone, Debug)]
pub struct FleetRequest {
    /// The bus on which agents are found.
    pub bus: BusChoice,
    /// Number of agents, at least 1.
    pub agents: u32,
    /// Time to wait for them.
    pub wait: Duration,
    /// Number of repetitions of a trial in which an agent was lost.
    pub retries: u32,
}

/// A bus, and the credentials for it.
#[derive(Clone, Default)]
pub struct BusChoice {
    /// `nats://HOST:PORT` or `tls://HOST:PORT`.
    pub url: String,
    /// Name of the fleet; empty for `default`.
    pub name: String,
    /// File with an nkey seed.
    pub nkey: Option<PathBuf>,
    /// File with credentials: a user JWT and its seed.
    pub creds: Option<PathBuf>,
    /// Token.
    pub token: Option<String>,
    /// File with the certificate authority of the bus, in PEM.
    pub ca: Option<PathBuf>,
    /// File with the certificate that this program shows, and file with its key, both in PEM.
    pub client_cert: Option<(PathBuf, PathBuf)>,
}

impl FleetRequest {
    /// Asks for this number of agents, with the defaults of the command line.
    pub fn new(bus: BusChoice, agents: u32) -> FleetRequest {
        FleetRequest { bus, agents, wait: WAIT, retries: RETRIES }
    }
}

impl std::fmt::Debug for BusChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A URL may have a token in it.
        let shown = self.url.rsplit('@').next().unwrap_or_default();
        write!(f, "BusChoice({shown}, {}, credentials hidden)", self.name)
    }
}

/// Default time to wait for agents.
pub const WAIT: Duration = Duration::from_secs(60);

/// Default number of repetitions of a trial in which an agent was lost.
pub const RETRIES: u32 = 2;
