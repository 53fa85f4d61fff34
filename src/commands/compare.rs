//! `weigh compare`: one load over several protocols or targets, one table.

use std::collections::BTreeMap;

use clap::Args;
use weigh_model::Pattern;
use weigh_model::plan::{Observe, Plan, Repeat, check_name};
use weigh_plan::World;
use weigh_plan::matrix::{self, Decided};
use weigh_stage::catalogue::Catalogue;

use crate::exit::{Exit, Stop};
use crate::planning::cases::Secrets;
use crate::planning::conduct::Manner;
use crate::planning::known::Known;
use crate::planning::lanes::{Against, BROKER_PASSWORD, Given, Lane, lanes};
use crate::planning::options::{LoadOptions, with_flag};

/// The flags of `weigh compare`.
#[derive(Args)]
pub struct Compare {
    /// Protocols (mqtt, http, tcp), targets (mosquitto, mosquitto@no-limits, nginx) or URLs
    /// (mqtt://HOST:PORT); none: the main job
    #[arg(value_name = "PROTOCOL|TARGET|URL")]
    words: Vec<String>,
    #[command(flatten)]
    load: LoadOptions,
    /// QoS of MQTT: 0, 1 or 2 [default: all three]
    #[arg(
        short = 'q',
        long,
        value_name = "QOS",
        value_parser = clap::value_parser!(u8).range(0..=2)
    )]
    qos: Option<u8>,
    /// What the reference MQTT broker does when a subscriber is too slow: unlimited,
    /// drop-newest:N, drop-oldest:N or disconnect:N
    #[arg(long, value_name = "POLICY")]
    overload: Option<String>,
    /// Sets a key of a protocol, such as mqtt.version=5 or http1.keep_alive=false
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Repetitions of every case
    #[arg(
        long,
        value_name = "N",
        default_value_t = 3,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    reps: u32,
    /// Seed of all chance: due times, order of trials
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Keeps every single message in messages/TRIAL.parquet of the run
    #[arg(long)]
    keep_messages: bool,
    /// What the run is called
    #[arg(long, value_name = "NAME", default_value = "compare", value_parser = name)]
    name: String,
    #[command(flatten)]
    manner: Manner,
}

impl Compare {
    /// Weighs and shows.
    pub fn run(self) -> Result<Exit, Stop> {
        let catalogue = self.manner.catalogue()?;
        let (plan, secrets) = self.plan(&catalogue)?;
        self.manner.conduct(&catalogue, plan, &secrets)
    }

    /// The plan that these flags ask for, and what no plan may hold.
    fn plan(&self, catalogue: &Catalogue) -> Result<(Plan, Secrets), Stop> {
        let given = self.given()?;
        let lanes = lanes(&self.words, catalogue, &given)?;
        let mut drafts: Vec<Decided> = Vec::new();
        for lane in &lanes {
            let load = self.load.load(lane.protocol.name(), lane.protocol.patterns())?;
            let draft = lane.with(load);
            if !repeats_hold(&drafts, &draft) {
                drafts.push(draft);
            }
        }
        if let Some(key) = unused(&given, &lanes) {
            return Err(self.useless(key));
        }
        self.load.check_topology(drafts.iter().map(|draft| &draft.load))?;
        let known = Known::new(catalogue);
        for draft in &drafts {
            known.check(draft).map_err(|invalid| Stop::usage(with_flag(invalid)))?;
        }
        let (load, cases) = matrix::matrix(&drafts)?;
        let plan = Plan {
            name: self.name.clone(),
            question: None,
            seed: self.seed,
            thresholds: Vec::new(),
            load,
            repeat: Repeat::exactly(self.reps),
            stop: BTreeMap::new(),
            observe: Observe { every: None, messages: self.keep_messages },
            cases,
        };
        Ok((plan, self.secrets(&lanes)))
    }

    fn secrets(&self, lanes: &[Lane]) -> Secrets {
        let mut by_url = BTreeMap::new();
        let mut settings = BTreeMap::new();
        for lane in lanes {
            if let Against::Foreign(endpoint) = &lane.against {
                let credentials = endpoint.credentials.clone();
                by_url.extend(credentials.map(|own| (endpoint.to_string(), own)));
            }
            if let Some(password) = lane.given.get(BROKER_PASSWORD) {
                let key = format!("{}.{BROKER_PASSWORD}", lane.protocol.name());
                settings.insert(key, password.clone());
            }
        }
        self.manner.secrets(by_url, settings)
    }

    fn given(&self) -> Result<Given, Stop> {
        let mut sets = self.sets.clone();
        sets.extend(self.qos.map(|qos| format!("mqtt.qos={qos}")));
        sets.extend(self.overload.as_ref().map(|policy| format!("target.overload={policy}")));
        Given::parse(&sets)
    }

    /// A key that was given, under the name it was given by, and that nobody takes.
    fn useless(&self, key: &str) -> Stop {
        let flag = match key {
            "mqtt.qos" if self.qos.is_some() => "-q",
            "mqtt.overload" if self.overload.is_some() => "--overload",
            _ => key,
        };
        let protocol = key.split('.').next().unwrap_or_default();
        Stop::usage(format!(
            "{flag}: belongs to {protocol}, which is not weighed here: leave it out, or name \
             {protocol}"
        ))
    }
}

fn name(text: &str) -> Result<String, String> {
    check_name(text).map(|()| text.to_owned())
}

/// The first given key that belongs to no lane.
fn unused<'g>(given: &'g Given, lanes: &[Lane]) -> Option<&'g str> {
    let used = |key: &str| {
        let name = key.split_once('.').map_or("", |(name, _)| name);
        lanes
            .iter()
            .any(|lane| name == lane.protocol.name() || lane.protocol.aliases().contains(&name))
    };
    given.0.iter().map(|(key, _)| key.as_str()).find(|key| !used(key))
}

/// Connections that only stand are the same whatever would be sent over them: one lane of each
/// protocol and target is enough.
fn repeats_hold(drafts: &[Decided], new: &Decided) -> bool {
    let is_same = |old: &Decided| old.protocol == new.protocol && old.target == new.target;
    new.load.pattern == Pattern::Hold && drafts.iter().any(is_same)
}
