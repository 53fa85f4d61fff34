//! `weigh compare`: one load over several protocols or targets, one table.

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::Args;
use weigh_engine::schedule;
use weigh_model::endpoint::Credentials;
use weigh_model::{Arrival, Load, Pattern};
use weigh_report::table::{self, Style};
use weigh_stage::catalogue::Catalogue;
use weigh_stage::doctor::{self, Demand, Level};
use weigh_stage::facts::Facts;
use weigh_stage::pinning::{CoreSet, Pinning};

use crate::exit::{Exit, Stop};
use crate::experiment::{Case, Experiment, Finished};
use crate::lanes::{Against, Given, Lane, lanes};
use crate::material;
use crate::options::LoadOptions;
use crate::output;

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
        let given = self.given()?;
        let mut cases = Vec::new();
        for mut lane in lanes(&self.words, &catalogue, &given)? {
            self.identify(&mut lane)?;
            let load = self.load.load(lane.protocol.name(), lane.protocol.patterns())?;
            if !repeats_hold(&cases, &lane, &load) {
                cases.push(Case { lane, load });
            }
        }
        if let Some(key) = unused(&given, &cases) {
            return Err(self.useless(key));
        }
        let has_foreign = cases.iter().any(|case| matches!(case.lane.against, Against::Foreign(_)));
        if self.user.is_some() && !has_foreign {
            return Err(Stop::usage(
                "--user: is for targets given by URL: name one, such as mqtt://HOST:PORT",
            ));
        }
        let material = self.material(&mut cases)?;
        let shards = self.shards(&cases);
        examine(&catalogue, &cases, shards)?;
        check_shards(&cases, shards)?;
        let allowed = CoreSet::allowed()?;
        let experiment = Experiment {
            name: self.name.clone(),
            seed: self.seed,
            cases,
            repetitions: self.reps,
            material,
            catalogue: &catalogue,
            pinning: Pinning::divide(&allowed, 1, shards as usize),
            shards,
            runs: &self.runs,
            is_quiet: self.quiet,
            keeps_messages: self.keep_messages,
        };
        self.show(experiment.run()?)
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

    /// Puts credentials to a lane that leads to somebody's server, and asks whether it may.
    fn identify(&self, lane: &mut Lane) -> Result<(), Stop> {
        let Against::Foreign(endpoint) = &mut lane.against else { return Ok(()) };
        if let Some(user) = &self.user {
            let password = std::env::var("WEIGH_PASSWORD").unwrap_or_default();
            endpoint.credentials = Some(Credentials { user: user.clone(), password });
        }
        let is_local = endpoint.host == "localhost"
            || endpoint.host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
        if is_local || self.i_may_load_this {
            return Ok(());
        }
        Err(Stop::usage(format!(
            "{endpoint}: lies beyond this machine, and a load test can put a server out of \
             service: add --i-may-load-this if you may"
        )))
    }

    fn material(&self, cases: &mut [Case]) -> Result<material::Material, Stop> {
        let Some(first) = cases.first() else { return Ok(material::Material::default()) };
        let trace = match &first.load.arrival {
            Arrival::Trace(path) => Some(path.clone()),
            _ => None,
        };
        let material = material::material(&first.load.body, trace.as_deref())?;
        for case in cases {
            let load = &mut case.load;
            if load.duration.is_none() && load.messages.is_none() {
                load.duration = schedule::own_duration(&load.arrival, &material.trace);
            }
        }
        Ok(material)
    }

    fn shards(&self, cases: &[Case]) -> u32 {
        let hard = weigh_engine::io::descriptors::limits().hard;
        let connections = cases.iter().map(|case| standing(&case.load)).max().unwrap_or(0);
        self.shards.unwrap_or_else(|| doctor::shards_needed(connections, hard))
    }

    fn show(&self, finished: Finished) -> Result<Exit, Stop> {
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
            None if !finished.summary.thresholds_hold() => Ok(Exit::Finding),
            None => Ok(Exit::Done),
        }
    }
}

/// Local addresses that connections to this target may come from: several only on loopback.
fn sources_max(against: &Against) -> u32 {
    let is_on_loopback = match against {
        Against::Reference | Against::Managed(_) => true,
        Against::Foreign(endpoint) => {
            let ip = endpoint.host.parse::<std::net::Ipv4Addr>();
            endpoint.host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
        }
    };
    if is_on_loopback { crate::trial_run::SOURCES_MAX } else { 1 }
}

/// Connections that stand at once.
fn standing(load: &Load) -> u64 {
    u64::from(load.connections) + u64::from(load.subscribers)
}

/// The first given key that belongs to no lane.
fn unused<'g>(given: &'g Given, cases: &[Case]) -> Option<&'g str> {
    let used = |key: &str| {
        let name = key.split_once('.').map_or("", |(name, _)| name);
        cases.iter().any(|case| {
            let protocol = case.lane.protocol;
            name == protocol.name() || protocol.aliases().contains(&name)
        })
    };
    given.0.iter().map(|(key, _)| key.as_str()).find(|key| !used(key))
}

/// Connections that only stand are the same whatever would be sent over them: one lane of each
/// protocol and target is enough.
fn repeats_hold(cases: &[Case], lane: &Lane, load: &Load) -> bool {
    load.pattern == Pattern::Hold
        && cases.iter().any(|case| {
            case.lane.protocol.name() == lane.protocol.name()
                && case.lane.against.name() == lane.against.name()
        })
}

/// A closed loop that waits for deliveries needs publishers and subscribers in one shard.
fn check_shards(cases: &[Case], shards: u32) -> Result<(), Stop> {
    let waits_for_delivery = |case: &Case| {
        case.load.pattern == Pattern::Deliver
            && !case.load.arrival.is_open()
            && case.lane.protocol.guarantee(&case.lane.settings)
                == weigh_model::Guarantee::AtMostOnce
    };
    match cases.iter().find(|case| shards > 1 && waits_for_delivery(case)) {
        None => Ok(()),
        Some(case) => Err(Stop::usage(format!(
            "--shards {shards}: a closed loop of unconfirmed {} messages waits for their \
             delivery, which one thread must see; type --shards 1, give a rate (-R), or use \
             fewer connections",
            case.lane.protocol.name()
        ))),
    }
}

/// Asks the doctor first: what cannot work is refused now instead of dying midway.
fn examine(catalogue: &Catalogue, cases: &[Case], shards: u32) -> Result<(), Stop> {
    let facts = Facts::gather(weigh_observe::host::facts(), catalogue);
    for case in cases {
        let load = &case.load;
        let demand = Demand {
            connections: u64::from(load.connections),
            subscribers: u64::from(load.subscribers),
            shards,
            target_shards: if matches!(case.lane.against, Against::Reference) { shards } else { 1 },
            messages: load.messages,
            duration: load.duration,
            rate_per_s: schedule::rate_per_second_max(load),
            connection_per_message: load.pattern == Pattern::Session
                || case.lane.settings.text("keep_alive") == "false",
            source_addresses: sources_max(&case.lane.against),
            local: !matches!(case.lane.against, Against::Foreign(_)),
            targets: match &case.lane.against {
                Against::Managed(name) => vec![name.clone()],
                _ => Vec::new(),
            },
        };
        let fatal: Vec<String> = doctor::examine(&demand, &facts)
            .into_iter()
            .filter(|finding| finding.level == Level::Fatal)
            .map(|finding| format!("{}: {}; {}", finding.check, finding.text, finding.fix))
            .collect();
        if !fatal.is_empty() {
            return Err(Stop::usage(fatal.join("\n  ")));
        }
    }
    Ok(())
}
