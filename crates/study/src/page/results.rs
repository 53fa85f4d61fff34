//! Experiment by experiment: what was wrong with how it was done, and the pictures with the figures
//! that are in them.

use std::fmt::Write as _;

use weigh_model::Rule;
use weigh_report::page::document::{escape, figure};
use weigh_report::pictures::Picture;

use super::in_unit;
use super::method::run_link;
use super::numbers::{printed, with_interval};
use super::opening::mark;
use super::pictures::name_of;
use super::prose::prose;
use crate::outcome::{AxisShown, ExperimentOutcome, FigureOutcome, Outcome, Series};
use crate::study::Study;

/// All experiments; pictures that belong to none of them stand at the end.
pub(super) fn section(study: &Study, outcome: &Outcome, pictures: &[Picture]) -> String {
    let mut html = String::new();
    let mut shown: Vec<&str> = Vec::new();
    for experiment in &outcome.experiments {
        let own: Vec<&FigureOutcome> = outcome
            .figures
            .iter()
            .filter(|figure| !shown.contains(&figure.id.as_str()))
            .filter(|figure| is_of(study, experiment, figure))
            .collect();
        html += &heading(study, experiment, &came_of_it(outcome, experiment));
        let above = outcome.figures.iter().filter(|figure| shown.contains(&figure.id.as_str()));
        html += &pictures_above(above.filter(|figure| is_of(study, experiment, figure)));
        for figure in own {
            shown.push(&figure.id);
            html += &drawn(figure, pictures);
        }
    }
    let rest: Vec<&FigureOutcome> =
        outcome.figures.iter().filter(|figure| !shown.contains(&figure.id.as_str())).collect();
    if !rest.is_empty() {
        html += "<h3>Further pictures</h3>\n";
        html.extend(rest.into_iter().map(|figure| drawn(figure, pictures)));
    }
    html
}

/// True if one of our series is of a run of the experiment; where there is none of ours, if theirs
/// are of its tables.
fn is_of(study: &Study, experiment: &ExperimentOutcome, figure: &FigureOutcome) -> bool {
    let links = |is_theirs: bool| {
        let series = figure.series.iter().filter(move |own| own.is_theirs == is_theirs);
        series.flat_map(|own| &own.links)
    };
    let is_run = |run: &str| experiment.runs.iter().any(|own| own.name == run);
    if links(false).next().is_some() {
        return links(false).any(|link| is_run(&link.run));
    }
    let tables = study.experiment(&experiment.id).map(|own| &own.tables[..]).unwrap_or_default();
    links(true).any(|link| tables.iter().any(|table| link.cell.starts_with(table.as_str())))
}

/// What an experiment is, what came of it, what is wrong with it.
fn heading(study: &Study, experiment: &ExperimentOutcome, came_of_it: &str) -> String {
    let id = escape(&experiment.id);
    let own = study.experiment(&experiment.id);
    let mut html = format!(
        "<h3 id=\"experiment-{id}\" class=\"experiment\">{id} {}</h3>\n",
        escape(&experiment.title)
    );
    let tables = own.map(|own| own.tables.join(", ")).unwrap_or_default();
    let runs: Vec<String> = experiment.runs.iter().map(run_link).collect();
    let about = [escape(&tables), runs.join(", ")];
    let about: Vec<String> = about.into_iter().filter(|part| !part.is_empty()).collect();
    if !about.is_empty() {
        let _ = writeln!(html, "<p class=\"note\">{}</p>", about.join(" · "));
    }
    if let Some(reason) = &experiment.not_run {
        let _ = writeln!(html, "<p>Not run here: {}</p>", prose(reason));
    }
    html += came_of_it;
    let flaws = own.map(|own| &own.flaws[..]).unwrap_or_default();
    if !flaws.is_empty() {
        let items = flaws.iter().map(|flaw| format!("<li>{}</li>", with_rules(flaw, study)));
        let _ = writeln!(
            html,
            "<p>What is wrong with how it was done:</p>\n<ul>{}</ul>",
            items.collect::<String>()
        );
    }
    html
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

/// The claims that rest on the experiment, each with its verdict.
fn came_of_it(outcome: &Outcome, experiment: &ExperimentOutcome) -> String {
    let claims = outcome.claims.iter().filter(|claim| claim.experiments.contains(&experiment.id));
    let items: Vec<String> = claims
        .map(|claim| {
            let id = escape(&claim.id);
            format!("<a href=\"#claim-{id}\">{id}</a> {}", mark(claim.verdict))
        })
        .collect();
    match items.is_empty() {
        true => String::new(),
        false => format!("<p>What came of it: {}.</p>\n", items.join(", ")),
    }
}

/// Where the pictures are that an experiment shares with one before it.
fn pictures_above<'f>(figures: impl Iterator<Item = &'f FigureOutcome>) -> String {
    let link = |figure: &FigureOutcome| {
        let (name, title) = (escape(&name_of(figure)), escape(&figure.title));
        format!("<a href=\"#{name}\">{title}</a>")
    };
    let links: Vec<String> = figures.map(link).collect();
    match links.is_empty() {
        true => String::new(),
        false => format!("<p>Drawn above: {}.</p>\n", links.join(", ")),
    }
}

