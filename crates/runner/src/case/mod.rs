//! From a resolved plan to what is weighed: each case with its lane, its load and what lies in
//! files.

pub mod abilities;
pub mod background;
pub mod fetched;
pub mod known;
pub mod lanes;
pub mod material;
pub mod pipeline;
pub mod readings;
pub mod share;

use std::collections::BTreeMap;
use std::sync::Arc;

use weigh_engine::schedule;
use weigh_model::endpoint::Credentials;
use weigh_model::path::{Path, PathError};
use weigh_model::plan::Plan;
use weigh_model::protocol::Invalid;
use weigh_model::trial::Point;
use weigh_model::{Endpoint, Load};
use weigh_plan::Case as PlanCase;
use weigh_plan::case::{Beneath, Offload, setting_text, word};
use weigh_plan::keys::OFFLOAD;
use weigh_plan::kind::Wrong;
use weigh_plan::matrix::case_of;
use weigh_plan::world::REFERENCE;
use weigh_protocols as registry;
use weigh_report::exports::HAS_MESSAGES;
use weigh_stage::catalogue::Catalogue;
use weigh_stage::hosts::Offloads;

use crate::case::background::BackgroundCase;
use crate::case::lanes::{Against, Lane};
use crate::case::material::{Material, Shelf};
use crate::case::pipeline::{Pipeline, is_pipeline};
use crate::case::share::TargetShare;
use crate::exit::FULL_BUILD;
use crate::input_file::{self, TEXT_BYTES_MAX};

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
    /// What lies between generator and target; `None` for plain loopback.
    pub path: Option<Path>,
    /// Whether a relay stands between them.
    pub has_relay: bool,
    /// Whether generator and target become hosts of their own.
    pub has_hosts: bool,
    /// Whether the kernel cuts and joins packets on the wires between them.
    pub offloads: Offloads,
    /// What its target is given of the machine.
    pub share: TargetShare,
    /// The second workload beneath it.
    pub background: Option<Arc<BackgroundCase>>,
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
    if plan.observe.messages && !HAS_MESSAGES {
        let problem = "this build of weigh cannot keep single messages";
        return Err(Invalid::new("observe.messages", problem, FULL_BUILD));
    }
    let mut shelf = Shelf::default();
    plan.cases
        .iter()
        .map(|point| {
            let asked = case_of(plan, point)?;
            let lane = lane(&asked, catalogue, secrets)?;
            let mut load = asked.load;
            let material = shelf.fetch(&load, lane.stores())?;
            if load.duration.is_none() && load.messages.is_none() {
                load.duration = schedule::own_duration(&load.arrival, &material.trace);
            }
            let path = path_of(&asked.words)?;
            let has_hosts = path.is_some() || plan.observe.wire || plan.observe.pcap;
            check_reach(&lane, has_hosts)?;
            let offloads = offloads_of(asked.offload, path.as_ref(), has_hosts)?;
            let share = TargetShare::of(&asked.share)?;
            let background = match &asked.background {
                Beneath::On(beneath) => {
                    let beside = (&lane, has_hosts);
                    Some(Arc::new(BackgroundCase::of(beneath, beside, catalogue, secrets)?))
                }
                _ => None,
            };
            Ok(Case {
                lane,
                load,
                point: point.clone(),
                material,
                path,
                has_relay: asked.relay == Some(true),
                has_hosts,
                offloads,
                share,
                background,
            })
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
        let relay = if self.has_relay { " behind a relay" } else { "" };
        let (protocol, target) = (self.lane.protocol.name(), self.lane.against.name());
        let beneath = self.background.as_ref();
        let beneath = beneath.map_or(String::new(), |own| format!(" under {}", own.asked.words()));
        format!("{protocol}{settings} ({target}{relay}){beneath}")
    }
}

