//! The columns of the overview: every cell as a row, with one string for each column.

use std::collections::{BTreeMap, BTreeSet};

use weigh_model::{Durability, metrics};

use super::late;
use crate::figures::{
    between, between_longer, between_short, bytes, capital, count, loss_share_max, lost,
    three_digits, time, time_in, time_with_lag,
};
use crate::summary::cell::is_reference;
use crate::summary::comparisons::polls;
use crate::summary::lateness::{Lateness, instead, is_withheld};
use crate::summary::metric::ends;
use crate::summary::{Cell, Metric, Summary};
use crate::terminal::{Extent, Style};

/// Cells that promise the same: one guarantee, one durability, reference servers or real ones.
pub(crate) struct CellGroup<'s> {
    /// `at least once, reference`, or `at least once, fsync, real` if durability matters.
    pub(crate) title: String,
    pub(crate) cells: Vec<&'s Cell>,
}

/// All cells of a summary by what they promise, the weakest first.
pub(crate) fn groups(summary: &Summary) -> Vec<CellGroup<'_>> {
    let is_shown = shows_durability(summary);
    let mut groups: BTreeMap<_, Vec<&Cell>> = BTreeMap::new();
    for cell in &summary.cells {
        let durability = cell.durability.filter(|own| is_shown && *own != Durability::Nothing);
        let key = (cell.guarantee, durability, !is_reference(cell));
        groups.entry(key).or_default().push(cell);
    }
    let groups = groups.into_values();
    groups.map(|cells| CellGroup { title: title(cells[0], is_shown), cells }).collect()
}

/// The title of a cell's group, with its durability if tables show it.
pub(crate) fn title(cell: &Cell, shows_durability: bool) -> String {
    let kind = if is_reference(cell) { "reference" } else { "real" };
    format!("{}, {kind}", promise(cell, shows_durability))
}

/// What a cell promises: `at least once`, or `at least once, fsync`.
pub(crate) fn promise(cell: &Cell, shows_durability: bool) -> String {
    let durability = cell.durability.filter(|own| *own != Durability::Nothing);
    match durability.filter(|_| shows_durability) {
        Some(Durability::Unknown) => format!("{}, durability unknown", cell.guarantee),
        // As it is typed, which is short: a title must not widen the table.
        Some(own) => format!("{}, {own}", cell.guarantee),
        None => cell.guarantee.to_string(),
    }
}

/// True if tables say what a confirmation means: where it differs, and where it is more than
/// memory.
pub(crate) fn shows_durability(summary: &Summary) -> bool {
    let known = summary.cells.iter().filter_map(|cell| cell.durability);
    let confirmed: BTreeSet<Durability> = known.filter(|own| *own != Durability::Nothing).collect();
    confirmed.len() > 1 || confirmed.iter().any(|own| own.is_more_than_memory())
}

/// The part of a column when the table is drawn in parts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    All,
    Time,
    Rate,
    Ledger,
    Cost,
    Polls,
    Wire,
    Energy,
}

/// A column: of a metric, or of the ledger.
pub(crate) struct Column {
    /// The metric, or the heading if it shows none.
    name: &'static str,
    pub(crate) part: Part,
    /// True if it is shown without `--wide`.
    is_key: bool,
    show: Show,
}

impl Column {
    /// The metric, or the heading if it shows none.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Its heading, at most two lines.
    pub(crate) fn heading(&self) -> String {
        let heading = metrics::heading(self.name);
        if heading.is_empty() { self.name.to_owned() } else { heading }
    }

    /// Its text for `cell`.
    pub(crate) fn show(&self, cell: &Cell, style: Style) -> String {
        (self.show)(cell, self.name, style)
    }
}

type Show = fn(&Cell, &str, Style) -> String;

const fn column(name: &'static str, part: Part, show: Show) -> Column {
    Column { name, part, is_key: false, show }
}

/// A column that is shown without `--wide`.
const fn key(name: &'static str, part: Part, show: Show) -> Column {
    Column { name, part, is_key: true, show }
}

/// The heading of the column `name`: that of the table, or the metric in words with its unit.
pub(crate) fn heading_of(name: &str) -> String {
    if let Some(column) = table_column(name) {
        return column.heading().replace('\n', " ");
    }
    match metrics::unit_of(name) {
        // The figures have their units.
        "ns" | "B" | "1" | "count" => capital(name),
        unit => format!("{}, {unit}", capital(name)),
    }
}

