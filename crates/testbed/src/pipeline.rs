//! The storage pipeline as a target. Every stage is a child process, started from the one that
//! stores readings to the one that receives them. Each has a log and a file in which it records
//! when it had which message.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use rustix::process::Signal;
use serde::Deserialize;
use weigh_model::hop::HopStage;
use weigh_model::server::ServerReport;
use weigh_model::{Endpoint, Nanos};

use crate::catalogue::Choice;
use crate::hosts::Host;
use crate::managed::{Layers, ManagedServer, ServerError, made_absolute};
use crate::placement::Placement;
use crate::process::{Ended, ManagedProcess, ProcessError, Start};
use crate::reference::{ReferenceError, ReferenceServer, next_line, read_lines};
use crate::serve_lines::{Request, parse_listening, parse_report};

/// Stages of a pipeline and their settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembly {
    /// The stages in the order of a message; at least one.
    pub stages: Vec<HopStage>,
    /// The stage that receives messages: the first, unless another part comes before it.
    pub entry: HopStage,
    /// Where the last stage stores readings.
    pub keeping: Keeping,
    /// Whether its database survives a power cut.
    pub is_durable: bool,
    /// The real broker in front of the gateway; `None` for the reference broker.
    pub broker: Option<String>,
    /// Most readings that a gathering stage passes on in one call; `None` for the default.
    /// An api with 1 makes a call for each request, many at the same time.
    pub batch: Option<u32>,
    /// How long such a stage waits for these; `None` for the default.
    pub linger: Option<Nanos>,
}

impl Assembly {
    /// True for a stage that gathers readings by `batch` and `linger`: the gateway, and an api with
    /// a store behind it that messages come in by. An api behind the gateway has one call at a time
    /// in hand: there is nothing to gather, and a linger would only delay it.
    pub fn gathers(&self, stage: HopStage) -> bool {
        self.stages.contains(&stage)
            && match stage {
                HopStage::Gateway => true,
                HopStage::Api => {
                    self.entry == HopStage::Api && self.stages.contains(&HopStage::Store)
                }
                _ => false,
            }
    }
}

/// Where readings are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeping {
    /// In a SQLite file.
    Database,
    /// In the memory of the last stage.
    Memory,
}

/// A running pipeline. Dropping it stops it.
#[derive(Debug)]
pub struct PipelineServer {
    assembly: Assembly,
    /// From the last stage to the entry, as they were started.
    parts: Vec<Part>,
    endpoint: Endpoint,
    database: Option<PathBuf>,
    folder: PathBuf,
}

/// One process of a pipeline.
#[derive(Debug)]
struct Part {
    name: &'static str,
    /// Its URL; the gateway has none.
    endpoint: Option<Endpoint>,
    hops: Option<(HopStage, PathBuf)>,
    process: PartProcess,
}

#[derive(Debug)]
enum PartProcess {
    Stage(Stage),
    Reference(ReferenceServer),
    Managed(Box<ManagedServer>),
}

/// Child process of a stage, controlled by [`crate::serve_lines`].
#[derive(Debug)]
struct Stage {
    process: ManagedProcess,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    /// True after an unanswered question: its next line may be the answer to that.
    is_behind: bool,
}

/// Counts of readings of the store and the api.
#[derive(Clone, Copy, Debug, Deserialize)]
struct StageCounts {
    received: u64,
    stored: u64,
    failed: u64,
}

/// True if all stages have recorded when they had which message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// True if no stage held a reading: each one was stored, or answered with a failure.
    pub is_at_rest: bool,
}

/// Why a pipeline could not be started.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    /// A stage, or the reference broker, failed.
    #[error("{stage}: {error}")]
    Stage {
        /// Its name.
        stage: &'static str,
        /// What went wrong.
        error: ReferenceError,
    },
    /// A real broker failed.
    #[error("broker: {0}")]
    Broker(#[from] ServerError),
    /// The broker is no longer in the catalogue.
    #[error("broker: {0} is no longer in the catalogue")]
    NoBroker(String),
}

