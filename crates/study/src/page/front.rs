//! The top of the page: the banner with warnings about all results, the title, and the authors of
//! paper and replay.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;
use weigh_report::figures::bytes;
use weigh_report::page::document::escape;

use super::prose::{and, counted, prose};
use crate::outcome::{OccasionShown, Outcome};
use crate::scale::{Scale, Way};
use crate::study::Study;

/// Warnings about all figures; empty if there are none.
pub(super) fn banner(outcome: &Outcome) -> String {
    let warnings = warnings(outcome);
    if warnings.is_empty() {
        return String::new();
    }
    let items = super::parts::list(warnings.iter().map(|text| prose(text)));
    format!(
        "<aside class=\"banner\" role=\"note\" aria-label=\"Warnings\"><b>Read this first</b>\n\
         {items}</aside>\n"
    )
}

/// The sentences of the banner, each once: what weakens all runs, or one of them.
pub(super) fn warnings(outcome: &Outcome) -> Vec<String> {
    let of_runs = outcome.occasions.iter().flat_map(|one| &one.warnings);
    let mut seen = BTreeSet::new();
    let all = outcome.warnings.iter().chain(of_runs).filter(|text| seen.insert(text.as_str()));
    let mut all: Vec<String> = all.cloned().collect();
    if outcome.state != "done" && all.is_empty() {
        all.push(format!(
            "The run of this study is {}. This page shows the results so far.",
            outcome.state
        ));
    }
    all
}

/// Title, and the two works: the paper and its replay.
pub(super) fn header(study: &Study, outcome: &Outcome) -> String {
    let mut html = format!(
        "<a class=\"skip\" href=\"#main\">Skip to the abstract</a>\n<header>\n<p class=\"kicker\">\
         Replication of a published study · {}</p>\n<h1>{}</h1>\n<dl class=\"byline\">\n",
        escape(&study.name),
        escape(&study.question),
    );
    for (name, text) in byline(outcome) {
        let _ = writeln!(html, "<div><dt>{name}</dt><dd>{text}</dd></div>");
    }
    html + "</dl>\n</header>\n"
}

fn byline(outcome: &Outcome) -> Vec<(&'static str, String)> {
    vec![
        ("Paper", citation(outcome)),
        ("Replay", replay(outcome)),
        ("Machine", escape(&hosts(outcome))),
    ]
}

/// The paper as references have it: authors (institution), title, venue, date, address. What its
/// text does not state is said to be not stated.
pub(super) fn citation(outcome: &Outcome) -> String {
    let paper = &outcome.paper;
    let missing = |what: &str| format!("<span class=\"muted\">{what} not stated</span>");
    let or = |text: &Option<String>, what: &str| {
        text.as_ref().map_or_else(|| missing(what), |text| escape(text))
    };
    let authors = match &paper.authors[..] {
        [] => missing("Authors"),
        authors => {
            let authors: Vec<&str> = authors.iter().map(String::as_str).collect();
            escape(&and(&authors))
        }
    };
    let institution = or(&paper.institution, "institution");
    let title = paper
        .title
        .as_ref()
        .map_or_else(|| missing("Title"), |title| format!("<cite>{}</cite>", escape(title)));
    let link = match &paper.link {
        Some(link) if link.starts_with("https://") || link.starts_with("http://") => {
            format!("<a href=\"{0}\">{0}</a>", escape(link))
        }
        Some(link) => escape(link),
        None => missing("address"),
    };
    let (venue, date) = (or(&paper.venue, "Venue"), or(&paper.date, "date"));
    format!("{authors} ({institution}). {title}. {venue}, {date}, {link}.")
}

fn replay(outcome: &Outcome) -> String {
    let scale = match outcome.scale {
        Scale::Mini => "mini scale, a test whose figures must not be used",
        Scale::Quick => "quick scale: fewer repetitions and shorter axes than the paper's",
        Scale::Full => "full scale, as the paper",
    };
    let runs = match outcome.occasions.len() {
        0 | 1 => format!("one run, {}", day(&outcome.started)),
        number => {
            let days: Vec<&str> = outcome.occasions.iter().map(|one| day(&one.started)).collect();
            let boots: BTreeSet<&str> =
                outcome.occasions.iter().filter_map(|one| one.boot.as_deref()).collect();
            let boots = match boots.len() {
                0 => String::new(),
                boots => format!(" on {}", counted(boots, "boot", "boots")),
            };
            let when = match days.iter().all(|day| *day == days[0]) {
                true => days[0].to_owned(),
                false => format!("{} to {}", days[0], days[number - 1]),
            };
            format!("{number} runs{boots}, {when}")
        }
    };
    let version = escape(&outcome.version);
    format!("Weighbridge {version}, {}; {scale}; {}.", ways(outcome), escape(&runs))
}

/// `2026-11-21` of `2026-11-21T20:00:00Z`.
pub(super) fn day(time: &str) -> &str {
    time.split_once('T').map_or(time, |(day, _)| day)
}

/// In which ways it was run; real programs only where the study has some.
pub(super) fn ways(outcome: &Outcome) -> String {
    let ways = outcome.ways.iter().filter(|way| **way != Way::Tools || !outcome.tools.is_empty());
    let names: Vec<&str> = ways.map(|way| way_name(*way)).collect();
    and(&names)
}

/// A way in words.
pub(super) fn way_name(way: Way) -> &'static str {
    match way.name() {
        "published" => "as published",
        "right" => "with its faults removed",
        _ => "with real client programs",
    }
}

/// The machines of all runs, each once.
pub(super) fn hosts(outcome: &Outcome) -> String {
    let all = outcome.occasions.iter().map(|one: &OccasionShown| one.host.as_ref());
    let all = all.chain([outcome.host.as_ref()]).flatten().map(host);
    let mut hosts: Vec<String> = Vec::new();
    for host in all.filter(|host| !host.is_empty()) {
        if !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    match &hosts[..] {
        [] => "nothing was run".to_owned(),
        hosts => hosts.join("; "),
    }
}

/// A machine in words: processor, cores, memory, kernel, virtualisation.
fn host(host: &Value) -> String {
    let text = |key: &str| match host.get(key) {
        Some(Value::String(text)) => text.trim().to_owned(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    let memory = host.get("memory_bytes").and_then(Value::as_f64).unwrap_or(0.0);
    let cores = host.get("cores").and_then(Value::as_u64);
    let parts = [
        cores.map_or(String::new(), |cores| counted(cores as usize, "core", "cores")),
        text("cpu"),
        if memory > 0.0 { bytes(memory) } else { String::new() },
        text("kernel"),
        text("virtualisation"),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(", ")
}
