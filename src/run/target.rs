//! The target of a trial while it runs: a reference server, a real one, or somebody else's.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use weigh_model::Endpoint;
use weigh_stage::catalogue::Catalogue;
use weigh_stage::managed::{ManagedServer, ServerError};
use weigh_stage::pinning::CoreSet;
use weigh_stage::process::{Ended, ProcessError};
use weigh_stage::reference::{ReferenceError, ReferenceServer};

use crate::exit::{Exit, Stop};
use crate::planning::lanes::{Against, Lane};

/// A target that runs.
pub enum Running {
    Reference(ReferenceServer),
    Managed(ManagedServer),
    Foreign(Endpoint),
}

impl Running {
    /// Starts it, or finds out where it is.
    pub fn start(
        lane: &Lane,
        catalogue: &Catalogue,
        cores: &CoreSet,
        shards: u32,
        folder: &Path,
    ) -> Result<Running, Stop> {
        let cores = Some(cores);
        match &lane.against {
            Against::Reference => {
                let program = std::env::current_exe()?;
                let arguments = serve_arguments(lane, shards);
                ReferenceServer::start(&program, &arguments, folder, cores, READY_WITHIN)
                    .map(Running::Reference)
                    .map_err(|error| {
                        let process = match &error {
                            ReferenceError::Process(process) => Some(process),
                            _ => None,
                        };
                        not_started(process, &error)
                    })
            }
            Against::Managed(name) => {
                let choice = catalogue.choose(name).map_err(Stop::usage)?;
                ManagedServer::start(choice, Some(lane.protocol.name()), folder, cores)
                    .map(Running::Managed)
                    .map_err(|error| {
                        let process = match &error {
                            ServerError::Process(process) => Some(process),
                            _ => None,
                        };
                        not_started(process, &error)
                    })
            }
            Against::Foreign(endpoint) => Ok(Running::Foreign(endpoint.clone())),
        }
    }

    /// What tells the targets of a run apart: lanes with the same key may share one.
    pub fn key(lane: &Lane, shards: u32) -> String {
        match &lane.against {
            Against::Reference => {
                let words = serve_arguments(lane, shards).into_iter();
                words.map(|word| format!(" {}", word.to_string_lossy())).collect()
            }
            Against::Managed(name) => format!("{name} {}", lane.protocol.name()),
            Against::Foreign(endpoint) => endpoint.to_string(),
        }
    }

    pub fn endpoint(&self) -> &Endpoint {
        match self {
            Running::Reference(server) => server.endpoint(),
            Running::Managed(server) => server.endpoint(),
            Running::Foreign(endpoint) => endpoint,
        }
    }

    pub fn pid(&self) -> Option<u32> {
        match self {
            Running::Reference(server) => Some(server.pid()),
            Running::Managed(server) => Some(server.pid()),
            Running::Foreign(_) => None,
        }
    }

    pub fn title(&self, lane: &Lane) -> String {
        match self {
            Running::Reference(_) => {
                format!("weigh {} reference {}", env!("CARGO_PKG_VERSION"), lane.protocol.name())
            }
            Running::Managed(server) => format!("{} ({})", server.title(), server.profile()),
            Running::Foreign(endpoint) => endpoint.to_string(),
        }
    }

    pub fn ended(&mut self) -> Option<Ended> {
        match self {
            Running::Reference(server) => server.ended(),
            Running::Managed(server) => server.ended(),
            Running::Foreign(_) => None,
        }
    }

    pub fn stop(self) {
        match self {
            Running::Reference(server) => drop(server.stop(STOP_WITHIN)),
            Running::Managed(server) => drop(server.stop()),
            Running::Foreign(_) => {}
        }
    }
}

/// A target that could not be started; where its folder in the run could not be written, it is
/// the record that failed.
fn not_started(process: Option<&ProcessError>, error: &dyn std::fmt::Display) -> Stop {
    let exit = match process {
        Some(ProcessError::Unwritable { .. }) => Exit::Record,
        _ => Exit::Target,
    };
    Stop::new(exit, error)
}

/// The words after `weigh serve` that make the lane's reference server.
fn serve_arguments(lane: &Lane, shards: u32) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec![
        lane.protocol.name().into(),
        "--control".into(),
        "--shards".into(),
        shards.to_string().into(),
    ];
    for (key, value) in &lane.given {
        arguments.push("--set".into());
        arguments.push(format!("{}.{key}={value}", lane.protocol.name()).into());
    }
    arguments
}

/// How long a server may take to be ready or to answer.
pub const READY_WITHIN: Duration = Duration::from_secs(10);

const STOP_WITHIN: Duration = Duration::from_secs(2);
