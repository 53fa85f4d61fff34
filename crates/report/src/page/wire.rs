//! The wire: path and offloads first, since figures of a wire depend on them; then bytes by layer
//! as pictures and in figures, and one session packet by packet.

use std::fmt::Write as _;

use weigh_model::metrics::{LAYERS, PHASES};

use super::document::{escape, figures};
use crate::figures::three_digits;
use crate::pictures::{Gallery, Kind, Picture};
use crate::summary::wire_bytes::{CellBytes, Whole, exact, present, scenes};
use crate::summary::{Matrix, Summary};

/// The section; `None` without a capture and a path.
pub(crate) fn section(summary: &Summary, matrix: &Matrix, gallery: &Gallery) -> Option<String> {
    let scenes = scenes(summary);
    if scenes.is_empty() {
        return None;
    }
    let mut html = String::new();
    for (text, cells) in scenes {
        let about = match cells.len() {
            0 => String::new(),
            _ => format!(" <span class=\"note\">({})</span>", escape(&cells.join(", "))),
        };
        let _ = writeln!(html, "<p class=\"scene\">{}{about}</p>", escape(&capital(&text)));
    }
    let of = |kind: Kind| gallery.pictures.iter().filter(move |picture| picture.kind == kind);
    for whole in [Whole::Message, Whole::Session] {
        let is_of = |picture: &&Picture| picture.subject == whole.word();
        html += &figures(of(Kind::Wire).filter(is_of));
        html += &table(summary, matrix, whole);
    }
    if let Some(first) = of(Kind::Session).next() {
        let own = of(Kind::Session).filter(|picture| picture.subject == first.subject);
        html += "<p class=\"choice\" hidden><label for=\"session-choice\">One session of</label> \
                 <select id=\"session-choice\"></select></p>\n\
                 <div id=\"session-pictures\">";
        html += &figures(own);
        html += "</div>\n";
    }
    Some(html)
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The figures of a picture: a group of rows for each cell, a row for each phase.
fn table(summary: &Summary, matrix: &Matrix, whole: Whole) -> String {
    let cells = CellBytes::all(summary, whole);
    let layers = present(&cells);
    if cells.is_empty() {
        return String::new();
    }
    let title = format!("Bytes of a {} by phase and layer", whole.word());
    let mut html = format!(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{title}\">\
         <table class=\"layers\">\n<thead><tr><th scope=\"col\">bytes of a {}</th>\
         <th scope=\"col\">packets</th>",
        whole.word()
    );
    for layer in &layers {
        let _ = write!(html, "<th scope=\"col\">{}</th>", escape(LAYERS[*layer].title));
    }
    html += "<th scope=\"col\">all</th></tr></thead>\n";
    for cell in &cells {
        html += &rows(cell, &layers, &matrix.labels[cell.cell]);
    }
    html + "</table></div>\n"
}

fn rows(cell: &CellBytes, layers: &[usize], label: &str) -> String {
    let row = |class: &str, title: &str, packets: f64, bytes: &dyn Fn(usize) -> f64, all: f64| {
        let mut html = format!(
            "<tr{class}><th scope=\"row\">{}</th><td>{}</td>",
            escape(title),
            three_digits(packets)
        );
        for layer in layers {
            let _ = write!(html, "<td>{}</td>", exact(bytes(*layer)));
        }
        html + &format!("<td>{}</td></tr>\n", exact(all))
    };
    let packets = cell.packets.iter().sum();
    let mut html = "<tbody>".to_owned();
    html += &row(" class=\"whole\"", label, packets, &|layer| cell.layer(layer), cell.total());
    for (at, phase) in PHASES.iter().enumerate() {
        let bytes = &cell.bytes[at];
        let all = bytes.iter().sum();
        let of = |layer: usize| bytes[layer];
        html += &row(" class=\"phase\"", phase.title, cell.packets[at], &of, all);
    }
    html + "</tbody>\n"
}