/// The figure of `cell` in the column `name`: as the table shows it, or the metric in its unit with
/// its interval.
pub(crate) fn figure_of(cell: &Cell, name: &str, style: Style) -> String {
    if let Some(column) = table_column(name) {
        return column.show(cell, style);
    }
    match metrics::unit_of(name) {
        "ns" if name.starts_with("response_time_ns.") => latency(cell, name, style),
        "ns" if name.starts_with("delivery_time_ns.") => since_due(cell, name, "", style),
        "ns" => part(cell, name, style),
        "B" => plain(cell, name, bytes),
        "1" if name.ends_with("ratio") => {
            cell.metrics.get(name).map_or(ABSENT.to_owned(), |metric| {
                let percent = |share: f64| share * 100.0;
                let ends = ends(metric).map(|(low, high)| (percent(low), percent(high)));
                metric
                    .value
                    .map_or(INFINITE.to_owned(), |v| format!("{} %", between(percent(v), ends)))
            })
        }
        _ => rate(cell, name, style),
    }
}

/// The column of the table with this metric, or with this heading if it shows none.
fn table_column(name: &str) -> Option<&'static Column> {
    COLUMNS.iter().skip(1).find(|column| column.name == name)
}

/// Names of the columns that show the ledger, not a metric.
pub(crate) fn ledger_columns() -> impl Iterator<Item = &'static str> {
    COLUMNS.iter().filter(|column| column.part == Part::Ledger).map(|column| column.name)
}

/// The columns with values in this run: those of the wire only with a capture, those of polling
/// only if there is some, those of energy only if it was measured.
pub(crate) fn columns(summary: &Summary) -> impl Iterator<Item = &'static Column> {
    let has = |metric: &str| summary.cells.iter().any(|cell| cell.metrics.contains_key(metric));
    let (is_heard, is_asked) = (has(WIRE_BYTES), summary.cells.iter().any(polls));
    let is_late = late::is_any(summary);
    COLUMNS.iter().filter(move |column| match column.part {
        Part::Polls => is_asked,
        Part::Wire => is_heard,
        Part::Energy => has(column.name),
        _ if column.name == CONNECTION_MEMORY => has(CONNECTION_MEMORY),
        _ => is_late || column.name != LATE,
    })
}

/// The columns that answer most questions: those with a figure in any cell. A rate that was set
/// and the memory of a whole server say less than what is shown instead.
pub(crate) fn key_columns(summary: &Summary) -> Vec<&'static Column> {
    let has_rate = |cell: &Cell| {
        cell.point.get("load.rate").is_some_and(|rate| !rate.is_null())
            || summary.run.plan.load.rate.is_some()
    };
    let are_paced = summary.cells.iter().all(has_rate);
    let has_each = summary.cells.iter().any(|cell| cell.metrics.contains_key(CONNECTION_MEMORY));
    let is_needed = |column: &&Column| match column.name {
        "throughput_out_per_s" => !are_paced,
        "target_memory_bytes.max" => !has_each,
        _ => true,
    };
    let is_known = |column: &&Column| {
        let plain = Style::plain(0);
        summary.cells.iter().any(|cell| column.show(cell, plain) != ABSENT)
    };
    columns(summary).filter(|own| own.is_key).filter(is_needed).filter(is_known).collect()
}

const COLUMNS: &[Column] = &[
    key("protocol, target", Part::All, |cell, _, _| row_name(cell)),
    key("response_time_ns.p50", Part::Time, latency),
    key("response_time_ns.p99", Part::Time, latency),
    column("response_time_ns.max", Part::Time, latency),
    column("throughput_in_per_s", Part::Rate, rate),
    key("throughput_out_per_s", Part::Rate, rate),
    column("send_lag_ns.p99", Part::Rate, send_lag),
    column("scheduled", Part::Ledger, |cell, _, _| count(cell.ledger.scheduled)),
    column("delivered", Part::Ledger, |cell, _, _| known(cell.ledger.delivered)),
    key(LATE, Part::Ledger, |cell, _, _| count(cell.ledger.late)),
    key("lost", Part::Ledger, |cell, _, style| lost_of(cell, style)),
    column("dup", Part::Ledger, |cell, _, _| count(cell.ledger.duplicates)),
    column("target_cpu_percent.mean", Part::Cost, rate),
    key("target_cpu_us_per_message", Part::Cost, rate),
    key("target_memory_bytes.max", Part::Cost, |cell, name, _| plain(cell, name, bytes)),
    key(CONNECTION_MEMORY, Part::Cost, memory_each),
    column("generator_cpu_percent.max", Part::Cost, whole),
    key("delivery_time_ns.p50", Part::Polls, delivery),
    key("delivery_time_ns.p99", Part::Polls, delivery),
    column("poll_wait_time_ns.mean", Part::Polls, poll_wait),
    column("poll_round_trip_time_ns.mean", Part::Polls, part),
    column("handling_time_ns.mean", Part::Polls, part),
    column("polls", Part::Polls, rate),
    column("empty_polls", Part::Polls, rate),
    column("messages_per_poll", Part::Polls, rate),
    key(WIRE_BYTES, Part::Wire, wire_bytes),
    column("wire.transport.bytes_per_message", Part::Wire, rate),
    column("wire.application.bytes_per_message", Part::Wire, rate),
    column("wire.bytes_per_session", Part::Wire, rate),
    column("wire.phases.set_up.bytes_per_session", Part::Wire, rate),
    column("wire.phases.tear_down.bytes_per_session", Part::Wire, rate),
    column("wire.retransmitted_packets", Part::Wire, whole),
    key("energy_j_per_message", Part::Energy, rate),
    column("energy_above_idle_j_per_message", Part::Energy, rate),
    column("energy_j_per_session", Part::Energy, rate),
    column("energy_mah_per_session", Part::Energy, rate),
];

