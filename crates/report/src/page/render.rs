//! The report as one page: the question, the answer, a picture and the warnings first; then every
//! figure with its interval, and how it was computed. It loads nothing and forbids the browser to,
//! so it can be mailed and archived.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::{Value, json};
use weigh_model::event::Event;

use super::document::{Document, escape, figure, figures, fold};
use super::facts::Provenance;
use super::{
    facts, limits, methods, metric, modelled, overview, stages, stills, thresholds, warnings, wire,
};
use crate::answer;
use crate::figures::method_words;
use crate::pictures::{Gallery, Kind, Picture};
use crate::summary::headlines::metrics;
use crate::summary::{AnswerLine, Matrix, Summary};
use crate::view::{interference, stalled};
use weigh_model::metrics::{definition, unit_of};

/// The page of a run. `events` are those from which `summary` was made.
pub fn page(summary: &Summary, events: &[Event], provenance: &Provenance) -> String {
    let matrix = Matrix::new(&summary.cells);
    let gallery = Gallery::new(summary, events);
    let question = answer::question(summary);
    let mut body = first_screen(summary, &gallery, &question);
    body.push_str("<main id=\"main\">\n");
    for section in sections(summary, &matrix, &gallery, provenance) {
        body.push_str(&section);
    }
    body.push_str("</main>\n");
    let data = data(summary, &gallery);
    let body = stills::filled(&body, &data);
    Document { title: &question, body: &body, without_scripts: WITHOUT_SCRIPTS, data }.to_html()
}

