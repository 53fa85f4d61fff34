//! Emulated figures in the terminal: a separate table below the measured ones.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement};
use weigh_model::Emulation;

use crate::figures::{between, time_between};
use crate::summary::metric::ends;
use crate::summary::{Cell, Metric, Summary};
use crate::terminal::{Style, drawn, in_parts, ruled};

/// A table for each tool; empty if no figure was requested.
pub(crate) fn render(summary: &Summary, style: Style) -> String {
    let tables = Emulation::ALL.into_iter().filter_map(|own| {
        let has = |cell: &&Cell| own.metrics().any(|name| cell.metrics.contains_key(name));
        let cells: Vec<&Cell> = summary.cells.iter().filter(has).collect();
        (!cells.is_empty()).then(|| table(own, &cells, style))
    });
    tables.collect()
}

fn table(own: Emulation, cells: &[&Cell], style: Style) -> String {
    let heading = format!("emulated, not measured: {}", title(own));
    let mut text = match style.is_markdown {
        true => format!("\n**{heading}**\n\n"),
        false => format!("\n{heading}\n"),
    };
    let names: Vec<&str> = own.metrics().filter(|name| is_shown(name)).collect();
    let part = |columns: std::ops::Range<usize>, arrangement: ContentArrangement| {
        let names = &names[columns];
        let mut table = ruled(style);
        table.set_width(style.width).set_content_arrangement(arrangement);
        table.set_header(std::iter::once("").chain(names.iter().map(|name| short(name, own))));
        for cell in cells.iter().take(CELLS_MAX) {
            let figures = names.iter().map(|name| figure(cell.metrics.get(*name), style));
            table.add_row(std::iter::once(cell.name.clone()).chain(figures));
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
        drawn(table, style)
    };
    text += &in_parts(names.len(), style, part).concat();
    if let Some(rest) = cells.len().checked_sub(CELLS_MAX).filter(|rest| *rest > 0) {
        text += &format!("{rest} more: summary.json and report.html have them\n");
    }
    text
}

fn title(own: Emulation) -> &'static str {
    match own {
        Emulation::Htop => "as a person reads it off htop",
        Emulation::Autocannon => "as autocannon would print it",
        Emulation::MqttStresser => "as mqtt-stresser would print it",
        Emulation::SumOfTimes => "messages over the sum of their times",
        Emulation::RampAverage => "one average over the whole run, as JMeter's aggregate report",
    }
}

/// The ends of a range are in the files; here they would take too much space.
fn is_shown(name: &str) -> bool {
    !(name.contains("slowest") || name.contains("fastest"))
}

/// A metric's name without the common part of the table.
fn short(name: &'static str, own: Emulation) -> &'static str {
    let common = match own {
        Emulation::Htop => "htop_",
        Emulation::Autocannon => "autocannon_",
        Emulation::MqttStresser => "mqtt_stresser_",
        Emulation::SumOfTimes => "sum_of_times_",
        Emulation::RampAverage => "ramp_average_",
    };
    name.strip_prefix(common).unwrap_or(name)
}

fn figure(metric: Option<&Metric>, style: Style) -> String {
    let known = metric.and_then(|metric| Some((metric, metric.value?)));
    match known {
        None => "-".to_owned(),
        Some((metric, value)) if metric.unit == "ns" => {
            time_between(value, ends(metric), style.is_ascii)
        }
        Some((metric, value)) => between(value, ends(metric)),
    }
}

/// Cells that are shown one by one.
const CELLS_MAX: usize = 24;
