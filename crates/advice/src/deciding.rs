//! The run that would decide: the options of the advised set at the load of the situation, and what
//! one more minute of it is worth.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::advised::ZONE;
use crate::choice::{Choice, REFERENCE};
use crate::criterion::Criterion;
use crate::drawn::Drawn;
use crate::figures::rounded;
use crate::situation::Situation;

/// What one more minute would decide.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Deciding {
    /// Options that would be measured.
    pub options: Vec<String>,
    /// Repetitions of each in a minute.
    pub repetitions: u64,
    /// Probability that they could be distinguished afterwards.
    pub probability: f64,
    /// The result in words.
    pub sentence: String,
    /// The plan, in TOML.
    pub plan: String,
}

/// What a minute of measuring these options would decide; `costs` are their figures in the order of
/// the options. `None` if there is only one.
pub fn deciding(
    options: &[(&Choice, &Drawn)],
    situation: &Situation,
    is_measurable: bool,
) -> Option<Deciding> {
    let ((first, cost), others) = options.split_first()?;
    if others.is_empty() || !is_measurable {
        return None;
    }
    let each_s = trial_s(situation) + OVERHEAD_S;
    let repetitions = (MINUTE_S / (each_s * options.len() as f64)).floor().max(1.0);
    // Means of this number of repetitions, whose ratio is to be known.
    let half = QUANTILE * SCATTER * (2.0 / repetitions).sqrt();
    let is_told = |other: &Drawn| {
        let pairs = cost.draws.iter().zip(&other.draws);
        let told = pairs.filter(|(own, other)| {
            let distance = (*own / *other).ln().abs();
            // Separated, or shown to be within the zone.
            distance - half > (1.0 + ZONE).ln() || distance + half < (1.0 + ZONE).ln()
        });
        told.count() as f64 / cost.draws.len().max(1) as f64
    };
    let probability = others.iter().map(|(_, other)| is_told(other)).fold(1.0, f64::min);
    let names: Vec<String> = options.iter().map(|(choice, _)| choice.name()).collect();
    let sentence = format!(
        "One more minute ({} of each) would separate {} from the others that \
         are marked, with a probability of {:.0} %.",
        match repetitions as u64 {
            1 => "1 repetition".to_owned(),
            number => format!("{number} repetitions"),
        },
        first.name(),
        probability * 100.0
    );
    let choices: Vec<&Choice> = options.iter().map(|(choice, _)| *choice).collect();
    let plan = plan(&choices, situation, repetitions as u32);
    Some(Deciding { options: names, repetitions: repetitions as u64, probability, sentence, plan })
}

/// A plan in TOML that measures the first criterion of these options at the load of the situation.
/// For the server's costs the path is left out: it does not change what a server pays. What one
/// device pays does not depend on the number of devices, so few of them send often enough to be
/// measured in seconds.
pub fn plan(choices: &[&Choice], situation: &Situation, repetitions: u32) -> String {
    let traffic = &situation.traffic;
    let sending = Sending::of(situation);
    let mut text = format!(
        "question = \"Which option costs least here?\"\n\
         repeat = {{ at_least = {repetitions}, at_most = {repetitions} }}\n\
         load.size = \"{}\"\nload.arrival = \"periodic\"\n\
         load.duration = \"{}s\"\nload.warmup = \"300ms\"\n",
        traffic.size.typed(),
        sending.trial_s
    );
    if is_of_devices(situation) {
        text += "observe.wire = true\n";
    }
    if let Some(path) = sending.path {
        for (key, value) in weigh_model::path::Path::keys_of(path).unwrap_or_default() {
            let key = if key.contains('.') { format!("\"{key}\"") } else { key };
            text += &format!("{key} = {value:?}\n");
        }
        text += "load.timeout = \"60s\"\n";
    }
    for choice in choices {
        text += &case(choice, situation, &sending);
    }
    text
}

/// Who sends in a trial, and how often.
struct Sending<'s> {
    devices: u64,
    rate_per_s: f64,
    trial_s: f64,
    path: Option<&'s String>,
}

impl Sending<'_> {
    fn of(situation: &Situation) -> Sending<'_> {
        let path = situation.network.path.as_ref();
        let traffic = &situation.traffic;
        if !is_of_devices(situation) {
            let path = path.filter(|_| situation.matters.first() == Some(&Criterion::Latency));
            let (devices, rate_per_s) = (traffic.devices, situation.rate_per_s());
            return Sending { devices, rate_per_s, trial_s: trial_s(situation), path };
        }
        let devices = traffic.devices.min(DEVICES_ON_WIRE);
        // On a slow path a device opens a connection, sends and closes before it is its turn again.
        let (longest_s, trial_s) = if path.is_some() { (8.0, 10.0) } else { (1.0, 3.0) };
        let pause_s = traffic.every.as_secs_f64().min(longest_s);
        Sending { devices, rate_per_s: devices as f64 / pause_s, trial_s, path }
    }
}

/// True if the first criterion is what a device pays: bytes and joules.
fn is_of_devices(situation: &Situation) -> bool {
    matches!(situation.matters.first(), Some(Criterion::Bytes | Criterion::Energy))
}

/// One case of a plan.
fn case(choice: &Choice, situation: &Situation, sending: &Sending<'_>) -> String {
    let protocol = &choice.protocol;
    let is_each = !choice.is_kept && !choice.is_datagram;
    let pattern = match (situation.traffic.subscribers, is_each) {
        (1.., _) => "deliver",
        (0, true) => "session",
        (0, false) => "publish",
    };
    let connections = match is_each {
        true => sending.devices.min(TURNS),
        false => sending.devices,
    };
    let mut text = format!("\n[[case]]\nprotocol = \"{protocol}\"\n");
    if choice.target != REFERENCE {
        text += &format!("target = \"{}\"\n", choice.target);
    }
    for line in choice.plan_lines() {
        text += &format!("{line}\n");
    }
    if choice.is_tls || !choice.is_datagram {
        text += &format!("{protocol}.tls = \"{}\"\n", if choice.is_tls { "on" } else { "off" });
    }
    if !choice.is_datagram {
        text += &format!("{protocol}.tls_resume = {}\n", choice.resumes);
    }
    text += &format!("load.pattern = \"{pattern}\"\nload.connections = {connections}\n");
    if situation.traffic.subscribers > 0 {
        text += &format!("load.subscribers = {}\n", situation.traffic.subscribers);
    }
    text + &format!("load.rate = \"{}\"\n", rounded(sending.rate_per_s).typed())
}

/// Seconds of a trial: long enough for a few hundred messages, and at most ten.
fn trial_s(situation: &Situation) -> f64 {
    (MESSAGES / situation.rate_per_s()).clamp(2.0, 10.0).ceil()
}

/// Messages that a trial should have.
const MESSAGES: f64 = 500.0;

/// Devices whose packets are captured.
const DEVICES_ON_WIRE: u64 = 8;

/// Devices that take turns where each message has a connection of its own.
const TURNS: u64 = 100;

const MINUTE_S: f64 = 60.0;

/// Start and end of a trial, seconds.
const OVERHEAD_S: f64 = 1.5;

/// Scatter from run to run, as a share: typical of CPU on a quiet machine.
const SCATTER: f64 = 0.03;

const QUANTILE: f64 = 1.96;
