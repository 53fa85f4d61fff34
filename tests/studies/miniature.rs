//! A miniature of every study, by the program itself: seconds instead of minutes, every plan, every
//! claim. What it measures is worth nothing; that all of it runs to its end is the point.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The folder of one test, removed at its end.
struct Place(PathBuf);

impl Place {
    fn new() -> Place {
        let name = format!("weigh-miniatures-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder for the test");
        Place(folder)
    }

    /// The program with these arguments in this folder: its exit code, what it printed and said.
    fn weigh(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weigh"));
        let output = command.args(arguments).current_dir(&self.0).output().expect("it starts");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    /// The folder of the only run of this study.
    fn run(&self, name: &str) -> PathBuf {
        let entries = std::fs::read_dir(self.0.join("runs")).expect("runs").flatten();
        let end = format!("-study-{name}");
        let mut found = entries.map(|entry| entry.path()).filter(|path| ends_with(path, &end));
        let run = found.next().unwrap_or_else(|| panic!("no run of {name}"));
        assert!(found.next().is_none(), "two runs of {name}");
        run
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_miniature_of_every_study_runs_to_its_end() {
    let place = Place::new();
    let (code, list, said) = place.weigh(&["study", "list", "--json"]);
    assert_eq!(code, Some(0), "{said}");
    let list: Value = serde_json::from_str(&list).expect("the list is JSON");
    let mut findings = Vec::new();
    for study in list.as_array().expect("a list") {
        let name = study["name"].as_str().expect("a name");
        let (code, document, said) =
            place.weigh(&["study", "run", name, "--scale", "mini", "--json"]);
        let Ok(document) = serde_json::from_str::<Value>(&document) else {
            findings.push(format!("{name}: exit code {code:?}, no document:\n{said}"));
            continue;
        };
        // Trials of a few hundred milliseconds may leave a plan undecided, which ends with 98.
        if !matches!(code, Some(0 | 98)) {
            findings.push(format!("{name}: exit code {code:?}:\n{said}"));
        }
        let mut own = look(&document, &place.run(name));
        if document["claims"].as_array().map(Vec::len)
            != study["claims"].as_u64().map(|n| n as usize)
        {
            own.push("not every claim is in the document".to_owned());
        }
        findings.extend(own.into_iter().map(|finding| format!("{name}: {finding}")));
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

/// What is not as it should be in the document of a study and the folder that it lies in.
fn look(document: &Value, folder: &Path) -> Vec<String> {
    let must = std::env::var("CI").is_ok_and(|value| value == "true");
    let mut findings = Vec::new();
    if document["state"] != "done" {
        findings.push(format!("it is {}", document["state"]));
    }
    for experiment in document["experiments"].as_array().expect("experiments") {
        let runs = experiment["runs"].as_array().expect("runs");
        if runs.is_empty() && experiment["not_run"].is_null() {
            findings.push(format!("{} has no run, and no reason", experiment["id"]));
        }
        for run in runs {
            findings.extend(look_at_run(run, folder, must));
        }
    }
    for tool in document["tools"].as_array().into_iter().flatten() {
        findings.extend(look_at_tool(tool, folder, must));
    }
    for claim in document["claims"].as_array().expect("claims") {
        if claim["sentence"].as_str().is_none_or(str::is_empty) {
            findings.push(format!("{} has no sentence", claim["id"]));
        }
    }
    let page = std::fs::read_to_string(folder.join("report.html")).unwrap_or_default();
    for claim in document["claims"].as_array().expect("claims") {
        let id = claim["id"].as_str().expect("an id");
        if !page.contains(id) {
            findings.push(format!("{id} is not on the page"));
        }
    }
    findings
}

/// What is not as it should be with one run of a study; one that was skipped is said.
fn look_at_run(run: &Value, folder: &Path, must: bool) -> Vec<String> {
    let name = run["name"].as_str().expect("a name");
    if let Some(why) = run["skipped"].as_str() {
        eprintln!("SKIPPED: {name}: {why}");
        return skipped(name, why, must);
    }
    let mut findings = Vec::new();
    if run["outcome"] != "done" || run["cells"].as_u64().is_none_or(|cells| cells == 0) {
        findings.push(format!("{name} came to nothing: {run}"));
    }
    let own = folder.join(run["folder"].as_str().unwrap_or_default());
    for file in ["journal.jsonl", "summary.json", "report.html"] {
        if !own.join(file).is_file() {
            findings.push(format!("{name} left no {file}"));
        }
    }
    findings
}

/// What is not as it should be with a real program of a study.
fn look_at_tool(tool: &Value, folder: &Path, must: bool) -> Vec<String> {
    let name = tool["name"].as_str().expect("a name");
    if let Some(why) = tool["skipped"].as_str() {
        eprintln!("SKIPPED: {name}: {why}");
        return skipped(name, why, must);
    }
    let own = folder.join(tool["folder"].as_str().unwrap_or_default());
    let figures = tool["figures"].as_array().map_or(0, Vec::len);
    if figures == 0 || !own.join("repetitions.jsonl").is_file() {
        return vec![format!("{name} came to nothing: {tool}")];
    }
    Vec::new()
}

/// That something was skipped that must not be: named servers and programs that no package brings
/// are optional everywhere.
fn skipped(name: &str, why: &str, must: bool) -> Vec<String> {
    let is_optional = OPTIONAL.iter().any(|own| why.starts_with(own));
    match must && !is_optional {
        true => vec![format!("{name} was skipped, and CI=true: {why}")],
        false => Vec::new(),
    }
}

/// Servers and programs that continuous integration does not install, and parts that this build
/// does not have.
const OPTIONAL: [&str; 6] =
    ["emqx", "hivemq", "rabbitmq", "mqtt-stresser", "jmeter", "this build of weigh"];

fn ends_with(path: &Path, end: &str) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(end))
}