fn first_screen(summary: &Summary, gallery: &Gallery, question: &str) -> String {
    let run = &summary.run;
    let line = |line: &AnswerLine| format!("<li>{}</li>", escape(&line.text));
    let lines: Vec<String> = answer::lines(summary).iter().map(line).collect();
    let picture = match gallery.headline(summary) {
        Some(picture) => figure(&picture.name, &picture.title, &picture.note)
            .replace("<h3>", "<h2>")
            .replace("</h3>", "</h2>"),
        None => String::new(),
    };
    format!(
        "<a class=\"skip\" href=\"#main\">Skip to the figures</a>\n<header>\n\
         <p class=\"run\"><b>Weighbridge</b> {} · {} · {}</p>\n<h1>{}</h1>\n\
         <ul class=\"answer\">\n{}\n</ul>\n</header>\n\
         <section class=\"first\" aria-label=\"In one picture\">{picture}</section>\n{}",
        escape(&run.version),
        escape(&run.started),
        cases(summary.cells.len()),
        escape(question),
        lines.join("\n"),
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
    let of = |kind: Kind| gallery.pictures.iter().filter(move |picture| picture.kind == kind);
    let has = |kind: Kind| of(kind).next().is_some();
    let mut sections = Vec::new();
    let mut open = |id: &str, title: &str, content: &str| {
        sections.push(fold(id, title, true, content));
    };
    if has(Kind::Search) {
        let answers = limits::table(summary);
        open("limits", "Where the limit is", &(answers + &figures(of(Kind::Search))));
    }
    if has(Kind::Loads) {
        open("loads", "Throughput by load", &figures(of(Kind::Loads)));
    }
    open("overview", "All cases", &overview::table(summary));
    if has(Kind::Curve) {
        let first = group_of(of(Kind::Curve).next());
        let own = of(Kind::Curve).filter(|picture| group_of(Some(picture)) == first);
        let place = choice_section("group", "Cases", "curve", &figures(own));
        open("curves", "Times by percentile", &place);
    }
    if has(Kind::Cost) {
        open("cost", "What a message costs", &figures(of(Kind::Cost)));
    }
    sections.extend(folded(summary, matrix, gallery, provenance));
    sections
}

/// The sections that are closed until the reader opens them.
fn folded(
    summary: &Summary,
    matrix: &Matrix,
    gallery: &Gallery,
    provenance: &Provenance,
) -> Vec<String> {
    let mut sections = Vec::new();
    let mut add = |id: &str, title: &str, content: Option<String>| {
        sections.extend(content.map(|content| fold(id, title, false, &content)));
    };
    let some = |content: String| (!content.is_empty()).then_some(content);
    let said = stalled::lines(summary, false);
    let said: String = said.iter().map(|line| format!("<p>{}.</p>\n", escape(line))).collect();
    add("stalled", "Stalled subscribers", some(said));
    add("metric", "One metric in detail", some(metric::section(summary, matrix, gallery)));
    add("stages", "Stage by stage", stages::section(summary, matrix, gallery));
    add("wire", "On the wire", wire::section(summary, matrix, gallery));
    add("modelled", "Energy, modelled", modelled::section(summary, matrix, gallery));
    let is_single = |picture: &&Picture| SINGLE.contains(&picture.kind);
    if gallery.pictures.iter().any(|picture| is_single(&picture)) {
        let first = most_lossy(summary).to_string();
        let own = gallery.pictures.iter().filter(is_single).filter(|own| own.subject == first);
        let place = choice_section("cell", "Case", "cell", &figures(own));
        add("case", "One case in detail", Some(place));
    }
    if !summary.interference.is_empty() {
        add("backgrounds", "Under a background", Some(backgrounds(summary)));
    }
    if !summary.comparisons.is_empty() {
        add("verdicts", "Verdicts", Some(overview::verdicts(summary, matrix)));
    }
    add("computed", "How every figure was computed", Some(computed(summary)));
    add("warnings", "Warnings, and what to do about them", Some(warnings::full(summary)));
    add("facts", "Machine, versions, plan", Some(facts::section(summary, provenance)));
    sections
}

/// What the reader chooses percentile curves by, as the script does.
fn group_of(picture: Option<&Picture>) -> Option<[&str; 2]> {
    let picture = picture?;
    Some([picture.about["group"].as_str().unwrap_or_default(), &picture.part])
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

/// Pictures of a subject that the reader chooses; those of the first one are there.
fn choice_section(id: &str, label: &str, pictures: &str, first: &str) -> String {
    format!(
        "<p class=\"choice\" hidden><label for=\"{id}-choice\">{label}</label> \
         <select id=\"{id}-choice\"></select></p>\n<div id=\"{pictures}-pictures\">{first}</div>\n"
    )
}

/// For every metric: definition, unit, interval; the script adds the values when it is opened.
fn computed(summary: &Summary) -> String {
    let mut html = format!("<p>{}</p>\n", escape(INTERVALS));
    let used = summary.cells.iter().flat_map(|cell| cell.metrics.values());
    let used: BTreeSet<&str> = used.filter_map(|metric| metric.method.as_deref()).collect();
    let methods = used.into_iter();
    let methods = methods.map(|name| format!("{}: {}", method_words(name), methods::method(name)));
    let methods: String = methods.map(|text| format!("<li>{}</li>", escape(&text))).collect();
    if !methods.is_empty() {
        let _ = writeln!(html, "<ul>{methods}</ul>");
    }
    for name in metrics(summary) {
        let unit = match unit_of(name) {
            "1" if name.contains("ratio") => "a ratio; 1 is 100 %",
            unit => unit,
        };
        // A plain number has no unit to name.
        let unit = if unit == "1" { String::new() } else { format!("Unit: {unit}. ") };
        let repetitions: Vec<u32> =
            summary.cells.iter().filter_map(|cell| Some(cell.metrics.get(name)?.n)).collect();
        let least = repetitions.iter().min().unwrap_or(&0);
        let most = repetitions.iter().max().unwrap_or(&0);
        let n = if least == most { least.to_string() } else { format!("{least} to {most}") };
        let _ = write!(
            html,
            "<details data-metric=\"{}\"><summary><code>{}</code></summary><p>{}</p>\
             <p>{}Cases: {}. Repetitions (n): {n}. {}</p></details>",
            escape(name),
            escape(name),
            escape(&definition(name)),
            escape(&unit),
            repetitions.len(),
            escape(&intervals(summary, name)),
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
            true => format!("No interval for {cases}: {words}. "),
            false => format!("Interval for {cases}: {}. ", method_words(words)),
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

/// Pictures of single cases.
const SINGLE: [Kind; 3] = [Kind::Flow, Kind::OverTime, Kind::Histogram];

const WITHOUT_SCRIPTS: &str = "Without JavaScript no other metric or case can be chosen; \
    summary.json and cells.csv hold all figures.";

const INTERVALS: &str = "Each repetition gives one value; the figure is their mean. Messages \
    of different repetitions are pooled only in percentile curves and histograms, because runs \
    differ (T. Kalibera and R. Jones, 2013).";
