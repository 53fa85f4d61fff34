//! Flags of a fleet: how to reach its bus, and how many agents generate the load.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use weigh_model::Nanos;
use weigh_model::fleet::AGENTS_MAX;
use weigh_model::units::parse_duration;
use weigh_runner::exit::Stop;
use weigh_runner::fleet::hosts::IS_BUILT;
use weigh_runner::fleet::request::{BusChoice, FleetRequest, RETRIES, WAIT};

use crate::planning::counts::counts;

/// Flags of a run whose load a fleet generates.
#[derive(Args)]
pub struct FleetOptions {
    /// Let the agents on this NATS server (the bus) generate the load, such as nats://HOST:4222
    ///
    /// Start an agent on each host with `weigh agent`. This host only starts or reaches the target,
    /// observes it, and records the run. A token for the bus comes from WEIGH_BUS_TOKEN.
    #[arg(long, value_name = "URL", requires = "agents")]
    fleet: Option<String>,
    /// Number of agents, all of which are needed
    #[arg(long, value_name = "N", requires = "fleet", value_parser = counts(1..=AGENTS_MAX))]
    agents: Option<u32>,
    /// Name of the fleet, if several share the bus
    #[arg(long, value_name = "NAME", requires = "fleet")]
    fleet_name: Option<String>,
    /// Time to wait for agents [default: 1m]
    #[arg(long, value_name = "TIME", requires = "fleet", value_parser = parse_duration)]
    fleet_wait: Option<Nanos>,
    /// If a trial loses an agent, repeat it, at most N times [default: 2]
    #[arg(long, value_name = "N", requires = "fleet", value_parser = counts(0..=100_u32))]
    fleet_retries: Option<u32>,
    /// File with the nkey seed for the bus
    #[arg(long, value_name = "FILE", requires = "fleet", conflicts_with = "fleet_creds")]
    fleet_nkey: Option<PathBuf>,
    /// File with the credentials for the bus: a user JWT and its seed
    #[arg(long, value_name = "FILE", requires = "fleet")]
    fleet_creds: Option<PathBuf>,
    /// Certificate authority of the bus, in PEM
    #[arg(long, value_name = "FILE", requires = "fleet")]
    fleet_ca: Option<PathBuf>,
    /// Certificate to show to the bus, in PEM, if its TLS asks for one
    #[arg(long, value_name = "FILE", requires = "fleet", requires = "fleet_key")]
    fleet_cert: Option<PathBuf>,
    /// Private key of --fleet-cert, in PEM
    #[arg(long, value_name = "FILE", requires = "fleet_cert")]
    fleet_key: Option<PathBuf>,
}

impl FleetOptions {
    /// The fleet that is asked for, if there is one.
    ///
    /// # Errors
    /// A build without fleets.
    pub fn asked(&self) -> Result<Option<FleetRequest>, Stop> {
        let Some((url, agents)) = self.fleet.as_ref().zip(self.agents) else { return Ok(None) };
        if !IS_BUILT {
            return Err(Stop::unbuilt("fleet (--fleet)"));
        }
        let bus = BusChoice {
            url: url.clone(),
            name: self.fleet_name.clone().unwrap_or_default(),
            nkey: self.fleet_nkey.clone(),
            creds: self.fleet_creds.clone(),
            token: bus_token(),
            ca: self.fleet_ca.clone(),
            client_cert: self.fleet_cert.clone().zip(self.fleet_key.clone()),
        };
        let wait = self.fleet_wait.map_or(WAIT, |wait| Duration::from_nanos(wait.0));
        let retries = self.fleet_retries.unwrap_or(RETRIES);
        Ok(Some(FleetRequest { bus, agents, wait, retries }))
    }

    /// True if a fleet is asked for.
    pub fn is_given(&self) -> bool {
        self.fleet.is_some()
    }
}

/// The token for the bus, from the environment.
pub fn bus_token() -> Option<String> {
    std::env::var("WEIGH_BUS_TOKEN").ok().filter(|token| !token.is_empty())
}
