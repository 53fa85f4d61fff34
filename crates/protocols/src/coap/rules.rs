//! Rules of the reference server, from its settings.

use weigh_model::protocol::Invalid;
use weigh_model::trial::Settings;

use super::hub::Hub;
use super::intake::Store;
use super::oscore::{Contexts, Keys};
use super::parameters::Parameters;
use super::path;
use crate::readings_core::Readings;

/// Rules of all shards of one server.
pub(super) struct Rules {
    pub(super) parameters: Parameters,
    pub(super) store: Store,
    /// True if a confirmable request is acknowledged first and answered after that.
    pub(super) is_separate: bool,
    pub(super) body_bytes_max: usize,
    /// True if notifications are confirmable.
    pub(super) notifies_confirmable: bool,
    /// States that wait for an observer's acknowledgement.
    pub(super) notify_queue: usize,
    /// The readings of all shards: one may arrive at a shard and be requested from another.
    pub(super) readings: Readings,
    pub(super) hub: Hub,
    /// The security contexts of OSCORE, if requests are protected.
    pub(super) contexts: Option<Contexts>,
}

impl Rules {
    /// Reads the settings.
    ///
    /// # Errors
    /// A value that the server does not accept.
    pub(super) fn read(settings: &Settings) -> Result<Rules, Invalid> {
        let segments = |place: &'static str, key, default: &'static str| {
            let path = settings.text(key);
            let path = if path.is_empty() { default } else { path };
            path::read(path).map(|(segments, _)| segments).ok_or_else(|| {
                let problem = format!("{path:?} is not a path");
                Invalid::new(place, problem, "type one that starts with /")
            })
        };
        Ok(Rules {
            parameters: Parameters::read(settings)?,
            store: Store {
                state: segments("coap.path", "path", "/messages")?,
                readings: segments("coap.poll_path", "poll_path", "/readings")?,
            },
            readings: Readings::new(settings.integer("readings").max(1) as usize),
            is_separate: settings.text("response") == "separate",
            body_bytes_max: settings.integer("body_bytes_max") as usize,
            notifies_confirmable: settings.text("type") != "non",
            notify_queue: settings.integer("notify_queue").max(1) as usize,
            hub: Hub::default(),
            contexts: Keys::read(settings)?.map(Contexts::new),
        })
    }
}
