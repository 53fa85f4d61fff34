//! Reads the files of a load: contents of bodies, due times of a trace.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use weigh_engine::object::ObjectFile;
use weigh_model::body::{BodySource, Composer, widest_mark};
use weigh_model::protocol::Invalid;
use weigh_model::{Arrival, Load, Nanos, Pattern, Trial};
use weigh_seal::BodySealer;

use crate::case::readings;
use crate::exit::Stop;
use crate::input_file::{self, CONTENT_BYTES_MAX};
use crate::sealed_bodies;

/// Contents of the files of a load, read before anything starts.
#[derive(Clone, Debug, Default)]
pub struct Material {
    /// Contents of the body source.
    pub body: Vec<u8>,
    /// Size of the file that is streamed instead, bytes.
    pub object_bytes: u64,
    /// The due times of a trace.
    pub trace: Vec<Nanos>,
}

/// Files that were read, each once.
#[derive(Debug, Default)]
pub struct Shelf(BTreeMap<(String, bool, bool, Option<String>), Arc<Material>>);

impl Shelf {
    /// Reads the files of a load; if `is_stored`, bodies are whole readings.
    ///
    /// # Errors
    /// A file that cannot be read, or holds no due times.
    pub fn fetch(&mut self, load: &Load, is_stored: bool) -> Result<Arc<Material>, Invalid> {
        let trace = match &load.arrival {
            Arrival::Trace(path) => Some(path.clone()),
            _ => None,
        };
        let moves = load.pattern == Pattern::Transfer;
        let name = (load.body.content().to_string(), moves, is_stored, trace.clone());
        if let Some(material) = self.0.get(&name) {
            return Ok(Arc::clone(material));
        }
        let object_bytes = object(load)?.map_or(0, |object| object.bytes());
        let material = Material { object_bytes, ..material(load, trace.as_deref(), is_stored)? };
        let material = Arc::new(material);
        self.0.insert(name, Arc::clone(&material));
        Ok(material)
    }
}

/// The file that is streamed, if there is one.
///
/// # Errors
/// A file that cannot be sent.
pub fn object(load: &Load) -> Result<Option<ObjectFile>, Invalid> {
    let (Pattern::Transfer, BodySource::File(path)) = (load.pattern, &load.body) else {
        return Ok(None);
    };
    let opened = ObjectFile::open(path);
    opened.map(Some).map_err(|error| {
        Invalid::new("load.body", error.to_string(), "name a file with something in it: file:FILE")
    })
}

fn material(load: &Load, trace: Option<&str>, is_stored: bool) -> Result<Material, Invalid> {
    let body = load.body.content();
    let read = |key: &str, path: &str| {
        input_file::bytes(Path::new(path), CONTENT_BYTES_MAX).map_err(|error| {
            let problem = format!("{path} cannot be read: {error}");
            let fix = match error.kind() {
                ErrorKind::FileTooLarge => "name a smaller file, or move it with transfer",
                _ => "name a file that exists",
            };
            Invalid::new(key, problem, fix)
        })
    };
    let body = match (body, body.path()) {
        (BodySource::File(_), _) if load.pattern == Pattern::Transfer => Vec::new(),
        (_, Some(path)) => read("load.body", path)?,
        (BodySource::Readings, None) if is_stored => readings::of_stages(READINGS).into_bytes(),
        (BodySource::Readings, None) => READINGS.as_bytes().to_vec(),
        _ => Vec::new(),
    };
    let trace = match trace {
        Some(path) => parse_trace(path, &read("load.arrival", path)?)?,
        None => Vec::new(),
    };
    Ok(Material { body, object_bytes: 0, trace })
}

fn parse_trace(path: &str, text: &[u8]) -> Result<Vec<Nanos>, Invalid> {
    let wrong = |problem: String, fix: &str| Err(Invalid::new("load.arrival", problem, fix));
    let text = String::from_utf8_lossy(text);
    let mut times = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let seconds = line.parse().ok().filter(|s: &f64| s.is_finite() && *s >= 0.0);
        let Some(seconds) = seconds else {
            return wrong(
                format!("{path}:{}: {line:?} is not a due time", index + 1),
                "write one number of seconds since the start a line",
            );
        };
        times.push(Nanos::from_secs_f64(seconds));
    }
    if times.is_empty() {
        return wrong(format!("{path} holds no due times"), "write one a line");
    }
    times.sort_unstable();
    Ok(times)
}

/// Makes the bodies of a trial, and seals them if the load requires it.
///
/// # Errors
/// Bodies that cannot be made, or a system without random bytes for their seal.
pub fn composer(
    trial: &Trial,
    material: &Material,
    unix_ns: u64,
) -> Result<(Composer, Option<Arc<BodySealer>>), Stop> {
    let load = &trial.load;
    let largest = widest_mark(load.connections, load.messages.unwrap_or(1 << 40));
    let content = (&material.body[..], material.object_bytes);
    let sealer = sealed_bodies::sealer(load)?;
    let (body, size) = (&load.body, load.size);
    let composer = match (load.pattern, sealer.clone()) {
        (Pattern::Transfer, _) => Composer::in_pieces(body, content, size, &largest, unix_ns),
        (_, Some(sealer)) => Composer::sealed(body, content.0, size, &largest, unix_ns, sealer),
        (_, None) => Composer::new(body, content.0, size, &largest, unix_ns),
    };
    Ok((composer.map_err(Stop::usage)?, sealer))
}

/// The hydroponic readings, default content of bodies.
const READINGS: &str = include_str!("../../../../data/hydroponics.jsonl");
