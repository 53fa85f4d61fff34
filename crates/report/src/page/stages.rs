//! The pipeline on the page: the route of a message, and the resources of each stage.

use std::fmt::Write as _;

use super::document::{escape, figures};
use crate::pictures::{Gallery, Kind};
use crate::summary::{Cell, Matrix, Summary};
use crate::view::stages;
use crate::view::stages::{HEADINGS, LEGEND};

/// The section; `None` if no cell has stages.
pub(crate) fn section(summary: &Summary, matrix: &Matrix, gallery: &Gallery) -> Option<String> {
    let mut html = String::new();
    for (index, cell) in summary.cells.iter().enumerate() {
        if stages::of(cell).is_empty() {
            continue;
        }
        let subject = index.to_string();
        let is_own = |kind: Kind, of: &str| kind == Kind::Way && of == subject;
        let own = gallery.pictures.iter().filter(|p| is_own(p.kind, &p.subject));
        html += &figures(own);
        html += &table(cell, &matrix.labels[index]);
    }
    (!html.is_empty()).then(|| format!("<p>{}</p>\n{html}", escape(LEGEND)))
}

fn table(cell: &Cell, label: &str) -> String {
    let words = cell.scene.get("pipeline").map(|words| format!("<p>{}</p>\n", escape(words)));
    let mut html = words.unwrap_or_default();
    let _ = write!(
        html,
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Stages of {}\"><table>\n\
         <thead><tr>",
        escape(label)
    );
    for heading in HEADINGS {
        let _ = write!(html, "<th scope=\"col\">{}</th>", escape(&heading.replace('\n', " ")));
    }
    html += "</tr></thead>\n<tbody>";
    for stage in stages::of(cell) {
        for (column, text) in stages::row(stage, cell, false).iter().enumerate() {
            let _ = match column {
                0 => write!(html, "<tr><th scope=\"row\">{}</th>", escape(text)),
                _ => write!(html, "<td>{}</td>", escape(text)),
            };
        }
        html += "</tr>\n";
    }
    html + "</tbody></table></div>\n"
}
