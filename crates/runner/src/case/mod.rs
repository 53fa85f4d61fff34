//! Turns a resolved plan into cases that can be measured: lane, load, and contents of files.

pub mod abilities;
pub mod background;
pub mod background_words;
pub mod build;
pub mod check;
pub mod durability;
pub mod fetched;
pub mod grpc;
pub mod known;
pub mod lanes;
pub mod main_job;
pub mod material;
pub mod paths;
pub mod patience;
pub mod pipeline;
pub mod readings;
pub mod secrets;
pub mod server_settings;
pub mod share;
mod url_layers;

use std::collections::BTreeMap;
use std::sync::Arc;

use weigh_engine::schedule;
use weigh_model::Load;
use weigh_model::path::Path;
use weigh_model::plan::Plan;
use weigh_model::protocol::Invalid;
use weigh_model::trial::Point;
use weigh_plan::Case as PlanCase;
use weigh_plan::case::{BackgroundChoice, Offload};
use weigh_plan::keys::OFFLOAD;
use weigh_plan::matrix::case_of;
use weigh_protocols as registry;
use weigh_testbed::catalogue::Catalogue;
use weigh_testbed::hosts::Offloads;

use crate::case::background::BackgroundCase;
use crate::case::durability::check_statements;
use crate::case::lanes::{Against, Lane};
use crate::case::material::{Material, Shelf};
use crate::case::paths::path_of;
use crate::case::pipeline::{Pipeline, is_pipeline};
use crate::case::secrets::{Secrets, against};
use crate::case::share::TargetShare;
use crate::targets::tls;

/// A case of the plan, ready to be measured.
///
/// # Examples
///
/// ```
/// use weigh_model::Arrival;
/// use weigh_runner::runner::Runner;
///
/// let runner = Runner::new("/usr/local/bin/weigh", "runs")?;
/// let text = "protocol = \"mqtt\"\nmqtt.qos = 1\nload.rate = \"500/s\"";
/// let (plan, secrets) = runner.read("example", text)?;
/// let case = &runner.check(plan, &secrets)?.cases[0];
/// assert_eq!(case.title(), "mqtt qos 1 (reference)");
/// assert_eq!(case.load.arrival, Arrival::Constant);
/// # Ok::<(), weigh_runner::exit::Stop>(())
/// ```
#[derive(Clone)]
pub struct Case {
    /// Protocol, target and settings.
    pub lane: Lane,
    /// Its load.
    pub load: Load,
    /// Its point: the keys of the plan's case.
    pub point: Point,
    /// Contents of its body source and its trace.
    pub material: Arc<Material>,
    /// Emulated link between generator and target; `None` for plain loopback.
    pub path: Option<Path>,
    /// True if a relay is between generator and target.
    pub has_relay: bool,
    /// True if generator and target each get a network namespace.
    pub has_hosts: bool,
    /// Segmentation offloads of the links between them.
    pub offloads: Offloads,
    /// Cores and memory of the target.
    pub share: TargetShare,
    /// The second load, which runs during its trials.
    pub background: Option<Arc<BackgroundCase>>,
}

/// Resolves the cases of `plan`, in the plan's order.
///
/// # Errors
/// An unknown protocol, target or key; a file that cannot be read.
pub fn decide(plan: &Plan, catalogue: &Catalogue, secrets: &Secrets) -> Result<Vec<Case>, Invalid> {
    let mut shelf = Shelf::default();
    let cases: Vec<Case> = plan
        .cases
        .iter()
        .map(|point| {
            let asked = case_of(plan, point)?;
            let lane = lane(&asked, catalogue, secrets)?;
            tls::check_secrets(&lane)?;
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
                BackgroundChoice::On(background) => {
                    let measured = (&lane, has_hosts);
                    Some(Arc::new(BackgroundCase::of(background, measured, catalogue, secrets)?))
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
        .collect::<Result<_, Invalid>>()?;
    check_statements(cases.iter().map(|case| &case.lane))?;
    Ok(cases)
}

impl Case {
    /// Name while it runs.
    pub fn title(&self) -> String {
        let given: Vec<String> =
            self.lane.shown().map(|(key, value)| format!("{key} {value}")).collect();
        let settings =
            if given.is_empty() { String::new() } else { format!(" {}", given.join(" ")) };
        let relay = if self.has_relay { " behind a relay" } else { "" };
        let durability = self.lane.durability.map_or(String::new(), |own| format!(", {own}"));
        let (protocol, target) = (self.lane.protocol.name(), self.lane.against.name());
        let background = self.background.as_ref();
        let background =
            background.map_or(String::new(), |own| format!(" under {}", own.asked.words()));
        format!("{protocol}{settings} ({target}{durability}{relay}){background}")
    }
}

/// Reads whether packets may be larger than those of a wire.
///
/// # Errors
/// A case without a wire, or with an emulated link, which takes no such packets.
fn offloads_of(
    asked: Option<Offload>,
    path: Option<&Path>,
    has_hosts: bool,
) -> Result<Offloads, Invalid> {
    let wrong = |problem: &str, fix: &str| Err(Invalid::new(OFFLOAD, problem, fix));
    match asked {
        None => Ok(Offloads::Off),
        _ if !has_hosts => wrong(
            "`offload` requires a wire",
            "add --wire (in a plan observe.wire = true), or leave it out",
        ),
        Some(Offload::On) if path.is_some_and(|path| !path.is_free()) => wrong(
            "`on` cannot be used with a path, which would treat merged packets as one",
            "leave the path out, or type --offload off (in a plan offload = \"off\")",
        ),
        Some(Offload::On) => Ok(Offloads::AsCaptured),
        Some(Offload::Off) => Ok(Offloads::Off),
    }
}

/// Network namespaces of Weighbridge are connected to no other network.
fn check_reach(lane: &Lane, has_hosts: bool) -> Result<(), Invalid> {
    if has_hosts && lane.is_foreign() {
        return Err(Invalid::new(
            "path",
            format!(
                "{} runs outside Weighbridge, which can add a path or a wire only to servers that \
                 it starts",
                lane.against.name()
            ),
            "leave path, wire and pcap out, or measure a server that weigh starts",
        ));
    }
    Ok(())
}

/// Resolves the lane of a case of a plan.
///
/// # Errors
/// An unknown protocol, target or setting.
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
    let mut lane = Lane::new(protocol, against, given)?.stating(case.durability)?;
    grpc::compile(&mut lane)?;
    Ok(lane)
}
