//! Schemas have an identity, plans name their schema, the site has every page, and the weekly
//! workflow every weekly step.

use std::path::Path;

use crate::files::{Findings, entries, files, has_extension, name_of, read, relative, root};

#[test]
fn every_schema_has_its_identity() {
    let mut findings = Findings::default();
    for path in entries(&root().join("schemas")) {
        let file = read(&path);
        let schema: serde_json::Value = serde_json::from_str(&file.text).expect("JSON");
        let id = format!("urn:weigh:schema:{}:1", name_of(&path).replace(".schema.json", ""));
        if schema["$id"].as_str() != Some(id.as_str()) {
            findings.add(&file, 0, format!("$id is {}, and {id} in its name", schema["$id"]));
        }
    }
    findings.check();
}

/// Plans of `examples/`, and studies with their tools.
#[test]
fn every_plan_names_its_schema() {
    let mut findings = Findings::default();
    for file in files().iter().filter(|file| has_extension(&file.path, "toml")) {
        let (name, folder) = (name_of(&file.path), relative(file.path.parent().expect("a folder")));
        let schema = match folder.split('/').next() {
            Some("examples") => "plan",
            Some("studies") if name == "study.toml" => "study",
            Some("studies") if name == "tools.toml" => "tools",
            _ => continue,
        };
        let line = file.text.lines().find_map(|line| line.strip_prefix("#:schema "));
        let Some(line) = line else {
            findings.add(file, 0, format!("no line #:schema names {schema}.schema.json"));
            continue;
        };
        let named = file.path.parent().unwrap_or(Path::new(".")).join(line);
        let is_right = line.ends_with(&format!("/{schema}.schema.json"));
        if !is_right || !named.is_file() {
            findings.add(file, 0, format!("{line} is not a schema of the repository"));
        }
    }
    findings.check();
}

/// `docs/SUMMARY.md` is the list of pages of `book.toml`; a page that is not there is not built.
/// `WEIGH_WRITE_DOCS=1` adds missing pages to the end of their part.
#[test]
fn every_page_is_in_the_summary() {
    let docs = root().join("docs");
    let path = docs.join("SUMMARY.md");
    let mut text = read(&path).text;
    let mut findings = Findings::default();
    for file in files().iter().filter(|file| has_extension(&file.path, "md")) {
        let Ok(page) = file.path.strip_prefix(&docs) else { continue };
        let named = format!("]({})", page.display());
        let count = text.matches(&named).count();
        if count == usize::from(file.path != path) {
            continue;
        }
        if count > 0 || std::env::var_os("WEIGH_WRITE_DOCS").is_none() {
            let text = format!("docs/SUMMARY.md names it {count} times: WEIGH_WRITE_DOCS=1");
            findings.add(file, 0, text);
            continue;
        }
        let title = file.text.lines().find_map(|line| line.strip_prefix("# "));
        let line = format!("- [{}{named}\n", title.expect("a title"));
        let end = match page.starts_with("decisions") {
            true => text.len(),
            false => text.find("\n# Decisions").expect("the part of decisions"),
        };
        text.insert_str(end, &line);
    }
    if std::env::var_os("WEIGH_WRITE_DOCS").is_some() {
        std::fs::write(path, text).expect("docs/SUMMARY.md can be written");
    }
    findings.check();
}

/// The command of `.ci/README.md` for what runs once a week, the workflow, and the steps that there
/// are.
#[test]
fn every_weekly_step_is_in_the_weekly_workflow() {
    let text = |path: &str| read(&root().join(path)).text;
    let between = |path: &str, before: &str, after: &str| -> Vec<String> {
        let text = text(path);
        let found = text.split_once(before).and_then(|(_, rest)| rest.split_once(after));
        let (list, _) = found.unwrap_or_else(|| panic!("{path} has no {before:?}"));
        list.split([' ', ',']).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    let weekly = between(".ci/README.md", "`.ci/run cross", "`");
    let weekly = [&["cross".to_owned()][..], &weekly].concat();
    assert_eq!(between(".github/workflows/weekly.yml", "step: [", "]"), weekly);
    let run = text(".ci/run");
    for step in &weekly {
        assert!(run.contains(&format!("\nstep_{step}() {{")), "there is no step {step}");
    }
    // What is not in a run without a name must be in one of the two lists.
    let usual = between(".ci/run", "steps=(format", ")");
    let usual = [&["format".to_owned()][..], &usual].concat();
    for line in run.lines().filter_map(|line| line.strip_prefix("step_")) {
        let step = line.split('(').next().unwrap_or_default();
        let is_listed = usual.iter().chain(&weekly).any(|own| own == step);
        assert!(is_listed, "the step {step} is run by nothing");
    }
}