impl PipelineError {
    /// The error of a process, if it is one.
    pub fn process(&self) -> Option<&ProcessError> {
        match self {
            PipelineError::Stage { error: ReferenceError::Process(process), .. }
            | PipelineError::Broker(ServerError::Process(process)) => Some(process),
            _ => None,
        }
    }
}

/// How a part of a pipeline ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartEnded {
    /// Which: `broker`, `gateway`, `api` or `store`.
    pub name: &'static str,
    /// How it ended.
    pub ended: Ended,
}

impl fmt::Display for PartEnded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "its {} with {}", self.name, self.ended)
    }
}

/// The entry: the broker in front of a gateway, and the gateway's subscription.
#[derive(Clone, Debug)]
pub struct Entrance<'e> {
    /// The real broker that the assembly names.
    pub broker: Option<Choice<'e>>,
    /// Arguments of the reference broker behind `serve mqtt`.
    pub broker_words: &'e [OsString],
    /// The gateway's QoS: 0, 1 or 2.
    pub qos: u8,
}

/// Common settings of all stages.
struct NamespaceRights<'g> {
    executable: &'g Path,
    folder: &'g Path,
    site: &'g Placement<'g>,
    within: Duration,
}

impl PipelineServer {
    /// Starts the stages of `assembly` as `executable serve STAGE`, each in a folder of its own
    /// below `folder`; all share the site.
    ///
    /// # Errors
    /// See [`PipelineError`]; those of processes hold the end of their logs. What was started
    /// before is stopped.
    pub fn start_in(
        executable: &Path,
        assembly: &Assembly,
        entrance: Entrance<'_>,
        folder: &Path,
        site: &Placement<'_>,
        within: Duration,
    ) -> Result<PipelineServer, PipelineError> {
        let failed = |error: ProcessError| ReferenceError::from(error);
        let error = |error| PipelineError::Stage { stage: "pipeline", error };
        let folder = &made_absolute(folder).map_err(failed).map_err(error)?;
        let ground = NamespaceRights { executable, folder, site, within };
        let mut parts: Vec<Part> = Vec::new();
        let mut database = None;
        for stage in assembly.stages.iter().rev().filter(|stage| **stage != HopStage::Gateway) {
            let next = parts.last().and_then(|part: &Part| part.endpoint.clone());
            let own = folder.join(stage.name());
            let file = own.join(DATABASE);
            let words = match stage {
                HopStage::Api => api_words(assembly, next.as_ref()),
                _ => store_words(assembly, &file),
            };
            if *stage == HopStage::Store && assembly.keeping == Keeping::Database {
                database = Some(file);
            }
            parts.push(ground.stage(*stage, words, true)?);
        }
        if assembly.stages.first() == Some(&HopStage::Gateway) {
            let next = parts.last().and_then(|part| part.endpoint.clone());
            let broker = ground.broker(assembly, entrance.broker, entrance.broker_words)?;
            let words =
                gateway_words(assembly, broker.endpoint.as_ref(), next.as_ref(), entrance.qos);
            parts.push(broker);
            parts.push(ground.stage(HopStage::Gateway, words, false)?);
        }
        let first = match assembly.entry {
            HopStage::Gateway => BROKER,
            stage => stage.name(),
        };
        let entry = parts.iter().find(|part| part.name == first);
        let entry = entry.and_then(|part| part.endpoint.clone());
        let nowhere = || ReferenceError::Nonsense("a pipeline without stages".to_owned());
        let endpoint = entry.ok_or_else(nowhere).map_err(error)?;
        let (assembly, folder) = (assembly.clone(), folder.to_owned());
        Ok(PipelineServer { assembly, parts, endpoint, database, folder })
    }

    /// Where messages enter.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Its URL with this scheme, at whichever stage; `None` if no stage has it.
    pub fn endpoint_for(&self, scheme: &str) -> Option<&Endpoint> {
        let mut endpoints = self.parts.iter().filter_map(|part| part.endpoint.as_ref());
        endpoints.find(|endpoint| endpoint.scheme == scheme)
    }

