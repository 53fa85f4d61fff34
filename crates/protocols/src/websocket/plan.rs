//! What all clients of a trial have in common.

use std::sync::atomic::{AtomicU64, Ordering};

use weigh_model::body::BodySource;
use weigh_model::protocol::{Invalid, Role, Seat};
use weigh_model::trial::{Settings, Trial};
use weigh_model::{Nanos, Pattern, Topology};
use weigh_websocket::{Opcode, Rules, upgrade};

use super::routes;
use super::settings::{self, Confirm};
use crate::chance::Chance;
use crate::{fields, push_core, requests};

/// Settings of all clients.
pub(super) struct Plan {
    pub(super) confirm: Confirm,
    /// Text or binary.
    pub(super) kind: Opcode,
    /// Largest payload of one frame; 0 for any.
    pub(super) fragment_bytes: usize,
    pub(super) rules: Rules,
    pub(super) keep_alive: Nanos,
    /// True if producers have subscribers.
    pub(super) delivers: bool,
    pub(super) subprotocol: String,
    topology: Topology,
    host: String,
    publish: String,
    subscribe: String,
    /// Further header fields, with their line ends.
    fields: String,
    seed: u64,
    connections: AtomicU64,
}

impl Plan {
    /// Reads a trial.
    ///
    /// # Errors
    /// A trial that WebSocket by itself cannot do.
    pub(super) fn read(trial: &Trial) -> Result<Plan, Invalid> {
        let (settings, load) = (&trial.settings, &trial.load);
        check(trial)?;
        let endpoint = trial.endpoint.as_ref().ok_or_else(|| {
            Invalid::new("target", "its address is unknown", "type websocket://HOST:PORT")
        })?;
        let confirm = settings::confirm(settings);
        let given = |key: &str| !settings.text(key).is_empty();
        let (publish, subscribe) = match endpoint.path.as_str() {
            "" => (routes::path(settings), routes::subscribe_path(settings)),
            path if given("subscribe_path") => (path, routes::subscribe_path(settings)),
            path => (path, path),
        };
        let place = if endpoint.path.is_empty() { "websocket.path" } else { "target" };
        Ok(Plan {
            confirm,
            kind: if settings.text("kind") == "text" { Opcode::Text } else { Opcode::Binary },
            fragment_bytes: settings.integer("fragment_bytes") as usize,
            rules: Rules { accepts_text: true, message_bytes_max: message_bytes_max(settings) },
            keep_alive: settings.duration("keep_alive"),
            delivers: load.delivers(),
            subprotocol: subprotocol(settings)?.to_owned(),
            topology: load.topology,
            host: endpoint.authority_omitting(80),
            publish: checked(place, routes::filled(publish, confirm))?,
            subscribe: checked("websocket.subscribe_path", routes::filled(subscribe, confirm))?,
            fields: requests::added_fields(settings, endpoint, "websocket", &TAKEN_FIELDS)?,
            seed: trial.seed,
            connections: AtomicU64::new(0),
        })
    }

    /// True if each producer has a consumer of its own.
    pub(super) fn is_in_pairs(&self) -> bool {
        self.delivers && self.topology == Topology::Pairs
    }

    /// Random numbers of the next connection. A seed gives the same bytes again.
    pub(super) fn next_chance(&self) -> Chance {
        Chance::new(self.seed, self.connections.fetch_add(1, Ordering::Relaxed))
    }

    /// The request of a seat.
    pub(super) fn request(&self, seat: Seat, key: [u8; 16]) -> String {
        let path = match seat.role {
            Role::Producer => &self.publish,
            Role::Consumer => &self.subscribe,
        };
        let path = match self.is_in_pairs() {
            true => requests::path_in_pairs(path, seat.index),
            false => path.clone(),
        };
        upgrade::request_with(&self.host, &path, &self.subprotocol, &self.fields, key)
    }
}

/// Largest message that either end accepts.
pub(super) fn message_bytes_max(settings: &Settings) -> u64 {
    settings.integer("message_bytes_max").max(64)
}

/// The subprotocol of these settings; empty if there is none.
pub(super) fn subprotocol(settings: &Settings) -> Result<&str, Invalid> {
    let word = settings.text("subprotocol");
    match word.is_empty() || fields::is_token(word.as_bytes()) {
        true => Ok(word),
        false => Err(Invalid::new(
            "websocket.subprotocol",
            format!("{word:?} is not a name of a subprotocol"),
            "type one word of letters, digits, dots and hyphens",
        )),
    }
}

fn checked(place: &str, path: String) -> Result<String, Invalid> {
    requests::check_path(place, &path).map(|()| path)
}

fn check(trial: &Trial) -> Result<(), Invalid> {
    let (settings, load) = (&trial.settings, &trial.load);
    push_core::trial::check(trial, "websocket")?;
    if load.pattern == Pattern::Request && settings::confirm(settings) == Confirm::Nothing {
        return Err(Invalid::new(
            "websocket.confirm",
            "a request waits for an answer",
            "type --set websocket.confirm=reply, echo or pong, or --pattern publish",
        ));
    }
    let is_bytes = load.body.seal().is_some() || matches!(load.body, BodySource::File(_));
    if is_bytes && settings.text("kind") == "text" {
        return Err(Invalid::new(
            "websocket.kind",
            format!("{} may not be UTF-8, which text must be", load.body),
            "type --set websocket.kind=binary",
        ));
    }
    let most = message_bytes_max(settings);
    if let Some(size) = load.size.filter(|size| size.0 > most) {
        return Err(Invalid::new(
            "load.size",
            format!("{size} is more than websocket.message_bytes_max"),
            format!("type at most {most}B, or raise websocket.message_bytes_max"),
        ));
    }
    Ok(())
}

/// Fields that Weighbridge sets itself, and what to do instead.
const TAKEN_FIELDS: [(&str, &str); 7] = [
    ("host", "it is taken from the target's URL"),
    ("upgrade", "it is part of every upgrade"),
    ("connection", "it is part of every upgrade"),
    ("sec-websocket-key", "it is part of every upgrade"),
    ("sec-websocket-version", "it is part of every upgrade"),
    ("sec-websocket-protocol", "set websocket.subprotocol"),
    ("sec-websocket-extensions", "no extension is supported; messages are not compressed"),
];
