//! `weigh runs cite` prints what a paper says of a run: a BibTeX entry and a sentence on the method.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;
use weigh_model::event::{Event, HostFacts};
use weigh_report::figures::bytes;
use weigh_report::{RunFolder, Summary};

use crate::show::citation::Software;
use crate::show::output;
use weigh_runner::exit::{Exit, Stop};

/// The flags of `weigh runs cite`.
#[derive(Args)]
pub struct Cite {
    /// Run: its folder, its ID, or `latest`
    run: String,
    /// Print only one form [default: the sentence, then the BibTeX entry]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Folder of the runs
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
}

/// The forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A BibTeX entry of the program
    Bibtex,
    /// A sentence for a methods section
    Text,
    /// Both, and every fact in them, as JSON
    Json,
}

impl Cite {
    /// Reads the journal and prints the citation.
    ///
    /// # Errors
    /// If there is no such run, or it cannot be read.
    pub fn run(self) -> Result<Exit, Stop> {
        let folder = RunFolder::find(&self.runs, &self.run).map_err(Stop::usage)?;
        let journal = folder.read_journal().map_err(Stop::usage)?;
        let summary = folder.summary(&journal.events).map_err(Stop::usage)?;
        let facts = Facts::of(&summary, &journal.events);
        if facts.outcome != "done" {
            eprintln!("weigh: the run is {}: its figures are not complete", facts.outcome);
        }
        let software = Software::own();
        let year = facts.date.get(..4).unwrap_or_default();
        let bibtex = software.bibtex(&facts.version, facts.commit.as_deref(), year);
        let text = facts.sentence() + "\n";
        output::put_document(&match self.format {
            None => format!("{text}\n{bibtex}"),
            Some(Format::Text) => text,
            Some(Format::Bibtex) => bibtex,
            Some(Format::Json) => {
                let (doi, repository) = (software.doi, software.repository);
                let text = text.trim_end().to_owned();
                let cited = Cited { facts, doi, repository, text, bibtex };
                let json = serde_json::to_string_pretty(&cited);
                json.map_err(|error| Stop::new(Exit::Internal, error))? + "\n"
            }
        })?;
        Ok(Exit::Done)
    }
}

/// Everything, for programs.
#[derive(Serialize)]
struct Cited {
    #[serde(flatten)]
    facts: Facts,
    doi: Option<String>,
    repository: Option<String>,
    text: String,
    bibtex: String,
}

/// What is said of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Facts {
    run: String,
    outcome: String,
    /// RFC 3339.
    started: String,
    /// The day of the start, UTC.
    date: String,
    version: String,
    /// Other versions with which the run was resumed.
    resumed_with: Vec<String>,
    commit: Option<String>,
    host: HostFacts,
    seed: u64,
    cases: usize,
    /// The fewest and the most repetitions of a case.
    repetitions: Option<[u32; 2]>,
}

impl Facts {
    fn of(summary: &Summary, events: &[Event]) -> Facts {
        let run = &summary.run;
        let commit = events.iter().find_map(|event| match event {
            Event::RunStarted(started) => Some(started.setup.commit.clone()),
            _ => None,
        });
        let resumed: BTreeSet<&str> = events
            .iter()
            .filter_map(|event| match event {
                Event::RunResumed(resumed) => Some(resumed.version.as_str()),
                _ => None,
            })
            .filter(|version| *version != run.version)
            .collect();
        let repetitions = || summary.cells.iter().map(|cell| cell.repetitions);
        Facts {
            run: run.id.clone(),
            outcome: run.outcome.clone(),
            started: run.started.clone(),
            date: run.started.get(..10).unwrap_or_default().to_owned(),
            version: run.version.clone(),
            resumed_with: resumed.into_iter().map(str::to_owned).collect(),
            commit: commit.flatten(),
            host: run.host.clone(),
            seed: run.plan.seed,
            cases: summary.cells.len(),
            repetitions: repetitions().min().zip(repetitions().max()).map(|ends| ends.into()),
        }
    }

