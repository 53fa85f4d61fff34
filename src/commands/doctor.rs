//! `weigh doctor`: checks that this machine can generate a given load.

use std::path::PathBuf;

use clap::Args;
use weigh_model::MeterChoice;
use weigh_model::units::parse_whole;
use weigh_observe::energy::Meter;
use weigh_testbed::catalogue::Catalogue;
use weigh_testbed::doctor::{self, Demand, Finding, Level};
use weigh_testbed::facts::Facts;

use weigh_protocols::PROTOCOLS;
use weigh_testbed::pinning::{CoreSet, Pinning};

use crate::planning::counts::counts;
use crate::show::output;
use crate::show::terminal::Lines;
use weigh_runner::case::lanes::{Given, lanes};
use weigh_runner::exit::{Exit, Stop};
use weigh_runner::interrupts::Interrupts;
use weigh_runner::probes::metering::sources;
use weigh_runner::run::baseline::{Bench, Kind};

/// Flags of `weigh doctor`.
#[derive(Args)]
pub struct Doctor {
    /// Number of connections to check for
    #[arg(
        short = 'c',
        long,
        value_name = "N",
        default_value_t = u64::from(weigh_plan::load::CONNECTIONS),
        value_parser = parse_whole
    )]
    connections: u64,
    /// Number of subscribers to check for
    #[arg(short = 'y', long, value_name = "N", default_value_t = 1, value_parser = parse_whole)]
    subscribers: u64,
    /// Number of generator threads [default: as many as the connections need]
    #[arg(long, value_name = "N", value_parser = counts(1..=64_u32))]
    shards: Option<u32>,
    /// Check for a new connection per message
    #[arg(long)]
    session: bool,
    /// Measure the baseline of this machine and build, and keep it
    ///
    /// The baseline is what the generator reaches against built-in servers. Results near it get a
    /// warning.
    #[arg(long)]
    calibrate: bool,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
    /// Folder whose targets/*.toml replace built-in targets of the same name
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

impl Doctor {
    /// Checks the machine and prints the findings; exit code 2 if something cannot work.
    ///
    /// # Errors
    /// A folder of `--data` that cannot be read, and signal handlers that cannot be installed for
    /// `--calibrate`.
    pub fn run(self) -> Result<Exit, Stop> {
        let catalogue = Catalogue::load(self.data.as_deref()).map_err(Stop::usage)?;
        let facts = Facts::gather(weigh_observe::host::facts(), catalogue.targets());
        let standing = self.connections.saturating_add(self.subscribers);
        let shards =
            self.shards.unwrap_or_else(|| doctor::shards_needed(standing, facts.descriptors.hard));
        let demand = Demand {
            connections: self.connections,
            subscribers: self.subscribers,
            shards,
            target_shards: shards,
            connection_per_message: self.session,
            source_addresses: weigh_runner::targets::addresses::sources_for(
                u32::try_from(standing).unwrap_or(u32::MAX),
            ),
            ..Demand::default()
        };
        let mut findings = doctor::examine(&demand, &facts);
        findings.push(meter());
        if self.calibrate {
            findings.extend(baseline(&catalogue)?);
        }
        if self.json {
            let text = serde_json::to_string_pretty(&findings)
                .map_err(|error| Stop::new(Exit::Internal, error))?;
            output::put_document(&format!("{text}\n"))?;
        } else {
            output::put(&findings.iter().map(line).collect::<String>())?;
        }
        Ok(if doctor::forbids(&findings) { Exit::Usage } else { Exit::Done })
    }
}

/// Measures the baseline of every lane of the known protocols.
fn baseline(catalogue: &Catalogue) -> Result<Vec<Finding>, Stop> {
    let words: Vec<String> = PROTOCOLS.iter().map(|own| own.name().to_owned()).collect();
    let lanes = lanes(&words, catalogue, &Given::default(), &Lines)?;
    let kinds: Vec<Kind> = lanes.iter().filter_map(Kind::plain).collect();
    let pinning = Pinning::divide(&CoreSet::allowed()?, 1, 1);
    let bench =
        Bench { pinning: &pinning, shards: 1, interrupts: &*Interrupts::listen(Box::new(Lines))? };
    let found = bench.calibrate(&kinds, true);
    let finding = |kind: &Kind| match found.iter().find(|known| known.load == kind.name()) {
        Some(calibration) => Finding {
            check: "baseline",
            level: Level::Ok,
            text: calibration.words(),
            fix: String::new(),
        },
        None => Finding {
            check: "baseline",
            level: Level::Warning,
            text: format!("{}: not measured", kind.name()),
            fix: "wait until other programs have ended, and repeat".to_owned(),
        },
    };
    Ok(kinds.iter().map(finding).collect())
}

/// Returns the energy meter of `--meter auto`.
fn meter() -> Finding {
    let (text, fix) = match Meter::open(&MeterChoice::Auto, &sources()) {
        Ok(meter) => (format!("{}: {}", meter.facts().name, meter.facts().covers), ""),
        Err(error) => {
            (error.to_string(), "weigh energy meters lists the meters that weigh looks for")
        }
    };
    Finding { check: "energy-meter", level: Level::Ok, text, fix: fix.to_owned() }
}

/// Returns a finding, and its fix below it.
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
