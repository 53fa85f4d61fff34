//! `weigh audit`: checks published figures, or a run of Weighbridge, for broken rules.

use std::path::{Path, PathBuf};

use clap::Args;
use weigh_model::Rule;
use weigh_report::summary::lint::verdict;
use weigh_report::{RunFolder, Summary};
use weigh_study::StudyTexts;
use weigh_study::audit::figure::Fact;
use weigh_study::audit::{Audit as Findings, Source, facts};
use weigh_study::audit_page::{self, Audited};

use crate::output_file;
use crate::show::output;
use weigh_runner::exit::{Exit, Stop};
use weigh_runner::input_file::{self, CONTENT_BYTES_MAX};
use weigh_runner::study::library::Studies;

/// Flags of `weigh audit`.
#[derive(Args)]
#[command(after_long_help = FORMATS_HELP)]
pub struct Audit {
    /// Files that belong together: tables of figures, output of tools; or one run: its folder, ID
    /// or summary.json
    #[arg(required_unless_present = "studies", value_name = "FILE")]
    files: Vec<String>,
    /// Audit the published figures of a study, with known facts about them; `all` for every study
    #[arg(long = "study", value_name = "NAME", conflicts_with_all = ["files", "facts"])]
    studies: Vec<String>,
    /// Folder whose studies/*/ replace built-in studies of the same name
    #[arg(long, value_name = "DIR", requires = "studies")]
    data: Option<PathBuf>,
    /// Also write the findings as an HTML page
    #[arg(long, value_name = "OUT.html")]
    page: Option<PathBuf>,
    /// TOML file with known facts about the figures (docs/guide/auditing-figures.md)
    #[arg(long, value_name = "FILE")]
    facts: Option<PathBuf>,
    /// Check only this rule, L01 to L21; may be repeated
    #[arg(long = "rule", value_name = "RULE")]
    rules: Vec<Rule>,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
    /// Folder of the runs
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
}

impl Audit {
    /// Reads and checks the figures; the exit code is 99 if a rule is broken.
    ///
    /// # Errors
    /// Figures that cannot be read or are of no known kind, and a page that cannot be written.
    pub fn run(self) -> Result<Exit, Stop> {
        if let [file] = &self.files[..]
            && let Some(summary) = own_run(file, &self.runs)?
        {
            if self.page.is_some() {
                let fix = "leave it out; report.html of the run has its findings";
                return Err(Stop::usage(format!(
                    "--page: {file} is a run of Weighbridge, and --page is for published \
                     figures\nhelp: {fix}"
                )));
            }
            let verdict = verdict::of(&summary, &self.rules);
            match self.json {
                true => output::put_document(&verdict.to_json())?,
                false => output::put(&verdict.to_text())?,
            }
            return Ok(if verdict.is_clean() { Exit::Done } else { Exit::Finding });
        }
        let (mut audit, about) =
            if self.studies.is_empty() { self.of_files()? } else { self.of_studies()? };
        audit.keep(&self.rules);
        if let Some(place) = &self.page {
            let audited = Audited { about: &about, audit: &audit };
            let page = audit_page::page(&audited, &self.command());
            output_file::write(place, page).map_err(|error| {
                let fix = "give a file that can be written with --page";
                Stop::new(Exit::Record, format!("{}: {error}\nhelp: {fix}", place.display()))
            })?;
        }
        match self.json {
            true => output::put_document(&audit.to_json())?,
            false => output::put(&audit.to_text())?,
        }
        Ok(if audit.findings.is_empty() { Exit::Done } else { Exit::Finding })
    }

    fn of_files(&self) -> Result<(Findings, Abouts), Stop> {
        let sources: Vec<Source> =
            self.files.iter().map(|file| source(file)).collect::<Result<_, _>>()?;
        let audit = weigh_study::audit::audit(&sources, &self.facts()?).map_err(Stop::usage)?;
        Ok((audit, Abouts::new()))
    }

