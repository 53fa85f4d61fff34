//! How to repeat the run of a study: the commands, the version, the seeds.

use std::fmt::Write as _;

use weigh_report::page::document::escape;

use super::parts::fold;
use super::prose::counted;
use crate::outcome::Outcome;
use crate::scale::Way;
use crate::study::Study;

/// Commands, and what they rest on.
pub(super) fn section(study: &Study, outcome: &Outcome) -> String {
    let html = format!(
        "<pre tabindex=\"0\">{}\n{}\nweigh study show {}</pre>\n<p class=\"note\">\
         The first command repeats the run, the second remakes this page from the journals, the \
         third shows the study with all its plans. Type them where the run was started.</p>\n",
        escape(&command(outcome)),
        escape(&page_again(outcome)),
        escape(&outcome.study),
    );
    html + &fold("Versions, runs and seeds", &facts(study, outcome))
}

/// The command that makes the page again: of one run, or of several that were judged together.
fn page_again(outcome: &Outcome) -> String {
    match &outcome.occasions[..] {
        [] | [_] => {
            format!("weigh report {}/{}", outcome.runs.as_deref().unwrap_or("runs"), outcome.id)
        }
        several => {
            let runs: Vec<&str> = several.iter().map(|one| one.run.as_str()).collect();
            format!("weigh study judge {}", runs.join(" "))
        }
    }
}

fn facts(study: &Study, outcome: &Outcome) -> String {
    let mut facts: Vec<(String, String)> = Vec::new();
    for one in &outcome.occasions {
        let hash =
            one.study_hash.as_ref().map_or(String::new(), |hash| format!(", study.toml {hash}"));
        let boot = one.boot.as_ref().map_or(String::new(), |boot| format!(", boot {boot}"));
        let about =
            format!("started {}, weigh {}, {}{boot}{hash}", one.started, one.version, one.state);
        facts.push((one.run.clone(), about));
    }
    if facts.is_empty() {
        let about = format!("started {}, weigh {}", outcome.started, outcome.version);
        facts.push((outcome.id.clone(), about));
    }
    for run in outcome.experiments.iter().flat_map(|experiment| &experiment.runs) {
        let Some(id) = &run.id else { continue };
        if facts.iter().any(|(name, _)| *name == run.name) {
            continue;
        }
        let plan = study.plan(&run.name).and_then(|plan| plan.scales.get(&outcome.scale));
        let seed = plan.map(|planned| format!(", seed {}", planned.resolved.plan.seed));
        let state = run.outcome.as_deref().filter(|state| *state != "done");
        let state = state.map(|state| format!(", {state}")).unwrap_or_default();
        let cells = counted(run.cells, "cell", "cells");
        let about = format!(
            "{id}: {cells}, {} invalid{state}{}",
            run.invalid_cells,
            seed.unwrap_or_default()
        );
        facts.push((run.name.clone(), about));
    }
    let mut html = "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Runs\"><table \
                    class=\"facts\"><tbody>\n"
        .to_owned();
    for (name, value) in facts {
        let (name, value) = (escape(&name), escape(&value));
        let _ = writeln!(html, "<tr><th scope=\"row\">{name}</th><td>{value}</td></tr>");
    }
    html + "</tbody></table></div>\n"
}

/// The command that made the run.
fn command(outcome: &Outcome) -> String {
    let mut command = format!("weigh study run {} --scale {}", outcome.study, outcome.scale);
    if let [way] = outcome.ways[..] {
        command += &format!(" --as {}", Way::name(way));
    }
    for experiment in &outcome.only {
        command += &format!(" --only {experiment}");
    }
    if let Some(runs) = &outcome.runs {
        command += &format!(" --runs {runs}");
    }
    if let Some(data) = &outcome.data {
        command += &format!(" --data {data}");
    }
    command
}
