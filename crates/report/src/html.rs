//! The result as one page: the table, a chart per headline metric, and the notes. It loads
//! nothing from anywhere and runs no script, so it can be mailed and kept.

use std::fmt::Write as _;

use crate::comparisons::HEADLINES;
use crate::figures::{three_digits, time};
use crate::notes;
use crate::summary::{Cell, Metric, Summary};
use crate::table::{Row, Style, headings, rows};

/// The page.
pub fn page(summary: &Summary) -> String {
    let run = &summary.run;
    let title = format!("Weighbridge: {}", escape(&run.id));
    let facts = [
        format!("started {}", run.started),
        format!("weigh {}", run.version),
        run.host.kernel.clone(),
        run.host.cpu.clone(),
        format!("{} cores", run.host.cores),
        format!("outcome: {}", run.outcome),
    ];
    let facts: Vec<&str> = facts.iter().map(String::as_str).filter(|f| !f.is_empty()).collect();
    let charts: String = HEADLINES.iter().map(|metric| chart(metric, summary)).collect();
    let notes = notes::below(summary, Style::plain(u16::MAX));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
         <style>{CSS}</style>\n<h1>{title}</h1>\n<p>{}</p>\n{}<h2>Notes</h2>\n<pre>{}</pre>\n\
         <h2>Charts</h2>\n<p>Every dot is a repetition; the bar is their mean, the line its \
         interval at 95 % (from 3 repetitions). Scales begin at 0. Compare within one guarantee \
         only.</p>\n{charts}</html>\n",
        escape(&facts.join(" · ")),
        table(summary),
        escape(notes.trim()),
    )
}

fn table(summary: &Summary) -> String {
    let mut html = "<div class=\"wide\"><table>\n<tr>".to_owned();
    for heading in headings() {
        let _ = write!(html, "<th>{}</th>", escape(&heading));
    }
    html.push_str("</tr>\n");
    for row in rows(summary) {
        html.push_str(&match row {
            Row::Title(title) => title_row(&title),
            Row::Figures(cell, figures) => figures_row(cell, &figures),
        });
    }
    html + "</table></div>\n"
}

fn title_row(title: &str) -> String {
    let (span, title) = (headings().count(), escape(title));
    format!("<tr class=\"group\"><td colspan=\"{span}\">{title}</td></tr>\n")
}

fn figures_row(cell: &Cell, figures: &[String]) -> String {
    let start = if cell.valid { "<tr>" } else { "<tr class=\"invalid\">" };
    let figures = figures.iter().map(|figure| format!("<td>{}</td>", escape(figure.trim())));
    format!("{start}{}</tr>\n", figures.collect::<String>())
}

/// One metric: a row a cell. Empty where no cell has it.
fn chart(name: &str, summary: &Summary) -> String {
    let having: Vec<(&Cell, &Metric)> =
        summary.cells.iter().filter_map(|cell| Some((cell, cell.metrics.get(name)?))).collect();
    let values = having.iter().flat_map(|(_, metric)| metric.values.iter().copied().flatten());
    let largest_value = values.fold(0.0, f64::max);
    // An interval far wider than the values would press all of them to the left: it is cut.
    let highs = having.iter().filter_map(|(_, metric)| metric.high);
    let largest = highs.fold(largest_value, f64::max).min(largest_value * BEYOND_VALUES);
    if largest <= 0.0 {
        return String::new();
    }
    let height = having.len() * ROW + ROW;
    let mut svg = format!(
        "<h3>{name}</h3>\n<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"{name} of every cell\">\n"
    );
    let x = |figure: f64| LABEL as f64 + (figure / largest).min(1.0) * PLOT as f64;
    for (index, (cell, metric)) in having.iter().enumerate() {
        let y = index * ROW + ROW / 2;
        let class = if cell.valid { "cell" } else { "cell invalid" };
        let _ = writeln!(svg, "<g class=\"{class}\">{}", row(cell, metric, y, x, name));
        svg.push_str("</g>\n");
    }
    let y = height - ROW / 2;
    let _ = writeln!(svg, "<path class=\"axis\" d=\"M{LABEL} {}H{}\"/>", y - 10, LABEL + PLOT);
    let _ = writeln!(svg, "<text x=\"{LABEL}\" y=\"{}\">0</text>", y + 8);
    let (end, text) = (LABEL + PLOT, escape(&figure(largest, name)));
    let _ = writeln!(svg, "<text x=\"{end}\" y=\"{}\" class=\"end\">{text}</text>", y + 8);
    svg + "</svg>\n"
}

fn row(cell: &Cell, metric: &Metric, y: usize, x: impl Fn(f64) -> f64, name: &str) -> String {
    let text_y = y + 4;
    let mut svg = format!("<text x=\"0\" y=\"{text_y}\">{}</text>", escape(&cell.name));
    if let (Some(low), Some(high)) = (metric.low, metric.high) {
        let (low, high) = (x(low.max(0.0)), x(high.max(0.0)));
        let _ = write!(svg, "<path class=\"interval\" d=\"M{low:.1} {y}H{high:.1}\"/>");
    }
    for value in metric.values.iter().copied().flatten() {
        let _ = write!(svg, "<circle cx=\"{:.1}\" cy=\"{y}\" r=\"3\"/>", x(value));
    }
    let shown = match metric.value {
        Some(value) => {
            let _ = write!(svg, "<path class=\"mean\" d=\"M{:.1} {}v14\"/>", x(value), y - 7);
            figure(value, name)
        }
        None => "∞ (lost share)".to_owned(),
    };
    let _ =
        write!(svg, "<text x=\"{}\" y=\"{text_y}\">{}</text>", LABEL + PLOT + GAP, escape(&shown));
    svg
}

fn figure(value: f64, name: &str) -> String {
    if name.contains("_ns.") { time(value, false) } else { three_digits(value) }
}

fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;")
}

const WIDTH: usize = 960;
const LABEL: usize = 300;
const PLOT: usize = 520;
const GAP: usize = 16;
const ROW: usize = 26;

/// How far a chart reaches beyond its largest value, at most, to show intervals.
const BEYOND_VALUES: f64 = 1.25;

const CSS: &str = "
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 1280px; margin: 2rem auto; padding: 0 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.2rem 0.45rem; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
th { border-bottom: 2px solid; vertical-align: bottom; white-space: normal; }
th:first-child { min-width: 14rem; }
.group td { font-weight: bold; padding-top: 0.8rem; }
.invalid { color: #c62828; fill: #c62828; }
pre { white-space: pre-wrap; }
svg { width: 100%; max-width: 960px; font-size: 13px; fill: currentColor; }
.cell circle { opacity: 0.45; }
.interval { stroke: currentColor; stroke-width: 2; }
.mean { stroke: currentColor; stroke-width: 3; }
.axis { stroke: currentColor; stroke-width: 1; }
.end { text-anchor: end; }
@media (prefers-color-scheme: dark) { .invalid { color: #ff8a80; fill: #ff8a80; } }
";
