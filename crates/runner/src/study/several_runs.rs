//! Judges several runs of one study together.

use std::path::{Component, Path, PathBuf};

use weigh_report::StudyFolder;
use weigh_report::journal::PAGE;
use weigh_study::occasion::{is_same_machine, longest, machine};
use weigh_study::outcome::Outcome;
use weigh_study::study::About;
use weigh_study::{Occasion, RunState, Study};

use crate::exit::Stop;
use crate::study::study_run;

/// Several runs of one study, the oldest first.
pub struct Several {
    /// The study's name.
    pub study: String,
    folders: Vec<StudyFolder>,
    all: Vec<(About, Occasion)>,
}

impl Several {
    /// Finds these runs in `runs`, or by their folders.
    ///
    /// # Errors
    /// A run that does not exist, cannot be read or is named twice; runs of several studies.
    pub fn find(runs: &Path, names: &[String]) -> Result<Several, Stop> {
        let mut found: Vec<(StudyFolder, About, Occasion, String)> = Vec::new();
        for name in names {
            let folder = StudyFolder::find(runs, name).map_err(Stop::usage)?;
            if found.iter().any(|(known, ..)| known.id() == folder.id()) {
                return Err(Stop::usage(format!(
                    "{} is named twice: name each run once",
                    folder.id()
                )));
            }
            let study = study_run::document(&folder)?.study;
            let (about, occasion) = study_run::evidence(&folder)?;
            found.push((folder, about, occasion, study));
        }
        found.sort_by(|left, right| left.1.started.cmp(&right.1.started));
        let Some((_, _, _, study)) = found.first() else {
            return Err(Stop::usage(
                "the run is missing\nhelp: name the runs of a study, which weigh runs lists",
            ));
        };
        if let Some((folder, _, _, other)) = found.iter().find(|(.., other)| other != study) {
            return Err(Stop::usage(format!(
                "{} is a run of {other} and {} of {study}: name runs of one study",
                folder.id(),
                found[0].0.id()
            )));
        }
        let study = study.clone();
        let mut several = Several { study, folders: Vec::new(), all: Vec::new() };
        for (folder, about, occasion, _) in found {
            several.folders.push(folder);
            several.all.push((about, occasion));
        }
        Ok(several)
    }

    /// The folder of the newest run.
    pub fn newest(&self) -> &StudyFolder {
        self.folders.last().expect("one at least was found")
    }

    /// The newest run's folder of targets and studies.
    pub fn data(&self) -> Option<PathBuf> {
        self.all.last().and_then(|(about, _)| about.data.clone()).map(PathBuf::from)
    }

    /// Rejects runs of different machines.
    ///
    /// # Errors
    /// Different machines, with the names of the runs.
    pub fn check_machines(&self) -> Result<(), Stop> {
        let of = |(_, own): &(About, Occasion)| {
            let machines: Vec<_> = own.machines().into_iter().cloned().collect();
            (own.run.clone(), machines)
        };
        let all: Vec<_> = self.all.iter().map(of).collect();
        let mut machines = all.iter().flat_map(|(_, machines)| machines);
        let Some(first) = machines.next() else { return Ok(()) };
        if machines.all(|other| is_same_machine(first, other)) {
            return Ok(());
        }
        let words = |(run, machines): &(String, Vec<_>)| {
            let machines: Vec<String> = machines.iter().map(machine).collect();
            format!("  {run}: {}", machines.join("; "))
        };
        let list: Vec<String> = all.iter().map(words).collect();
        Err(Stop::usage(format!(
            "the runs were made on different machines:\n{}\nhelp: judge the runs of one machine, \
             or type --across-machines: then the differences between machines widen every interval",
            list.join("\n")
        )))
    }

    /// The results of all runs together, with links relative to the folder `from`.
    pub fn outcome(&self, study: &Study, from: &Path) -> Outcome {
        let mut occasions: Vec<Occasion> = self.all.iter().map(|(_, own)| own.clone()).collect();
        for (folder, occasion) in self.folders.iter().zip(&mut occasions) {
            let way = relative(from, folder.path());
            for state in occasion.runs.values_mut() {
                let folder = match state {
                    RunState::Made(made) => &mut made.folder,
                    RunState::Tool(made) => &mut made.folder,
                    RunState::Skipped(_) => continue,
                };
                *folder = way.join(&*folder).display().to_string();
            }
        }
        let main = longest(&occasions).run.clone();
        let about = self.all.iter().map(|(about, _)| about).find(|about| about.id == main);
        study.outcome(about.expect("it is one of them"), &occasions)
    }
}

/// Writes the results and the page into a folder, which is made if necessary.
///
/// # Errors
/// A folder that cannot be written.
pub fn write(folder: &Path, study: &Study, outcome: &Outcome) -> Result<(), Stop> {
    let page = weigh_study::page::page(study, outcome);
    let files = [(DOCUMENT, outcome.to_json()), (PAGE, page)];
    let write = || {
        std::fs::create_dir_all(folder)?;
        files.iter().try_for_each(|(name, text)| std::fs::write(folder.join(name), text))
    };
    write().map_err(|error| Stop::unwritten(folder, &error))
}

/// The relative path from one folder to another; absolute if there is none.
fn relative(from: &Path, to: &Path) -> PathBuf {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let (from, to) = (absolute(from), absolute(to));
    let parts = |path: &Path| -> Vec<String> {
        let of = |part: Component<'_>| part.as_os_str().to_string_lossy().into_owned();
        path.components().map(of).collect()
    };
    let (from, to) = (parts(&from), parts(&to));
    let same = from.iter().zip(&to).take_while(|(left, right)| left == right).count();
    let up = std::iter::repeat_n("..", from.len() - same);
    up.chain(to[same..].iter().map(String::as_str)).collect()
}

/// The document of `weigh study judge`: like `study.json` of a run, without a run.
pub const DOCUMENT: &str = "judged.json";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_from_the_page_to_the_runs() {
        let of = |from: &str, to: &str| relative(Path::new(from), Path::new(to));
        assert_eq!(of("runs/judged-x", "runs/a-study-x"), Path::new("../a-study-x"));
        assert_eq!(of("out", "runs/a-study-x"), Path::new("../runs/a-study-x"));
        assert_eq!(of("/a/b", "/a/b/c"), Path::new("c"));
    }
}
