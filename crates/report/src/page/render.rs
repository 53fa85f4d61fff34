//! The report as one page: the question, the answer, a picture and the warnings first; then every
//! figure with its interval, and how it was computed. It loads nothing and forbids the browser to,
//! so it can be mailed and archived.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};
use weigh_model::event::Event;

use super::document::{Document, escape, figure, section};
use super::facts::Provenance;
use super::{
    answer, facts, limits, methods, modelled, overview, stages, thresholds, warnings, wire,
};
use crate::pictures::{Gallery, Kind};
use crate::summary::headlines::metrics;
use crate::summary::{Matrix, Summary};
use crate::view::{interference, stalled};
use weigh_model::metrics::{definition, unit_of};

/// The page of a run. `events` are those from which `summary` was made.
pub fn page(summary: &Summary, events: &[Event], provenance: &Provenance) -> String {
    let matrix = Matrix::new(&summary.cells);
    let gallery = Gallery::new(summary, events);
    let question = answer::question(summary, &matrix);
    let mut body = first_screen(summary, &matrix, &gallery, &question);
    body.push_str("<main id=\"main\">\n");
    for section in sections(summary, &matrix, &gallery, provenance) {
        body.push_str(&section);
    }
    body.push_str("</main>\n");
    let data = data(summary, &gallery);
    Document { title: &question, body: &body, without_scripts: WITHOUT_SCRIPTS, data }.to_html()
}

fn first_screen(summary: &Summary, matrix: &Matrix, gallery: &Gallery, question: &str) -> String {
    let run = &summary.run;
    let sentences = answer::answer(summary, matrix).into_iter();
    let sentences: Vec<String> =
        sentences.map(|text| format!("<p>{}</p>", escape(&text))).collect();
    let outcome = match run.outcome.as_str() {
        "done" => String::new(),
        outcome => format!(
            "<p class=\"warning\" role=\"note\">The run is {}: these are its results so far.</p>",
            escape(outcome)
        ),
    };
    let picture = match gallery.headline(summary) {
        Some(picture) => figure(&picture.name, &picture.title, &picture.note)
            .replace("<h3>", "<h2>")
            .replace("</h3>", "</h2>"),
        None => String::new(),
    };
    format!(
        "<a class=\"skip\" href=\"#main\">Skip to the figures</a>\n<header>\n\
         <p class=\"run\"><b>Weighbridge</b> {} · {} · {}</p>\n<h1>{}</h1>\n\
         <div class=\"answer\">{}</div>\n{outcome}</header>\n\
         <section class=\"first\" aria-label=\"In one picture\">{picture}</section>\n{}",
        escape(&run.version),
        escape(&run.started),
        cases(summary.cells.len()),
        escape(question),
        sentences.join("\n"),
        thresholds::list(summary) + &warnings::short(summary),
    )
}

fn cases(number: usize) -> String {
    if number == 1 { "1 case".to_owned() } else { format!("{number} cases") }
}

fn sections(
    summary: &Summary,
    matrix: &Matrix,
    gallery: &Gallery,
    provenance: &Provenance,
) -> Vec<String> {
    let has = |kind: Kind| gallery.pictures.iter().any(|picture| picture.kind == kind);
    let mut sections = Vec::new();
    let figures = |kind: Kind| -> String {
        let own = gallery.pictures.iter().filter(|picture| picture.kind == kind);
        own.map(|picture| figure(&picture.name, &picture.title, &picture.note)).collect()
    };
    if has(Kind::Search) {
        let answers = limits::table(summary);
        let content = answers + &figures(Kind::Search);
        sections.push(section("limits", "Where the limit is", &content));
    }
    if has(Kind::Loads) {
        sections.push(section("loads", "Throughput by load", &figures(Kind::Loads)));
    }
    sections.push(section("overview", "All cases", &overview::table(summary)));
    let said = stalled::lines(summary, false);
    if !said.is_empty() {
        let said = said.iter().map(|line| format!("<p>{}.</p>\n", escape(line)));
        sections.push(section("stalled", "Stalled subscribers", &said.collect::<String>()));
    }
    if !summary.cells.is_empty() {
        sections.push(section("metric", "One metric in detail", &metric_section(summary)));
    }
    if has(Kind::Curve) {
        let place = choice_section("group", "Cases", "curve");
        sections.push(section("curves", "Times by percentile", &place));
    }
    if has(Kind::Cost) {
        sections.push(section("cost", "What a message costs", &figures(Kind::Cost)));
    }
    if let Some(stages) = stages::section(summary, matrix, gallery) {
        sections.push(section("stages", "Stage by stage", &stages));
    }
    if let Some(wire) = wire::section(summary, matrix, gallery) {
        sections.push(section("wire", "On the wire", &wire));
    }
    if let Some(modelled) = modelled::section(summary, matrix, gallery) {
        sections.push(section("modelled", "Energy, modelled", &modelled));
    }
    if has(Kind::Flow) || has(Kind::OverTime) || has(Kind::Histogram) {
        let place = choice_section("cell", "Case", "cell");
        sections.push(section("case", "One case in detail", &place));
    }
    if !summary.interference.is_empty() {
        sections.push(section("backgrounds", "Under a background", &backgrounds(summary)));
    }
    if !summary.comparisons.is_empty() {
        sections.push(section("verdicts", "Verdicts", &overview::verdicts(summary, matrix)));
    }
    sections.push(section("computed", "How every figure was computed", &computed(summary)));
    sections.push(section(
        "warnings",
        "Warnings, and what to do about them",
        &warnings::full(summary),
    ));
    sections.push(section(
        "facts",
        "Machine, versions, plan",
        &facts::section(summary, provenance),
    ));
    sections
}

