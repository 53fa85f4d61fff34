//! `weigh man`: prints or writes the manual pages, and writes the schemas.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_mangen::Man;
use weigh_plan::schema::json_schema as plan_schema;
use weigh_probe::abilities::Abilities;
use weigh_protocols as registry;
use weigh_report::Summary;
use weigh_report::diff::Diff;
use weigh_study::Outcome;

use crate::help::with_every_command;
use crate::show::output;
use weigh_runner::exit::{Exit, Stop};

/// Flags of `weigh man`.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct Manual {
    /// Command of the page, such as study run; without one, the page of weigh itself
    #[arg(value_name = "COMMAND")]
    names: Vec<String>,
    /// Write the pages of all commands into this folder
    #[arg(long, value_name = "DIR", conflicts_with = "names")]
    dir: Option<PathBuf>,
    /// Write the JSON schemas of plans and results into this folder
    #[arg(long, value_name = "DIR", conflicts_with = "names")]
    schemas: Option<PathBuf>,
}

impl Manual {
    /// Prints one manual page of `program`, or writes all of them.
    ///
    /// # Errors
    /// An unknown command, and a folder or a standard output that cannot be written.
    pub fn run(self, program: Command) -> Result<Exit, Stop> {
        let program = built(program);
        if let Some(folder) = &self.dir {
            write_all(&program, folder).map_err(|error| unwritable("--dir", folder, &error))?;
        }
        if let Some(folder) = &self.schemas {
            write_schemas(folder).map_err(|error| unwritable("--schemas", folder, &error))?;
        }
        if self.dir.is_some() || self.schemas.is_some() {
            return Ok(Exit::Done);
        }
        let mut command = &program;
        for name in &self.names {
            command = command.find_subcommand(name).ok_or_else(|| unknown(command, name))?;
        }
        output::put_document(&page(command))?;
        Ok(Exit::Done)
    }
}

/// The program with the names that pages have: `weigh-study-run`.
fn built(program: Command) -> Command {
    let mut program = with_every_command(&program).disable_help_subcommand(true);
    program.build();
    program
}

fn unknown(above: &Command, name: &str) -> Stop {
    let names: Vec<&str> = above.get_subcommands().map(Command::get_name).collect();
    let fix = match names.is_empty() {
        true => format!("{} has no commands: leave it out", above.get_name()),
        false => format!("type one of: {}", names.join(", ")),
    };
    Stop::usage(format!("{name}: unknown command\nhelp: {fix}"))
}

/// The page, as roff(7).
fn page(command: &Command) -> String {
    let mut bytes = Vec::new();
    // Writing to memory does not fail.
    let _ = Man::new(command.clone()).manual("Weighbridge").render(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Writes the pages of this command and of all below it: `weigh-study-run.1`.
fn write_all(command: &Command, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    fs::write(folder.join(format!("{name}.1")), page(command))?;
    let mut below = command.get_subcommands().filter(|own| !own.is_hide_set());
    below.try_for_each(|own| write_all(own, folder))
}

/// Writes every schema under the name that `#:schema` lines have.
fn write_schemas(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let schemas = [
        ("abilities", Abilities::schema()),
        ("advice", weigh_advice::Advice::schema()),
        ("cells", weigh_advice::cells::Cells::schema()),
        ("diff", Diff::json_schema()),
        ("outcome", Outcome::json_schema()),
        ("plan", plan_schema(registry::PROTOCOLS)),
        ("situation", weigh_advice::Situation::schema()),
        ("study", weigh_study::study_schema()),
        ("summary", Summary::json_schema()),
        ("tools", weigh_study::tools_schema()),
    ];
    schemas.iter().try_for_each(|(name, schema)| {
        fs::write(folder.join(format!("{name}.schema.json")), schema)
    })
}

fn unwritable(option: &str, folder: &Path, error: &io::Error) -> Stop {
    let at = folder.display();
    Stop::usage(format!("{option} {at}: cannot be written: {error}\nhelp: name another folder"))
}

const AFTER_HELP: &str = "\
Examples:
  weigh man compare | man -l -              Read the page of a command
  weigh man --dir ~/.local/share/man/man1   Install all pages
  weigh man --schemas .                     For editors of plan.toml";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::help::arranged;

    #[test]
    fn every_command_has_a_page_with_its_options() {
        let all = arranged(crate::Arguments::command());
        let program = built(all.clone());
        let folder = tempfile::tempdir().expect("a folder");
        write_all(&program, folder.path()).expect("the pages are written");
        let text = |name: &str| {
            fs::read_to_string(folder.path().join(format!("{name}.1"))).unwrap_or_default()
        };
        let top = text("weigh");
        for own in all.get_subcommands() {
            let is_internal = ["background", "programs"].contains(&own.get_name());
            let name = format!("weigh-{}", own.get_name());
            assert_eq!(text(&name).is_empty(), is_internal, "{name}");
            let listed = name.replace('-', "\\-");
            assert_eq!(top.contains(&listed), !is_internal, "{listed}");
        }
        let compare = text("weigh-compare");
        for said in ["fail\\-if", "i\\-may\\-load\\-this", "weigh compare mqtt http"] {
            assert!(compare.contains(said), "{said}\n{compare}");
        }
        assert!(text("weigh-study-run").contains("scale"));
    }

    /// `#:schema` lines name these files; tests of their crates compare them with the code.
    #[test]
    fn the_schemas_are_those_of_the_repository() {
        let folder = tempfile::tempdir().expect("a folder");
        write_schemas(folder.path()).expect("the schemas are written");
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
        let files: Vec<_> = fs::read_dir(kept).expect("schemas").flatten().collect();
        assert_eq!(files.len(), fs::read_dir(folder.path()).expect("a folder").count());
        let read = |path: &Path| -> serde_json::Value {
            let text = fs::read_to_string(path).expect("a schema");
            serde_json::from_str(&text).expect("JSON")
        };
        for file in files {
            let (name, kept) = (file.file_name(), read(&file.path()));
            assert_eq!(kept, read(&folder.path().join(&name)), "{name:?}");
            let stem = name.to_string_lossy().replace(".schema.json", "");
            let id = format!("urn:weigh:schema:{stem}:1");
            assert_eq!(kept["$id"].as_str(), Some(id.as_str()), "{name:?}");
        }
    }

    #[test]
    fn an_unknown_command_is_refused_with_those_that_exist() {
        let program = || arranged(crate::Arguments::command());
        let manual = |names: &[&str]| Manual {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            dir: None,
            schemas: None,
        };
        let refused = manual(&["study", "walk"]).run(program()).expect_err("no such command");
        assert!(refused.to_string().contains("walk: unknown command\nhelp: type one of: "));
        assert!(refused.to_string().contains("run"));
    }
}
