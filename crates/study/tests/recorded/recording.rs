//! The recording of a study's run: its results without what no answer asks for, packed.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use weigh_study::tools::{TOOL_JOURNAL, ToolMade};
use weigh_study::{Occasion, RunMade, RunState, Runs, Scale, Way};

/// What is kept of a study's run.
#[derive(Serialize, Deserialize)]
pub struct Recording {
    /// The study's name.
    pub study: String,
    /// How much of it was run.
    pub scale: Scale,
    /// In whose way.
    pub ways: Vec<Way>,
    /// The id of the run.
    pub run: String,
    /// When it started, RFC 3339.
    pub started: String,
    /// The version of Weighbridge.
    pub version: String,
    /// SHA-256 of the `study.toml` that it started with.
    pub study_hash: Option<String>,
    /// The boot of the machine.
    pub boot: Option<String>,
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
        for tool in outcome.tools {
            let kept = match (tool.folder, tool.skipped) {
                (Some(own), _) => tool_lines(&folder.join(own))?,
                (None, Some(why)) => Value::String(why),
                (None, None) => continue,
            };
            runs.insert(tool.name, kept);
        }
        let occasion = outcome.occasions.last().cloned().unwrap_or_default();
        Ok(Recording {
            study: outcome.study,
            scale: outcome.scale,
            ways: outcome.ways,
            run: outcome.id,
            started: outcome.started,
            version: outcome.version,
            study_hash: occasion.study_hash,
            boot: occasion.boot,
            runs,
        })
    }

    /// Writes it where the test looks for it, under the name of its run.
    ///
    /// # Errors
    /// If that cannot be written.
    #[allow(dead_code, reason = "the test reads what the example has taken")]
    pub fn write(&self) -> io::Result<PathBuf> {
        let path = Path::new(FOLDER).join(format!("{}{END}", self.run));
        let mut file = GzEncoder::new(File::create(&path)?, Compression::best());
        file.write_all(serde_json::to_string(self)?.as_bytes())?;
        file.finish()?;
        Ok(path)
    }

    /// Every recording there is, the oldest first.
    #[allow(dead_code, reason = "the example takes what the test reads")]
    pub fn all() -> Vec<Recording> {
        let files = fs::read_dir(FOLDER).expect(FOLDER).map(|entry| entry.expect("a file").path());
        let recorded = files.filter(|path| path.to_string_lossy().ends_with(END));
        let mut all: Vec<Recording> = recorded.map(|path| Recording::read(&path)).collect();
        all.sort_by(|left, right| left.started.cmp(&right.started));
        all
    }

    fn read(path: &Path) -> Recording {
        let place = path.display();
        let file = File::open(path).unwrap_or_else(|error| panic!("{place}: {error}"));
        let mut text = String::new();
        GzDecoder::new(file).read_to_string(&mut text).expect("it was packed");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{place}: {error}"))
    }

    /// It as evidence.
    #[allow(dead_code, reason = "the example takes what the test reads")]
    pub fn occasion(&self) -> Occasion {
        Occasion {
            run: self.run.clone(),
            started: self.started.clone(),
            version: self.version.clone(),
            scale: self.scale,
            state: "done".to_owned(),
            study_hash: self.study_hash.clone(),
            boot: self.boot.clone(),
            runs: self.runs(),
        }
    }

    /// Its runs, as answers are made of them.
    #[allow(dead_code, reason = "the example takes what the test reads")]
    pub fn runs(&self) -> Runs {
        let state = |(name, kept): (&String, &Value)| {
            let state = match (kept.as_str(), kept.as_array()) {
                (Some(why), _) => RunState::Skipped(why.to_owned()),
                (None, Some(lines)) => {
                    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
                    let made = ToolMade::of(&weigh_study::runs::folder(name), &text);
                    let made = made.unwrap_or_else(|error| panic!("{name}: {error}"));
                    RunState::Tool(Box::new(made.expect("it has begun")))
                }
                (None, None) => {
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

/// The journal of a tool's run, line by line, without the names of the machine.
#[allow(dead_code, reason = "the test reads what the example has taken")]
fn tool_lines(folder: &Path) -> io::Result<Value> {
    let text = fs::read_to_string(folder.join(TOOL_JOURNAL))?;
    let lines = text.lines().map(|line| {
        let mut line: Value = serde_json::from_str(line)?;
        let facts = line.get_mut("host").and_then(Value::as_object_mut);
        for fact in facts.into_iter().flat_map(|host| host.values_mut()) {
            if fact.is_string() {
                *fact = json!("recorded");
            }
        }
        Ok(line)
    });
    lines.collect::<io::Result<Vec<Value>>>().map(Value::Array)
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
        // The others neither take a result away nor open a condition.
        if let Some(warnings) = cell["doubts"].as_array_mut() {
            let opens = |warning: &Value| {
                warning["code"].as_str().is_some_and(|code| OPENING.contains(&code))
            };
            warnings.retain(|warning| warning["severity"] != "doubt" || opens(warning));
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

/// Warnings that open a condition (decision 43).
const OPENING: [&str; 4] =
    ["disturbed", "background-shares-core", "background-troubled", "shared-cores"];

/// What is kept of a metric.
const METRIC: [&str; 3] = ["unit", "n", "values"];

/// Where recordings lie.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recorded");

/// How the name of a recording ends, after the study's.
const END: &str = ".json.gz";
