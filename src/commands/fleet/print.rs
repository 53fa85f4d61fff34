//! `weigh fleet print`: what starts the agents of a fleet on other hosts.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use weigh_model::Nanos;
use weigh_model::fleet::AGENTS_MAX;
use weigh_model::units::{parse_duration, parse_size};

use crate::planning::counts::counts;
use weigh_runner::exit::{Exit, Stop};

/// Flags of `weigh fleet print`.
#[derive(Args)]
pub struct Print {
    #[command(subcommand)]
    launcher: Launcher,
}

#[derive(Subcommand)]
enum Launcher {
    /// Print an Indexed Job: one pod on each node, all or none, for `kubectl apply -f -`
    Kubernetes(Kubernetes),
    /// Print a batch script: one task on each node, for `sbatch`
    Slurm(Scheduled),
    /// Print a shell script that starts the agents by ssh, and ends them when it ends
    Ssh(Ssh),
    /// Print a compose file: all agents on one host, each in a container with its own cores
    Compose(Compose),
}

/// Flags of all launchers.
#[derive(Args)]
struct Agents {
    /// URL of the bus as the agents reach it, such as nats://HOST:4222
    #[arg(long, value_name = "URL")]
    bus: String,
    /// What the agents may load: HOST:PORT, HOST:*, *:PORT or a network; repeat it for several
    #[arg(long, value_name = "HOST:PORT", required = true)]
    may_load: Vec<String>,
    /// Name of the fleet, if several share a bus
    #[arg(long, value_name = "NAME")]
    fleet_name: Option<String>,
    /// Program on the hosts or in the image
    #[arg(long, value_name = "PATH", default_value = "weigh")]
    binary: PathBuf,
    /// Credentials of NATS (JWT and seed): a file of the hosts; Kubernetes: SECRET or SECRET/KEY
    #[arg(long, value_name = "FILE", group = "credentials")]
    creds: Option<String>,
    /// Seed of an nkey: a file of the hosts; Kubernetes: SECRET or SECRET/KEY
    #[arg(long, value_name = "FILE", group = "credentials")]
    nkey: Option<String>,
    /// Token of the bus: a file of the hosts; Kubernetes: SECRET or SECRET/KEY
    #[arg(long, value_name = "FILE", group = "credentials")]
    token_file: Option<String>,
    /// Certificates that signed the bus's: a file of the hosts; Kubernetes: SECRET or SECRET/KEY
    #[arg(long, value_name = "FILE")]
    bus_ca: Option<String>,
    /// Certificate that the agents show to the bus: a file of the hosts; Kubernetes: SECRET or
    /// SECRET/KEY
    #[arg(long, value_name = "FILE", requires = "bus_key")]
    bus_cert: Option<String>,
    /// Private key of --bus-cert: a file of the hosts; Kubernetes: SECRET or SECRET/KEY
    #[arg(long, value_name = "FILE", requires = "bus_cert")]
    bus_key: Option<String>,
    /// Keep the agents after a run, for the next one
    #[arg(long)]
    stay: bool,
}

/// Number and size of agents that a scheduler or a container engine places.
#[derive(Args)]
struct Size {
    #[command(flatten)]
    agents: Agents,
    /// Number of agents: one on each node of Kubernetes or Slurm
    #[arg(long = "agents", value_name = "N", value_parser = counts(1..=AGENTS_MAX))]
    count: u32,
    /// Whole cores for each agent, which no other agent uses
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = counts(1..=4096_u32))]
    cores: u32,
}

/// Flags of agents that a scheduler places on nodes.
#[derive(Args)]
struct Scheduled {
    #[command(flatten)]
    size: Size,
    /// End all agents after this time
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = parse_duration)]
    deadline: Nanos,
}

/// Flags of agents in containers.
#[derive(Args)]
struct Contained {
    /// Image with weigh in it
    #[arg(long, value_name = "IMAGE")]
    image: String,
    /// Use the network of the node or host, without an overlay and translated addresses
    #[arg(long)]
    host_network: bool,
}

