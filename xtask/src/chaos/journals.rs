//! What the journals of an episode hold, and what a resumed run must have kept.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::Value;

/// The events of all journals of an episode, by the folder of the journal within `runs`.
pub(super) struct Journals(BTreeMap<String, Vec<Value>>);

impl Journals {
    /// Reads them; there are none if the program had not begun a run.
    pub(super) fn read(folder: &Path) -> anyhow::Result<Journals> {
        let runs = folder.join("runs");
        let mut found = BTreeMap::new();
        for path in below(&runs, "journal.jsonl") {
            let text = std::fs::read(&path)?;
            let text = String::from_utf8_lossy(&text);
            // A crash may cut the last line.
            let whole = text.rfind('\n').map_or("", |end| &text[..end]);
            let events: Result<Vec<Value>, _> = whole.lines().map(serde_json::from_str).collect();
            let events = events.with_context(|| format!("a line of {}", path.display()))?;
            let of = path.parent().unwrap_or(&runs).strip_prefix(&runs)?;
            found.insert(of.display().to_string(), events);
        }
        Ok(Journals(found))
    }

    /// True if there is no event.
    pub(super) fn is_empty(&self) -> bool {
        self.0.values().all(Vec::is_empty)
    }

    /// Results that count, by journal and trial: those without the warning `interrupted`.
    pub(super) fn finished(&self) -> BTreeMap<String, Vec<&Value>> {
        let mut found: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
        for (of, events) in &self.0 {
            for event in events.iter().filter(|event| event["event"] == "trial_finished") {
                let warnings = event["doubts"].as_array().map(Vec::as_slice).unwrap_or_default();
                if warnings.iter().all(|warning| warning["code"] != "interrupted") {
                    found.entry(format!("{of} {}", event["trial"])).or_default().push(event);
                }
            }
        }
        found
    }

    fn failed(&self) -> usize {
        let events = self.0.values().flatten();
        events.filter(|event| event["event"] == "trial_failed").count()
    }

    /// What is wrong with a resumed run: all earlier results must be there as they were, each trial
    /// once, and `trials` in all.
    pub(super) fn faults_since(
        &self,
        kept: &BTreeMap<String, Vec<&Value>>,
        trials: usize,
    ) -> Vec<String> {
        let mut faults = Vec::new();
        let now = self.finished();
        for (trial, results) in kept {
            if now.get(trial).is_none_or(|own| own.first() != results.first()) {
                faults.push(format!("the result of trial {trial} is lost or another one"));
            }
        }
        for (trial, results) in now.iter().filter(|(_, results)| results.len() > 1) {
            faults.push(format!("trial {trial} is there {} times", results.len()));
        }
        if now.len() + self.failed() < trials {
            faults.push(format!("{} of {trials} trials after the run was resumed", now.len()));
        }
        for event in now.values().flatten() {
            let term = |name: &str| event["ledger"][name].as_u64().unwrap_or(0);
            let is_counted = event["ledger"]["delivered"].is_u64();
            let adds_up = term("scheduled") == term("not_sent") + term("sent")
                && (!is_counted || term("sent") == term("delivered") + term("late") + term("lost"));
            if !adds_up {
                faults.push(format!("the ledger of trial {} does not add up", event["trial"]));
            }
        }
        faults
    }
}

/// Files of this name below a folder.
pub(super) fn below(folder: &Path, name: &str) -> Vec<PathBuf> {
    let (mut pending, mut found) = (vec![folder.to_owned()], Vec::new());
    while let Some(place) = pending.pop() {
        for entry in std::fs::read_dir(&place).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                pending.push(path);
            } else if entry.file_name() == name {
                found.push(path);
            }
        }
    }
    found
}
