//! `weigh doctor`: looks whether this machine can do what a load asks of it.

use std::path::PathBuf;

use clap::Args;
use weigh_stage::catalogue::Catalogue;
use weigh_stage::doctor::{self, Demand, Finding, Level};
use weigh_stage::facts::Facts;

use crate::exit::{Exit, Stop};
use crate::show::output;

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
            source_addresses: crate::run::trial_run::SOURCES_MAX,
            ..Demand::default()
        };
        let findings = doctor::examine(&demand, &facts);
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
