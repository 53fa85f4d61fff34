//! `weigh report`: prints the table of a finished run from its journal, or the claims of a study's
//! run.

#[cfg(feature = "plots")]
use std::path::Path;
use std::path::PathBuf;

use clap::Args;
use weigh_report::journal::JOURNAL;
#[cfg(feature = "plots")]
use weigh_report::pictures::{Gallery, chosen};
use weigh_report::table::limits;
use weigh_report::{RunFolder, StudyFolder, Style, Summary, checks, table};
use weigh_testbed::catalogue::Catalogue;

use crate::planning::verdicts::Verdicts;
#[cfg(feature = "plots")]
use crate::show::plots;
use crate::show::terminal::{self, Lines};
use crate::show::{output, study_text};
use weigh_runner::exit::{Exit, Stop};
use weigh_runner::study::library::{self, Studies};
use weigh_runner::study::study_run;

/// Flags of `weigh report`.
#[derive(Args)]
pub struct Report {
    /// Run, or run of a study: its folder, its ID, or `latest`
    run: String,
    /// Print summary.json instead of the table
    #[arg(long)]
    json: bool,
    /// Print the table as Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Print all columns of the table side by side, however wide
    #[arg(long, conflicts_with_all = ["json", "markdown"])]
    wide: bool,
    /// Write report.html, summary.json and the other results again
    #[arg(long)]
    html: bool,
    /// Write pictures of the report to a folder, as SVG and PNG
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
    /// Pictures to write: names, words of them such as p99, or `all`; `list` prints the names
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    plot: Vec<String>,
    /// Folder of the runs
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
    #[command(flatten)]
    verdicts: Verdicts,
}

impl Report {
    /// Reads the journal and prints the result.
    ///
    /// # Errors
    /// A run that cannot be read, and a page or a picture that cannot be written.
    pub fn run(self) -> Result<Exit, Stop> {
        #[cfg(not(feature = "plots"))]
        if self.plots.is_some() || !self.plot.is_empty() {
            return Err(Stop::unbuilt("pictures as files (--plots)"));
        }
        if !self.plot.is_empty() && self.plots.is_none() && !self.lists_plots() {
            let help = "add --plots DIR, or type --plot list";
            return Err(Stop::usage(format!("--plot needs a folder\nhelp: {help}")));
        }
        if let Some(folder) = StudyFolder::named(&self.runs, &self.run) {
            return self.study(&folder);
        }
        let folder = RunFolder::find(&self.runs, &self.run).map_err(Stop::usage)?;
        let journal = folder.read_journal().map_err(Stop::usage)?;
        let path = folder.path().join(JOURNAL);
        for bad in &journal.bad_lines {
            eprintln!("weigh: {}: {bad}", path.display());
        }
        if self.html {
            for unreadable in journal.unreadable_times() {
                eprintln!("weigh: {}: {unreadable}", path.display());
            }
        }
        let summary = if self.html {
            let written = folder.write_results(&journal.events);
            written.map_err(|error| Stop::new(Exit::Record, error))?
        } else {
            folder.summary(&journal.events).map_err(Stop::usage)?
        };
        if self.html {
            eprintln!("weigh: wrote {}", folder.path().join("report.html").display());
        }
        #[cfg(feature = "plots")]
        if self.lists_plots() {
            let gallery = Gallery::new(&summary, &journal.events);
            return output::put(&plots::list(&gallery.named(&summary))).map(|()| Exit::Done);
        }
        #[cfg(feature = "plots")]
        if let Some(folder) = &self.plots {
            let gallery = Gallery::new(&summary, &journal.events);
            let chosen = chosen(gallery.named(&summary), &self.plot).map_err(no_picture)?;
            plots::write(folder, &gallery.shared, &chosen)?;
            drawn(folder, chosen.len());
        }
        if self.json {
            output::put_document(&summary.to_json())?;
            return self.conclude(&summary);
        }
        let style = match self.markdown {
            true => Style::markdown(),
            false => terminal::table_style(self.wide),
        };
        let put = |text: &str| match self.markdown {
            true => output::put_document(text),
            false => output::put_table(text),
        };
        put(&limits::render(&summary, &style))?;
        let table = output::elsewhere(&table::render(&summary, style), &summary.run.id, &self.runs);
        output::put_table_of(&table, style)?;
        put(&limits::ladders(&summary, style))?;
        self.conclude(&summary)
    }

