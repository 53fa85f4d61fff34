//! The recording of a study's run: its results without what no verdict asks for, packed.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use weigh_study::{RunMade, RunState, Runs, Scale, Way};

/// What is kept of a study's run.
#[derive(Serialize, Deserialize)]
pub struct Recording {
    /// The study's name.
    pub study: String,
    /// How much of it was run.
    pub scale: Scale,
    /// In whose way.
    pub ways: Vec<Way>,
    /// By the run's name: its result, or a text, why there is none.
    runs: BTreeMap<String, Value>,
}

impl Recording {
    /// Takes it from the folder of a study's run.
    ///
    /// # Errors
    /// If a file is missing or is not what it should be.
    #[allow(dead_code, reason = "the test reads what the example has taken")]
    pub fn take(folder: &Path) -> io::Result<Recording> {
        let outcome: weigh_study::Outcome = document(&folder.join("study.json"))?;
        let mut runs = BTreeMap::new();
        for run in outcome.experiments.into_iter().flat_map(|experiment| experiment.runs) {
            let kept = match (run.folder, run.skipped) {
                (Some(own), _) => lean(document(&folder.join(own).join("summary.json"))?),
                (None, Some(why)) => Value::String(why),
                (None, None) => continue,
            };
            runs.insert(run.name, kept);
        }
        Ok(Recording { study: outcome.study, scale: outcome.scale, ways: outcome.ways, runs })
    }

    /// Writes it where the test looks for it.
    ///
    /// # Errors
    /// If that cannot be written.
    #[allow(dead_code, reason = "the test reads what the example has taken")]
    pub fn write(&self) -> io::Result<PathBuf> {
        let path = Path::new(FOLDER).join(format!("{}{END}", self.study));
        let mut file = GzEncoder::new(File::create(&path)?, Compression::best());
        file.write_all(serde_json::to_string(self)?.as_bytes())?;
        file.finish()?;
        Ok(path)
    }

    /// Every recording there is, by the study's name.
    #[allow(dead_code, reason = "the example takes what the test reads")]
    pub fn all() -> BTreeMap<String, Recording> {
        let files = fs::read_dir(FOLDER).expect(FOLDER).map(|entry| entry.expect("a file").path());
        let recorded = files.filter(|path| path.to_string_lossy().ends_with(END));
        recorded.map(|path| Recording::read(&path)).map(|own| (own.study.clone(), own)).collect()
    }

    fn read(path: &Path) -> Recording {
        let place = path.display();
        let file = File::open(path).unwrap_or_else(|error| panic!("{place}: {error}"));
        let mut text = String::new();
        GzDecoder::new(file).read_to_string(&mut text).expect("it was packed");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{place}: {error}"))
    }

    /// Its runs, as verdicts are made of them.
    #[allow(dead_code, reason = "the example takes what the test reads")]
    pub fn runs(&self) -> Runs {
        let state = |(name, kept): (&String, &Value)| {
            let state = match kept.as_str() {
                Some(why) => RunState::Skipped(why.to_owned()),
                None => {
                    let summary = serde_json::from_value(kept.clone());
                    let summary = summary.unwrap_or_else(|error| panic!("{name}: {error}"));
                    let folder = weigh_study::runs::folder(name);
                    RunState::Made(Box::new(RunMade { folder, summary, trials: BTreeMap::new() }))
                }
            };
            (name.clone(), state)
        };
        self.runs.iter().map(state).collect()
    }
}

fn document<T: for<'d> Deserialize<'d>>(path: &Path) -> io::Result<T> {
    let named = |error: String| io::Error::other(format!("{}: {error}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| named(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| named(error.to_string()))
}

/// A result without comparisons, pictures of searches and everything of a metric that follows from
/// its repetitions.
fn lean(mut summary: Value) -> Value {
    for key in ["thresholds", "ladders", "modelled"] {
        summary.as_object_mut().and_then(|all| all.remove(key));
    }
    summary["comparisons"] = json!([]);
    if let Some(run) = summary["run"].as_object_mut() {
        run.remove("meter");
        for fact in run["host"].as_object_mut().into_iter().flat_map(|host| host.values_mut()) {
            if fact.is_string() {
                *fact = json!("recorded");
            }
        }
    }
    for cell in summary["cells"].as_array_mut().into_iter().flatten() {
        for key in ["steady_state", "scene"] {
            cell.as_object_mut().and_then(|all| all.remove(key));
        }
        // The others take nothing away.
        if let Some(doubts) = cell["doubts"].as_array_mut() {
            doubts.retain(|doubt| doubt["severity"] != "doubt");
        }
        for metric in cell["metrics"].as_object_mut().into_iter().flat_map(|all| all.values_mut()) {
            let all = metric.as_object_mut();
            all.into_iter().for_each(|all| all.retain(|key, _| METRIC.contains(&key.as_str())));
        }
    }
    let limits = summary.get_mut("limits").and_then(Value::as_array_mut);
    for limit in limits.into_iter().flatten() {
        limit["trials"] = json!([]);
        limit["curve"] = json!([]);
    }
    summary
}

/// What is kept of a metric.
const METRIC: [&str; 3] = ["unit", "n", "values"];

/// Where recordings lie.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recorded");

/// How the name of a recording ends, after the study's.
const END: &str = ".json.gz";