/// Flags of `weigh fleet print kubernetes`.
#[derive(Args)]
struct Kubernetes {
    #[command(flatten)]
    scheduled: Scheduled,
    #[command(flatten)]
    contained: Contained,
    /// Memory for each agent, as request and as limit
    #[arg(long, value_name = "SIZE", default_value = "2GiB", value_parser = parse_size)]
    memory: u64,
}

/// Flags of `weigh fleet print ssh`.
#[derive(Args)]
struct Ssh {
    #[command(flatten)]
    agents: Agents,
    /// Host as ssh takes it; repeat it for several
    #[arg(long = "host", value_name = "[USER@]HOST", required = true)]
    hosts: Vec<String>,
    /// Number of agents, which the hosts take in turn [default: the number of hosts]
    #[arg(long = "agents", value_name = "N", value_parser = counts(1..=AGENTS_MAX))]
    count: Option<u32>,
}

/// Flags of `weigh fleet print compose`.
#[derive(Args)]
struct Compose {
    #[command(flatten)]
    size: Size,
    #[command(flatten)]
    contained: Contained,
}

impl Print {
    /// Prints the launcher.
    ///
    /// # Errors
    /// Options that are wrong, and a build without this part.
    #[cfg(not(feature = "fleet"))]
    pub fn run(self) -> Result<Exit, Stop> {
        let Print { launcher: _ } = self;
        Err(Stop::unbuilt("launchers of a fleet (weigh fleet print)"))
    }

    /// Prints the launcher.
    ///
    /// # Errors
    /// Options that are wrong.
    #[cfg(feature = "fleet")]
    pub fn run(self) -> Result<Exit, Stop> {
        let (launcher, options) = self.launcher.asked();
        crate::show::output::put_document(&options.print(launcher)?)?;
        Ok(Exit::Done)
    }
}

#[cfg(feature = "fleet")]
mod asked {
    use std::time::Duration;

    use weigh_fleet::launch::{self, Credentials, CredentialsKind, LaunchOptions};

    use super::{Agents, Contained, Launcher, Scheduled, Size};

    impl Launcher {
        /// Returns what to print.
        pub(super) fn asked(self) -> (launch::Launcher, LaunchOptions) {
            match self {
                Launcher::Kubernetes(own) => {
                    let options = LaunchOptions {
                        memory_mib: u32::try_from(own.memory >> 20).unwrap_or(u32::MAX),
                        ..own.contained.options(own.scheduled.options())
                    };
                    (launch::Launcher::Kubernetes, options)
                }
                Launcher::Slurm(own) => (launch::Launcher::Slurm, own.options()),
                Launcher::Ssh(own) => {
                    let hosts = u32::try_from(own.hosts.len()).unwrap_or(u32::MAX);
                    let options = LaunchOptions {
                        hosts: own.hosts,
                        ..own.agents.options(own.count.unwrap_or(hosts))
                    };
                    (launch::Launcher::Ssh, options)
                }
                Launcher::Compose(own) => {
                    (launch::Launcher::Compose, own.contained.options(own.size.options()))
                }
            }
        }
    }

    impl Size {
        fn options(self) -> LaunchOptions {
            LaunchOptions { cores: self.cores, ..self.agents.options(self.count) }
        }
    }

    impl Scheduled {
        fn options(self) -> LaunchOptions {
            let deadline = Duration::from_nanos(self.deadline.0);
            LaunchOptions { deadline, ..self.size.options() }
        }
    }

    impl Contained {
        fn options(self, other: LaunchOptions) -> LaunchOptions {
            let Contained { image, host_network } = self;
            LaunchOptions { image: Some(image), host_network, ..other }
        }
    }

    impl Agents {
        fn options(self, count: u32) -> LaunchOptions {
            let given = [
                (CredentialsKind::Creds, self.creds),
                (CredentialsKind::Nkey, self.nkey),
                (CredentialsKind::Token, self.token_file),
            ];
            let credentials = given.into_iter().find_map(|(kind, place)| {
                let place = place?;
                Some(Credentials { kind, place })
            });
            LaunchOptions {
                may_load: self.may_load,
                fleet_name: self.fleet_name,
                binary: self.binary,
                once: !self.stay,
                credentials,
                ca: self.bus_ca,
                client_cert: self.bus_cert.zip(self.bus_key),
                ..LaunchOptions::new(count, self.bus)
            }
        }
    }
}