    /// Returns the published figures of studies, with the known facts about each.
    fn of_studies(&self) -> Result<(Findings, Abouts), Stop> {
        let studies = Studies::load(self.data.as_deref())?;
        let is_all = self.studies.iter().any(|name| name == "all");
        let chosen: Vec<&StudyTexts> = match is_all {
            true => studies.all().iter().collect(),
            false => {
                self.studies.iter().map(|name| studies.find(name)).collect::<Result<_, _>>()?
            }
        };
        let (mut together, mut abouts) = (Findings::default(), Abouts::new());
        for texts in chosen {
            let name = format!("{}/published.csv", texts.place);
            let source = Source { name, text: texts.published.clone() };
            let facts = texts.facts.as_deref().unwrap_or_default();
            let facts = facts::read(&format!("{}/facts.toml", texts.place), facts);
            let facts = facts.map_err(Stop::usage)?;
            let audit = weigh_study::audit::audit(&[source], &facts).map_err(Stop::usage)?;
            let about = question(&texts.study);
            abouts.extend(audit.studies.iter().map(|body| (body.name.clone(), about.clone())));
            together.add(audit);
        }
        Ok((together, abouts))
    }

    /// Returns the command that makes the page again.
    fn command(&self) -> String {
        let mut command = "weigh audit".to_owned();
        for file in &self.files {
            command += &format!(" {file}");
        }
        for study in &self.studies {
            command += &format!(" --study {study}");
        }
        if let Some(facts) = &self.facts {
            command += &format!(" --facts {}", facts.display());
        }
        if let Some(data) = &self.data {
            command += &format!(" --data {}", data.display());
        }
        for rule in &self.rules {
            command += &format!(" --rule {rule}");
        }
        let page = self.page.as_ref().map(|page| page.display().to_string());
        command + &format!(" --page {}", page.unwrap_or_default())
    }

    fn facts(&self) -> Result<Vec<Fact>, Stop> {
        let Some(path) = &self.facts else { return Ok(Vec::new()) };
        let source = source(&path.to_string_lossy())?;
        facts::read(&source.name, &source.text).map_err(Stop::usage)
    }
}

/// Questions of studies, by the name of the study in its figures.
type Abouts = Vec<(String, String)>;

/// Returns the question of a study; empty if its file has none.
fn question(study: &str) -> String {
    let table: Option<toml::Table> = study.parse().ok();
    let question = table.as_ref().and_then(|table| table.get("question")?.as_str());
    question.unwrap_or_default().to_owned()
}

/// Returns a run of Weighbridge by its folder, its ID below `runs`, or its summary.
fn own_run(name: &str, runs: &Path) -> Result<Option<Summary>, Stop> {
    let path = Path::new(name);
    // A device or a pipe is read like a file; only a folder or a name may be a run.
    let is_file = path.exists() && !path.is_dir();
    if !is_file {
        let folder = RunFolder::find(runs, name).map_err(|error| match path.exists() {
            true => Stop::usage(error),
            false => {
                let runs = runs.display();
                let fix = "check the path, or name the folder of the runs with --runs";
                Stop::usage(format!(
                    "{name}: there is no such file, and no such run below {runs}\nhelp: {fix}"
                ))
            }
        })?;
        let journal = folder.read_journal().map_err(Stop::usage)?;
        return folder.summary(&journal.events).map(Some).map_err(Stop::usage);
    }
    let source = source(name)?;
    let is_summary = source.text.contains("\"weigh/summary/");
    if !is_summary {
        return Ok(None);
    }
    let summary = Summary::from_json(source.text.as_bytes()).map_err(|error| {
        Stop::usage(format!(
            "{name}: the summary cannot be read: {error}\nhelp: name its run's folder"
        ))
    })?;
    Ok(Some(summary))
}

fn source(name: &str) -> Result<Source, Stop> {
    let bytes = input_file::bytes(Path::new(name), CONTENT_BYTES_MAX).map_err(|error| {
        Stop::usage(format!("{name}: {error}\nhelp: name a file that can be read"))
    })?;
    let text = String::from_utf8(bytes).map_err(|_| {
        Stop::usage(format!(
            "{name}: the file is not text\nhelp: give one of these: {FORMATS_HELP}"
        ))
    })?;
    Ok(Source { name: name.to_owned(), text })
}

const FORMATS_HELP: &str = weigh_study::audit::formats::FORMATS;
