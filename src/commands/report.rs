//! `weigh report`: the table of a run that is over, from its journal.

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::Args;
use weigh_report::limit_text;
#[cfg(feature = "plots")]
use weigh_report::pictures::Gallery;
use weigh_report::run_folder::{JOURNAL, RunFolder};
use weigh_report::table::{self, Style};

use crate::exit::{Exit, Stop};
use crate::show::output;

/// The flags of `weigh report`.
#[derive(Args)]
pub struct Report {
    /// A run: its folder, its id, or latest
    run: String,
    /// Prints summary.json instead of the table
    #[arg(long)]
    json: bool,
    /// Prints the table as Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Writes report.html, summary.json and the other results of the run anew
    #[arg(long)]
    html: bool,
    /// Writes every picture of the report into a folder, as SVG and as PNG
    #[cfg(feature = "plots")]
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
    /// Where runs are kept
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
}

impl Report {
    /// Reads the journal and shows what it says.
    pub fn run(self) -> Result<Exit, Stop> {
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
        if let Some(plots) = &self.plots {
            let number =
                crate::show::plots::write(plots, &Gallery::new(&summary, &journal.events))?;
            eprintln!("weigh: wrote {number} pictures to {}", plots.display());
        }
        let exit = if summary.thresholds_hold() { Exit::Done } else { Exit::Finding };
        if self.json {
            output::put(&summary.to_json())?;
            return Ok(exit);
        }
        let style = if self.markdown {
            Style::markdown()
        } else {
            let width = std::io::stdout().is_terminal().then(crate::show::terminal::width);
            Style::from_environment(width, |name| std::env::var(name).ok())
        };
        output::put(&limit_text::render(&summary, &style))?;
        output::put(&table::render(&summary, style))?;
        output::put(&limit_text::ladders(&summary))?;
        Ok(exit)
    }
}
