//! Real client programs: their figures compared with those of Weighbridge, with the difference.

use std::fmt::Write as _;

use weigh_report::page::document::escape;

use super::numbers::{in_unit, with_interval};
use crate::outcome::Outcome;
use crate::runs::NOT_ASKED;
use crate::tools::{ToolCompared, ToolFigure, ToolShown};

/// A table of the programs that were run, and the reasons why others were not; empty where the
/// study has none.
pub(super) fn section(outcome: &Outcome) -> String {
    let asked = |tool: &&ToolShown| tool.skipped.as_deref() != Some(NOT_ASKED);
    let asked: Vec<&ToolShown> = outcome.tools.iter().filter(asked).collect();
    if asked.is_empty() {
        return String::new();
    }
    let mut html = String::new();
    let rows: String = asked.iter().map(|tool| rows(tool)).collect();
    if !rows.is_empty() {
        let heads = [
            ("program", " class=\"text\""),
            ("figure", " class=\"text\""),
            ("measured", ""),
            ("compared with", " class=\"text\""),
            ("value", ""),
            ("difference", ""),
        ];
        let heads = heads.map(|(head, class)| format!("<th scope=\"col\"{class}>{head}</th>"));
        let _ = writeln!(
            html,
            "<p class=\"note\">Processor time is that of the program and its children, start-up \
             included. Intervals are 95 %; a difference is the program minus Weighbridge. \
             The JSON next to this page has all figures.</p>\n<div class=\"wide\" tabindex=\"0\" \
             role=\"region\" aria-label=\"Real programs\"><table>\n<thead><tr>{}</tr></thead>\n\
             {rows}</table></div>",
            heads.concat()
        );
    }
    let notes = asked.iter().flat_map(|tool| notes(tool));
    html + &super::parts::list(notes.chain(warnings(&asked)))
}

/// The figures of a tool that are compared, and its processor time and packets a message.
fn rows(tool: &ToolShown) -> String {
    let is_shown = |figure: &&ToolFigure| {
        !figure.compared_with.is_empty() || SHOWN.contains(&figure.name.as_str())
    };
    let mut rows = Vec::new();
    for figure in tool.figures.iter().filter(is_shown) {
        let value = with_interval(figure.mean, (figure.low, figure.high), &figure.unit);
        let own = format!(
            "<td class=\"text\">{}</td><td>{} <span class=\"muted\">n = {}</span></td>",
            escape(&words(&figure.name)),
            escape(&value),
            figure.n,
        );
        if figure.compared_with.is_empty() {
            rows.push(format!("{own}<td class=\"text\">–</td><td>–</td><td>–</td>"));
        }
        let compared = figure.compared_with.iter().map(|own| compared(own, &figure.unit));
        rows.extend(compared.map(|compared| format!("{own}{compared}")));
    }
    if rows.is_empty() {
        return String::new();
    }
    let head = format!("<th scope=\"rowgroup\" rowspan=\"{}\">{}</th>", rows.len(), program(tool));
    format!("<tbody>\n<tr>{head}{}</tr>\n</tbody>\n", rows.join("</tr>\n<tr>"))
}

fn compared(own: &ToolCompared, unit: &str) -> String {
    let what = escape(&own.what);
    let Some(value) = own.value else {
        let reason = escape(&own.reason);
        return format!(
            "<td class=\"text\">{what}</td><td class=\"text\" colspan=\"2\">{reason}</td>"
        );
    };
    let value = with_interval(value, (own.low, own.high), unit);
    let difference = match (own.difference, own.difference_low, own.difference_high) {
        (Some(value), Some(low), Some(high)) => {
            format!("{} ({} to {})", signed(value, unit), signed(low, unit), signed(high, unit))
        }
        (Some(value), ..) => signed(value, unit),
        _ => own.reason.clone(),
    };
    format!(
        "<td class=\"text\">{what}</td><td>{}</td><td>{}</td>",
        escape(&value),
        escape(&difference)
    )
}

/// Why a tool was not run, and why repetitions failed.
fn notes(tool: &ToolShown) -> Vec<String> {
    let name = program(tool);
    let skipped = tool.skipped.iter().map(|why| format!("{name} was not run: {}", escape(why)));
    let failed =
        tool.failures.iter().map(|why| format!("A repetition of {name} failed: {}", escape(why)));
    skipped.chain(failed).collect()
}

/// What weakens figures: a warning once, with the tools that have one like it.
fn warnings(all: &[&ToolShown]) -> Vec<String> {
    let plain = |text: &str| text.replace(|c: char| c.is_ascii_digit(), "");
    let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
    for tool in all {
        for warning in &tool.warnings {
            match found.iter_mut().find(|(first, _)| plain(first) == plain(warning)) {
                Some((_, names)) => names.push(entry(tool)),
                None => found.push((warning, vec![entry(tool)])),
            }
        }
    }
    let words = |(text, names): (&str, Vec<&str>)| {
        let also = match &names[1..] {
            [] => String::new(),
            others => format!("; likewise {}", others.join(", ")),
        };
        escape(&format!("Warning: {}: {text}{also}.", names[0]))
    };
    found.into_iter().map(words).collect()
}

/// The name of its entry: `curl-post`.
fn entry(tool: &ToolShown) -> &str {
    tool.name.split_once('/').map_or(&*tool.name, |(_, name)| name)
}

/// Its name and version: `curl-post (curl 7.88.1)`.
fn program(tool: &ToolShown) -> String {
    let version = tool.version.as_ref().map_or(String::new(), |version| format!(" {version}"));
    format!(
        "{} <span class=\"muted\">({}{})</span>",
        escape(entry(tool)),
        escape(&tool.program),
        escape(&version)
    )
}

/// A figure's name as it is read: `processor time per message`.
fn words(name: &str) -> String {
    match name {
        "cpu_s_per_message" => "processor time per message".to_owned(),
        "wall_s" => "duration".to_owned(),
        "wall_s_per_message" => "duration per message".to_owned(),
        "cpu_s" => "processor time".to_owned(),
        "max_rss_bytes" => "largest resident memory".to_owned(),
        other => {
            let plain = other.replace('_', " ");
            ["reported", "wire"]
                .iter()
                .find_map(|kind| {
                    let rest = plain.strip_prefix(kind)?.trim_start();
                    Some(format!(
                        "{rest}, {}",
                        if *kind == "wire" { "on the wire" } else { "as reported" }
                    ))
                })
                .unwrap_or(plain)
        }
    }
}

fn signed(value: f64, unit: &str) -> String {
    let sign = if value < 0.0 { "−" } else { "+" };
    format!("{sign}{}", in_unit(value.abs(), unit))
}

/// Figures that are shown even without a figure to compare with.
const SHOWN: [&str; 2] = ["cpu_s_per_message", "wire_packets_per_message"];
