//! How to repeat the run of a study: the commands, the version, the seeds.

use std::fmt::Write as _;

use weigh_report::page::document::escape;

use crate::outcome::Outcome;
use crate::scale::Way;
use crate::study::Study;

/// Commands, and what they rest on.
pub(super) fn section(study: &Study, outcome: &Outcome) -> String {
    let mut html = format!(
        "<pre tabindex=\"0\">{}\nweigh report {}/{}\nweigh study show {}</pre>\n<p>The first \
         command runs it again, the second makes this page again from the journals, the third \
         shows the study with all its plans. Type them where the run was started.</p>\n",
        escape(&command(outcome)),
        escape(outcome.runs.as_deref().unwrap_or("runs")),
        escape(&outcome.id),
        escape(&outcome.study),
    );
    html += "<table class=\"facts\"><tbody>\n";
    let mut runs: Vec<(String, String)> = Vec::new();
    for run in outcome.experiments.iter().flat_map(|experiment| &experiment.runs) {
        let Some(id) = &run.id else { continue };
        if runs.iter().any(|(name, _)| *name == run.name) {
            continue;
        }
        let plan = study.plan(&run.name).and_then(|plan| plan.scales.get(&outcome.scale));
        let seed = plan.map(|planned| format!(", seed {}", planned.resolved.plan.seed));
        let state = run.outcome.as_deref().filter(|state| *state != "done");
        let state = state.map(|state| format!(", {state}")).unwrap_or_default();
        let plural = if run.cells == 1 { "" } else { "s" };
        let cells = format!("{} cell{plural}, {} invalid", run.cells, run.invalid_cells);
        let about = format!("{id}: {cells}{state}{}", seed.unwrap_or_default());
        runs.push((run.name.clone(), about));
    }
    let facts = [("weigh", outcome.version.clone()), ("started", outcome.started.clone())];
    let facts = facts.into_iter().map(|(name, value)| (name.to_owned(), value));
    for (name, value) in facts.chain(runs) {
        let (name, value) = (escape(&name), escape(&value));
        let _ = writeln!(html, "<tr><th scope=\"row\">{name}</th><td>{value}</td></tr>");
    }
    html + "</tbody></table>\n<p class=\"note\">Charts by Apache ECharts (Apache License \
            2.0).</p>\n"
}

/// The command that made the run.
fn command(outcome: &Outcome) -> String {
    let mut command = format!("weigh study run {} --scale {}", outcome.study, outcome.scale);
    if let [way] = outcome.ways[..] {
        let name = if way == Way::Published { "published" } else { "right" };
        command += &format!(" --as {name}");
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
