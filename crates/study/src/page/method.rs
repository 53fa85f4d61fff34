//! Question, method and findings of the authors, and their replay: experiments in sentences, with
//! plans behind a fold.

use std::collections::BTreeSet;

use weigh_model::Rule;
use weigh_report::page::document::escape;

use super::front::way_name;
use super::parts::{fold, list, row};
use super::plan_words;
use super::prose::{and, counted, prose, upper};
use crate::outcome::{ExperimentOutcome, Outcome, RunOutcome};
use crate::scale::Way;
use crate::study::Study;

/// The paper in three answers, and what it was done with.
pub(super) fn paper(study: &Study) -> String {
    let paper = &study.paper;
    let mut text = String::new();
    for (name, words) in
        [("Question.", &paper.asked), ("Method.", &paper.did), ("Result.", &paper.found)]
    {
        if !words.is_empty() {
            text += &format!("<p><b>{name}</b> {}</p>\n", prose(words));
        }
    }
    let environment = &study.environment;
    let stated = environment.stated.iter();
    let stated: Vec<String> =
        stated.map(|(key, value)| format!("{}: {value}", key.replace('_', " "))).collect();
    let said = |name: &str, values: &[String]| match values {
        [] => String::new(),
        values => format!("<p><b>{name}:</b> {}.</p>\n", prose(&values.join("; "))),
    };
    let side =
        said("The paper states", &stated) + &said("It does not state", &environment.not_stated);
    if text.is_empty() && side.is_empty() { text } else { row(&text, &side) }
}

/// Experiments that were run, and choices where the paper is silent.
pub(super) fn method(study: &Study, outcome: &Outcome) -> String {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let experiments: String = outcome
        .experiments
        .iter()
        .map(|experiment| {
            let runs = experiment.runs.iter();
            let (own, shared): (Vec<_>, Vec<_>) = runs.partition(|run| seen.insert(&run.name));
            one(study, outcome, experiment, &own, &shared)
        })
        .collect();
    let ours = study.environment.ours.iter().map(|text| upper(&prose(text)));
    let choices = fold(
        &format!(
            "Choices of the replay where the paper is silent ({})",
            study.environment.ours.len()
        ),
        &list(ours),
    );
    let expected = fold(
        &format!("Expectations of the replay, which are not results ({})", study.finding.len()),
        &list(study.finding.iter().map(|text| prose(text))),
    );
    let folds = if study.environment.ours.is_empty() { String::new() } else { choices };
    let expected = if study.finding.is_empty() { String::new() } else { expected };
    format!("<div class=\"experiments\">\n{experiments}</div>\n{folds}{expected}")
}

/// An experiment: what it is, what was run of it, what weakens how it was done.
fn one(
    study: &Study,
    outcome: &Outcome,
    experiment: &ExperimentOutcome,
    own: &[&RunOutcome],
    shared: &[&RunOutcome],
) -> String {
    let id = escape(&experiment.id);
    let known = study.experiment(&experiment.id);
    let tables: Vec<&str> =
        known.map(|own| own.tables.iter().map(String::as_str).collect()).unwrap_or_default();
    let tables = match tables.is_empty() {
        true => String::new(),
        false => {
            format!(" <span class=\"muted\">Printed in: {}.</span>", escape(&tables.join(", ")))
        }
    };
    let flaws = known.map(|own| &own.flaws[..]).unwrap_or_default();
    let plans = plans(study, outcome, own, shared);
    format!(
        "<article aria-labelledby=\"experiment-{id}\"><h3 id=\"experiment-{id}\">{id}: {}</h3>\n\
         <p>{}{tables}</p>\n{}{}</article>\n",
        escape(&experiment.title),
        made(experiment),
        fold("Plans", &plans),
        fold("Weaknesses of the original", &list(flaws.iter().map(|flaw| with_rules(flaw, study)))),
    )
}

/// Part of an experiment that was run.
fn made(experiment: &ExperimentOutcome) -> String {
    if let Some(reason) = &experiment.not_run {
        return format!("Not run: {}.", prose(reason.trim_end_matches('.')));
    }
    let ways: Vec<String> = Way::ALL
        .iter()
        .filter_map(|way| {
            let runs = || experiment.runs.iter().filter(|run| run.way == *way);
            let (all, run) = (runs().count(), runs().filter(|run| run.folder.is_some()).count());
            let plans = match run {
                _ if all == 0 => return None,
                run if run == all => counted(all, "plan", "plans"),
                run => format!("{run} of {}", counted(all, "plan", "plans")),
            };
            Some(format!("{plans} {}", way_name(*way)))
        })
        .collect();
    let ways: Vec<&str> = ways.iter().map(String::as_str).collect();
    if ways.is_empty() { "No plan.".to_owned() } else { format!("Run in {}.", and(&ways)) }
}

/// The plans as sentences; those that were described with an experiment above by name alone.
fn plans(study: &Study, outcome: &Outcome, own: &[&RunOutcome], shared: &[&RunOutcome]) -> String {
    let items = own.iter().map(|run| {
        let plan = study.plan(&run.name).and_then(|plan| plan.scales.get(&outcome.scale));
        let words = plan.map(plan_words::sentence).unwrap_or_default();
        let state = if run.skipped.is_some() { " <b>Not run.</b>" } else { "" };
        format!("{}: {}{state}", run_link(run), escape(&words))
    });
    let above = match shared {
        [] => None,
        shared => Some(format!(
            "Described above: {}",
            shared.iter().map(|run| run_link(run)).collect::<Vec<_>>().join(", ")
        )),
    };
    list(items.chain(above))
}

/// A flaw, each rule in it with its name; a rule that the audit finds broken leads there.
fn with_rules(flaw: &str, study: &Study) -> String {
    let mut html = prose(flaw);
    for rule in Rule::ALL {
        let written = format!("[{rule}]");
        let title = escape(rule.title());
        let shown = match study.audit.rules().contains(&rule) {
            true => format!("<a href=\"#rule-{rule}\" title=\"{title}\">[{rule}]</a>"),
            false => format!("<abbr title=\"{title}\">[{rule}]</abbr>"),
        };
        html = html.replace(&written, &shown);
    }
    html
}

/// The name of a run as a link to its report, where there is one.
pub(super) fn run_link(run: &RunOutcome) -> String {
    let name = escape(&run.name);
    match &run.folder {
        Some(folder) => format!("<a href=\"{}/report.html\">{name}</a>", escape(folder)),
        None => name,
    }
}
