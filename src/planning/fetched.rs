//! What is fetched instead of being sent to: a URL of HTTP of which nothing is said but where it is
//! has no reading of ours to take, and answers a POST with an error as a rule.

use std::collections::BTreeMap;

use weigh_model::{Pattern, Protocol};
use weigh_plan::world::{PIPELINE, REFERENCE};

use crate::exit::Stop;
use crate::planning::lanes::{Against, Lane};

/// The method of requests to `target` under a load of which no body and no size is given; `None`
/// leaves it at the protocol's own.
pub fn method(protocol: &dyn Protocol, target: &str, pattern: Pattern) -> Option<&'static str> {
    let has_methods = protocol.settings().iter().any(|setting| setting.key == METHOD);
    let is_url = ![REFERENCE, PIPELINE].contains(&target) && target.contains("://");
    (has_methods && is_url && pattern == Pattern::Request).then_some(GET)
}

/// The lanes of a command line, those of them with GET that are fetched.
///
/// # Errors
/// If a lane refuses it.
pub fn lanes(lanes: Vec<Lane>, pattern: Option<Pattern>) -> Result<Vec<Lane>, Stop> {
    let mut told = Told::default();
    let fetched = lanes.into_iter().map(|lane| {
        let pattern = pattern.unwrap_or(lane.patterns()[0]);
        let Against::Foreign(endpoint) = &lane.against else { return Ok(lane) };
        let url = endpoint.to_string();
        match method(lane.protocol, &url, pattern) {
            Some(method) if !lane.given.contains_key(METHOD) => {
                told.tell(&url);
                let given = [(METHOD.to_owned(), method.to_owned())];
                let given: BTreeMap<_, _> = lane.given.into_iter().chain(given).collect();
                Ok(Lane::new(lane.protocol, lane.against, given)?)
            }
            _ => Ok(lane),
        }
    });
    fetched.collect()
}

/// URLs of which it was said that they are fetched, each once.
#[derive(Debug, Default)]
pub struct Told(Vec<String>);

impl Told {
    /// Says it of this one.
    pub fn tell(&mut self, url: &str) {
        if !self.0.iter().any(|known| known == url) {
            eprintln!(
                "weigh: {url} is fetched with GET; to send messages to it, give a body, a size or \
                 --method POST"
            );
            self.0.push(url.to_owned());
        }
    }
}

/// The setting of the protocols that have methods.
pub const METHOD: &str = "method";

const GET: &str = "GET";