    /// One sentence with version, day, host, seed and number of repetitions. What is not known is
    /// left out.
    fn sentence(&self) -> String {
        let mut version = self.version.clone();
        if let Some(commit) = &self.commit {
            version += &format!(" (commit {commit})");
        }
        if !self.resumed_with.is_empty() {
            version += &format!(", resumed with version {}", self.resumed_with.join(" and "));
        }
        let repetitions = match self.repetitions {
            None => String::new(),
            Some([1, 1]) => ", with 1 repetition".to_owned(),
            Some([least, most]) if least == most => format!(", with {least} repetitions"),
            Some([least, most]) => format!(", with {least} to {most} repetitions"),
        };
        let cases = match (self.repetitions, self.cases) {
            (None, _) => String::new(),
            (_, 1) => " of 1 case".to_owned(),
            (_, cases) => format!(" of each of {cases} cases"),
        };
        format!(
            "The measurements were made with Weighbridge {version} on {} on {}{repetitions}{cases} \
             and the random seed {}.",
            day(&self.started),
            host(&self.host),
            self.seed
        )
    }
}

/// `21 November 2026`.
fn day(started: &str) -> String {
    match started.parse::<Timestamp>() {
        Ok(time) => time.to_zoned(TimeZone::UTC).strftime("%-d %B %Y").to_string(),
        Err(_) => started.to_owned(),
    }
}

/// `a host with Intel Xeon E5-2690 (2 cores used, 7.75 GiB of memory, Linux 6.1.0, KVM)`.
fn host(host: &HostFacts) -> String {
    let processor = match host.cpu.trim() {
        "" => "a host".to_owned(),
        cpu => format!("a host with the processor {cpu}"),
    };
    let cores = match host.cores {
        0 => None,
        1 => Some("1 core available".to_owned()),
        cores => Some(format!("{cores} cores available")),
    };
    let memory =
        (host.memory_bytes > 0).then(|| format!("{} of memory", bytes(host.memory_bytes as f64)));
    let kernel = (!host.kernel.is_empty()).then(|| format!("Linux {}", host.kernel));
    let machine = match host.virtualisation.as_str() {
        "" | "none" => None,
        kind => Some(format!("virtual machine: {kind}")),
    };
    let known: Vec<String> = [cores, memory, kernel, machine].into_iter().flatten().collect();
    if known.is_empty() { processor } else { format!("{processor} ({})", known.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts {
            run: "2026-11-21T01-02-03-compare".to_owned(),
            outcome: "done".to_owned(),
            started: "2026-11-21T01:02:03Z".to_owned(),
            date: "2026-11-21".to_owned(),
            version: "0.1.0".to_owned(),
            resumed_with: Vec::new(),
            commit: Some("abc123456".to_owned()),
            host: HostFacts {
                kernel: "6.1.0".to_owned(),
                cpu: "Intel Xeon E5-2690".to_owned(),
                cores: 2,
                memory_bytes: 8 << 30,
                virtualisation: "kvm".to_owned(),
                ..HostFacts::default()
            },
            seed: 7,
            cases: 4,
            repetitions: Some([5, 5]),
        }
    }

    #[test]
    fn one_sentence_names_all_that_a_repetition_needs() {
        assert_eq!(
            facts().sentence(),
            "The measurements were made with Weighbridge 0.1.0 (commit abc123456) on 21 November \
             2026 on a host with the processor Intel Xeon E5-2690 (2 cores available, 8.00 GiB of \
             memory, Linux 6.1.0, virtual machine: kvm), with 5 repetitions of each of 4 cases \
             and the random seed 7."
        );
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let bare = Facts {
            commit: None,
            host: HostFacts::default(),
            cases: 1,
            repetitions: Some([1, 1]),
            resumed_with: vec!["0.2.0".to_owned()],
            ..facts()
        };
        assert_eq!(
            bare.sentence(),
            "The measurements were made with Weighbridge 0.1.0, resumed with version 0.2.0 on 21 \
             November 2026 on a host, with 1 repetition of 1 case and the random seed 7."
        );
    }
}