    /// True if only the names of the pictures are asked for.
    fn lists_plots(&self) -> bool {
        self.plot == [LIST]
    }

    /// Writes the figures of a study that are chosen: all, unless some are named.
    #[cfg(feature = "plots")]
    fn write_figures(&self, mut figures: Vec<weigh_study::page::Drawn>) -> Result<(), Stop> {
        let Some(folder) = &self.plots else { return Ok(()) };
        let is_named = |word: &String| word == ALL || figures.iter().any(|own| own.name == *word);
        if let Some(word) = self.plot.iter().find(|word| !is_named(word)) {
            return Err(no_picture(word.clone()));
        }
        let is_all = self.plot.is_empty() || self.plot.iter().any(|word| word == ALL);
        figures.retain(|own| is_all || self.plot.contains(&own.name));
        plots::write_drawn(folder, &figures)?;
        drawn(folder, figures.len());
        Ok(())
    }

    /// Returns the exit code of the thresholds, or of a run without measurements. A run that has
    /// not ended is only shown.
    fn conclude(&self, summary: &Summary) -> Result<Exit, Stop> {
        let mut checks = checks::of_run(summary);
        if summary.run.outcome != "done" {
            checks.retain(|check| check.condition != checks::MEASURED);
        }
        self.verdicts.conclude((&summary.run.plan.name, &summary.run.started), &checks)
    }

    /// Judges the run of a study again from the journals of its runs. Writes `study.json` and the
    /// page unless the run continues at this moment.
    fn study(&self, folder: &StudyFolder) -> Result<Exit, Stop> {
        for (flag, is_given) in [("--markdown", self.markdown), ("--wide", self.wide)] {
            if is_given {
                return Err(Stop::usage(format!(
                    "{flag}: applies only to single runs\nhelp: leave it out, or open report.html \
                     of the study's run"
                )));
            }
        }
        let texts = study_run::texts(folder)?;
        let data = study_run::document(folder)?.data.map(PathBuf::from);
        let catalogue = Catalogue::load(data.as_deref()).map_err(Stop::usage)?;
        let (study, is_kept) = match library::read(&texts, &catalogue, &Lines) {
            Ok(study) => (study, true),
            // An older version wrote them in another language.
            Err(unreadable) => match Studies::load(data.as_deref())?.find(&texts.name) {
                Ok(own) => (library::read(own, &catalogue, &Lines)?, false),
                Err(_) => return Err(unreadable),
            },
        };
        let (outcome, is_written) = match is_kept {
            true => study_run::made_again(folder, &study)?,
            false => (study_run::judged(folder, &study)?, false),
        };
        if !is_kept {
            eprintln!(
                "weigh: this version cannot read the study files of {}: the study files of this \
                 version judge it, and no file was written",
                folder.id()
            );
        } else if !is_written {
            eprintln!(
                "weigh: {} is still running: these are its results so far, and no file was written",
                folder.id()
            );
        }
        #[cfg(feature = "plots")]
        if self.plots.is_some() || self.lists_plots() {
            let figures = weigh_study::page::drawn(&outcome);
            if self.lists_plots() {
                let names: String = figures.iter().map(|own| format!("{}\n", own.name)).collect();
                return output::put(&names).map(|()| Exit::Done);
            }
            self.write_figures(figures)?;
        }
        if self.json {
            return output::put_document(&outcome.to_json()).map(|()| Exit::Done);
        }
        output::put(&study_text::shown(&outcome, folder.path())).map(|()| Exit::Done)
    }
}

/// The message for a name that no picture has.
#[cfg(feature = "plots")]
fn no_picture(word: String) -> Stop {
    Stop::usage(format!("--plot {word}: no picture has this name\nhelp: type --plot list"))
}

/// Prints the names of pictures.
const LIST: &str = "list";

/// Chooses all pictures.
#[cfg(feature = "plots")]
const ALL: &str = "all";

/// Prints how many pictures were written to this folder.
#[cfg(feature = "plots")]
fn drawn(folder: &Path, number: usize) {
    let plural = if number == 1 { "" } else { "s" };
    eprintln!("weigh: wrote {number} picture{plural} to {}", folder.display());
}
