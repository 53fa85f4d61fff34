//! The files of the repository, and findings in them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::lists::MADE;

/// What breaks a rule, one line each.
#[derive(Default)]
pub struct Findings(pub Vec<String>);

impl Findings {
    pub fn add(&mut self, file: &Source, index: usize, text: impl Into<String>) {
        self.0.push(format!("{}:{}: {}", relative(&file.path), index + 1, text.into()));
    }

    pub fn check(&self) {
        assert!(self.0.is_empty(), "\n{}\n", self.0.join("\n"));
    }
}

pub struct Source {
    pub path: PathBuf,
    pub text: String,
}

pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

pub fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

pub fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

pub fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

pub fn read(path: &Path) -> Source {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    Source { path: path.to_path_buf(), text }
}

/// All text files of the repository; folders that a build or a run makes are left out.
pub fn files() -> Vec<Source> {
    let mut pending = vec![root()];
    let mut found = BTreeSet::new();
    while let Some(folder) = pending.pop() {
        for path in entries(&folder) {
            let name = name_of(&path);
            if path.is_dir() && !MADE.contains(&name.as_str()) {
                pending.push(path);
            } else if path.is_file() && name != ".git" {
                found.insert(path);
            }
        }
    }
    let text_of = |path: PathBuf| Some(Source { text: fs::read_to_string(&path).ok()?, path });
    found.into_iter().filter_map(text_of).collect()
}

pub fn sources() -> Vec<Source> {
    files().into_iter().filter(|file| has_extension(&file.path, "rs")).collect()
}

pub fn sources_below(folder: impl AsRef<Path>) -> Vec<Source> {
    let folder = root().join(folder);
    sources().into_iter().filter(|file| file.path.starts_with(&folder)).collect()
}

pub fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

pub fn folders(folder: &Path) -> impl Iterator<Item = PathBuf> {
    entries(folder).filter(|path| path.is_dir())
}
