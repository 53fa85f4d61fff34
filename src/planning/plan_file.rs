//! Reads a plan file, and renders its errors as compilers do.

use std::io::IsTerminal;
use std::path::Path;

use weigh_plan::{Draft, Problems, Resolved};

use weigh_runner::case::known::Known;
use weigh_runner::exit::Stop;
use weigh_runner::input_file::{self, TEXT_BYTES_MAX};

/// Text of a plan, and its file.
pub struct PlanFile {
    name: String,
    /// Name of the plan if the file gives none.
    stem: String,
    text: String,
    /// Keys from the command line, with their values.
    sets: Vec<(String, String)>,
}

/// Where to get a plan from here: the examples of the sources, or a comparison.
pub fn another_plan() -> &'static str {
    match Path::new("examples").is_dir() {
        true => "name one of examples/",
        false => "make a plan: weigh compare mqtt http --dry --save-plan plan.toml",
    }
}

impl PlanFile {
    /// Reads the file.
    ///
    /// # Errors
    /// If the file does not exist, or is not text.
    pub fn read(path: &Path) -> Result<PlanFile, Stop> {
        let name = path.display().to_string();
        let bytes = input_file::bytes(path, TEXT_BYTES_MAX).map_err(|error| {
            Stop::usage(format!(
                "{name}: cannot be read: {error}\nhelp: check the path, or {}",
                another_plan()
            ))
        })?;
        let text = String::from_utf8(bytes).map_err(|_| {
            Stop::usage(format!(
                "{name}: the file is not text in UTF-8\nhelp: name a plan, or {}",
                another_plan()
            ))
        })?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(PlanFile { name, stem, text, sets: Vec::new() })
    }

    /// Adds keys from the command line, each `KEY=VALUE`.
    ///
    /// # Errors
    /// If one does not have that form.
    pub fn with_sets(self, sets: &[String]) -> Result<PlanFile, Stop> {
        let split = |text: &String| {
            let (key, word) = text.split_once('=').ok_or_else(|| {
                Stop::usage(format!(
                    "--set {text}: the value is missing\nhelp: type --set KEY=VALUE, such as \
                     load.rate=500/s"
                ))
            })?;
            Ok((key.trim().to_owned(), word.trim().to_owned()))
        };
        let sets = sets.iter().map(split).collect::<Result<_, Stop>>()?;
        Ok(PlanFile { sets, ..self })
    }

    /// Returns the plan before its cases are made.
    ///
    /// # Errors
    /// All errors of the file so far.
    pub fn draft<'w>(&self, known: &'w Known<'_>) -> Result<Draft<'w>, Stop> {
        weigh_plan::read_set(&self.text, &self.sets, known).map_err(|problems| self.tell(&problems))
    }

    /// Returns the plan with all cases and defaults.
    ///
    /// # Errors
    /// All errors of the cases.
    pub fn resolve(&self, draft: Draft<'_>) -> Result<Resolved, Stop> {
        draft.resolve(&self.stem).map_err(|problems| self.tell(&problems))
    }

    /// Renders all errors of a plan as compilers do.
    fn tell(&self, problems: &Problems) -> Stop {
        let has_colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let count = problems.len();
        let errors = if count == 1 { "1 error".to_owned() } else { format!("{count} errors") };
        let rendered = problems.render(&self.name, &self.text, has_colour);
        Stop::rendered(format!("{}: {errors}; nothing was started\n\n{rendered}", self.name))
    }
}
