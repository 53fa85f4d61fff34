//! A plan as a file: read, and told what is wrong with it as compilers tell it.

use std::io::IsTerminal;
use std::path::Path;

use weigh_plan::{Draft, Problems, Resolved};

use weigh_runner::case::known::Known;
use weigh_runner::exit::Stop;
use weigh_runner::input_file::{self, TEXT_BYTES_MAX};

/// The text of a plan, and where it is from.
pub struct PlanFile {
    name: String,
    /// What the plan is called where it does not say itself.
    stem: String,
    text: String,
    /// Keys that are set beside it, with their words.
    sets: Vec<(String, String)>,
}

impl PlanFile {
    /// Reads the file.
    ///
    /// # Errors
    /// If it is not there, or no text.
    pub fn read(path: &Path) -> Result<PlanFile, Stop> {
        let name = path.display().to_string();
        let bytes = input_file::bytes(path, TEXT_BYTES_MAX).map_err(|error| {
            Stop::usage(format!(
                "{name}: cannot be read: {error}\nhelp: name a plan, such as \
                 plan.toml"
            ))
        })?;
        let text = String::from_utf8(bytes)
            .map_err(|_| Stop::usage(format!("{name}: is no text in UTF-8\nhelp: name a plan")))?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(PlanFile { name, stem, text, sets: Vec::new() })
    }

    /// The same with keys that are set on the command line, each `KEY=VALUE`.
    ///
    /// # Errors
    /// If one is not of that form.
    pub fn with_sets(self, sets: &[String]) -> Result<PlanFile, Stop> {
        let split = |text: &String| {
            let (key, word) = text.split_once('=').ok_or_else(|| {
                Stop::usage(format!(
                    "--set {text}\nhelp: type --set KEY=VALUE, such as \
                     load.rate=500/s"
                ))
            })?;
            Ok((key.trim().to_owned(), word.trim().to_owned()))
        };
        let sets = sets.iter().map(split).collect::<Result<_, Stop>>()?;
        Ok(PlanFile { sets, ..self })
    }

    /// The plan with its cases still to be made.
    ///
    /// # Errors
    /// Everything that is wrong with it so far.
    pub fn draft<'w>(&self, known: &'w Known<'_>) -> Result<Draft<'w>, Stop> {
        weigh_plan::read_set(&self.text, &self.sets, known).map_err(|problems| self.tell(&problems))
    }

    /// The plan in which nothing is left open.
    ///
    /// # Errors
    /// Everything that is wrong with its cases.
    pub fn resolve(&self, draft: Draft<'_>) -> Result<Resolved, Stop> {
        draft.resolve(&self.stem).map_err(|problems| self.tell(&problems))
    }

    /// Everything that is wrong with a plan, as compilers say it.
    fn tell(&self, problems: &Problems) -> Stop {
        let has_colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let count = problems.len();
        let errors = if count == 1 { "1 error".to_owned() } else { format!("{count} errors") };
        let rendered = problems.render(&self.name, &self.text, has_colour);
        Stop::rendered(format!("{}: {errors}; nothing was started\n\n{rendered}", self.name))
    }
}