fn row_name(cell: &Cell) -> String {
    let name = cell.name.strip_suffix(" on reference").unwrap_or(&cell.name);
    let mark = if cell.valid { " " } else { INVALID_MARK };
    format!("{mark}{name}")
}

/// Response time, or delivery time marked by a `d` if nothing is confirmed.
fn latency(cell: &Cell, response: &str, style: Style) -> String {
    if cell.metrics.contains_key(response) {
        return since_due(cell, response, "", style);
    }
    since_due(cell, &response.replace("response", "delivery"), DELIVERY_MARK, style)
}

/// A time from the due time with its mark; marked by an `l` if a part of it is the generator's
/// lateness. If that part is too large, the time from sending replaces it: a service time marked by
/// an `s`, a one-way time by an `o`.
fn since_due(cell: &Cell, name: &str, mark: &str, style: Style) -> String {
    if !is_withheld(cell, name) {
        let lag = Lateness::of(cell, name).said_ns();
        let value = cell.metrics.get(name).and_then(|metric| metric.value);
        return match value.filter(|_| lag > 0.0) {
            Some(_) if style.is_markdown => {
                let lag = time(lag, style.is_ascii);
                format!("{} (up to {lag} is generator lag){mark}", part(cell, name, style))
            }
            Some(_) => part(cell, name, style) + mark + LAG_MARK,
            None if cell.metrics.contains_key(name) => part(cell, name, style) + mark,
            None => ABSENT.to_owned(),
        };
    }
    let from_sent = instead(name).filter(|other| cell.metrics.contains_key(other));
    let mark = if name.starts_with("response") { SERVICE_MARK } else { ONE_WAY_MARK };
    from_sent.map_or(ABSENT.to_owned(), |other| part(cell, &other, style) + mark)
}

/// Times from the due time that the table shows of `cell`.
fn shown_times(cell: &Cell) -> impl Iterator<Item = String> {
    let first = if shows_delivery_time(cell) { "delivery_time_ns" } else { "response_time_ns" };
    let columns = ["p50", "p99", "max"].map(|part| format!("{first}.{part}"));
    let polled = ["p50", "p99"].map(|part| format!("delivery_time_ns.{part}"));
    let polled = polled.into_iter().filter(move |_| polls(cell) && first.starts_with("response"));
    columns.into_iter().chain(polled)
}

/// The figures of `cell` in the table with a share of generator lag, in words: `up to 46.0 µs of
/// p50: the true p50 is between 214 and 260 µs`.
pub(crate) fn lag_shares(cell: &Cell, is_ascii: bool) -> Vec<String> {
    let words = |name: String| {
        let lag = Lateness::of(cell, &name).said_ns();
        let value = value(cell, &name).filter(|_| lag > 0.0 && !is_withheld(cell, &name))?;
        let (_, part) = name.split_once('.')?;
        Some(time_with_lag(part, value, lag, is_ascii))
    };
    shown_times(cell).filter_map(words).collect()
}

/// True if `cell` shows a delivery time instead of a response time.
fn shows_delivery_time(cell: &Cell) -> bool {
    let has = |name: &str| cell.metrics.keys().any(|key| key.starts_with(name));
    has("delivery_time_ns.") && !has("response_time_ns.")
}

