//! The target of a trial while it runs: a reference server, a real server, or an external one.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weigh_model::layers::scheme;
use weigh_model::{Durability, Endpoint, tls, websocket};
use weigh_protocols::fields;
use weigh_testbed::catalogue::Catalogue;
use weigh_testbed::managed::{Layers, ManagedServer, ServerError};
use weigh_testbed::pipeline::{Entrance, PipelineServer};
use weigh_testbed::placement::Placement;
use weigh_testbed::process::{Ended, ProcessError};
use weigh_testbed::reference::{ReferenceError, ReferenceServer};

use crate::case::lanes::{Against, Lane};
use crate::case::pipeline::Entry;
use crate::exit::{Exit, Stop};
use crate::targets::tls::CertificateFiles;

/// A running target.
pub enum Running {
    /// The reference server of the protocol.
    Reference(ReferenceServer),
    /// A real server that was started.
    Managed(ManagedServer),
    /// The stages of the pipeline.
    Pipeline(Box<PipelineServer>),
    /// The address of an external server.
    Foreign(Endpoint),
}

impl Running {
    /// Starts it, or resolves its address.
    ///
    /// # Errors
    /// A target that does not start, or whose host is unknown.
    pub fn start(
        program: &Path,
        lane: &Lane,
        catalogue: &Catalogue,
        site: &Placement<'_>,
        shards: u32,
        (folder, vault): (&Path, &CertificateFiles),
    ) -> Result<Running, Stop> {
        match &lane.against {
            Against::Reference => {
                let mut arguments = serve_arguments(lane, shards);
                arguments.extend(vault.serve_arguments(lane)?);
                if let Some(durability) = stored(lane) {
                    arguments.extend(["--durability".into(), durability.to_string().into()]);
                    arguments.extend(["--store".into(), store_of(folder).into()]);
                }
                ReferenceServer::start_in(program, &arguments, folder, site, READY_WITHIN)
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
                let tls = vault.files(lane)?;
                let websocket = websocket::is_on(&lane.settings);
                let scheme = scheme(lane.protocol, &lane.settings);
                let layers = Layers { tls, websocket, scheme: Some(scheme) };
                let protocol = Some(lane.protocol.name());
                ManagedServer::start_in(choice, protocol, folder, site, layers)
                    .map(Running::Managed)
                    .map_err(|error| {
                        let process = match &error {
                            ServerError::Process(process) => Some(process),
                            _ => None,
                        };
                        not_started(process, &error)
                    })
            }
            Against::Pipeline(pipeline) => {
                let assembly = &pipeline.assembly;
                let broker = assembly.broker.as_deref().map(|name| catalogue.choose(name));
                let broker = broker.transpose().map_err(Stop::usage)?;
                let words = broker_words(lane, shards);
                // A subscription at QoS 2 does not lower the QoS of publishers.
                let is_entry = enters_by_broker(lane);
                let qos = if is_entry { lane.settings.integer("qos") as u8 } else { 2 };
                let entrance = Entrance { broker, broker_words: &words, qos };
                PipelineServer::start_in(program, assembly, entrance, folder, site, READY_WITHIN)
                    .map(|server| Running::Pipeline(Box::new(server)))
                    .map_err(|error| not_started(error.process(), &error))
            }
            Against::Foreign(endpoint) => Ok(Running::Foreign(endpoint.clone())),
        }
    }

    /// Identifies targets of a run: lanes with the same key may share one.
    pub fn key(lane: &Lane, shards: u32) -> String {
        match &lane.against {
            Against::Reference => {
                let words = serve_arguments(lane, shards).into_iter();
                let words: String =
                    words.map(|word| format!(" {}", word.to_string_lossy())).collect();
                words + &stored(lane).map_or(String::new(), |own| format!(" {own}"))
            }
            Against::Managed(name) => {
                let settings = &lane.settings;
                let tls = (tls::is_on(settings), settings.flag("tls_mutual"));
                let layers = (tls, websocket::is_on(settings));
                format!("{name} {} {layers:?}", lane.protocol.name())
            }
            Against::Pipeline(pipeline) => {
                let words = serve_arguments(lane, shards).into_iter();
                let words: String =
                    words.map(|word| format!(" {}", word.to_string_lossy())).collect();
                format!("{:?}{words}", pipeline.assembly)
            }
            Against::Foreign(endpoint) => endpoint.to_string(),
        }
    }

    /// Its address.
    pub fn endpoint(&self) -> &Endpoint {
        match self {
            Running::Reference(server) => server.endpoint(),
            Running::Managed(server) => server.endpoint(),
            Running::Pipeline(server) => server.endpoint(),
            Running::Foreign(endpoint) => endpoint,
        }
    }

    /// Its address for clients of this scheme, which a pipeline may accept at another stage.
    pub fn endpoint_for(&self, scheme: &str) -> &Endpoint {
        match self {
            Running::Pipeline(server) => {
                server.endpoint_for(scheme).unwrap_or_else(|| server.endpoint())
            }
            _ => self.endpoint(),
        }
    }

