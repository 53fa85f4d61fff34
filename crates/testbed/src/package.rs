//! How a server is installed: package client, needs, and folder.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;

use crate::cache;

/// A file in the server's own folder.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Its name, without a path.
    pub name: String,
    /// Its text with `{placeholders}`.
    pub text: String,
}

/// Package of a server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    /// The pinned version; left out where the system decides.
    #[serde(default)]
    pub version: Option<String>,
    /// True if it is installed into the system, as root; otherwise it gets its own folder.
    #[serde(default)]
    pub system: bool,
    /// Approximate size on disk, in millions of bytes.
    pub megabytes: u64,
    /// Programs needed to install or run it, and the command that installs each.
    #[serde(default)]
    pub needs: BTreeMap<String, String>,
    /// Files that are written into its folder first.
    #[serde(default, rename = "file")]
    pub files: Vec<File>,
    /// Commands that run in its folder, in this order.
    #[serde(rename = "step")]
    pub steps: Vec<Step>,
    /// Files that must exist in its folder in the end.
    #[serde(default)]
    pub holds: Vec<PathBuf>,
    /// Further notes for the user who installs it.
    #[serde(default)]
    pub note: Option<String>,
}

/// One command of an installation.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The program and its arguments.
    pub run: Vec<String>,
    /// Environment variables added to those of this process.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
}

impl Package {
    /// True if it is installed into the system.
    pub fn is_of_system(&self) -> bool {
        self.system
    }

    /// Checks that it is complete.
    ///
    /// # Errors
    /// What is missing, with what to write.
    pub fn check(&self) -> Result<(), String> {
        let leaves = |path: &PathBuf| path.components().any(|c| !matches!(c, Component::Normal(_)));
        if self.steps.is_empty() || self.steps.iter().any(|step| step.run.is_empty()) {
            return Err("[package] has no [[package.step]] with a `run`: add one".to_owned());
        }
        if self.system == self.version.is_some() {
            return Err("[package] needs a `version` that is pinned, or `system = true`".to_owned());
        }
        if self.system != self.holds.is_empty() {
            return Err("[package] needs `holds` where it has a folder of its own".to_owned());
        }
        if self.system && !self.files.is_empty() {
            return Err("[package] writes no file into the system: remove `file`".to_owned());
        }
        match self.holds.iter().find(|path| leaves(path)) {
            Some(path) => Err(format!(
                "`package.holds` may name places in its own folder only, and not {}",
                path.display()
            )),
            None => Ok(()),
        }
    }

    /// The folder of its own that the target of this name has, whether it exists or not; `None`
    /// for one of the system, and for users without a home.
    pub fn folder(&self, name: &str) -> Option<PathBuf> {
        let version = self.version.as_ref()?;
        Some(folders()?.join(format!("{name}-{version}")))
    }

    /// True if the folder was filled by these very steps and files.
    pub fn is_in(&self, folder: &Path) -> bool {
        fs::read_to_string(folder.join(RECIPE)).is_ok_and(|recipe| recipe == self.recipe())
            && self.holds.iter().all(|path| folder.join(path).exists())
    }

    /// Text that identifies the steps, so that a folder filled by another version is not reused.
    pub(crate) fn recipe(&self) -> String {
        let mut text = String::new();
        for File { name, text: content } in &self.files {
            let _ = writeln!(text, "{name}:\n{content}");
        }
        for step in &self.steps {
            let _ = writeln!(text, "{}", step.words());
        }
        text
    }
}

impl Step {
    /// The command as a user would type it.
    pub fn words(&self) -> String {
        let environment = self.environment.iter().map(|(name, value)| format!("{name}={value}"));
        let quoted = |word: &String| match word.contains([' ', '*', '\'', '$']) {
            true => format!("'{word}'"),
            false => word.clone(),
        };
        environment.chain(self.run.iter().map(quoted)).collect::<Vec<_>>().join(" ")
    }
}

/// Folder of all packages; `None` for a user without a home.
pub fn folders() -> Option<PathBuf> {
    Some(cache::folder()?.join("targets"))
}

/// File that identifies the steps that filled a folder; it is written last.
pub(crate) const RECIPE: &str = "weigh-recipe.txt";

#[cfg(test)]
mod tests {
    use super::*;

    fn package() -> Package {
        Package {
            version: Some("1.2".to_owned()),
            system: false,
            megabytes: 1,
            needs: BTreeMap::new(),
            files: vec![File { name: "a".to_owned(), text: "A".to_owned() }],
            steps: vec![Step {
                run: vec!["touch".to_owned(), "b c".to_owned()],
                environment: [("LANG".to_owned(), "C".to_owned())].into(),
            }],
            holds: vec!["b c".into()],
            note: None,
        }
    }

    #[test]
    fn a_folder_of_another_recipe_is_not_taken() {
        let folder = std::env::temp_dir().join(format!("weigh-package-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let own = package();
        assert!(!own.is_in(&folder));
        fs::write(folder.join(RECIPE), own.recipe()).unwrap();
        assert!(!own.is_in(&folder), "what it must hold is missing");
        fs::write(folder.join("b c"), "").unwrap();
        assert!(own.is_in(&folder));
        let mut other = own.clone();
        other.files[0].text.push('!');
        assert!(!other.is_in(&folder));
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(own.steps[0].words(), "LANG=C touch 'b c'");
        let own = own.folder("small").unwrap();
        assert!(own.ends_with("weigh/targets/small-1.2"), "{}", own.display());
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert_eq!(package().check(), Ok(()));
        let wrong = |change: fn(&mut Package)| {
            let mut package = package();
            change(&mut package);
            package.check().unwrap_err()
        };
        assert!(wrong(|own| own.steps.clear()).contains("[[package.step]]"));
        assert!(wrong(|own| own.version = None).contains("system = true"));
        assert!(wrong(|own| own.holds.clear()).contains("`holds`"));
        assert!(wrong(|own| own.holds = vec!["../b".into()]).contains("not ../b"));
        assert!(wrong(|own| own.holds = vec!["/b".into()]).contains("not /b"));
        let into_system = wrong(|own| {
            (own.system, own.version) = (true, None);
            own.holds.clear();
        });
        assert!(into_system.contains("writes no file into the system"), "{into_system}");
    }
}
