//! `weigh report`: the table of a run that is over, from its journal.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::Args;
use weigh_charts::{Artist, Theme};
use weigh_report::Summary;
use weigh_report::pictures::Gallery;
use weigh_report::run_folder::RunFolder;
use weigh_report::table::{self, Style};

use crate::exit::{Exit, Stop};
use crate::output;

/// The flags of `weigh report`.
#[derive(Args)]
pub struct Report {
    /// A run: its folder or its id
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
        for bad in &journal.bad_lines {
            eprintln!("weigh: {}: line {}: {}", folder.path().display(), bad.line, bad.problem);
        }
        let summary = Summary::from_events(&journal.events).map_err(Stop::usage)?;
        if self.html {
            folder
                .write_results(&journal.events)
                .map_err(|error| Stop::new(Exit::Record, error))?;
            eprintln!("weigh: wrote {}", folder.path().join("report.html").display());
        }
        if let Some(plots) = &self.plots {
            let number = write_plots(plots, &Gallery::new(&summary, &journal.events))?;
            eprintln!("weigh: wrote {number} pictures to {}", plots.display());
        }
        if self.json {
            output::put(&summary.to_json())?;
            return Ok(Exit::Done);
        }
        let style = if self.markdown {
            Style::markdown()
        } else {
            let width = std::io::stdout().is_terminal().then(crate::terminal::width);
            Style::from_environment(width, |name| std::env::var(name).ok())
        };
        output::put(&table::render(&summary, style))?;
        Ok(Exit::Done)
    }
}

/// Draws every picture into `folder`, making it where it is not there; how many there are.
fn write_plots(folder: &Path, gallery: &Gallery) -> Result<usize, Stop> {
    let written = |path: &Path, content: &[u8]| {
        std::fs::write(path, content).map_err(|error| {
            let mend = "give a folder that can be written with --plots DIR";
            Stop::new(Exit::Record, format!("{}: {error}; {mend}", path.display()))
        })
    };
    std::fs::create_dir_all(folder).map_err(|error| {
        let mend = "give a folder that can be made with --plots DIR";
        Stop::new(Exit::Record, format!("{}: {error}; {mend}", folder.display()))
    })?;
    let failed = |error: weigh_charts::Failed| Stop::new(Exit::Internal, error);
    let artist = Artist::new(&gallery.shared).map_err(failed)?;
    for picture in &gallery.pictures {
        let option =
            serde_json::to_value(picture).map_err(|error| Stop::new(Exit::Internal, error))?;
        let svg = artist.svg(&option, Theme::Light, WIDTH_PIXELS).map_err(failed)?;
        let png = artist.png(&svg, DOTS_PER_PIXEL).map_err(failed)?;
        written(&folder.join(format!("{}.svg", picture.name)), svg.as_bytes())?;
        written(&folder.join(format!("{}.png", picture.name)), &png)?;
    }
    Ok(gallery.pictures.len())
}

/// As wide as a column of text in a paper or on a page.
const WIDTH_PIXELS: u32 = 900;

/// Sharp on paper at 18 cm: 254 dots an inch.
const DOTS_PER_PIXEL: f32 = 2.0;
