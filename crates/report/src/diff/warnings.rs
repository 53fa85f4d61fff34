//! Warnings on a comparison of two runs as a whole: they differ in more than the subject of the
//! comparison.

use std::collections::BTreeMap;

use serde_json::Value;
use weigh_model::plan::Plan;
use weigh_model::warnings::{Severity, WarningRecord};

use super::matching::Matched;
use crate::figures::bytes;
use crate::summary::Summary;

/// Returns all warnings, the most severe first.
pub(crate) fn all(a: &Summary, b: &Summary, matched: &Matched) -> Vec<WarningRecord> {
    let mut warnings = Vec::new();
    warnings.extend(same_run(a, b));
    warnings.extend(hosts(a, b));
    warnings.extend(plans(a, b));
    warnings.extend(targets(matched));
    warnings.extend(versions(a, b));
    warnings
        .extend(["A", "B"].into_iter().zip([a, b]).filter_map(|(name, run)| unfinished(name, run)));
    warnings
}

fn warning(code: &str, text: String, advice: &str) -> WarningRecord {
    let (code, advice) = (code.to_owned(), advice.to_owned());
    WarningRecord { code, severity: Severity::Warning, text, advice }
}

fn same_run(a: &Summary, b: &Summary) -> Option<WarningRecord> {
    let is_same = a.run.id == b.run.id && a.run.started == b.run.started;
    is_same.then(|| {
        let text = format!("A and B are the same run, {}", a.run.id);
        warning("same-run", text, "name two runs: weigh runs lists them")
    })
}

fn hosts(a: &Summary, b: &Summary) -> Option<WarningRecord> {
    let (old, new) = (&a.run.host, &b.run.host);
    let memory = [old, new].map(|host| bytes(host.memory_bytes as f64));
    let cores = [old, new].map(|host| host.cores.to_string());
    let facts = [
        ("processor", &old.cpu, &new.cpu),
        ("cores", &cores[0], &cores[1]),
        ("memory", &memory[0], &memory[1]),
        ("virtualisation", &old.virtualisation, &new.virtualisation),
        ("kernel", &old.kernel, &new.kernel),
        ("governor", &old.governor, &new.governor),
        ("clock source", &old.clock_source, &new.clock_source),
        ("congestion control", &old.congestion_control, &new.congestion_control),
    ];
    let changed = changes(facts.into_iter());
    (!changed.is_empty()).then(|| {
        let text = format!("the machines differ: {}", changed.join(", "));
        let advice =
            "measure both on one machine: otherwise a difference cannot be attributed to the \
             target";
        warning("hosts-differ", text, advice)
    })
}

/// Compares what both plans set for all cells; cells are matched by their points.
fn plans(a: &Summary, b: &Summary) -> Option<WarningRecord> {
    let points: Vec<&String> =
        [a, b].iter().flat_map(|run| &run.cells).flat_map(|cell| cell.point.keys()).collect();
    let (old, new) = (decided(&a.run.plan), decided(&b.run.plan));
    let keys: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let nothing = "nothing".to_owned();
    let facts = keys.into_iter().filter(|key| !points.contains(key)).map(|key| {
        let of = |side: &'_ BTreeMap<String, String>| side.get(key).unwrap_or(&nothing).clone();
        (key.as_str(), of(&old), of(&new))
    });
    let facts: Vec<(&str, String, String)> = facts.collect();
    let changed = changes(facts.iter().map(|(key, old, new)| (*key, old, new)));
    (!changed.is_empty()).then(|| {
        let text = format!("the loads differ: {}", changed.join(", "));
        warning("plans-differ", text, "measure both with one plan: weigh run A/plan.toml")
    })
}

/// The settings of a plan for every trial, by key, without number and order of trials.
fn decided(plan: &Plan) -> BTreeMap<String, String> {
    let mut keys = BTreeMap::new();
    flatten("load", &serde_json::to_value(&plan.load).unwrap_or_default(), &mut keys);
    let repeat = serde_json::to_value(&plan.repeat).unwrap_or_default();
    for key in ["cool_down", "target"] {
        flatten(&format!("repeat.{key}"), &repeat[key], &mut keys);
    }
    let observe = serde_json::to_value(&plan.observe).unwrap_or_default();
    for key in ["messages", "meter", "idle"] {
        flatten(&format!("observe.{key}"), &observe[key], &mut keys);
    }
    keys
}

fn flatten(name: &str, value: &Value, keys: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(table) => {
            table.iter().for_each(|(key, value)| flatten(&format!("{name}.{key}"), value, keys));
        }
        Value::Null => {}
        Value::String(text) => {
            keys.insert(name.to_owned(), text.clone());
        }
        other => {
            keys.insert(name.to_owned(), other.to_string());
        }
    }
}

/// `cores 2, now 4` for every fact that changed; a fact that one side does not know is skipped.
fn changes<'f>(facts: impl Iterator<Item = (&'f str, &'f String, &'f String)>) -> Vec<String> {
    let differ = facts.filter(|(_, old, new)| old != new && !old.is_empty() && !new.is_empty());
    differ.map(|(name, old, new)| format!("{name} {old}, now {new}")).collect()
}

/// Compares the targets. Built-in reference servers have Weighbridge's version, for which there is
/// a separate warning.
fn targets(matched: &Matched) -> Option<WarningRecord> {
    let mut changed: Vec<String> = Vec::new();
    for (a, b) in &matched.pairs {
        let is_ours = a.target.starts_with("weigh ") && b.target.starts_with("weigh ");
        let text = format!("{}, now {}", a.target, b.target);
        if a.target != b.target && !is_ours && !changed.contains(&text) {
            changed.push(text);
        }
    }
    (!changed.is_empty()).then(|| {
        let text = format!("the targets differ: {}", changed.join(", "));
        warning("targets-differ", text, "nothing to do if this is the change under test")
    })
}

fn versions(a: &Summary, b: &Summary) -> Option<WarningRecord> {
    let (old, new) = (&a.run.version, &b.run.version);
    (old != new).then(|| {
        let text = format!("weigh {old} measured A, weigh {new} measured B");
        let advice = "check in CHANGELOG.md, under Measurements, whether a figure changed its \
                      meaning, or measure both with one version";
        warning("versions-differ", text, advice)
    })
}

fn unfinished(name: &str, run: &Summary) -> Option<WarningRecord> {
    (run.run.outcome != "done").then(|| {
        let text = format!("{name} is {}: some of its cases may be missing", run.run.outcome);
        warning("run-not-done", text, "resume it (weigh run --resume), or measure again")
    })
}