    /// Its settings.
    pub fn assembly(&self) -> &Assembly {
        &self.assembly
    }

    /// The folder that holds those of its parts.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Name and process ID of every process, in the order of a message.
    pub fn pids(&self) -> Vec<(&'static str, u32)> {
        let of_broker = self.parts.iter().filter(|part| part.name == BROKER);
        let others = self.parts.iter().rev().filter(|part| part.name != BROKER);
        of_broker.chain(others).map(|part| (part.name, part.pid())).collect()
    }

    /// The files in which the stages from the entry on record when they had which message, in
    /// the order of a message.
    pub fn hops(&self) -> Vec<(HopStage, PathBuf)> {
        let hops = self.parts.iter().rev().filter_map(|part| part.hops.clone());
        hops.filter(|(stage, _)| *stage >= self.assembly.entry).collect()
    }

    /// URL of the last stage, which stores readings.
    pub fn keeper(&self) -> Option<&Endpoint> {
        self.parts.first().and_then(|part| part.endpoint.as_ref())
    }

    /// The file of its database; `None` where readings are kept in memory.
    pub fn database(&self) -> Option<&Path> {
        self.database.as_deref()
    }

    /// Description in words: its stages in the order of a message.
    pub fn words(&self) -> String {
        let named = |stage: &HopStage| match (stage, self.assembly.batch) {
            (_, Some(batch)) if self.assembly.gathers(*stage) => {
                format!("{} (batches of {batch})", stage.name())
            }
            _ => stage.name().to_owned(),
        };
        let broker = self.parts.iter().find_map(|part| match &part.process {
            PartProcess::Managed(server) => Some(server.title().to_owned()),
            PartProcess::Reference(_) => Some("reference broker".to_owned()),
            PartProcess::Stage(_) => None,
        });
        let keeping = match (self.assembly.keeping, self.assembly.is_durable) {
            (Keeping::Memory, _) => "memory",
            (Keeping::Database, true) => "SQLite, durable",
            (Keeping::Database, false) => "SQLite, not durable",
        };
        let stages = self.assembly.stages.iter().map(named);
        let words: Vec<String> =
            broker.into_iter().chain(stages).chain([keeping.to_owned()]).collect();
        words.join(" > ")
    }

    /// The first part that has ended, in the order of a message, if one has.
    pub fn ended(&mut self) -> Option<PartEnded> {
        self.parts.iter_mut().rev().find_map(|part| {
            let ended = part.ended()?;
            Some(PartEnded { name: part.name, ended })
        })
    }

    /// Counts of the reference broker; `None` if there is none, or it does not answer.
    pub fn broker_report(&mut self, within: Duration) -> Option<ServerReport> {
        self.parts.iter_mut().find_map(|part| match &mut part.process {
            PartProcess::Reference(server) => server.report(within).ok(),
            _ => None,
        })
    }

    /// Makes the stages write what they recorded up to now, which they otherwise do ten times a
    /// second. `None` if one of them does not confirm in time, or if there is a gateway, which
    /// cannot know what its broker still holds.
    pub fn write_down(&mut self, within: Duration) -> Option<Written> {
        let mut is_at_rest = true;
        // In the order of a message: what one has handed on, the next has by then.
        for part in self.parts.iter_mut().rev() {
            let PartProcess::Stage(stage) = &mut part.process else { return None };
            let StageCounts { received, stored, failed } = stage.counts(within)?;
            is_at_rest &= received == stored + failed;
        }
        Some(Written { is_at_rest })
    }

    /// Stops all parts, first the one that receives messages.
    pub fn stop(self, grace: Duration) {
        for part in self.parts.into_iter().rev() {
            match part.process {
                PartProcess::Stage(stage) => stage.stop(grace),
                PartProcess::Reference(server) => drop(server.stop(grace)),
                PartProcess::Managed(server) => drop(server.stop()),
            }
        }
    }
}

