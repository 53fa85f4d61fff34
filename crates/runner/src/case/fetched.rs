//! What is fetched instead of being sent to: a URL of HTTP of which nothing is said but where it is
//! has no reading of ours to take, and answers a POST with an error as a rule.

use std::collections::BTreeMap;

use weigh_model::{Endpoint, Pattern, Protocol};
use weigh_plan::world::{PIPELINE, REFERENCE};

use crate::case::lanes::{Against, Lane};
use crate::exit::Stop;
use crate::watcher::Watcher;

/// The settings of requests to `target` under a load of which no body and no size is given; none
/// leaves them at the protocol's own.
pub fn settings(
    protocol: &dyn Protocol,
    target: &str,
    pattern: Pattern,
) -> Vec<(&'static str, &'static str)> {
    let has_methods = protocol.settings().iter().any(|setting| setting.key == METHOD);
    let is_url = ![REFERENCE, PIPELINE].contains(&target) && target.contains("://");
    if !has_methods || !is_url || pattern != Pattern::Request {
        return Vec::new();
    }
    let names_no_path = Endpoint::parse(target).is_ok_and(|endpoint| endpoint.path.is_empty());
    let root = names_no_path.then_some((PATH, "/"));
    std::iter::once((METHOD, GET)).chain(root).collect()
}

/// The lanes of a command line, those of them with GET that are fetched.
///
/// # Errors
/// If a lane refuses it.
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

/// URLs of which it was said that they are fetched, each once.
#[derive(Debug, Default)]
pub struct Notices(Vec<String>);

impl Notices {
    /// Says it of this one.
    pub fn say(&mut self, url: &str, watcher: &dyn Watcher) {
        if !self.0.iter().any(|known| known == url) {
            watcher.say(&format!(
                "{url} is fetched with GET; to send messages to it, give a body, a size or \
                 --method POST"
            ));
            self.0.push(url.to_owned());
        }
    }
}

/// The setting of the protocols that have methods.
pub const METHOD: &str = "method";

/// The setting that says what is asked for, where the URL does not.
const PATH: &str = "path";

const GET: &str = "GET";