/// Delivery time, whatever other times the cell has.
fn delivery(cell: &Cell, name: &str, style: Style) -> String {
    since_due(cell, name, "", style)
}

/// The first part of a delivery time; none if the whole is not reported.
fn poll_wait(cell: &Cell, name: &str, style: Style) -> String {
    match is_withheld(cell, "delivery_time_ns.mean") {
        true => ABSENT.to_owned(),
        false => part(cell, name, style),
    }
}

/// A time, or the sign for an infinite or a missing one. The maximum has an interval in
/// summary.json; here it would take too much space.
pub(crate) fn part(cell: &Cell, name: &str, style: Style) -> String {
    match cell.metrics.get(name) {
        Some(Metric { value: None, .. }) if style.is_ascii => "inf".to_owned(),
        Some(Metric { value: None, .. }) => INFINITE.to_owned(),
        Some(metric) => {
            let ends = ends(metric).filter(|_| !name.ends_with(".max"));
            metric
                .value
                .map_or(ABSENT.into(), |v| time_in(v, ends, style.is_ascii, interval_of(style)))
        }
        None => ABSENT.to_owned(),
    }
}

fn send_lag(cell: &Cell, name: &str, style: Style) -> String {
    plain(cell, name, |lag| time(lag, style.is_ascii))
}

/// How a table shows an interval: that of key columns by its longer side.
fn interval_of(style: Style) -> fn(f64, Option<(f64, f64)>) -> String {
    if style.extent == Extent::Key { between_longer } else { between_short }
}

fn rate(cell: &Cell, name: &str, style: Style) -> String {
    let metric = cell.metrics.get(name);
    let between = interval_of(style);
    let figure = metric.and_then(|metric| Some(between(metric.value?, ends(metric))));
    figure.unwrap_or_else(|| ABSENT.to_owned())
}

/// Bytes of a message; among the key columns without their interval, which is narrow.
fn wire_bytes(cell: &Cell, name: &str, style: Style) -> String {
    if style.extent == Extent::Key { whole(cell, name, style) } else { rate(cell, name, style) }
}

/// The largest loss rate that the cells without losses leave open, as `≤ 0.05 %`, and the
/// fewest messages of one of them; `None` if each lost some.
pub(crate) fn loss_bound(summary: &Summary, style: Style) -> Option<(String, u64)> {
    let none = summary.cells.iter().filter(|cell| cell.ledger.lost == Some(0));
    let fewest = none.map(|cell| cell.ledger.sent).filter(|sent| *sent > 0).min()?;
    Some((loss_share_max(fewest, style.is_ascii), fewest))
}

/// Memory of a connection; 0 if the server's did not grow measurably.
fn memory_each(cell: &Cell, name: &str, _: Style) -> String {
    plain(cell, name, |each| bytes(each.max(0.0)))
}

/// A mean over the repetitions without its interval.
fn whole(cell: &Cell, name: &str, _: Style) -> String {
    plain(cell, name, three_digits)
}

fn plain(cell: &Cell, name: &str, show: impl Fn(f64) -> String) -> String {
    value(cell, name).map_or(ABSENT.to_owned(), show)
}

pub(crate) fn value(cell: &Cell, name: &str) -> Option<f64> {
    cell.metrics.get(name)?.value
}

fn known(number: Option<u64>) -> String {
    number.map_or("unknown".to_owned(), count)
}

fn lost_of(cell: &Cell, style: Style) -> String {
    let number = cell.ledger.lost;
    // A line below the table has the bound of all cases without losses.
    if style.extent == Extent::Key {
        return known(number);
    }
    number.map_or("unknown".into(), |number| lost(number, cell.ledger.sent, style.is_ascii))
}

/// The column of messages that arrived after the timeout: only if there are any.
const LATE: &str = "late";

/// Files with everything that does not fit into the terminal.
pub(crate) const ELSEWHERE: &str = "report.html, cells.csv and summary.json have them";

const CONNECTION_MEMORY: &str = "target_memory_bytes_per_connection";

const WIRE_BYTES: &str = "wire.bytes_per_message";

pub(crate) const DELIVERY_MARK: &str = " d";

pub(crate) const SERVICE_MARK: &str = " s";

pub(crate) const ONE_WAY_MARK: &str = " o";

/// Sign after a time of which a part is the generator's lateness.
pub(crate) const LAG_MARK: &str = " l";

/// Sign before the name of a cell that must not be used.
pub(crate) const INVALID_MARK: &str = "!";

const ABSENT: &str = "–";

const INFINITE: &str = "∞";
