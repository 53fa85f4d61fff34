//! Which agents a launcher starts, and the words of their command lines.

use std::path::PathBuf;
use std::time::Duration;

use super::bus_files::BusFiles;

/// Which agents to start, and how.
///
/// # Examples
///
/// ```
/// use weigh_fleet::launch::{LaunchOptions, Launcher};
///
/// let mut options = LaunchOptions::new(2, "nats://bus:4222");
/// options.may_load.push("broker:1883".to_owned());
/// let script = options.print(Launcher::Slurm)?;
/// assert!(script.contains("#SBATCH --nodes=2"));
/// # Ok::<(), weigh_model::protocol::Invalid>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchOptions {
    /// Number of agents, one for each host; at least 1.
    pub agents: u32,
    /// URL of the bus, without credentials.
    pub bus: String,
    /// What the agents may load: `HOST:PORT`, `HOST:*`, `*:PORT` or a network.
    pub may_load: Vec<String>,
    /// Name of the fleet on the bus; `None` for the default one.
    pub fleet_name: Option<String>,
    /// Container image with `weigh` in it, for Kubernetes and compose.
    pub image: Option<String>,
    /// Whole cores for each agent; at least 1.
    pub cores: u32,
    /// Memory for each agent in MiB, for Kubernetes.
    pub memory_mib: u32,
    /// Time after which the agents are ended, for Kubernetes and Slurm.
    pub deadline: Duration,
    /// Hosts for ssh, as its command line takes them. Agents take them in turn.
    pub hosts: Vec<String>,
    /// Path of `weigh` on the hosts or in the image.
    pub binary: PathBuf,
    /// Whether agents end after a run. Otherwise they wait for the next one, until the deadline.
    pub once: bool,
    /// Whether containers use the network of their host.
    pub host_network: bool,
    /// How agents show who they are.
    pub credentials: Option<Credentials>,
    /// Certificates that signed the bus's: a file of the hosts, or in Kubernetes a `SECRET/KEY`.
    pub ca: Option<String>,
    /// Certificate that agents show to the bus, and its key: files of the hosts, or in Kubernetes
    /// `SECRET` or `SECRET/KEY` each.
    pub client_cert: Option<(String, String)>,
}

/// Credentials for the bus. Their contents are never printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// Their kind.
    pub kind: CredentialsKind,
    /// A file of the hosts; in Kubernetes `SECRET` or `SECRET/KEY`.
    pub place: String,
}

/// Kinds of credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialsKind {
    /// A file of NATS with a user's JWT and seed.
    Creds,
    /// A file with the seed of a user's nkey.
    Nkey,
    /// A file whose first line is a token.
    Token,
}

impl CredentialsKind {
    /// The agent's option for this kind.
    pub fn flag(self) -> &'static str {
        match self {
            CredentialsKind::Creds => "--creds",
            CredentialsKind::Nkey => "--nkey",
            CredentialsKind::Token => "--token-file",
        }
    }

    /// Key in a Secret, where none is given.
    pub(super) fn key(self) -> &'static str {
        match self {
            CredentialsKind::Creds => "bus.creds",
            CredentialsKind::Nkey => "bus.nk",
            CredentialsKind::Token => "token",
        }
    }
}

impl LaunchOptions {
    /// Options for this number of agents on a bus: one core and 2 GiB each, for at most an hour,
    /// the program `weigh` of the search path. They end after a run, and may load nothing yet.
    pub fn new(agents: u32, bus: impl Into<String>) -> LaunchOptions {
        LaunchOptions {
            agents,
            bus: bus.into(),
            may_load: Vec::new(),
            fleet_name: None,
            image: None,
            cores: 1,
            memory_mib: 2048,
            deadline: Duration::from_secs(3600),
            hosts: Vec::new(),
            binary: "weigh".into(),
            once: true,
            host_network: false,
            credentials: None,
            ca: None,
            client_cert: None,
        }
    }

    /// What the launcher was given for each secret.
    pub(super) fn places(&self) -> BusFiles<&str> {
        let client_cert = self.client_cert.as_ref();
        BusFiles {
            credentials: self.credentials.as_ref().map(|own| own.place.as_str()),
            ca: self.ca.as_deref(),
            certificate: client_cert.map(|(certificate, _)| certificate.as_str()),
            key: client_cert.map(|(_, key)| key.as_str()),
        }
    }

    /// The agent's option for each secret.
    pub(super) fn flags(&self) -> BusFiles<&'static str> {
        BusFiles {
            credentials: self.credentials.as_ref().map(|own| own.kind.flag()),
            ca: Some("--bus-ca"),
            certificate: Some("--bus-cert"),
            key: Some("--bus-key"),
        }
    }

    /// The words after the program's name that start an agent, without its rank; `files` are there
    /// where the agent runs.
    pub(super) fn agent_words(&self, files: BusFiles<String>) -> Vec<String> {
        let mut words = ["agent", "--bus", &self.bus].map(String::from).to_vec();
        let mut add = |flag: &str, value: &str| words.extend([flag.to_owned(), value.to_owned()]);
        if let Some(name) = &self.fleet_name {
            add("--fleet-name", name);
        }
        for (flag, file) in self.flags().zip(files).given() {
            add(flag, &file);
        }
        for address in &self.may_load {
            add("--may-load", address);
        }
        words.extend(self.once.then(|| "--once".to_owned()));
        words
    }

    /// The words that start an agent whose credentials are files of its host.
    pub(super) fn agent_words_on_host(&self) -> Vec<String> {
        let mut words = vec![self.binary.display().to_string()];
        words.extend(self.agent_words(self.places().map(str::to_owned)));
        words
    }

    /// Name of the job and of everything that belongs to it.
    pub(super) fn job_name(&self) -> String {
        match &self.fleet_name {
            Some(name) => format!("weigh-fleet-{name}"),
            None => "weigh-fleet".to_owned(),
        }
    }
}
