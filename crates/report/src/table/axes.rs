//! The table of a run with many cells: one metric at a time, the places of an axis as rows and the
//! lanes as columns. One row per cell would fill many screens.

use comfy_table::CellAlignment;

use crate::figures::{between, lost, time_between};
use crate::summary::cell::is_reference;
use crate::summary::lateness::{Lateness, is_withheld};
use crate::summary::metric::ends;
use crate::summary::{Cell, Matrix, Metric, Summary, cell_name};
use crate::terminal::fold::shown_width;
use crate::terminal::{Style, drawn, ruled};
use crate::view::columns::{ELSEWHERE, INVALID_MARK, LAG_MARK, shows_durability, title};

/// A table for each headline figure of the run, and for each guarantee; `None` if no axis has
/// lines.
pub(crate) fn tables(summary: &Summary, matrix: &Matrix, style: Style) -> Option<String> {
    let grid = Grid::of(summary, matrix)?;
    let parts = grid.by_promise(shows_durability(summary));
    let mut tables = Vec::new();
    for (name, figure) in FIGURES {
        for (group, part) in &parts {
            let title = match parts.len() {
                1 => (*name).to_owned(),
                _ => format!("{name}, {group}"),
            };
            let mut cells = part.rows.iter().flat_map(|(_, cells)| cells.iter().flatten());
            if cells.any(|cell| figure(cell, style).is_some()) {
                tables.push(part.draw(&title, *figure, style));
            }
        }
    }
    let rest = grid.rows.len().saturating_sub(ROWS_MAX);
    if rest > 0 {
        tables.push(format!("{rest} more places: {ELSEWHERE}\n"));
    }
    Some(tables.join("\n"))
}

/// The cells by the places of the first axis and by lane.
struct Grid<'a> {
    axis: String,
    lanes: Vec<String>,
    /// The name of every place and, by lane, its cell.
    rows: Vec<(String, Vec<Option<&'a Cell>>)>,
}

