//! Modelled energy on the page: a separate section, apart from everything that was measured.

use std::fmt::Write as _;

use super::document::{self, escape};
use crate::pictures::{Gallery, Kind};
use crate::summary::modelled::Modelled;
use crate::summary::{Matrix, Summary};
use crate::view::modelled::{columns, lines, shown};

/// The section; `None` if nothing was modelled.
pub(crate) fn section(summary: &Summary, matrix: &Matrix, gallery: &Gallery) -> Option<String> {
    let modelled = summary.modelled.as_ref()?;
    let mut html =
        format!("<p><strong>Modelled, not measured.</strong> {}</p>\n", escape(&modelled.title));
    html += &figures(summary, modelled, matrix);
    let pictures = gallery.pictures.iter().filter(|picture| picture.kind == Kind::Modelled);
    html += &document::figures(pictures);
    html += "<ul>\n";
    for line in lines(modelled) {
        let _ = writeln!(html, "<li>{}</li>", escape(line.trim_start()));
    }
    html += "</ul>\n";
    Some(html + &coefficients(modelled))
}

fn figures(summary: &Summary, modelled: &Modelled, matrix: &Matrix) -> String {
    let columns = columns(modelled);
    let mut html = "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Modelled \
                    energy of every case\"><table>\n<thead><tr><th scope=\"col\">case</th>"
        .to_owned();
    for (heading, _) in &columns {
        let _ = write!(html, "<th scope=\"col\">{}</th>", escape(&heading.replace('\n', " ")));
    }
    html += "</tr></thead>\n<tbody>";
    for (cell, label) in summary.cells.iter().zip(&matrix.labels) {
        if columns.iter().all(|(_, metric)| shown(cell, metric).is_none()) {
            continue;
        }
        let _ = write!(html, "<tr><th scope=\"row\">{}</th>", escape(label));
        for (_, metric) in &columns {
            let figure = shown(cell, metric).unwrap_or_else(|| "\u{2013}".to_owned());
            let _ = write!(html, "<td>{}</td>", escape(&figure));
        }
        html += "</tr>\n";
    }
    html + "</tbody></table></div>\n"
}

fn coefficients(modelled: &Modelled) -> String {
    let mut html = "<details><summary>Every coefficient and its source</summary><div \
                    class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Coefficients\">\
                    <table>\n<thead><tr><th scope=\"col\">coefficient</th><th scope=\"col\">value\
                    </th><th scope=\"col\">\u{b1} at 95 %</th><th scope=\"col\">source</th>\
                    <th scope=\"col\">verification</th></tr></thead>\n<tbody>"
        .to_owned();
    for own in &modelled.coefficients {
        let cells = [&own.published, &own.uncertainty, &own.source, &own.verification];
        let _ = write!(html, "<tr><th scope=\"row\">{}</th>", escape(&own.name));
        cells.iter().for_each(|text| html += &format!("<td>{}</td>", escape(text)));
        html += "</tr>\n";
    }
    html + "</tbody></table></div></details>\n"
}
