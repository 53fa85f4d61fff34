//! `weigh compare`: one load over several protocols or targets, one table.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;

use clap::Args;
use weigh_model::Pattern;
use weigh_model::endpoint::Credentials;
use weigh_model::plan::{Observe, Plan, Repeat};
use weigh_plan::matrix::{self, Decided};
use weigh_report::table::{self, Style};
use weigh_stage::catalogue::Catalogue;
use weigh_stage::pinning::{CoreSet, Pinning};

use crate::cases::{self, Secrets};
use crate::exit::{Exit, Stop};
use crate::experiment::{Experiment, Finished};
use crate::lanes::{Against, BROKER_PASSWORD, Given, Lane, lanes};
use crate::options::LoadOptions;
use crate::output;
use crate::preflight;
use crate::resumption;

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
    /// User name at targets given by URL; the password comes from WEIGH_PASSWORD
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
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
    /// Threads of the generator, each with its own limit of open files [default: as many as
    /// the connections need]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    shards: Option<u32>,
    /// Keeps every single message in messages/TRIAL.parquet of the run
    #[arg(long)]
    keep_messages: bool,
    /// Prints summary.json instead of the table
    #[arg(long)]
    json: bool,
    /// Says nothing on the way
    #[arg(long, short = 'Q')]
    quiet: bool,
    /// What the run is called
    #[arg(long, value_name = "NAME", default_value = "compare")]
    name: String,
    /// Where runs are kept
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
    /// A folder whose targets/*.toml come before those built in
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Says that you may put load on targets beyond this machine
    #[arg(long)]
    i_may_load_this: bool,
}

impl Compare {
    /// Weighs and shows.
    pub fn run(self) -> Result<Exit, Stop> {
        let catalogue = Catalogue::load(self.data.as_deref()).map_err(Stop::usage)?;
        let (plan, secrets) = self.plan(&catalogue)?;
        let cases = cases::decide(&plan, &catalogue, &secrets)?;
        preflight::may_load(&cases, self.i_may_load_this)?;
        let shards = preflight::shards(&cases, self.shards);
        preflight::examine(&catalogue, &cases, shards)?;
        let allowed = CoreSet::allowed()?;
        let experiment = Experiment {
            setup: resumption::setup(shards, self.data.as_deref(), &secrets, &cases)?,
            plan,
            cases,
            catalogue: &catalogue,
            pinning: Pinning::divide(&allowed, 1, shards as usize),
            shards,
            runs: &self.runs,
            is_quiet: self.quiet,
        };
        self.show(experiment.run()?)
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
        Ok((plan, self.secrets(&lanes)?))
    }

    fn secrets(&self, lanes: &[Lane]) -> Result<Secrets, Stop> {
        let mut secrets = Secrets::default();
        let mut has_foreign = false;
        for lane in lanes {
            if let Against::Foreign(endpoint) = &lane.against {
                has_foreign = true;
                let credentials = endpoint.credentials.clone();
                secrets.by_url.extend(credentials.map(|own| (endpoint.to_string(), own)));
            }
            if let Some(password) = lane.given.get(BROKER_PASSWORD) {
                let key = format!("{}.{BROKER_PASSWORD}", lane.protocol.name());
                secrets.settings.insert(key, password.clone());
            }
        }
        if let Some(user) = &self.user {
            if !has_foreign {
                return Err(Stop::usage(
                    "--user: is for targets given by URL: name one, such as mqtt://HOST:PORT",
                ));
            }
            let password = std::env::var("WEIGH_PASSWORD").unwrap_or_default();
            secrets.user = Some(Credentials { user: user.clone(), password });
            // A user who is named stands for all of them.
            secrets.by_url.clear();
        }
        Ok(secrets)
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

    pub fn show(&self, finished: Finished) -> Result<Exit, Stop> {
        if self.json {
            output::put(&finished.summary.to_json())?;
        } else {
            let width = std::io::stdout().is_terminal().then(crate::terminal::width);
            let style = Style::from_environment(width, |name| std::env::var(name).ok());
            let table = table::render(&finished.summary, style);
            output::put(&format!("{table}run: {}\n", finished.folder.path().display()))?;
        }
        if let Some(stop) = finished.unrecorded {
            eprintln!("weigh: not everything could be recorded; what was measured is above");
            return Err(stop);
        }
        if let Some(exit) = finished.interrupted {
            return Ok(exit);
        }
        match finished.first_failure {
            Some(stop) if finished.summary.cells.is_empty() || stop.exit() == Exit::Target => {
                Ok(stop.exit())
            }
            Some(_) => Ok(Exit::Internal),
            None => Ok(Exit::Done),
        }
    }
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