impl<'a> Grid<'a> {
    fn of(summary: &'a Summary, matrix: &Matrix) -> Option<Grid<'a>> {
        let axis = matrix.axes.first()?;
        let all_reference = summary.cells.iter().all(is_reference);
        let lane = |name: &String| match all_reference {
            true => name.strip_suffix(" on reference").unwrap_or(name).to_owned(),
            false => name.clone(),
        };
        let mut places: Vec<(f64, String)> = Vec::new();
        for (value, cell) in axis.lines.iter().flat_map(|line| &line.places) {
            if !places.iter().any(|(known, _)| known == value) {
                let text = summary.cells[*cell].point.get(&axis.key);
                places.push((*value, text.map_or_else(String::new, cell_name::plain)));
            }
        }
        places.sort_by(|left, right| left.0.total_cmp(&right.0));
        let of_place = |value: f64| -> Vec<Option<&Cell>> {
            let of_line = |line: &crate::summary::matrix::Line| {
                let place = line.places.iter().find(|place| place.0 == value);
                place.map(|(_, cell)| &summary.cells[*cell])
            };
            axis.lines.iter().map(of_line).collect()
        };
        Some(Grid {
            axis: Matrix::short(&axis.key).to_owned(),
            lanes: axis.lines.iter().map(|line| lane(&line.name)).collect(),
            rows: places.into_iter().map(|(value, text)| (text, of_place(value))).collect(),
        })
    }

    /// The lanes that promise the same, of reference servers and of real ones separately.
    fn by_promise(&self, shows_durability: bool) -> Vec<(String, Grid<'a>)> {
        let group = |lane: usize| {
            let first = self.rows.iter().find_map(|(_, cells)| cells[lane]);
            first.map_or_else(String::new, |cell| title(cell, shows_durability))
        };
        let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
        for lane in 0..self.lanes.len() {
            let name = group(lane);
            match groups.iter_mut().find(|(known, _)| *known == name) {
                Some((_, lanes)) => lanes.push(lane),
                None => groups.push((name, vec![lane])),
            }
        }
        let only = |lanes: &[usize]| Grid {
            axis: self.axis.clone(),
            lanes: lanes.iter().map(|lane| self.lanes[*lane].clone()).collect(),
            rows: self
                .rows
                .iter()
                .map(|(place, cells)| (place.clone(), lanes.iter().map(|l| cells[*l]).collect()))
                .collect(),
        };
        groups.into_iter().map(|(name, lanes)| (name, only(&lanes))).collect()
    }

    /// Draws one figure; lanes side by side as far as they fit, the others below.
    fn draw(&self, title: &str, figure: Figure, style: Style) -> String {
        let mut text = format!("{title}\n");
        let mut first = 0;
        while first < self.lanes.len() {
            let mut number = self.lanes.len() - first;
            let table = loop {
                let table = self.part(first..first + number, figure, style);
                let fits = |line: &str| shown_width(line) <= usize::from(style.width);
                if number == 1 || table.lines().all(fits) {
                    break table;
                }
                number -= 1;
            };
            text += &table;
            first += number;
            if first >= LANES_MAX && first < self.lanes.len() {
                text += &format!("{} more lanes: {ELSEWHERE}\n", self.lanes.len() - first);
                break;
            }
        }
        text
    }

    fn part(&self, lanes: std::ops::Range<usize>, figure: Figure, style: Style) -> String {
        let mut table = ruled(style);
        table.set_header(std::iter::once(&self.axis).chain(&self.lanes[lanes.clone()]));
        for (place, cells) in self.rows.iter().take(ROWS_MAX) {
            let show = |cell: &Option<&Cell>| {
                let Some(cell) = cell else { return String::new() };
                let mark = if cell.valid { "" } else { INVALID_MARK };
                format!("{mark}{}", figure(cell, style).unwrap_or_else(|| "–".to_owned()))
            };
            let shown = cells[lanes.clone()].iter().map(show);
            table.add_row(std::iter::once(place.clone()).chain(shown));
        }
        for column in table.column_iter_mut() {
            column.set_cell_alignment(CellAlignment::Right);
        }
        drawn(table, style)
    }
}

/// The value of a cell; `None` if it was not measured.
type Figure = fn(&Cell, Style) -> Option<String>;

const FIGURES: &[(&str, Figure)] = &[
    ("response time p50", |cell, style| time_of(cell, "response_time_ns.p50", style)),
    ("response time p99", |cell, style| time_of(cell, "response_time_ns.p99", style)),
    ("service time p50", |cell, style| service_time_of(cell, "p50", style)),
    ("service time p99", |cell, style| service_time_of(cell, "p99", style)),
    ("delivery time p99", |cell, style| time_of(cell, "delivery_time_ns.p99", style)),
    ("delivered per second", |cell, _| plain(cell, "throughput_out_per_s")),
    ("target CPU, µs per message", |cell, _| plain(cell, "target_cpu_us_per_message")),
    ("lost messages", |cell, style| {
        cell.ledger.lost.map(|number| lost(number, cell.ledger.sent, style.is_ascii))
    }),
];

fn time_of(cell: &Cell, name: &str, style: Style) -> Option<String> {
    let metric: &Metric = cell.shown(name)?;
    let Some(value) = metric.value else { return Some("∞".to_owned()) };
    let is_late = Lateness::of(cell, name).said_ns() > 0.0;
    let mark = if is_late { LAG_MARK } else { "" };
    Some(time_between(value, ends(metric), style.is_ascii) + mark)
}

/// The service time of a cell whose response time of the same `part` is not reported.
fn service_time_of(cell: &Cell, part: &str, style: Style) -> Option<String> {
    let is_missing = is_withheld(cell, &format!("response_time_ns.{part}"));
    is_missing.then(|| time_of(cell, &format!("service_time_ns.{part}"), style)).flatten()
}

fn plain(cell: &Cell, name: &str) -> Option<String> {
    let metric = cell.metrics.get(name)?;
    Some(between(metric.value?, ends(metric)))
}

/// Places of an axis, and lanes, that a terminal shows.
const ROWS_MAX: usize = 25;

const LANES_MAX: usize = 16;
