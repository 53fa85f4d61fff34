//! What a trial is made of that lies in files: the content of bodies, the times of a trace.

use std::collections::BTreeMap;
use std::sync::Arc;

use weigh_model::body::{BodySource, Composer, widest_mark};
use weigh_model::protocol::Invalid;
use weigh_model::{Arrival, Load, Nanos, Trial};

use crate::exit::Stop;

/// The content of a body source, read before anything starts.
#[derive(Clone, Debug, Default)]
pub struct Material {
    /// What the body source holds.
    pub body: Vec<u8>,
    /// The due times of a trace.
    pub trace: Vec<Nanos>,
}

/// What was read from files, each once.
#[derive(Debug, Default)]
pub struct Shelf(BTreeMap<(String, Option<String>), Arc<Material>>);

impl Shelf {
    /// The material of a load.
    ///
    /// # Errors
    /// If a file cannot be read, or holds no due times.
    pub fn fetch(&mut self, load: &Load) -> Result<Arc<Material>, Invalid> {
        let trace = match &load.arrival {
            Arrival::Trace(path) => Some(path.clone()),
            _ => None,
        };
        let name = (load.body.to_string(), trace.clone());
        if let Some(material) = self.0.get(&name) {
            return Ok(Arc::clone(material));
        }
        let material = Arc::new(material(&load.body, trace.as_deref())?);
        self.0.insert(name, Arc::clone(&material));
        Ok(material)
    }
}

fn material(body: &BodySource, trace: Option<&str>) -> Result<Material, Invalid> {
    let read = |key: &str, path: &str| {
        std::fs::read(path).map_err(|error| {
            let problem = format!("{path} cannot be read: {error}");
            Invalid::new(key, problem, "name a file that is there")
        })
    };
    let body = match (body, body.path()) {
        (_, Some(path)) => read("load.body", path)?,
        (BodySource::Readings, None) => READINGS.as_bytes().to_vec(),
        _ => Vec::new(),
    };
    let trace = match trace {
        Some(path) => parse_trace(path, &read("load.arrival", path)?)?,
        None => Vec::new(),
    };
    Ok(Material { body, trace })
}

fn parse_trace(path: &str, text: &[u8]) -> Result<Vec<Nanos>, Invalid> {
    let wrong = |problem: String, mend: &str| Err(Invalid::new("load.arrival", problem, mend));
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
                format!("{path}:{}: {line:?} is no due time", index + 1),
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

/// What makes the bodies of a trial.
pub fn composer(trial: &Trial, material: &Material, unix_ns: u64) -> Result<Composer, Stop> {
    let load = &trial.load;
    let largest = widest_mark(load.connections, load.messages.unwrap_or(1 << 40));
    Composer::new(&load.body, &material.body, load.size, &largest, unix_ns).map_err(Stop::usage)
}

/// The hydroponic readings that bodies are made of by default.
const READINGS: &str = include_str!("../../data/hydroponics.jsonl");
