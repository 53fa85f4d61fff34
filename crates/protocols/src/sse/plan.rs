//! What all clients of a trial have in common.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use weigh_model::body::BodySource;
use weigh_model::protocol::Invalid;
use weigh_model::trial::Trial;
use weigh_model::{Endpoint, Topology};

use super::codec;
use crate::http1_core::template::{Method, Template, add_field};
use crate::statuses::Statuses;
use crate::{push_core, requests};

/// Settings of all clients.
pub(super) struct Plan {
    pub(super) event_bytes_max: usize,
    resumes: bool,
    is_in_pairs: bool,
    /// The requests of producers and of subscribers, by channel.
    templates: Vec<Arc<Template>>,
    questions: Vec<Vec<u8>>,
    /// IDs of the last events of subscribers whose connections have ended, by seat.
    last_ids: Mutex<HashMap<u32, Vec<u8>>>,
}

impl Plan {
    /// Reads a trial.
    ///
    /// # Errors
    /// A trial that server-sent events cannot do.
    pub(super) fn read(trial: &Trial) -> Result<Plan, Invalid> {
        let (settings, load) = (&trial.settings, &trial.load);
        check(trial)?;
        let endpoint = trial.endpoint.as_ref().ok_or_else(|| {
            Invalid::new("target", "its address is unknown", "type sse://HOST:PORT/PATH")
        })?;
        let (place, path) = match endpoint.path.split('#').next().unwrap_or_default() {
            "" => ("sse.path", settings.text("path")),
            path => ("target", path),
        };
        let (publish_place, publish) = match settings.text("publish_path") {
            "" => (place, path),
            publish => ("sse.publish_path", publish),
        };
        requests::check_path(place, path)?;
        requests::check_path(publish_place, publish)?;
        let added = requests::added_fields(settings, endpoint, "sse", &TAKEN_FIELDS)?;
        let is_in_pairs = load.delivers() && load.topology == Topology::Pairs;
        let channels = if is_in_pairs { load.connections } else { 1 };
        let below = |path: &str, channel: u32| match is_in_pairs {
            true => requests::path_in_pairs(path, channel),
            false => path.to_owned(),
        };
        let templates = (0..channels).map(|channel| {
            template(trial, endpoint, &below(publish, channel), &added).map(Arc::new)
        });
        let questions =
            (0..channels).map(|channel| question(endpoint, &below(path, channel), &added));
        Ok(Plan {
            event_bytes_max: settings.integer("event_bytes_max").max(64) as usize,
            resumes: settings.flag("resume"),
            is_in_pairs,
            templates: templates.collect::<Result<Vec<_>, _>>()?,
            questions: questions.collect(),
            last_ids: Mutex::default(),
        })
    }

    /// True if each producer has a subscriber of its own.
    pub(super) fn is_in_pairs(&self) -> bool {
        self.is_in_pairs
    }

    /// True if a subscriber continues behind the last event that it had.
    pub(super) fn resumes(&self) -> bool {
        self.resumes
    }

    /// The request of a producer.
    pub(super) fn template(&self, index: u32) -> Arc<Template> {
        self.templates[index as usize % self.templates.len()].clone()
    }

    /// Appends the request of a subscriber, which continues behind the event `last_id`.
    pub(super) fn put_question(&self, index: u32, last_id: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.questions[index as usize % self.questions.len()]);
        if self.resumes && !last_id.is_empty() {
            out.extend_from_slice(b"Last-Event-ID: ");
            out.extend_from_slice(last_id);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"\r\n");
    }

    /// Takes what the last connection of a seat left.
    pub(super) fn take_last_id(&self, seat: u32) -> Vec<u8> {
        self.last_ids().remove(&seat).unwrap_or_default()
    }

    /// Leaves the ID of the last event for the next connection of a seat.
    pub(super) fn leave_last_id(&self, seat: u32, id: &[u8]) {
        self.last_ids().insert(seat, id.to_vec());
    }

    fn last_ids(&self) -> std::sync::MutexGuard<'_, HashMap<u32, Vec<u8>>> {
        self.last_ids.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The POST of a producer.
fn template(
    trial: &Trial,
    endpoint: &Endpoint,
    path: &str,
    added: &str,
) -> Result<Template, Invalid> {
    let settings = &trial.settings;
    let mut head = String::new();
    add_field(&mut head, "Host", &endpoint.authority_omitting(80));
    let content_type = settings.text("content_type");
    if content_type.bytes().any(|byte| byte != b'\t' && byte.is_ascii_control()) {
        return Err(Invalid::new(
            "sse.content_type",
            format!("{content_type:?} has a control character"),
            "remove line ends and other control characters",
        ));
    }
    if !content_type.is_empty() {
        add_field(&mut head, "Content-Type", content_type);
    }
    head += added;
    head += "Content-Length: ";
    Ok(Template {
        method: Method::Post,
        places: None,
        line: format!("POST {path} HTTP/1.1\r\n").into_bytes(),
        head: head.into_bytes(),
        statuses: Statuses::read(settings.text("status"), "sse.status")?,
        expects: false,
        is_chunked: false,
        pipeline: trial.load.window.unwrap_or(1).max(1),
        put_batch: None,
    })
}

/// The GET of a subscriber, up to Last-Event-ID.
fn question(endpoint: &Endpoint, path: &str, added: &str) -> Vec<u8> {
    let mut head = format!("GET {path} HTTP/1.1\r\n");
    add_field(&mut head, "Host", &endpoint.authority_omitting(80));
    add_field(&mut head, "Accept", codec::KIND);
    add_field(&mut head, "Cache-Control", "no-store");
    head += added;
    head.into_bytes()
}

fn check(trial: &Trial) -> Result<(), Invalid> {
    let (settings, load) = (&trial.settings, &trial.load);
    push_core::trial::check(trial, "sse")?;
    if load.body.seal().is_some() || matches!(load.body, BodySource::File(_)) {
        return Err(Invalid::new(
            "load.body",
            format!(
                "{} may not be text, and an event is UTF-8 without carriage returns",
                load.body
            ),
            "type another --body, or compare websocket",
        ));
    }
    let most = settings.integer("event_bytes_max");
    if let Some(size) = load.size.filter(|size| size.0 > most) {
        return Err(Invalid::new(
            "load.size",
            format!("{size} is more than sse.event_bytes_max"),
            format!("type at most {most}B, or raise sse.event_bytes_max"),
        ));
    }
    Ok(())
}

/// Fields that Weighbridge sets itself, and what to do instead.
const TAKEN_FIELDS: [(&str, &str); 8] = [
    ("host", "it is taken from the target's URL"),
    ("accept", "a subscriber accepts event streams only"),
    ("cache-control", "a subscriber sends no-store"),
    ("last-event-id", "set sse.resume"),
    ("content-length", "it is taken from the body"),
    ("content-type", "set sse.content_type"),
    ("transfer-encoding", "bodies are sent with their length"),
    ("connection", "connections are kept"),
];
