//! `weigh study show`: prints a study, or one of its experiments with the plans that replay it.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use weigh_study::carry::Asked as HowMany;
use weigh_study::study::{Claim, Experiment};
use weigh_study::{Scale, Study, Way};
use weigh_testbed::catalogue::Catalogue;

use crate::show::output;
use crate::show::terminal::Lines;
use weigh_runner::exit::{Exit, Stop};
use weigh_runner::study::external_servers::ExternalServers;
use weigh_runner::study::library::{self, Studies};
use weigh_runner::study::parts::{Asked, Part, PartsContext, parts};
use weigh_runner::study::tool_parts::{ToolPart, tools};

/// Flags of `weigh study show`.
#[derive(Args)]
pub struct Show {
    /// Name of the study; `weigh study list` lists them
    #[arg(value_name = "NAME")]
    name: String,
    /// Show one experiment, or one question answered beside them, with its plans
    #[arg(long, value_name = "ID")]
    experiment: Option<String>,
    /// Scale of the plans that are shown: quick or full
    #[arg(long, value_name = "SCALE", default_value = "quick")]
    scale: Scale,
    /// Folder whose studies/*/ and targets/*.toml replace built-in ones of the same name
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

impl Show {
    /// Prints the study.
    ///
    /// # Errors
    /// An unknown study or experiment, and a study that is wrong.
    pub fn run(self) -> Result<Exit, Stop> {
        let data = self.data.as_deref();
        let catalogue = Catalogue::load(data).map_err(Stop::usage)?;
        let ground = PartsContext {
            catalogue: &catalogue,
            data,
            may_load: true,
            elsewhere: ExternalServers::default(),
        };
        let texts = Studies::load(data)?;
        let study = library::read(texts.find(&self.name)?, &catalogue, &Lines)?;
        let only = self.experiment.iter().cloned().collect();
        let asked = Asked { scale: self.scale, ways: Way::ALL.to_vec(), only };
        let parts = parts(&study, &asked, &ground)?;
        let tools = tools(&study, &asked, &ground)?;
        let text = match &self.experiment {
            Some(id) => one(&told(&study, id, &parts), &parts)?,
            None => whole(&study, &parts, &tools),
        };
        // Plans are files: their lines stay whole.
        let put = if self.experiment.is_some() { output::put_document } else { output::put };
        put(&text).map(|()| Exit::Done)
    }
}

/// Returns the description of the whole study.
fn whole(study: &Study, parts: &[Part], tools: &[ToolPart]) -> String {
    let paper = &study.paper;
    let title = paper.title.as_deref().unwrap_or("(its title is not stated)");
    let mut text = format!("{}: {}\n\npaper: {title}\n", study.name, study.question);
    for (name, said) in [
        ("topic", &paper.topic),
        ("asked", &paper.asked),
        ("did", &paper.did),
        ("found", &paper.found),
    ] {
        let _ = writeln!(text, "{name}: {said}");
    }
    let environment = &study.environment;
    text += "\nenvironment, as stated\n";
    for (key, value) in &environment.stated {
        let _ = writeln!(text, "  {key}: {value}");
    }
    list(&mut text, "not stated", &environment.not_stated);
    list(&mut text, "what we set", &environment.ours);
    text += "\nexperiments\n";
    for own in &study.experiments {
        text += &experiment(own, parts);
    }
    text += "\nclaims\n";
    for own in &study.claims {
        text += &claim(study, own);
    }
    if !tools.is_empty() {
        text += "\nreal programs\n";
    }
    for part in tools {
        let (name, about) = (&part.tool.name, &part.tool.about);
        let _ = writeln!(text, "  {name}: {about}\n    {}", part.length());
    }
    if !study.carry.is_empty() {
        text += "\nalso answered\n";
    }
    for asked in &study.carry {
        text += &how_many(asked, parts);
    }
    let beforehand = "expected by the authors of the replay (no run has computed it)";
    list(&mut text, beforehand, &study.finding);
    text + &format!(
        "\nweigh study show {0} --experiment ID prints plans; weigh study run {0} replays it\n",
        study.name
    )
}

/// Returns the description of the experiment or of the capacity question with this ID.
fn told(study: &Study, id: &str, parts: &[Part]) -> String {
    let question = study.carry.iter().find(|own| own.id == id);
    match (study.experiment(id), question) {
        (Some(own), _) => experiment(own, parts),
        (None, Some(asked)) => how_many(asked, parts),
        (None, None) => String::new(),
    }
}

/// Returns the description as comments, with the plans.
fn one(told: &str, parts: &[Part]) -> Result<String, Stop> {
    let mut text: String = told.lines().map(|line| format!("# {}\n", line.trim_start())).collect();
    for part in parts {
        let plan = part
            .plan
            .to_toml()
            .map_err(|error| Stop::new(Exit::Internal, format!("{}: {error}", part.name)))?;
        let _ = writeln!(text, "\n# ---- {}: {}", part.name, part.length());
        match &part.searches {
            None => text += "# Save it as a file, and type weigh run FILE.\n",
            Some(searches) => {
                text += "# A search. The options of weigh limit have the same goals. Its lanes \
                         are:\n";
                for search in searches {
                    let (axis, unit) = (search.axis, search.axis.kind().unit());
                    let goals: Vec<&str> =
                        search.goals.iter().map(|goal| goal.name.as_str()).collect();
                    let _ = writeln!(
                        text,
                        "#   {} from {} to {}{unit}, {}",
                        axis.kind(),
                        axis.min(),
                        axis.max(),
                        goals.join("; ")
                    );
                }
            }
        }
        text += &plan;
    }
    Ok(text)
}

fn how_many(asked: &HowMany, parts: &[Part]) -> String {
    let mut text = format!("  {}: {}\n", asked.id, asked.question);
    lengths(&mut text, asked.runs(), parts);
    text
}

/// Adds a line for each of these plans.
fn lengths<'n>(text: &mut String, names: impl Iterator<Item = &'n String>, parts: &[Part]) {
    for part in names.filter_map(|name| parts.iter().find(|part| part.name == *name)) {
        let _ = writeln!(text, "    {}: {}", part.name, part.length());
    }
}

fn experiment(own: &Experiment, parts: &[Part]) -> String {
    let mut text = format!("  {}: {}", own.id, own.title);
    if !own.tables.is_empty() {
        let _ = write!(text, " ({})", own.tables.join(", "));
    }
    text.push('\n');
    if let Some(why) = &own.not_run {
        let _ = writeln!(text, "    cannot be run here: {why}");
    }
    lengths(&mut text, own.published.iter().chain(&own.right), parts);
    for flaw in &own.flaws {
        let _ = writeln!(text, "    flaw: {flaw}");
    }
    text
}

fn claim(study: &Study, own: &Claim) -> String {
    let mut text = format!("  {}: {} ({})\n", own.id, own.says, own.section);
    for cell in own.cells.iter().filter_map(|index| study.published.cells.get(*index)) {
        let at = match (cell.x.as_str(), cell.x_unit.as_str()) {
            ("", _) => String::new(),
            (x, "") => format!(" at {x}"),
            (x, unit) => format!(" at {x} {unit}"),
        };
        let (table, series) = (&cell.table, &cell.series);
        let _ =
            writeln!(text, "    published: {} {} ({table}, {series}{at})", cell.printed, cell.unit);
    }
    if let Some(why) = &own.not_replayed {
        let _ = writeln!(text, "    not replayed: {why}");
    }
    text
}

fn list(text: &mut String, heading: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n{heading}");
    for line in lines {
        let _ = writeln!(text, "  {line}");
    }
}
