//! `weigh energy meters`: lists energy meters and what each needs; reads the log of an external
//! meter into a finished run.

use std::path::{Path, PathBuf};
use std::time::Duration;
use weigh_model::numbers::{count, three_digits, time};

use clap::Args;
use weigh_model::MeterChoice;
use weigh_model::event::Event;
use weigh_observe::energy::{Candidate, survey};
use weigh_report::RunFolder;

use crate::show::output;
use weigh_runner::exit::{Exit, Stop};
use weigh_runner::probes::external_meter;
use weigh_runner::probes::metering::sources;
use weigh_runner::run::history::not_recorded;

/// Flags of `weigh energy meters`.
#[derive(Args)]
pub struct Meters {
    /// Print the list as JSON
    #[arg(long)]
    json: bool,
    /// Read the log of an external meter into a run that was made with --meter csv:FILE
    ///
    /// The log is a CSV file. Add @5V where it has currents only.
    #[arg(long, value_name = "FILE", requires = "run", conflicts_with = "json")]
    log: Option<String>,
    /// Run: its folder, its ID, or `latest`
    #[arg(long, value_name = "RUN", requires = "log")]
    run: Option<String>,
    /// Folder of the runs
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
}

impl Meters {
    /// Lists the meters, or reads the log.
    ///
    /// # Errors
    /// A log or a run that cannot be read, or that do not belong together.
    pub fn run(self) -> Result<Exit, Stop> {
        if let (Some(log), Some(run)) = (&self.log, &self.run) {
            return read_log(log, run, &self.runs);
        }
        let found = survey(&sources());
        let text = match self.json {
            true => serde_json::to_string_pretty(&found)
                .map(|text| text + "\n")
                .map_err(|error| Stop::new(Exit::Internal, error))?,
            false => found.iter().map(line).collect::<String>() + OUTSIDE,
        };
        let put = if self.json { output::put_document } else { output::put };
        put(&text).map(|()| Exit::Done)
    }
}

/// Returns a meter, and below it what it measures or needs.
fn line(meter: &Candidate) -> String {
    let Candidate { choice, name, covers, is_usable, needs } = meter;
    let (state, about) = match (is_usable, name.is_empty()) {
        (true, _) => ("usable", covers),
        (false, true) => ("none", needs),
        (false, false) => ("refused", needs),
    };
    format!("{state:<8} {choice:<16} {name}\n{:<8} {:<16} -> {about}\n", "", "")
}

fn read_log(log: &str, run: &str, runs: &Path) -> Result<Exit, Stop> {
    let choice =
        format!("csv:{log}").parse().map_err(|said| Stop::usage(format!("--log: {said}")))?;
    let MeterChoice::Log { file, voltage_mv } = choice else {
        return Err(Stop::new(Exit::Internal, "a log is a log"));
    };
    let folder = RunFolder::find(runs, run).map_err(Stop::usage)?;
    let (mut journal, read) = folder.resume_journal().map_err(Stop::usage)?;
    let voltage_v = voltage_mv.map(|millivolts| f64::from(millivolts) / 1e3);
    let mut told = external_meter::settle(&read.events, (&file, voltage_v), Duration::ZERO);
    if let Some(complaint) = external_meter::complaint(&told) {
        return Err(Stop::usage(format!(
            "--log: {complaint}; the run was not changed\nhelp: give a log that covers the whole \
             run"
        )));
    }
    // The run stays as finished as it was.
    let last = read.events.iter().rev().find(|event| matches!(event, Event::RunFinished { .. }));
    told.extend(last.cloned());
    for event in &told {
        journal.write(event).map_err(not_recorded)?;
    }
    let events: Vec<Event> = read.events.into_iter().chain(told.iter().cloned()).collect();
    folder.write_results(&events).map_err(not_recorded)?;
    output::put(&told.iter().filter_map(aligned).collect::<String>())?;
    let trials = told.iter().filter(|event| matches!(event, Event::EnergyMeasured(_))).count();
    let name = folder.id();
    output::put(&format!(
        "{trials} trials have energy figures now: weigh report {name} shows them\n"
    ))?;
    Ok(Exit::Done)
}

/// Returns how the log is aligned with the clock of the run.
fn aligned(event: &Event) -> Option<String> {
    let Event::LogAligned(own) = event else { return None };
    Some(format!(
        "{}: {} rows, its clock {} ppm fast, moments within {}, correlation {:.2}\n",
        own.file,
        count(own.rows),
        three_digits(own.drift_ppm),
        time(own.bound_ns as f64, false),
        own.correlation
    ))
}

const OUTSIDE: &str = "         csv:FILE         the log of a meter outside
                          -> a table with time_s and power_W, or voltage_V and current_A, or
                             current_mA (csv:FILE@5V); three pulses of load align it
";
