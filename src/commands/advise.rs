//! `weigh advise`: from a situation to the options worth having.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::Args;
use weigh_advice::answer::{Inputs, Standing};
use weigh_advice::cells::Cells;
use weigh_advice::deciding;
use weigh_advice::situation::Situation;
use weigh_advice::{Advice, Choice, Criterion, advise, page, regions, text};
use weigh_runner::advice::calibration::{self, Extent};
use weigh_runner::advice::{observed, shipped};
use weigh_runner::exit::{Exit, Stop};
use weigh_runner::runner::Runner;
use weigh_testbed::catalogue::Catalogue;

use crate::advising::ask::interview;
use crate::advising::cells::gather;
use crate::advising::flags::{SituationFlags, usual};
use crate::advising::reach::ReachFlags;
use crate::advising::ready::{Ready, runner};
use crate::help;
use crate::output_file;
use crate::show::{output, terminal};

/// Flags of `weigh advise`.
#[derive(Args)]
pub struct Advise {
    /// A situation (FILE.toml), and protocols (mqtt, http), targets (mosquitto) or servers that run
    /// (mqtt://HOST:PORT) to choose from; without any, weigh asks
    #[arg(value_name = "FILE|PROTOCOL|TARGET|URL")]
    words: Vec<String>,
    #[command(flatten)]
    situation: SituationFlags,
    /// Write the situation to a file
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Use the costs measured there: a file of --save-cells, a run, or a summary.json; may be
    /// repeated
    #[arg(long, value_name = "FILE|RUN")]
    cells: Vec<String>,
    /// Measure the costs of the candidates on this machine first, in at most 3 minutes
    ///
    /// The cells are kept in the cache folder of the user, for this machine and this version of
    /// weigh, and used again.
    #[arg(long, conflicts_with = "cells")]
    calibrate: bool,
    #[command(flatten)]
    reach: ReachFlags,
    /// Write all measured costs that are known to a file
    #[arg(long, value_name = "FILE")]
    save_cells: Option<PathBuf>,
    /// Measure the advised candidates in this situation, and answer again from that
    #[arg(long)]
    check: bool,
    /// Print the plan of --calibrate or --check, and start nothing
    #[arg(long)]
    dry: bool,
    /// Print the answer as one JSON document
    #[arg(long)]
    json: bool,
    /// Write the answer as an HTML page, with a map of the loads at which another answer is right
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// Suppress progress output
    #[arg(long, short = 'Q')]
    quiet: bool,
    /// Folder of the runs
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
    /// Folder whose targets/*.toml, devices/*.toml and radios/*.toml replace built-in ones
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

impl Advise {
    /// Makes the answer and prints it.
    ///
    /// # Errors
    /// A situation that is wrong, cells that cannot be read, and trials that cannot be made.
    pub fn run(self) -> Result<Exit, Stop> {
        let situation = self.asked()?;
        if let Some(file) = &self.save {
            write(file, &situation.to_toml())?;
        }
        let catalogue = Catalogue::load(self.data.as_deref()).map_err(Stop::usage)?;
        let ready = Ready::of(situation, &catalogue, self.data.as_deref())?;
        // Before anything is measured: what cannot be observed is refused now.
        let lookouts = match self.calibrate || self.check {
            true => self.reach.lookouts(&self.wanted(&ready))?,
            false => Vec::new(),
        };
        if self.calibrate && self.dry {
            let (plan, _) = calibration::plan(&self.wanted(&ready), Extent::Whole);
            let plan = calibration::observing(&shown(&lookouts)) + &plan;
            return output::put(&plan).map(|()| Exit::Done);
        }
        let mut cells = match self.calibrate {
            true => {
                let shipped = shipped::cells().map_err(Stop::usage)?;
                std::iter::once(self.calibrated(&ready, &lookouts, &catalogue)?)
                    .chain(shipped)
                    .collect()
            }
            false => gather(&self.cells, &self.runs, &ready.here)?,
        };
        let mut advice = ready.with(&cells, advise);
        if self.check {
            let Some(measured) = self.checked(&ready, &advice, &lookouts, &catalogue)? else {
                return Ok(Exit::Done);
            };
            // What was measured in this very situation replaces what is predicted.
            cells.push(measured);
            let before = advice;
            advice = ready.with(&cells, advise);
            eprintln!("weigh: predicted: {}", before.sentence);
        }
        if let Some(file) = &self.save_cells {
            write(file, &together(&cells)?.to_json())?;
        }
        if let Some(file) = &self.page {
            let html = ready.with(&cells, |inputs: &Inputs<'_>| {
                page::page(&advice, inputs, &regions::regions(inputs))
            });
            write(file, &html)?;
        }
        self.tell(&advice)
    }

    fn tell(&self, advice: &Advice) -> Result<Exit, Stop> {
        if self.json {
            output::put_document(&advice.to_json())?;
        } else {
            let width = usize::from(terminal::style().width);
            output::put(&text::advice(advice, width))?;
        }
        let exit = if advice.is_complete && !advice.advised.is_empty() {
            Exit::Done
        } else {
            Exit::Undecided
        };
        Ok(exit)
    }