/// The plan keys and values that the word of `--path` stands for, each in its one form.
///
/// # Errors
/// If it is no path, with what to type.
pub fn path_keys(typed: &str) -> Result<Point, Invalid> {
    let language = weigh_plan::keys::Keys::new(registry::PROTOCOLS);
    let words = Path::keys_of(typed);
    let words = words.map_err(|error| in_path(Wrong::split(&error.error), ""))?;
    let mut keys = Point::new();
    for (key, text) in words {
        let kind = language.find(&key).map_err(|wrong| in_path(wrong, ""))?.kind;
        let named =
            if key == "path" { String::new() } else { format!("{}: ", &key["path.".len()..]) };
        let value = kind.read_word(&text).map_err(|wrong| in_path(wrong, &named))?;
        keys.insert(key, word(&value));
    }
    Ok(keys)
}

/// What is wrong with one number of a path.
fn in_path(wrong: Wrong, named: &str) -> Invalid {
    Invalid::new("path", format!("{named}{}", wrong.text), wrong.mend)
}

/// The path that the keys of a case name or give numbers of.
///
/// # Errors
/// If there is none of this name, or if its numbers contradict each other.
pub fn path_of(words: &Point) -> Result<Option<Path>, Invalid> {
    let wrong = |error: PathError| Invalid::new("path", error.to_string(), "");
    let read = |file: &str| input_file::text(std::path::Path::new(file), TEXT_BYTES_MAX);
    let named = words.get("path").and_then(|value| value.as_str());
    let base = named.map(|word| Path::named(word, read)).transpose().map_err(wrong)?;
    let texts: Vec<(&str, String)> = words
        .iter()
        .filter_map(|(key, value)| Some((key.as_str(), setting_text(value)?)))
        .collect();
    let words = texts.iter().map(|(key, text)| (*key, text.as_str()));
    Path::of_words(base, words).map_err(|error| Invalid::new("path", error.error, ""))
}

/// Whether packets may be larger than a wire's.
///
/// # Errors
/// Where there is no wire, or one that no super-packet can take.
fn offloads_of(
    asked: Option<Offload>,
    path: Option<&Path>,
    has_hosts: bool,
) -> Result<Offloads, Invalid> {
    let wrong = |problem: &str, mend: &str| Err(Invalid::new(OFFLOAD, problem, mend));
    match asked {
        None => Ok(Offloads::Off),
        _ if !has_hosts => wrong(
            "there is no wire of ours that it could be said of",
            "add --wire (in a plan observe.wire = true), or leave it out",
        ),
        Some(Offload::On) if path.is_some_and(|path| !path.is_free()) => wrong(
            "a path would delay, lose and count a super-packet as one",
            "leave the path out, or the offloads off",
        ),
        Some(Offload::On) => Ok(Offloads::AsCaptured),
        Some(Offload::Off) => Ok(Offloads::Off),
    }
}

/// Hosts of our own are joined to nobody else.
fn check_reach(lane: &Lane, has_hosts: bool) -> Result<(), Invalid> {
    if has_hosts && lane.is_foreign() {
        return Err(Invalid::new(
            "path",
            format!(
                "{} is reached over the machine's own network, not over a path or wire of ours",
                lane.against.name()
            ),
            "leave path, wire and pcap out, or weigh a server that weigh starts",
        ));
    }
    Ok(())
}

/// The lane of a case of a plan.
///
/// # Errors
/// If there is no such protocol, target or setting.
fn lane(case: &PlanCase, catalogue: &Catalogue, secrets: &Secrets) -> Result<Lane, Invalid> {
    let protocol = registry::find(&case.protocol)?;
    let against = match is_pipeline(&case.target) {
        true => Against::Pipeline(Box::new(Pipeline::of(protocol, &case.stages, catalogue)?)),
        false => against(&case.target, catalogue, secrets)?,
    };
    let mut given: BTreeMap<String, String> =
        case.settings().map(|(key, text)| (key.to_owned(), text)).collect();
    let prefix = format!("{}.", protocol.name());
    for (key, value) in &secrets.settings {
        if let Some(key) = key.strip_prefix(&prefix) {
            given.insert(key.to_owned(), value.clone());
        }
    }
    Lane::new(protocol, against, given)
}

/// What a plan names as a target.
///
/// # Errors
/// If there is none of this name.
pub fn against(name: &str, catalogue: &Catalogue, secrets: &Secrets) -> Result<Against, Invalid> {
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
