//! The bounds of every lane and goal as a table, with the reason for missing the goal at the upper
//! bound and the limiting resource.

use std::fmt::Write as _;
use weigh_model::numbers::{self, exact, three_digits};

use super::document::escape;
use crate::summary::Summary;
use crate::summary::limit::{Limit, LimitGoal};

/// The table, and below it further results of the searches.
pub(crate) fn table(summary: &Summary) -> String {
    let mut html = "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Bounds\">\
                    <table>\n<thead><tr>"
        .to_owned();
    for heading in HEADINGS {
        let _ = write!(html, "<th scope=\"col\" class=\"text\">{heading}</th>");
    }
    html.push_str("</tr></thead>\n<tbody>");
    for limit in &summary.limits {
        for goal in &limit.goals {
            row(&mut html, limit, goal);
        }
    }
    html.push_str("</tbody></table></div>\n");
    let goals = || summary.limits.iter().flat_map(|limit| &limit.goals);
    if goals().any(|goal| goal.width.is_some()) {
        html.push_str(BOUNDS);
    }
    if goals().any(|goal| goal.unproven.is_some()) {
        html.push_str(UNPROVEN);
    }
    for limit in &summary.limits {
        for said in further_results(limit) {
            let _ = writeln!(html, "<p>{}: {}.</p>", escape(&limit.title()), escape(&said));
        }
    }
    html
}

fn row(html: &mut String, limit: &Limit, goal: &LimitGoal) {
    let load = |load: Option<f64>| match load {
        Some(load) => exact(load) + &limit.unit,
        None => "–".to_owned(),
    };
    // Without a decision: loads that passed or failed in too few trials to be a bound.
    let bound = |proven: Option<f64>, best: Option<f64>| match (proven, best) {
        (None, Some(_)) => format!("{}, not proven", load(best)),
        _ => load(proven),
    };
    let outcome = match &goal.unproven {
        Some(why) => format!("not proven: {why}"),
        None => goal.outcome.replace('-', " "),
    };
    let apart = goal.width.map_or("–".to_owned(), |width| three_digits(100.0 * width) + " %");
    let rate = goal.conditional_throughput_per_s;
    let cells = [
        goal.name.clone(),
        match &*goal.outcome {
            "withdrawn" => load(None),
            _ => bound(goal.lower, goal.passed),
        },
        bound(goal.upper, goal.failed),
        apart,
        outcome,
        rate.map_or("–".to_owned(), numbers::rate),
        goal.missed_by.clone().unwrap_or("–".to_owned()),
        goal.ended_by.as_ref().map_or("–".to_owned(), |ended| ended.sentence.clone()),
    ];
    let _ = write!(html, "<tr><th scope=\"row\">{}</th>", escape(&limit.title()));
    for cell in cells {
        let _ = write!(html, "<td class=\"text\">{}</td>", escape(&cell));
    }
    html.push_str("</tr>\n");
}

/// Further results of the search, and why it ended before it was complete.
fn further_results(limit: &Limit) -> Vec<String> {
    let mut said: Vec<String> =
        limit.goals.iter().filter_map(|goal| Some(goal.burst.as_ref()?.sentence.clone())).collect();
    said.extend(limit.second_generator.as_ref().map(|moved| moved.sentence.clone()));
    if limit.stop != "complete" {
        said.push(limit.stopped.clone());
    }
    let ours = limit.goals.iter().any(|goal| goal.ended_by.as_ref().is_some_and(|by| by.is_ours));
    if ours {
        said.push(
            "the limiting resource is not the target's, so the target may carry more".to_owned(),
        );
    }
    said
}

const BOUNDS: &str = "<p class=\"note\">The goal was met at the lower bound and missed at the \
                      upper one; the limit is between them. Quote the lower one, with its goal. \
                      The width says how far apart two decided loads are; it is not an error \
                      bar.</p>\n";

const UNPROVEN: &str = "<p class=\"note\">Where an answer is not proven, the loads are those that \
                        passed and failed, in fewer or shorter trials than it asks for.</p>\n";

const HEADINGS: [&str; 9] = [
    "lane",
    "goal",
    "met at",
    "missed at",
    "apart",
    "outcome",
    "throughput at the lower",
    "missed by",
    "limiting resource",
];