impl Part {
    fn pid(&self) -> u32 {
        match &self.process {
            PartProcess::Stage(stage) => stage.process.pid(),
            PartProcess::Reference(server) => server.pid(),
            PartProcess::Managed(server) => server.pid(),
        }
    }

    fn ended(&mut self) -> Option<Ended> {
        match &mut self.process {
            PartProcess::Stage(stage) => stage.process.ended(),
            PartProcess::Reference(server) => server.ended(),
            PartProcess::Managed(server) => server.ended(),
        }
    }
}

impl Stage {
    /// Its counts, once the hops of all counted readings are in its file.
    fn counts(&mut self, within: Duration) -> Option<StageCounts> {
        let stdin = self.stdin.as_mut().filter(|_| !self.is_behind)?;
        let asked = writeln!(stdin, "{}", Request::Report.line()).ok();
        let line = asked.and_then(|()| next_line(&mut self.process, &self.lines, within).ok());
        self.is_behind = line.is_none();
        parse_report(&line?).ok()
    }

    /// Closes its stdin, at which it ends, and sends signals if it does not.
    fn stop(mut self, grace: Duration) {
        drop(self.stdin.take());
        self.process.wait_ended(grace);
        self.process.stop(Signal::TERM, grace);
    }
}

impl NamespaceRights<'_> {
    /// Starts a stage and waits for its first line: its URL, or, for the gateway, that it
    /// has subscribed.
    fn stage(
        &self,
        stage: HopStage,
        words: Vec<OsString>,
        listens: bool,
    ) -> Result<Part, PipelineError> {
        let name = stage.name();
        let failed = |error| PipelineError::Stage { stage: name, error };
        let folder =
            made_absolute(&self.folder.join(name)).map_err(|error| failed(error.into()))?;
        let hops = folder.join(HOPS);
        let unwritable = |error| ProcessError::Unwritable { path: folder.clone(), error };
        forget(&folder).map_err(unwritable).map_err(|error| failed(error.into()))?;
        let mut arguments: Vec<OsString> = vec!["serve".into(), name.into()];
        arguments.extend(words);
        arguments.extend(["--hops".into(), hops.clone().into(), "--control".into()]);
        if listens {
            let at = format!("{}:0", self.site.address());
            arguments.extend(["--listen".into(), at.into()]);
        }
        let process = ManagedProcess::start(&Start {
            program: self.executable.to_owned(),
            arguments,
            environment: Vec::new(),
            folder: folder.clone(),
            log: Some(folder.join(format!("{name}.log"))),
            cores: self.site.cores.cloned(),
            piped: true,
            door: self.site.host.map(Host::door),
            enclosure: self.site.enclosure.cloned(),
        });
        let mut process = process.map_err(|error| failed(error.into()))?;
        let (stdin, stdout) = (process.take_stdin(), process.take_stdout());
        let lines = said_by(stdout).map_err(failed)?;
        let first = match next_line(&mut process, &lines, self.within) {
            Err(ReferenceError::Gone { .. }) if let Some(ended) = process.ended() => {
                return Err(failed(process.ended_early(ended).into()));
            }
            outcome => outcome.map_err(failed)?,
        };
        let endpoint = match listens {
            true => Some(parse_listening(&first).map_err(|said| failed(nonsense(said)))?),
            false if first.starts_with(FORWARDING) => None,
            false => return Err(failed(nonsense(format!("its first line was {first:?}")))),
        };
        let process = PartProcess::Stage(Stage { process, stdin, lines, is_behind: false });
        Ok(Part { name, endpoint, hops: Some((stage, hops)), process })
    }

    fn broker(
        &self,
        assembly: &Assembly,
        choice: Option<Choice<'_>>,
        words: &[OsString],
    ) -> Result<Part, PipelineError> {
        let folder = self.folder.join(BROKER);
        let process = match (&assembly.broker, choice) {
            (None, _) => {
                let mut arguments: Vec<OsString> = vec!["mqtt".into(), "--control".into()];
                arguments.extend(words.iter().cloned());
                let started = ReferenceServer::start_in(
                    self.executable,
                    &arguments,
                    &folder,
                    self.site,
                    self.within,
                );
                let failed = |error| PipelineError::Stage { stage: BROKER, error };
                PartProcess::Reference(started.map_err(failed)?)
            }
            (Some(_), Some(choice)) => {
                let layers = Layers::default();
                let started =
                    ManagedServer::start_in(choice, Some("mqtt"), &folder, self.site, layers)?;
                PartProcess::Managed(Box::new(started))
            }
            (Some(name), None) => return Err(PipelineError::NoBroker(name.clone())),
        };
        let endpoint = match &process {
            PartProcess::Reference(server) => Some(server.endpoint().clone()),
            PartProcess::Managed(server) => Some(server.endpoint().clone()),
            PartProcess::Stage(_) => None,
        };
        Ok(Part { name: BROKER, endpoint, hops: None, process })
    }
}

