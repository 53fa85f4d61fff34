//! `weigh doctor`: looks whether this machine can do what a load asks of it.

use std::path::PathBuf;

use clap::Args;
use weigh_model::MeterChoice;
use weigh_observe::energy::Meter;
use weigh_testbed::catalogue::Catalogue;
use weigh_testbed::doctor::{self, Demand, Finding, Level};
use weigh_testbed::facts::Facts;

use weigh_protocols::PROTOCOLS;
use weigh_testbed::pinning::{CoreSet, Pinning};

use crate::show::output;
use crate::show::terminal::Lines;
use weigh_runner::case::lanes::{Given, lanes};
use weigh_runner::exit::{Exit, Stop};
use weigh_runner::interrupts::Interrupts;
use weigh_runner::probes::metering::sources;
use weigh_runner::run::null_path::{Bench, Kind};

/// The flags of `weigh doctor`.
#[derive(Args)]
pub struct Doctor {
    /// Connections you want to make
    #[arg(
        short = 'c',
        long,
        value_name = "N",
        default_value_t = u64::from(weigh_plan::load::CONNECTIONS)
    )]
    connections: u64,
    /// Subscribers beside them
    #[arg(short = 'y', long, value_name = "N", default_value_t = 1)]
    subscribers: u64,
    /// Threads of the generator [default: as many as the descriptors need]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    shards: Option<u32>,
    /// Every message opens its own connection
    #[arg(long)]
    session: bool,
    /// Measures what this machine and this build can do at most, against our own servers, and keeps
    /// it: results near it are marked
    #[arg(long)]
    calibrate: bool,
    /// Prints the findings as JSON
    #[arg(long)]
    json: bool,
    /// A folder whose targets/*.toml come before those built in
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

impl Doctor {
    /// Examines and says what was found; exit code 2 if something cannot work.
    pub fn run(self) -> Result<Exit, Stop> {
        let catalogue = Catalogue::load(self.data.as_deref()).map_err(Stop::usage)?;
        let facts = Facts::gather(weigh_observe::host::facts(), &catalogue);
        let standing = self.connections.saturating_add(self.subscribers);
        let shards =
            self.shards.unwrap_or_else(|| doctor::shards_needed(standing, facts.descriptors.hard));
        let demand = Demand {
            connections: self.connections,
            subscribers: self.subscribers,
            shards,
            target_shards: shards,
            connection_per_message: self.session,
            source_addresses: weigh_runner::targets::addresses::SOURCES_MAX,
            ..Demand::default()
        };
        let mut findings = doctor::examine(&demand, &facts);
        findings.push(meter());
        if self.calibrate {
            findings.extend(null_path(&catalogue)?);
        }
        if self.json {
            let text = serde_json::to_string_pretty(&findings)
                .map_err(|error| Stop::new(Exit::Internal, error))?;
            output::put(&format!("{text}\n"))?;
        } else {
            output::put(&findings.iter().map(line).collect::<String>())?;
        }
        Ok(if doctor::forbids(&findings) { Exit::Usage } else { Exit::Done })
    }
}

/// The null path of every lane of the protocols that there are, measured now.
fn null_path(catalogue: &Catalogue) -> Result<Vec<Finding>, Stop> {
    let words: Vec<String> = PROTOCOLS.iter().map(|own| own.name().to_owned()).collect();
    let lanes = lanes(&words, catalogue, &Given::default(), &Lines)?;
    let kinds: Vec<Kind> = lanes.iter().filter_map(Kind::plain).collect();
    let pinning = Pinning::divide(&CoreSet::allowed()?, 1, 1);
    let bench = Bench { pinning: &pinning, shards: 1, interrupts: &*Interrupts::listen(Lines)? };
    let found = bench.calibrate(&kinds, true);
    let finding = |kind: &Kind| match found.iter().find(|known| known.load == kind.name()) {
        Some(calibration) => Finding {
            check: "null-path",
            level: Level::Ok,
            text: calibration.words(),
            fix: String::new(),
        },
        None => Finding {
            check: "null-path",
            level: Level::Warning,
            text: format!("{}: not measured", kind.name()),
            fix: "wait until other work is done, and repeat".to_owned(),
        },
    };
    Ok(kinds.iter().map(finding).collect())
}

/// The meter of energy that `--meter auto` takes.
fn meter() -> Finding {
    let (text, fix) = match Meter::open(&MeterChoice::Auto, &sources()) {
        Ok(meter) => (format!("{}: {}", meter.facts().name, meter.facts().covers), ""),
        Err(error) => (error.to_string(), "weigh meters says what was looked for"),
    };
    Finding { check: "energy-meter", level: Level::Ok, text, fix: fix.to_owned() }
}

/// A finding, and below it what to do.
fn line(finding: &Finding) -> String {
    let level = match finding.level {
        Level::Ok => "ok",
        Level::Warning => "warning",
        Level::Fatal => "FATAL",
    };
    let mut text = format!("{level:<7}  {:<20} {}\n", finding.check, finding.text);
    if !finding.fix.is_empty() {
        text += &format!("{:<7}  {:<20} -> {}\n", "", "", finding.fix);
    }
    text
}
