//! What a trial is made of that lies in files: the content of bodies, the times of a trace.

use weigh_model::body::{BodySource, Composer, widest_mark};
use weigh_model::{Nanos, Trial};

use crate::exit::Stop;

/// The content of a body source, read before anything starts.
#[derive(Clone, Debug, Default)]
pub struct Material {
    /// What the body source holds.
    pub body: Vec<u8>,
    /// The due times of a trace.
    pub trace: Vec<Nanos>,
}

/// Reads the files a trial's body and arrival name.
pub fn material(body: &BodySource, trace: Option<&str>) -> Result<Material, Stop> {
    let read = |what: &str, path: &str| {
        std::fs::read(path).map_err(|error| {
            Stop::usage(format!(
                "{what} {path}: cannot be read: {error}; name a file that is there"
            ))
        })
    };
    let body = match (body, body.path()) {
        (_, Some(path)) => read("--body", path)?,
        (BodySource::Readings, None) => READINGS.as_bytes().to_vec(),
        _ => Vec::new(),
    };
    let trace = match trace {
        Some(path) => parse_trace(path, &read("--arrival trace", path)?)?,
        None => Vec::new(),
    };
    Ok(Material { body, trace })
}

fn parse_trace(path: &str, text: &[u8]) -> Result<Vec<Nanos>, Stop> {
    let text = String::from_utf8_lossy(text);
    let mut times = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let seconds = line.parse().ok().filter(|s: &f64| s.is_finite() && *s >= 0.0);
        let seconds = seconds.ok_or_else(|| {
            let line_number = index + 1;
            Stop::usage(format!(
                "{path}:{line_number}: {line:?} is no due time; write one number of seconds since \
                 the start a line"
            ))
        })?;
        times.push(Nanos::from_secs_f64(seconds));
    }
    if times.is_empty() {
        return Err(Stop::usage(format!("{path}: holds no due times")));
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
const READINGS: &str = include_str!("../data/hydroponics.jsonl");
