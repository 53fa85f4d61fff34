//! URLs that are fetched with GET: an HTTP URL without a body, a size or a method usually answers a
//! POST of readings with an error.

use std::collections::BTreeMap;

use weigh_model::protocol::{Setting, SettingKind};
use weigh_model::{Pattern, Protocol};
use weigh_plan::world::{PIPELINE, REFERENCE};

use crate::case::lanes::{Against, Lane};
use crate::exit::Stop;
use crate::watcher::Watcher;

/// Settings of requests to `target` for a load without a body and a size; `None` leaves the
/// protocol's own settings.
pub fn settings(
    protocol: &dyn Protocol,
    target: &str,
    pattern: Pattern,
) -> Vec<(&'static str, &'static str)> {
    let has_get = |setting: &Setting| match setting.kind {
        SettingKind::Choice(words) => setting.key == METHOD && words.contains(&GET),
        _ => false,
    };
    let has_methods = protocol.settings().iter().any(has_get);
    let is_url = ![REFERENCE, PIPELINE].contains(&target) && target.contains("://");
    if !has_methods || !is_url || pattern != Pattern::Request {
        return Vec::new();
    }
    let names_no_path =
        weigh_protocols::urls::endpoint(target).is_ok_and(|endpoint| endpoint.path.is_empty());
    let root = names_no_path.then_some((PATH, "/"));
    std::iter::once((METHOD, GET)).chain(root).collect()
}

/// Switches the lanes of a command line to GET where the URL is to be fetched.
///
/// # Errors
/// A lane that rejects the setting.
pub fn lanes(
    lanes: Vec<Lane>,
    pattern: Option<Pattern>,
    watcher: &dyn Watcher,
) -> Result<Vec<Lane>, Stop> {
    let mut told = Notices::default();
    let fetched = lanes.into_iter().map(|lane| {
        let pattern = pattern.unwrap_or(lane.patterns()[0]);
        let Against::Foreign(endpoint) = &lane.against else { return Ok(lane) };
        let url = endpoint.to_string();
        let usual = settings(lane.protocol, &url, pattern);
        if usual.is_empty() || lane.given.contains_key(METHOD) {
            return Ok(lane);
        }
        told.say(&url, watcher);
        let usual = usual.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned()));
        let given: BTreeMap<_, _> = usual.chain(lane.given).collect();
        Ok(Lane::new(lane.protocol, lane.against, given)?)
    });
    fetched.collect()
}

/// URLs whose notice was shown; each is shown once.
#[derive(Debug, Default)]
pub struct Notices(Vec<String>);

impl Notices {
    /// Shows the notice for `url`, the first time.
    pub fn say(&mut self, url: &str, watcher: &dyn Watcher) {
        if !self.0.iter().any(|known| known == url) {
            watcher.say(&format!(
                "GET requests are sent to {url}; to send POST, add a body, a size or \
                 --method POST"
            ));
            self.0.push(url.to_owned());
        }
    }
}

/// The setting of protocols that have methods.
pub const METHOD: &str = "method";

/// The setting for the requested resource, if the URL does not name it.
const PATH: &str = "path";

const GET: &str = "GET";
