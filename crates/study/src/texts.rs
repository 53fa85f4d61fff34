//! The files of a study, and their errors.

use weigh_plan::Problems;
use weigh_report::journal::digest::sha256;

/// The texts of a study's folder, as they were found.
///
/// # Examples
///
/// ```
/// use weigh_study::StudyTexts;
///
/// assert!(StudyTexts::built_in().iter().any(|texts| texts.name == "hydroponics"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StudyTexts {
    /// The folder's name, which is the study's.
    pub name: String,
    /// Folder of the files, for messages: `studies/hydroponics`.
    pub place: String,
    /// `study.toml`.
    pub study: String,
    /// `plan-published.toml`; empty where there is none.
    pub plan_published: String,
    /// `plan-right.toml`; empty where there is none.
    pub plan_right: String,
    /// `tools.toml`; empty where there is none.
    pub tools: String,
    /// `published.csv`.
    pub published: String,
    /// `facts.toml`: facts for the audit in addition to the figures.
    pub facts: Option<String>,
    /// `README.md`; empty where there is none.
    pub readme: String,
}

/// The files of the studies that are built in: the folder's name, then name and text of each.
type BuiltIn = &'static [(&'static str, &'static [(&'static str, &'static str)])];

/// The files in `studies/` when the program was built.
const BUILT_IN: BuiltIn = include!(concat!(env!("OUT_DIR"), "/studies.rs"));

impl StudyTexts {
    /// The names of the files that a study may have.
    pub const FILES: [&str; 7] =
        [STUDY, "plan-published.toml", "plan-right.toml", TOOLS, PUBLISHED, FACTS, README];

    /// The studies that are built in, by name.
    pub fn built_in() -> Vec<StudyTexts> {
        let of = |(name, files): &(&str, &[(&str, &str)])| {
            let files = files.iter().map(|(file, text)| (*file, (*text).to_owned()));
            StudyTexts::of(name, &format!("studies/{name}"), files)
        };
        BUILT_IN.iter().map(of).collect()
    }

    /// A study from the files of a folder; those that mean nothing here are left out.
    pub fn of<'f>(
        name: &str,
        place: &str,
        files: impl IntoIterator<Item = (&'f str, String)>,
    ) -> StudyTexts {
        let mut texts = StudyTexts { name: name.to_owned(), ..StudyTexts::default() };
        texts.place = place.to_owned();
        for (file, text) in files {
            match file {
                STUDY => texts.study = text,
                "plan-published.toml" => texts.plan_published = text,
                "plan-right.toml" => texts.plan_right = text,
                TOOLS => texts.tools = text,
                PUBLISHED => texts.published = text,
                FACTS => texts.facts = Some(text),
                README => texts.readme = text,
                _ => {}
            }
        }
        texts
    }

    /// SHA-256 of `study.toml`, in hexadecimal digits.
    pub fn hash(&self) -> String {
        sha256(self.study.as_bytes())
    }

    /// Its files that are there, each with its name and text.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        let named = StudyTexts::FILES.into_iter().map(|file| (file, self.text(file)));
        named.filter(|(_, text)| !text.is_empty())
    }

    /// The text of one of its files.
    pub fn text(&self, file: &str) -> &str {
        match file {
            STUDY => &self.study,
            "plan-published.toml" => &self.plan_published,
            "plan-right.toml" => &self.plan_right,
            TOOLS => &self.tools,
            PUBLISHED => &self.published,
            FACTS => self.facts.as_deref().unwrap_or_default(),
            README => &self.readme,
            _ => "",
        }
    }
}

/// Everything that is wrong with a study, file by file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StudyProblems {
    /// The file, relative to the study's folder, and what is wrong with it.
    pub files: Vec<(String, Problems)>,
}

impl StudyProblems {
    /// Number of errors.
    pub fn len(&self) -> usize {
        self.files.iter().map(|(_, problems)| problems.len()).sum()
    }

    /// True if nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them with their places, as compilers print errors.
    pub fn render(&self, texts: &StudyTexts, with_colour: bool) -> String {
        let files = self.files.iter().map(|(file, problems)| {
            let name = format!("{}/{file}", texts.place);
            problems.render(&name, texts.text(file), with_colour)
        });
        files.collect::<Vec<_>>().join("\n\n")
    }

    /// Adds what is wrong with a file, if anything is.
    pub(crate) fn add(&mut self, file: &str, problems: Problems) {
        if problems.is_empty() {
            return;
        }
        match self.files.iter_mut().find(|(known, _)| known == file) {
            Some((_, known)) => problems.iter().for_each(|one| known.add(one.clone())),
            None => self.files.push((file.to_owned(), problems)),
        }
    }
}

pub(crate) const STUDY: &str = "study.toml";
pub(crate) const PUBLISHED: &str = "published.csv";
pub(crate) const FACTS: &str = "facts.toml";
const TOOLS: &str = "tools.toml";
const README: &str = "README.md";
