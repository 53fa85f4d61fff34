//! From a resolved plan to what is weighed: each case with its lane, its load and what lies in
//! files.

use std::collections::BTreeMap;
use std::sync::Arc;

use weigh_engine::schedule;
use weigh_model::endpoint::Credentials;
use weigh_model::plan::Plan;
use weigh_model::protocol::Invalid;
use weigh_model::trial::Point;
use weigh_model::{Endpoint, Load};
use weigh_plan::matrix::{self, Keys};
use weigh_plan::world::REFERENCE;
use weigh_protocols as registry;
use weigh_stage::catalogue::Catalogue;

use crate::planning::lanes::{Against, Lane};
use crate::planning::material::{Material, Shelf};

/// A case of the plan, ready to be weighed.
#[derive(Clone)]
pub struct Case {
    /// The lane.
    pub lane: Lane,
    /// Its load.
    pub load: Load,
    /// Its place in the matrix: the keys of the plan's case.
    pub point: Point,
    /// What its bodies and its trace are made of.
    pub material: Arc<Material>,
}

/// What a case needs and no plan, journal or report may hold.
#[derive(Clone, Debug, Default)]
pub struct Secrets {
    /// Who we are to targets given by URL that have no credentials of their own.
    pub user: Option<Credentials>,
    /// Who we are to the target of this URL.
    pub by_url: BTreeMap<String, Credentials>,
    /// Settings that are secret, by plan key.
    pub settings: BTreeMap<String, String>,
}

/// The cases of `plan`, index by index.
///
/// # Errors
/// If a case names a protocol, target or key that there is not, or a file that cannot be read.
pub fn decide(plan: &Plan, catalogue: &Catalogue, secrets: &Secrets) -> Result<Vec<Case>, Invalid> {
    let mut shelf = Shelf::default();
    plan.cases
        .iter()
        .map(|keys| {
            let lane = lane(keys, catalogue, secrets)?;
            let mut load = matrix::load_of(plan, keys)?;
            let material = shelf.fetch(&load)?;
            if load.duration.is_none() && load.messages.is_none() {
                load.duration = schedule::own_duration(&load.arrival, &material.trace);
            }
            Ok(Case { lane, load, point: matrix::point_of(keys), material })
        })
        .collect()
}

impl Case {
    /// What it is called while it runs.
    pub fn title(&self) -> String {
        let given: Vec<String> =
            self.lane.shown().map(|(key, value)| format!("{key} {value}")).collect();
        let settings =
            if given.is_empty() { String::new() } else { format!(" {}", given.join(" ")) };
        format!("{}{settings} ({})", self.lane.protocol.name(), self.lane.against.name())
    }
}

fn lane(keys: &Keys, catalogue: &Catalogue, secrets: &Secrets) -> Result<Lane, Invalid> {
    let text = |key: &str| keys.get(key).and_then(|value| value.as_str()).unwrap_or_default();
    let protocol = registry::find(text("protocol"))?;
    let against = against(text("target"), catalogue, secrets)?;
    let prefix = format!("{}.", protocol.name());
    let mut given = BTreeMap::new();
    for (key, value) in keys {
        if let (Some(key), Some(text)) = (key.strip_prefix(&prefix), matrix::setting_text(value)) {
            given.insert(key.to_owned(), text);
        }
    }
    for (key, value) in &secrets.settings {
        if let Some(key) = key.strip_prefix(&prefix) {
            given.insert(key.to_owned(), value.clone());
        }
    }
    Lane::new(protocol, against, given)
}

fn against(name: &str, catalogue: &Catalogue, secrets: &Secrets) -> Result<Against, Invalid> {
    if name == REFERENCE {
        return Ok(Against::Reference);
    }
    if !name.contains("://") {
        let wrong = |error| Invalid::new("target", format!("{error}"), "see `weigh targets`");
        catalogue.choose(name).map_err(wrong)?;
        return Ok(Against::Managed(name.to_owned()));
    }
    let mut endpoint = Endpoint::parse(name).map_err(|said| Invalid::new("target", said, ""))?;
    let own = secrets.by_url.get(&endpoint.to_string()).or(secrets.user.as_ref());
    endpoint.credentials = endpoint.credentials.or_else(|| own.cloned());
    Ok(Against::Foreign(endpoint))
}
