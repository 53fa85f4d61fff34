//! What the authors asked, did and found; and how it was done again, their way and the right way.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;
use weigh_report::figures::bytes;
use weigh_report::page::document::escape;

use super::opening::ways;
use super::plan_words;
use super::prose::prose;
use crate::outcome::{ExperimentOutcome, Outcome, RunOutcome};
use crate::scale::{Scale, Way};
use crate::study::Study;

/// The paper in four answers.
pub(super) fn paper(study: &Study) -> String {
    let paper = &study.paper;
    let title = paper.title.as_deref().unwrap_or_default();
    let mut html = String::new();
    if !title.is_empty() {
        let _ = writeln!(html, "<p><i>{}</i></p>", escape(title));
    }
    html += "<table class=\"facts\"><tbody>\n";
    for (name, text) in [
        ("Topic", &paper.topic),
        ("Asked", &paper.asked),
        ("Did", &paper.did),
        ("Found", &paper.found),
    ] {
        if !text.is_empty() {
            let text = prose(text);
            let _ = writeln!(html, "<tr><th scope=\"row\">{name}</th><td>{text}</td></tr>");
        }
    }
    html + "</tbody></table>\n"
}

/// Their environment and ours, and every experiment side by side.
pub(super) fn method(study: &Study, outcome: &Outcome) -> String {
    let scale = match outcome.scale {
        Scale::Mini => "mini, a miniature for tests whose figures mean nothing",
        Scale::Quick => "quick, with fewer repetitions and shorter axes than the paper's",
        Scale::Full => "full, as the paper",
    };
    let mut html = format!(
        "<p>Every experiment that can be run here was run {}, at the scale {}. A verdict comes \
         from conditions on these runs, each held against its interval at 95 %, never from a \
         hand.</p>\n",
        ways(outcome),
        escape(scale)
    );
    html += &environment(study);
    html += &host(outcome);
    let common = words_of_all(study, outcome);
    html += "<h3>The experiments, as published and done right</h3>\n<p class=\"note\">Each plan \
             by its name, with what it varies and holds, in the keys of plans.";
    if !common.is_empty() {
        html += &format!(" In all of them: {}.", escape(&common.join("; ")));
    }
    html += "</p>\n<div class=\"wide\" \
             tabindex=\"0\" role=\"region\" aria-label=\"The experiments\"><table \
             class=\"study\">\n<thead><tr><th scope=\"col\">experiment</th><th scope=\"col\" \
             class=\"text\">as published</th><th scope=\"col\" class=\"text\">done right</th></tr>\
             </thead>\n<tbody>\n";
    let mut told: BTreeSet<&str> = BTreeSet::new();
    for experiment in &outcome.experiments {
        let mut of = |way: Way| -> String {
            let runs = experiment.runs.iter().filter(|run| run.way == way);
            // A run that several experiments share is told where it stands first.
            runs.map(|run| match told.insert(&run.name) {
                true => run_words(run, &words_of(study, outcome, run), &common),
                false => format!("<p>{}, as above</p>", run_link(run)),
            })
            .collect()
        };
        let (own, right) = (of(Way::Published), of(Way::Right));
        let _ = writeln!(
            html,
            "<tr><th scope=\"row\"><a href=\"#experiment-{0}\">{0}</a> {1}</th><td \
             class=\"text\">{2}</td><td class=\"text\">{3}</td></tr>",
            escape(&experiment.id),
            escape(&experiment.title),
            published(experiment, &own),
            or_dash(right),
        );
    }
    html + "</tbody></table></div>\n"
}

fn published(experiment: &ExperimentOutcome, runs: &str) -> String {
    match &experiment.not_run {
        Some(reason) => format!("<p>Not run: {}</p>", prose(reason)),
        None => or_dash(runs.to_owned()),
    }
}

fn or_dash(html: String) -> String {
    if html.is_empty() { "–".to_owned() } else { html }
}

/// What the plan of a run holds and varies.
fn words_of(study: &Study, outcome: &Outcome, run: &RunOutcome) -> Vec<String> {
    let plan = study.plan(&run.name).and_then(|plan| plan.scales.get(&outcome.scale));
    plan.map(plan_words::words).unwrap_or_default()
}

/// What the plans of all runs hold alike, where there are several.
fn words_of_all(study: &Study, outcome: &Outcome) -> Vec<String> {
    let runs = outcome.experiments.iter().flat_map(|experiment| &experiment.runs);
    let mut all = runs.map(|run| words_of(study, outcome, run)).filter(|words| !words.is_empty());
    let (Some(first), Some(second)) = (all.next(), all.next()) else { return Vec::new() };
    let both = |known: Vec<String>, words: Vec<String>| {
        known.into_iter().filter(|word| words.contains(word)).collect()
    };
    all.fold(both(first, second), both)
}

/// A run: its name, which leads to its report, and what its plan does beside what all do.
fn run_words(run: &RunOutcome, words: &[String], common: &[String]) -> String {
    let own: Vec<&str> =
        words.iter().filter(|word| !common.contains(word)).map(String::as_str).collect();
    let words = own.join("; ");
    let state = match &run.skipped {
        Some(_) => " <b class=\"invalid\">skipped</b>".to_owned(),
        None => String::new(),
    };
    format!("<p>{}{state}<br><span>{}</span></p>", run_link(run), escape(&words))
}

/// The name of a run as a link to its report, where there is one.
pub(super) fn run_link(run: &RunOutcome) -> String {
    let name = escape(&run.name);
    match &run.folder {
        Some(folder) => format!("<a href=\"{}/report.html\">{name}</a>", escape(folder)),
        None => name,
    }
}

fn environment(study: &Study) -> String {
    let environment = &study.environment;
    let mut html = "<h3>The environment, theirs and ours</h3>\n<table \
                    class=\"facts\"><tbody>\n"
        .to_owned();
    let stated = environment.stated.iter();
    let stated: Vec<String> =
        stated.map(|(key, value)| format!("{}: {value}", key.replace('_', " "))).collect();
    for (name, values) in [
        ("the paper states", &stated),
        ("it does not state", &environment.not_stated),
        ("what we set", &environment.ours),
    ] {
        if !values.is_empty() {
            let items = values.iter().map(|value| format!("<li>{}</li>", prose(value)));
            let items: String = items.collect();
            let _ =
                writeln!(html, "<tr><th scope=\"row\">{name}</th><td><ul>{items}</ul></td></tr>");
        }
    }
    html + "</tbody></table>\n"
}

/// The machine that it was done again on.
fn host(outcome: &Outcome) -> String {
    let Some(Value::Object(host)) = &outcome.host else { return String::new() };
    let text = |key: &str| match host.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    let memory = host.get("memory_bytes").and_then(Value::as_f64).unwrap_or(0.0);
    let parts = [
        text("cpu"),
        format!("{} cores", text("cores")),
        if memory > 0.0 { bytes(memory) } else { String::new() },
        text("kernel"),
        text("virtualisation"),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.trim().is_empty()).collect();
    format!("<p class=\"note\">Done again on: {}.</p>\n", escape(&parts.join(" · ")))
}