    /// Its processes; none for an external server.
    pub fn pids(&self) -> Vec<u32> {
        match self {
            Running::Reference(server) => vec![server.pid()],
            Running::Managed(server) => vec![server.pid()],
            Running::Pipeline(server) => server.pids().into_iter().map(|(_, pid)| pid).collect(),
            Running::Foreign(_) => Vec::new(),
        }
    }

    /// Its name in the record, with its version if known.
    pub fn title(&self, lane: &Lane) -> String {
        match self {
            Running::Reference(_) => {
                format!("weigh {} reference {}", env!("CARGO_PKG_VERSION"), lane.protocol.name())
            }
            Running::Managed(server) => format!("{} ({})", server.title(), server.profile()),
            Running::Pipeline(server) => {
                format!("weigh {} pipeline: {}", env!("CARGO_PKG_VERSION"), server.words())
            }
            Running::Foreign(endpoint) => endpoint.to_string(),
        }
    }

    /// Returns how it, or a part of it, ended; `None` while it runs.
    pub fn ended(&mut self) -> Option<String> {
        match self {
            Running::Pipeline(server) => server.ended().map(|part| part.to_string()),
            _ => self.ended_with().map(|ended| ended.to_string()),
        }
    }

    /// Returns why it cannot be measured, if it has ended on its own.
    pub fn died(&mut self, lane: &Lane) -> Option<Stop> {
        let how = self.ended()?;
        let want = match self.ended_with()? {
            Ended::Signal(SIGKILL) => {
                "type a larger --target-memory; the kernel kills processes when memory runs out"
            }
            _ => "read its log in the folder of the run",
        };
        let log = match self {
            Running::Managed(server) => {
                format!("; the end of its log:\n{}", server.log_tail(12).trim_end())
            }
            // A store that failed is named there.
            Running::Reference(server) => match server.log_tail(12).trim_end() {
                "" => String::new(),
                tail => format!("; the end of its log:\n{tail}"),
            },
            Running::Pipeline(_) | Running::Foreign(_) => String::new(),
        };
        let title = self.title(lane);
        Some(Stop::new(Exit::Target, format!("{title} ended with {how}{log}\nhelp: {want}")))
    }

    fn ended_with(&mut self) -> Option<Ended> {
        match self {
            Running::Reference(server) => server.ended(),
            Running::Managed(server) => server.ended(),
            Running::Pipeline(server) => server.ended().map(|part| part.ended),
            Running::Foreign(_) => None,
        }
    }

    /// Stops it, unless it is external.
    pub fn stop(self) {
        match self {
            Running::Reference(server) => drop(server.stop(STOP_WITHIN)),
            Running::Managed(server) => drop(server.stop()),
            Running::Pipeline(server) => server.stop(STOP_WITHIN),
            Running::Foreign(_) => {}
        }
    }
}

/// The error for a target that could not be started; if its folder could not be written, the record
/// failed.
fn not_started(process: Option<&ProcessError>, error: &dyn std::fmt::Display) -> Stop {
    let exit = match process {
        Some(ProcessError::Unwritable { .. }) => Exit::Record,
        _ => Exit::Target,
    };
    Stop::new(exit, error)
}

/// Arguments of `weigh serve` for the lane's reference server.
fn serve_arguments(lane: &Lane, shards: u32) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec![
        lane.protocol.name().into(),
        "--control".into(),
        "--shards".into(),
        shards.to_string().into(),
    ];
    // Clients' headers do not concern the server, and may be secret: process lists are public.
    let of_clients = [fields::HEADERS.key, fields::SECRET_HEADERS.key];
    for (key, value) in lane.given.iter().filter(|(key, _)| !of_clients.contains(&&***key)) {
        arguments.push("--set".into());
        arguments.push(format!("{}.{key}={value}", lane.protocol.name()).into());
    }
    arguments
}

/// The durability that a reference server of this lane needs a store for.
fn stored(lane: &Lane) -> Option<Durability> {
    lane.durability
        .filter(|own| matches!(lane.against, Against::Reference) && own.is_more_than_memory())
}

/// Folder of a reference server's store, in its own folder.
pub fn store_of(folder: &Path) -> PathBuf {
    folder.join("store")
}

/// Arguments of the pipeline's broker, with the lane's settings if the lane enters there.
fn broker_words(lane: &Lane, shards: u32) -> Vec<OsString> {
    if enters_by_broker(lane) {
        return serve_arguments(lane, shards).split_off(BROKER_WORDS_FROM);
    }
    vec!["--shards".into(), shards.to_string().into()]
}

/// True if the lane enters its pipeline by the broker.
fn enters_by_broker(lane: &Lane) -> bool {
    Entry::of(lane.protocol.name()).is_ok_and(|entry| entry == Entry::Broker)
}

/// Index of the first argument that is a setting of the broker, after its protocol and `--control`.
const BROKER_WORDS_FROM: usize = 2;

/// Signal of the kernel when memory runs out, see signal(7).
const SIGKILL: i32 = 9;

/// Time limit for a server to be ready or to answer.
pub const READY_WITHIN: Duration = Duration::from_secs(10);

/// Time limit for a server to stop.
pub const STOP_WITHIN: Duration = Duration::from_secs(2);
