//! Available studies: the built-in ones, and those of a folder that replace them.

use std::io::IsTerminal;
use std::path::Path;

use weigh_protocols as registry;
use weigh_study::{Study, StudyTexts};
use weigh_testbed::catalogue::Catalogue;

use crate::case::known::Known;
use crate::exit::Stop;
use crate::watcher::Watcher;

/// The texts of all studies, by name.
///
/// # Examples
///
/// ```
/// use weigh_runner::study::library::Studies;
///
/// let studies = Studies::load(None)?;
/// assert!(studies.find("hydroponics").is_ok());
/// # Ok::<(), weigh_runner::exit::Stop>(())
/// ```
pub struct Studies {
    texts: Vec<StudyTexts>,
}

impl Studies {
    /// Loads the built-in studies, and those of `DATA/studies/*/`, which replace built-in ones of
    /// the same name.
    ///
    /// # Errors
    /// A given folder that cannot be read.
    pub fn load(data: Option<&Path>) -> Result<Studies, Stop> {
        let mut texts = StudyTexts::built_in();
        let folder = data.map(|data| data.join("studies")).filter(|folder| folder.is_dir());
        for own in folder.map(|folder| below(&folder)).transpose()?.unwrap_or_default() {
            texts.retain(|other| other.name != own.name);
            texts.push(own);
        }
        texts.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(Studies { texts })
    }

    /// All studies, by name.
    pub fn all(&self) -> &[StudyTexts] {
        &self.texts
    }

    /// Finds a study by its name.
    ///
    /// # Errors
    /// An unknown name, with those that exist.
    pub fn find(&self, name: &str) -> Result<&StudyTexts, Stop> {
        let found = self.texts.iter().find(|study| study.name == name);
        found.ok_or_else(|| {
            let names = || self.texts.iter().map(|study| study.name.as_str());
            let near = registry::nearest(name, names());
            let near = near.map_or(String::new(), |near| format!("did you mean {near}? "));
            let all: Vec<&str> = names().collect();
            let fix = match all.is_empty() {
                true => "name a folder with studies: --data DIR".to_owned(),
                false => format!("type {}", all.join(", ")),
            };
            Stop::usage(format!("study {name:?}: unknown study\nhelp: {near}{fix}"))
        })
    }
}

/// Reads a study and checks its files against each other. Its plans may need parts that this build
/// does not have; these plans are shown and skipped.
///
/// # Errors
/// All errors in them, like a compiler's.
pub fn read(
    texts: &StudyTexts,
    catalogue: &Catalogue,
    watcher: &dyn Watcher,
) -> Result<Study, Stop> {
    Study::read(texts, &Known::new(catalogue, watcher).of_full_build()).map_err(|problems| {
        let has_colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let count = problems.len();
        let errors = if count == 1 { "1 error".to_owned() } else { format!("{count} errors") };
        let rendered = problems.render(texts, has_colour);
        Stop::usage(format!("{}: {errors}; nothing was started\n\n{rendered}", texts.place))
    })
}

/// The studies of a folder: every folder in it with a study file.
fn below(folder: &Path) -> Result<Vec<StudyTexts>, Stop> {
    let unreadable = |path: &Path, error: std::io::Error| {
        Stop::usage(format!("{}: cannot be read: {error}; name another folder", path.display()))
    };
    let mut studies = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|error| unreadable(folder, error))? {
        let own = entry.map_err(|error| unreadable(folder, error))?.path();
        if own.join("study.toml").is_file() {
            studies.push(of_folder(&own).map_err(|(path, error)| unreadable(&path, error))?);
        }
    }
    Ok(studies)
}

/// The study of a folder.
fn of_folder(folder: &Path) -> Result<StudyTexts, (std::path::PathBuf, std::io::Error)> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut files = Vec::new();
    for file in StudyTexts::FILES {
        let path = folder.join(file);
        if path.is_file() {
            let text = std::fs::read_to_string(&path).map_err(|error| (path, error))?;
            files.push((file, text));
        }
    }
    Ok(StudyTexts::of(&name, &folder.display().to_string(), files))
}