/// Effect of backgrounds on the cases.
fn backgrounds(summary: &Summary) -> String {
    let mut html = "<p>A case with a background minus the same case without, over pairs of \
                    repetitions in turn; ± the interval at 95 %.</p>\n"
        .to_owned();
    for (heading, sentences) in interference::blocks(summary, false) {
        let items = sentences.iter().map(|text| format!("<li>{}</li>", escape(text)));
        let items: String = items.collect();
        let _ = writeln!(html, "<p>{}</p>\n<ul>{items}</ul>", escape(&heading));
    }
    html
}

/// The table and the pictures of one metric, which the reader chooses.
fn metric_section(summary: &Summary) -> String {
    let first = crate::summary::headlines::headline_metric(summary);
    let mut options = String::new();
    for name in metrics(summary) {
        let selected = if Some(name) == first { " selected" } else { "" };
        let name = escape(name);
        let _ = write!(options, "<option value=\"{name}\"{selected}>{name}</option>");
    }
    format!(
        "<p class=\"choice\"><label for=\"metric-choice\">Metric</label> \
         <select id=\"metric-choice\">{options}</select></p>\n<p id=\"metric-what\"></p>\n\
         <div id=\"metric-pictures\"></div>\n<div class=\"wide\" id=\"metric-table\" \
         tabindex=\"0\" role=\"region\" aria-label=\"The metric of every case\"></div>\n"
    )
}

/// Pictures of a subject that the reader chooses.
fn choice_section(id: &str, label: &str, pictures: &str) -> String {
    format!(
        "<p class=\"choice\"><label for=\"{id}-choice\">{label}</label> \
         <select id=\"{id}-choice\"></select></p>\n<div id=\"{pictures}-pictures\"></div>\n"
    )
}

/// For every metric: definition, unit, interval; the script adds the values when it is opened.
fn computed(summary: &Summary) -> String {
    let mut html = format!("<p>{}</p>\n", escape(INTERVALS));
    for name in metrics(summary) {
        let unit = match unit_of(name) {
            "1" if name.contains("ratio") => "a ratio; 1 is 100 %",
            "1" => "a number",
            unit => unit,
        };
        let repetitions: Vec<u32> =
            summary.cells.iter().filter_map(|cell| Some(cell.metrics.get(name)?.n)).collect();
        let least = repetitions.iter().min().unwrap_or(&0);
        let most = repetitions.iter().max().unwrap_or(&0);
        let n = if least == most { least.to_string() } else { format!("{least} to {most}") };
        let _ = write!(
            html,
            "<details data-metric=\"{}\"><summary><code>{}</code></summary><p>{}</p>\
             <p>Unit: {}. Cases: {}. Repetitions (n): {n}. {}</p><div class=\"wide\" \
             tabindex=\"0\" role=\"region\" aria-label=\"Values of {}\"></div></details>",
            escape(name),
            escape(name),
            escape(&definition(name)),
            escape(unit),
            repetitions.len(),
            escape(&intervals(summary, name)),
            escape(name),
        );
    }
    html
}

/// Methods of the intervals of a metric, and reasons for missing ones, with the number of cases.
fn intervals(summary: &Summary, name: &str) -> String {
    let mut counts: BTreeMap<(bool, &str), usize> = BTreeMap::new();
    for metric in summary.cells.iter().filter_map(|cell| cell.metrics.get(name)) {
        let words = metric.method.as_deref().map(|method| (false, method));
        let words = words.or(metric.refused.as_deref().map(|reason| (true, reason)));
        *counts.entry(words.unwrap_or((true, "no value"))).or_default() += 1;
    }
    let mut text = "Intervals at 95 %. ".to_owned();
    for ((is_refused, words), number) in counts {
        let cases = cases(number);
        text += &match is_refused {
            true => format!("None in {cases}: {words}. "),
            false => format!("In {cases} {words}: {} ", methods::method(words)),
        };
    }
    text
}

/// Data of the script.
fn data(summary: &Summary, gallery: &Gallery) -> Value {
    let gallery = serde_json::to_value(gallery).unwrap_or(Value::Null);
    let what: Vec<[String; 2]> =
        metrics(summary).into_iter().map(|name| [name.to_owned(), definition(name)]).collect();
    json!({
        "shared": gallery["shared"], "pictures": gallery["pictures"], "what": what,
        "lossy": most_lossy(summary),
    })
}

/// The cell shown first: the one with the largest share of losses, else the first.
fn most_lossy(summary: &Summary) -> usize {
    let share = |cell: &crate::summary::Cell| {
        cell.ledger.lost.unwrap_or(0) as f64 / cell.ledger.sent.max(1) as f64
    };
    let cells = summary.cells.iter().enumerate().rev();
    let most = cells.max_by(|(_, left), (_, right)| share(left).total_cmp(&share(right)));
    most.map_or(0, |(index, _)| index)
}

const WITHOUT_SCRIPTS: &str = "Without scripts the pictures and the tables of single metrics are \
    not shown; summary.json and cells.csv hold the figures.";

const INTERVALS: &str = "Every figure is the mean over repetitions, each of which gives one value: \
    messages of one repetition are never pooled with those of another, because what varies from \
    run to run does not average out within one (T. Kalibera and R. Jones, 2013).";