fn said_by(stdout: Option<ChildStdout>) -> Result<Receiver<String>, ReferenceError> {
    let lines = stdout.map(read_lines).transpose()?;
    lines.ok_or_else(|| nonsense("it has no stdout".to_owned()))
}

fn nonsense(said: String) -> ReferenceError {
    ReferenceError::Nonsense(said)
}

fn store_words(assembly: &Assembly, file: &Path) -> Vec<OsString> {
    let database = match assembly.keeping {
        Keeping::Database => file.into(),
        Keeping::Memory => MEMORY.into(),
    };
    let durable = if assembly.is_durable { "on" } else { "off" };
    let mut words: Vec<OsString> = vec!["--database".into(), database];
    if assembly.keeping == Keeping::Database {
        words.extend(["--durable".into(), durable.into()]);
    }
    words
}

fn api_words(assembly: &Assembly, store: Option<&Endpoint>) -> Vec<OsString> {
    let store = store.map_or_else(|| MEMORY.to_owned(), Endpoint::to_string);
    let mut words = vec!["--store".into(), store.into()];
    if assembly.gathers(HopStage::Api) {
        words.extend(gathering_words(assembly));
    }
    words
}

fn gateway_words(
    assembly: &Assembly,
    broker: Option<&Endpoint>,
    next: Option<&Endpoint>,
    qos: u8,
) -> Vec<OsString> {
    let url = |endpoint: Option<&Endpoint>| endpoint.map(Endpoint::to_string).unwrap_or_default();
    let mut words: Vec<OsString> = vec!["--broker".into(), url(broker).into()];
    words.extend(["--to".into(), url(next).into(), "--qos".into(), qos.to_string().into()]);
    words.extend(gathering_words(assembly));
    words
}

/// Gathering options of a stage, as far as given.
fn gathering_words(assembly: &Assembly) -> impl Iterator<Item = OsString> + use<> {
    let batch = assembly.batch.map(|batch| batch.to_string());
    let linger = assembly.linger.map(|linger| linger.typed());
    let said = [("--batch", batch), ("--linger", linger)].into_iter();
    said.flat_map(|(flag, value)| value.map(|value| [flag.into(), value.into()])).flatten()
}

/// The part in front of the gateway.
pub const BROKER: &str = "broker";

/// File with a stage's hops, in its folder.
const HOPS: &str = "hops";

/// Removes files that a killed attempt may have left in a stage's folder: its rows would be
/// counted as well.
fn forget(folder: &Path) -> io::Result<()> {
    let journals = ["-wal", "-shm"].map(|end| format!("{DATABASE}{end}"));
    let names = [HOPS, DATABASE, journals[0].as_str(), journals[1].as_str()];
    for left in names.map(|name| folder.join(name)) {
        match std::fs::remove_file(left) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// The file of the store's database in its folder.
const DATABASE: &str = "readings.sqlite";

/// Argument for memory instead of a database or a store.
const MEMORY: &str = "memory";

/// Prefix of the gateway's first line.
const FORWARDING: &str = "forwarding from ";
