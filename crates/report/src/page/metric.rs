//! One metric of every case, which the reader chooses: the first one is there without scripts.

use std::fmt::Write as _;

use super::document::{escape, figures};
use crate::figures::three_digits;
use crate::pictures::{Gallery, Kind};
use crate::summary::figure_text::figure_text;
use crate::summary::headlines::{headline_metric, metrics};
use crate::summary::{Matrix, Metric, Summary};
use crate::view::columns::{promise, shows_durability};
use weigh_model::metrics::definition;

/// The choice, the pictures and the table of the first metric.
pub(crate) fn section(summary: &Summary, matrix: &Matrix, gallery: &Gallery) -> String {
    let names = metrics(summary);
    let Some(first) = headline_metric(summary).or(names.first().copied()) else {
        return String::new();
    };
    let mut options = String::new();
    for name in names {
        let selected = if name == first { " selected" } else { "" };
        let name = escape(name);
        let _ = write!(options, "<option value=\"{name}\"{selected}>{name}</option>");
    }
    let own = gallery.pictures.iter().filter(|picture| {
        picture.subject == first && matches!(picture.kind, Kind::Axis | Kind::Dots)
    });
    format!(
        "<p class=\"choice\" hidden><label for=\"metric-choice\">Metric</label> \
         <select id=\"metric-choice\">{options}</select></p>\n<p id=\"metric-what\">{}</p>\n\
         <div id=\"metric-pictures\">{}</div>\n<div class=\"wide\" id=\"metric-table\" \
         tabindex=\"0\" role=\"region\" aria-label=\"The metric of every case\">{}</div>\n",
        escape(&definition(first)),
        figures(own),
        table(summary, matrix, first),
    )
}

/// As the script makes it for another metric.
fn table(summary: &Summary, matrix: &Matrix, name: &str) -> String {
    let mut html = "<table class=\"sortable\"><thead><tr><th scope=\"col\">case</th>\
                    <th scope=\"col\" class=\"text\">guarantee</th><th scope=\"col\">mean</th>\
                    <th scope=\"col\">interval at 95 %</th><th scope=\"col\">±</th>\
                    <th scope=\"col\">n</th></tr></thead><tbody>"
        .to_owned();
    let shows = shows_durability(summary);
    for (cell, label) in summary.cells.iter().zip(&matrix.labels) {
        let Some(metric) = cell.shown(name) else { continue };
        let [mean, interval, side] = figures_of(metric, name);
        let (class, mark) = if cell.valid { ("", "") } else { (" class=\"invalid\"", "! ") };
        let _ = write!(
            html,
            "<tr{class}><th scope=\"row\">{mark}{}</th><td class=\"text\">{}</td><td>{mean}</td>\
             <td>{interval}</td><td>{side}</td><td>{}</td></tr>",
            escape(label),
            promise(cell, shows),
            metric.n,
        );
    }
    html + "</tbody></table>"
}

/// Mean, interval, and its longer side in percent of the mean.
fn figures_of(metric: &Metric, name: &str) -> [String; 3] {
    let text = |figure: f64| figure_text(name, figure, false);
    let mean = metric.value.map_or_else(|| "∞".to_owned(), text);
    let Some((low, high)) = metric.low.zip(metric.high) else {
        return [mean, "–".to_owned(), "–".to_owned()];
    };
    let side = metric.value.filter(|value| *value != 0.0).map(|value| {
        format!("{} %", three_digits(100.0 * (high - value).max(value - low) / value.abs()))
    });
    let interval = format!("{} to {}", text(low), text(high));
    [mean, interval, side.unwrap_or_else(|| "–".to_owned())]
}