    /// The situation of file and flags, else that of the interview.
    fn asked(&self) -> Result<Situation, Stop> {
        let is_file = |word: &&String| word.ends_with(".toml");
        let files: Vec<&String> = self.words.iter().filter(is_file).collect();
        let options: Vec<String> =
            self.words.iter().filter(|word| !is_file(word)).cloned().collect();
        if let [_, second, ..] = files.as_slice() {
            return Err(Stop::usage(format!("{second}: there is already a situation: name one")));
        }
        let file = files.first().map(Path::new);
        if file.is_some() || self.situation.says_traffic() {
            return self.situation.situation(file, &options);
        }
        if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
            return Err(Stop::usage(
                "no situation is given, and there is no terminal to ask in\nhelp: name a file, or \
                 type --devices 2000 --every 1m --size 125B",
            ));
        }
        let start = self.situation.situation(None, &options).unwrap_or_else(|_| usual());
        interview(start, &mut std::io::stdin().lock(), &mut std::io::stderr().lock())
    }

    fn wanted(&self, ready: &Ready) -> Vec<calibration::Wanted> {
        let delivers = ready.situation.traffic.subscribers > 0;
        let possible = ready.offers.all.iter().filter(|own| own.session.is_ok());
        calibration::wanted(possible.map(|own| &own.choice), delivers)
    }

    /// Measures the costs of all options, and keeps them.
    fn calibrated(
        &self,
        ready: &Ready,
        lookouts: &[String],
        catalogue: &Catalogue,
    ) -> Result<Cells, Stop> {
        let wanted = self.wanted(ready);
        let runner = self.runner(catalogue)?;
        let cells = calibration::calibrate(&runner, &wanted, lookouts)?;
        calibration::keep(&cells, &ready.here, help::VERSION)?;
        Ok(cells)
    }

    fn runner<'c>(&self, catalogue: &'c Catalogue) -> Result<Runner<'c>, Stop> {
        let runner = runner(catalogue, &self.runs, self.data.clone(), self.quiet)?;
        Ok(Runner { may_load: self.reach.may_load(), ..runner })
    }

    /// Measures the advised options in the situation; nothing with `--dry`.
    fn checked(
        &self,
        ready: &Ready,
        advice: &Advice,
        lookouts: &[String],
        catalogue: &Catalogue,
    ) -> Result<Option<Cells>, Stop> {
        let is_open = |own: &&weigh_advice::answer::OptionShown| {
            matches!(own.standing, Standing::Advised | Standing::Unknown)
        };
        let open: Vec<&str> =
            advice.options.iter().filter(is_open).map(|own| own.name.as_str()).collect();
        let all = ready.offers.all.iter().map(|own| &own.choice);
        let choices: Vec<&Choice> =
            all.filter(|choice| open.contains(&choice.name().as_str())).collect();
        let first = ready.situation.matters[0];
        if !matches!(first, Criterion::ServerCpu | Criterion::Memory) {
            return Err(Stop::usage(format!(
                "--check: {first} is computed, not measured\nhelp: type --matters server-cpu, or \
                 run weigh compare with --path and --wire"
            )));
        }
        if choices.is_empty() {
            return Err(Stop::new(Exit::Undecided, "no option can do this: nothing to measure"));
        }
        let repetitions = advice.deciding.as_ref().map_or(3, |own| own.repetitions.clamp(3, 10));
        let is_measured = |own: &&String| {
            let mut urls = choices.iter().map(|choice| choice.target.as_str());
            urls.any(|url| own.strip_prefix(url).is_some_and(|rest| rest.starts_with('=')))
        };
        let lookouts: Vec<String> = lookouts.iter().filter(is_measured).cloned().collect();
        let plan = deciding::plan(&choices, &ready.situation, repetitions as u32);
        if self.dry {
            output::put(&(calibration::observing(&shown(&lookouts)) + &plan))?;
            return Ok(None);
        }
        let plan = calibration::observing(&lookouts) + &plan;
        let runner = self.runner(catalogue)?;
        let finished = runner.run("advice", &plan)?;
        if let Some(exit) = finished.interrupted {
            return Err(Stop::new(exit, "the check was interrupted"));
        }
        output::put_table(&weigh_report::table::render(&finished.summary, terminal::style()))?;
        let (cells, left_out) =
            observed::cells(&finished.summary, &format!("check, run {}", finished.summary.run.id));
        for why in left_out {
            eprintln!("weigh: left out: {why}");
        }
        Ok(Some(cells))
    }
}

/// What is observed, without the token of an agent.
fn shown(lookouts: &[String]) -> Vec<String> {
    let of = |own: &String| own.split('#').next().unwrap_or_default().to_owned();
    lookouts.iter().map(of).collect()
}

/// All measured cells as one document; they must be of one machine. Built-in ones are left out.
///
/// # Errors
/// No measured cells, and those of two machines.
pub fn together(cells: &[Cells]) -> Result<Cells, Stop> {
    let measured: Vec<&Cells> = cells.iter().filter(|own| !own.is_shipped).collect();
    let Some((first, others)) = measured.split_first() else {
        return Err(Stop::usage(
            "--save-cells: nothing was measured, and built-in cells are not saved\nhelp: add \
             --calibrate",
        ));
    };
    let mut all = (*first).clone();
    for other in others {
        if other.machine != first.machine {
            return Err(Stop::usage(format!(
                "--save-cells: cells of two machines ({}; {}) are not put together\nhelp: name one \
                 with --cells",
                first.machine.words(),
                other.machine.words()
            )));
        }
        all.source += &format!("; {}", other.source);
        all.cells.extend(other.cells.iter().cloned());
    }
    Ok(all)
}

/// Writes a file.
///
/// # Errors
/// If it cannot be written.
pub fn write(file: &Path, text: &str) -> Result<(), Stop> {
    output_file::write(file, text.as_bytes()).map_err(|error| {
        Stop::new(Exit::Record, format!("{}: cannot be written: {error}", file.display()))
    })
}