/// A picture with the table of its figures; where nothing can be drawn, why.
fn drawn(own: &FigureOutcome, pictures: &[Picture]) -> String {
    let name = name_of(own);
    match pictures.iter().find(|picture| picture.name == name) {
        Some(picture) => {
            let drawn = figure(&picture.name, &picture.title, &picture.note);
            let heading = format!("<h4 id=\"{}\">", escape(&name));
            drawn.replace("<h3>", &heading).replace("</h3>", "</h4>") + &table(own)
        }
        None => format!(
            "<p id=\"{}\"><b>{}</b>: there is nothing to draw. {}</p>\n",
            escape(&name),
            escape(&own.title),
            escape(&missing(own))
        ),
    }
}

fn missing(own: &FigureOutcome) -> String {
    let reasons = own
        .series
        .iter()
        .filter_map(|series| Some(format!("{}: {}.", series.label, series.missing.as_deref()?)));
    reasons.collect::<Vec<_>>().join(" ")
}

/// The figures of a picture, a row a point of any series.
fn table(own: &FigureOutcome) -> String {
    let mut xs: Vec<f64> =
        own.series.iter().flat_map(|series| series.points.iter().map(|point| point.x)).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let heads: String = own
        .series
        .iter()
        .map(|series| format!("<th scope=\"col\">{}</th>", escape(&series.label)))
        .collect();
    let mut html = format!(
        "<details class=\"paper\"><summary>The figures in it</summary><div class=\"wide\" \
         tabindex=\"0\" role=\"region\" aria-label=\"Figures of {}\"><table>\n<thead><tr>\
         <th scope=\"col\">{}</th>{heads}</tr></thead>\n<tbody>\n",
        escape(&own.title),
        escape(&own.x.label),
    );
    for x in xs {
        let cells: String = own.series.iter().map(|series| cell(series, x, &own.y.unit)).collect();
        let x = escape(&in_unit_or_whole(x, &own.x.unit));
        let _ = writeln!(html, "<tr><th scope=\"row\">{x}</th>{cells}</tr>");
    }
    html += "</tbody></table></div>\n";
    for series in own.series.iter() {
        if let Some(trend) = series.trend {
            let _ = writeln!(
                html,
                "<p class=\"note\">{}: least squares, slope {} for {}, {} at 0.</p>",
                escape(&series.label),
                escape(&in_unit(trend.slope, &own.y.unit)),
                escape(&each(&own.x)),
                escape(&in_unit(trend.intercept, &own.y.unit)),
            );
        }
    }
    html + "</details>\n"
}

/// One more on an axis: `each client`, `1.00 s more of poll period`.
fn each(axis: &AxisShown) -> String {
    match axis.unit.as_str() {
        "" => format!("each {}", axis.label.strip_suffix('s').unwrap_or(&axis.label)),
        unit => format!("{} more of {}", in_unit(1.0, unit), axis.label),
    }
}

/// The figure of a series at `x`, with its interval.
fn cell(series: &Series, x: f64, unit: &str) -> String {
    let Some(point) = series.points.iter().find(|point| point.x == x) else {
        return "<td>–</td>".to_owned();
    };
    let text = match series.is_theirs {
        true => printed(point.y, unit),
        false => with_interval(point.y, (point.low, point.high), unit),
    };
    let (class, mark) = if point.is_valid { ("", "") } else { (" class=\"invalid\"", "! ") };
    format!("<td{class}>{mark}{}</td>", escape(&text))
}

/// Whole numbers without a unit in full, all else with three digits.
fn in_unit_or_whole(x: f64, unit: &str) -> String {
    if unit.is_empty() && x.fract() == 0.0 && (0.0..1e15).contains(&x) {
        return weigh_report::figures::count(x as u64);
    }
    in_unit(x, unit)
}
