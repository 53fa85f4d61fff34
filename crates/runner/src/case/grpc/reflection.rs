//! Definitions of services from a running server, which describes itself.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::time::Duration;

use prost::Message;
use prost_reflect::DescriptorPool;
use prost_reflect::prost_types::FileDescriptorProto;
use protox::file::{FileResolver as _, GoogleFileResolver};
use weigh_model::protocol::{Dial, Invalid};
use weigh_model::{Endpoint, Load, Pattern, Trial};
use weigh_probe::{Questions, Reach};
use weigh_protocols::grpc::reflection::{
    Answered, METHODS, Question, Replies, UNIMPLEMENTED, dial,
};

use super::instead::instead;
use crate::case::lanes::{Against, Lane};
use crate::targets::tls::CertificateFiles;
use crate::targets::{addresses, layers};

/// Asks the lane's server for the definition of a service, and for what that imports.
///
/// # Errors
/// A target that is not running yet; a server that does not describe itself, or lacks the service.
pub(super) fn definitions(lane: &Lane, service: &str) -> Result<DescriptorPool, Invalid> {
    let Against::Foreign(endpoint) = &lane.against else {
        let problem =
            format!("only a server given by its URL can describe the service {service:?}");
        let fix = "name the file with its definition (--proto FILE), or a URL";
        return Err(Invalid::new("grpc.method", problem, fix));
    };
    for method in METHODS {
        let mut server = Described::open(lane, endpoint, method)?;
        if let Some(files) = server.files_of(service)? {
            return pool(files);
        }
    }
    let problem = format!("{endpoint} does not describe its services (reflection)");
    Err(Invalid::new("grpc.proto", problem, "name the file with the definition: --proto FILE"))
}

/// A server that is asked.
struct Described {
    questions: Questions,
    replies: Replies,
    endpoint: Endpoint,
}

impl Described {
    fn open(lane: &Lane, endpoint: &Endpoint, method: &str) -> Result<Described, Invalid> {
        let trial = trial(lane, endpoint);
        let (dial, replies) = dial(&trial, method)?;
        let (dial, reach) = layered(lane, endpoint, dial)?;
        let questions = Questions::open(&reach, &dial).map_err(|said| wrong(endpoint, &said))?;
        Ok(Described { questions, replies, endpoint: endpoint.clone() })
    }

    /// The answer to a question; `None` from a server without the method.
    fn ask(&mut self, question: Question<'_>) -> Result<Option<Answered>, Invalid> {
        let replies = &self.replies;
        let asked = self.questions.ask(&question.encode(), || !replies.is_empty());
        asked.map_err(|said| wrong(&self.endpoint, &said))?;
        let reply = self.replies.take().unwrap_or_default();
        if reply.status == UNIMPLEMENTED {
            return Ok(None);
        }
        let decoded = reply.messages.first().and_then(|message| Answered::decode(message));
        decoded.map(Some).ok_or_else(|| {
            let said = format!("status {} to reflection: {}", reply.status, reply.words);
            wrong(&self.endpoint, &said)
        })
    }

    /// All files that the definition of a service needs; `None` from a server without the method.
    fn files_of(
        &mut self,
        service: &str,
    ) -> Result<Option<BTreeMap<String, FileDescriptorProto>>, Invalid> {
        let mut files = BTreeMap::new();
        let mut wanted = VecDeque::new();
        let mut asked = BTreeSet::new();
        match self.ask(Question::FileOf(service))? {
            None => return Ok(None),
            Some(Answered::Files(found)) => self.add(found, &mut files, &mut wanted)?,
            Some(_) => return Err(self.unknown(service)?),
        }
        while let Some(name) = wanted.pop_front() {
            if files.contains_key(&name) || !asked.insert(name.clone()) {
                continue;
            }
            match self.ask(Question::File(&name))? {
                Some(Answered::Files(found)) => self.add(found, &mut files, &mut wanted)?,
                // Some servers leave out files of Google, which the compiler has.
                _ => match GoogleFileResolver::new().open_file(&name) {
                    Ok(file) => drop(files.insert(name, file.file_descriptor_proto().clone())),
                    Err(_) => {
                        return Err(wrong(&self.endpoint, &format!("it does not have {name}")));
                    }
                },
            }
        }
        Ok(Some(files))
    }

    fn add(
        &self,
        found: Vec<Vec<u8>>,
        files: &mut BTreeMap<String, FileDescriptorProto>,
        wanted: &mut VecDeque<String>,
    ) -> Result<(), Invalid> {
        for bytes in found {
            let file = FileDescriptorProto::decode(&bytes[..]).map_err(|error| {
                wrong(&self.endpoint, &format!("a definition cannot be read: {error}"))
            })?;
            wanted.extend(file.dependency.iter().cloned());
            if files.len() >= FILES_MAX {
                return Err(wrong(&self.endpoint, &"it has too many files"));
            }
            files.insert(file.name().to_owned(), file);
        }
        Ok(())
    }

    /// The error for a service that is not there.
    fn unknown(&mut self, service: &str) -> Result<Invalid, Invalid> {
        let names = match self.ask(Question::Services)? {
            Some(Answered::Services(names)) => names,
            _ => Vec::new(),
        };
        let problem = format!("{} has no service {service}", self.endpoint);
        Ok(Invalid::new("grpc.method", problem, instead("service", service, names)))
    }
}

/// A pool of these files.
fn pool(files: BTreeMap<String, FileDescriptorProto>) -> Result<DescriptorPool, Invalid> {
    let mut pool = DescriptorPool::new();
    pool.add_file_descriptor_protos(files.into_values()).map_err(unusable)?;
    Ok(pool)
}

fn unusable(error: prost_reflect::DescriptorError) -> Invalid {
    let problem = format!("the server's definitions cannot be used: {error}");
    Invalid::new("grpc.proto", problem, "name the file with the definition: --proto FILE")
}

fn wrong(endpoint: &Endpoint, said: &dyn std::fmt::Display) -> Invalid {
    let problem = format!("{endpoint} could not be asked for its services: {said}");
    let fix = "start the server, or name the file with the definition: --proto FILE";
    Invalid::new("grpc.proto", problem, fix)
}

/// What the questions share with the trials: target, credentials, metadata.
fn trial(lane: &Lane, endpoint: &Endpoint) -> Trial {
    Trial {
        id: "reflection".to_owned(),
        point: BTreeMap::new(),
        repetition: 0,
        seed: 1,
        protocol: lane.protocol.name().to_owned(),
        target: lane.against.name(),
        endpoint: Some(endpoint.clone()),
        load: Load::closed(Pattern::Request, 1),
        settings: lane.settings.clone(),
    }
}

fn layered(lane: &Lane, endpoint: &Endpoint, dial: Dial) -> Result<(Dial, Reach), Invalid> {
    let stopped = |stop: crate::exit::Stop| wrong(endpoint, &stop);
    let address = addresses::resolve(endpoint).map_err(stopped)?;
    let vault = CertificateFiles::new(PathBuf::new());
    let (dial, _) = layers::dial(lane, dial, (endpoint, 1), &vault).map_err(stopped)?;
    let reach = Reach::of_layered(endpoint.clone(), address, PATIENCE);
    Ok((dial, reach))
}

/// Longest wait for one answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Files that one service may need.
const FILES_MAX: usize = 10_000;
