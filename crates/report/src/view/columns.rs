//! The columns of the overview: every cell in a row, with one string for each column.

use weigh_model::Guarantee;

use super::late;
use crate::figures::{
    between, bytes, count, lost, three_digits, time, time_between, time_with_lag,
};
use crate::summary::cell::is_reference;
use crate::summary::comparisons::polls;
use crate::summary::lateness::{Lateness, instead, is_withheld};
use crate::summary::metric::ends;
use crate::summary::{Cell, Metric, Summary};
use crate::terminal::Style;

/// A row of the table, for other ways to draw it.
pub(crate) enum Row<'a> {
    /// The title of the group that follows.
    Title(String),
    /// A cell and its figures, one for every heading.
    Figures(&'a Cell, Vec<String>),
}

/// The headings of all columns.
pub(crate) fn headings(summary: &Summary) -> impl Iterator<Item = String> {
    columns(summary).map(|column| column.heading.replace('\n', " "))
}

/// All rows with all columns.
pub(crate) fn rows(summary: &Summary) -> Vec<Row<'_>> {
    let figures = |cell: &Cell| -> Vec<String> {
        columns(summary).map(|column| (column.show)(cell, Style::markdown())).collect()
    };
    let mut rows = Vec::new();
    for (guarantee, is_reference, cells) in groups(summary) {
        rows.push(Row::Title(title(guarantee, is_reference)));
        rows.extend(cells.into_iter().map(|cell| Row::Figures(cell, figures(cell))));
    }
    rows
}

/// The title of a group.
pub(crate) fn title(guarantee: Guarantee, is_reference: bool) -> String {
    format!("{guarantee}, {}", if is_reference { "reference" } else { "real" })
}

pub(crate) fn groups(summary: &Summary) -> Vec<(Guarantee, bool, Vec<&Cell>)> {
    let guarantees = [Guarantee::AtMostOnce, Guarantee::AtLeastOnce, Guarantee::ExactlyOnce];
    let kinds =
        guarantees.into_iter().flat_map(|guarantee| [(guarantee, true), (guarantee, false)]);
    kinds
        .map(|(guarantee, reference)| {
            let belongs =
                |cell: &&Cell| cell.guarantee == guarantee && is_reference(cell) == reference;
            (guarantee, reference, summary.cells.iter().filter(belongs).collect::<Vec<_>>())
        })
        .filter(|(_, _, cells)| !cells.is_empty())
        .collect()
}

/// In which part a column stands when the table is drawn in parts.
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

pub(crate) struct Column {
    pub(crate) heading: &'static str,
    pub(crate) part: Part,
    pub(crate) show: fn(&Cell, Style) -> String,
}

/// The columns that this run has something for: those of the wire stand only where it was listened
/// on, those of consumers that ask where some do, those of energy only where it was measured so.
pub(crate) fn columns(summary: &Summary) -> impl Iterator<Item = &'static Column> {
    let has = |metric: &str| summary.cells.iter().any(|cell| cell.metrics.contains_key(metric));
    let (is_heard, is_asked) = (has(WIRE_BYTES), summary.cells.iter().any(polls));
    let energy = ENERGY_COLUMNS.iter().filter(move |(metric, _)| has(metric));
    let wire = WIRE_COLUMNS.iter().filter(move |_| is_heard);
    let polls = POLL_COLUMNS.iter().filter(move |_| is_asked);
    let is_late = late::is_any(summary);
    let columns = COLUMNS.iter().filter(move |column| is_late || column.heading != LATE);
    columns.chain(polls).chain(wire).chain(energy.map(|(_, column)| column))
}

/// By the metric that they show.
const ENERGY_COLUMNS: &[(&str, Column)] = &[
    (
        MESSAGE_J,
        Column { heading: "measured\nJ/msg", part: Part::Energy, show: |c, _| rate(c, MESSAGE_J) },
    ),
    (
        ABOVE_IDLE_J,
        Column {
            heading: "above idle\nJ/msg",
            part: Part::Energy,
            show: |c, _| rate(c, ABOVE_IDLE_J),
        },
    ),
    (
        SESSION_J,
        Column {
            heading: "measured\nJ/session",
            part: Part::Energy,
            show: |c, _| rate(c, SESSION_J),
        },
    ),
    (
        SESSION_MAH,
        Column {
            heading: "measured\nmAh/session",
            part: Part::Energy,
            show: |c, _| rate(c, SESSION_MAH),
        },
    ),
];

const POLL_COLUMNS: &[Column] = &[
    Column { heading: "delivery\np50", part: Part::Polls, show: |c, s| delivery(c, "p50", s) },
    Column { heading: "delivery\np99", part: Part::Polls, show: |c, s| delivery(c, "p99", s) },
    Column { heading: "poll wait\nmean", part: Part::Polls, show: poll_wait },
    Column { heading: "poll trip\nmean", part: Part::Polls, show: |c, s| part(c, POLL_TRIP, s) },
    Column { heading: "handling\nmean", part: Part::Polls, show: |c, s| part(c, HANDLING, s) },
    Column { heading: "polls", part: Part::Polls, show: |c, _| rate(c, "polls") },
    Column { heading: "empty\npolls", part: Part::Polls, show: |c, _| rate(c, "empty_polls") },
    Column { heading: "messages\nper poll", part: Part::Polls, show: |c, _| rate(c, PER_POLL) },
];

const WIRE_COLUMNS: &[Column] = &[
    Column { heading: "wire\nB/msg", part: Part::Wire, show: |c, _| rate(c, WIRE_BYTES) },
    Column { heading: "TCP\nB/msg", part: Part::Wire, show: |c, _| rate(c, TRANSPORT_BYTES) },
    Column { heading: "content\nB/msg", part: Part::Wire, show: |c, _| rate(c, CONTENT_BYTES) },
    Column { heading: "wire\nB/session", part: Part::Wire, show: |c, _| rate(c, SESSION_BYTES) },
    Column { heading: "set-up\nB/session", part: Part::Wire, show: |c, _| rate(c, SET_UP_BYTES) },
    Column {
        heading: "tear-down\nB/session",
        part: Part::Wire,
        show: |c, _| rate(c, TEAR_DOWN_BYTES),
    },
    Column { heading: "packets\nagain", part: Part::Wire, show: |c, _| again(c) },
];

const COLUMNS: &[Column] = &[
    Column { heading: "protocol, target", part: Part::All, show: |cell, _| row_name(cell) },
    Column { heading: "response\np50", part: Part::Time, show: |c, s| latency(c, "p50", s) },
    Column { heading: "response\np99", part: Part::Time, show: |c, s| latency(c, "p99", s) },
    Column { heading: "response\nmax", part: Part::Time, show: |c, s| latency(c, "max", s) },
    Column { heading: "in/s", part: Part::Rate, show: |c, _| rate(c, "throughput_in_per_s") },
    Column { heading: "out/s", part: Part::Rate, show: |c, _| rate(c, "throughput_out_per_s") },
    Column { heading: "send lag\np99", part: Part::Rate, show: send_lag },
    Column { heading: "scheduled", part: Part::Ledger, show: |c, _| count(c.ledger.scheduled) },
    Column { heading: "delivered", part: Part::Ledger, show: |c, _| known(c.ledger.delivered) },
    Column { heading: LATE, part: Part::Ledger, show: |c, _| count(c.ledger.late) },
    Column { heading: "lost", part: Part::Ledger, show: lost_of },
    Column { heading: "dup", part: Part::Ledger, show: |c, _| count(c.ledger.duplicates) },
    Column { heading: "target\nCPU %", part: Part::Cost, show: |c, _| rate(c, CPU_PERCENT) },
    Column { heading: "target\nµs/msg", part: Part::Cost, show: |c, _| rate(c, CPU_US) },
    Column { heading: "target\nmemory", part: Part::Cost, show: |c, _| memory(c) },
    Column { heading: "gen.\nCPU %", part: Part::Cost, show: |c, _| busiest(c) },
];

fn row_name(cell: &Cell) -> String {
    let name = cell.name.strip_suffix(" on reference").unwrap_or(&cell.name);
    let mark = if cell.valid { " " } else { INVALID_MARK };
    format!("{mark}{name}")
}

/// Response time, or delivery time marked by a `d` where nothing is confirmed.
fn latency(cell: &Cell, statistic: &str, style: Style) -> String {
    let response = format!("response_time_ns.{statistic}");
    if cell.metrics.contains_key(&response) {
        return since_due(cell, &response, "", style);
    }
    since_due(cell, &format!("delivery_time_ns.{statistic}"), DELIVERY_MARK, style)
}

/// A time from the due time with its mark; marked by an `l` where a part of it is the generator's
/// lateness. Where that is too large a part the same from sending stands in its place: a service
/// time marked by an `s`, a one-way time by an `o`.
fn since_due(cell: &Cell, name: &str, mark: &str, style: Style) -> String {
    if !is_withheld(cell, name) {
        let lag = Lateness::of(cell, name).said_ns();
        let value = cell.metrics.get(name).and_then(|metric| metric.value);
        return match value.filter(|_| lag > 0.0) {
            Some(value) if style.is_markdown => time_with_lag(value, lag, false) + mark,
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

/// The figures that the table shows of `cell` with a share of generator lag, in words: `p50 214 to
/// 260 µs, up to 46 µs generator lag`.
pub(crate) fn lag_shares(cell: &Cell, is_ascii: bool) -> Vec<String> {
    let words = |name: String| {
        let lag = Lateness::of(cell, &name).said_ns();
        let value = value(cell, &name).filter(|_| lag > 0.0 && !is_withheld(cell, &name))?;
        let (_, part) = name.split_once('.')?;
        Some(format!("{part} {}", time_with_lag(value, lag, is_ascii)))
    };
    shown_times(cell).filter_map(words).collect()
}

/// True if `cell` shows a service time where others show a response time.
pub(crate) fn shows_service_time(cell: &Cell) -> bool {
    shown_times(cell).any(|name| name.starts_with("response") && is_withheld(cell, &name))
}

/// True if `cell` shows a delivery time where others show a response time.
pub(crate) fn shows_delivery_time(cell: &Cell) -> bool {
    let has = |name: &str| cell.metrics.keys().any(|key| key.starts_with(name));
    has("delivery_time_ns.") && !has("response_time_ns.")
}

/// Delivery time, whatever else the cell has.
fn delivery(cell: &Cell, statistic: &str, style: Style) -> String {
    since_due(cell, &format!("delivery_time_ns.{statistic}"), "", style)
}

/// True if `cell` shows a one-way time where others show a delivery time.
pub(crate) fn shows_one_way_time(cell: &Cell) -> bool {
    shown_times(cell).any(|name| name.starts_with("delivery") && is_withheld(cell, &name))
}

/// The first part of a delivery time; none where the whole is withheld.
fn poll_wait(cell: &Cell, style: Style) -> String {
    match is_withheld(cell, "delivery_time_ns.mean") {
        true => ABSENT.to_owned(),
        false => part(cell, POLL_WAIT, style),
    }
}

/// A time, or what stands for one that is infinite or was not measured. The maximum of so many
/// messages has an interval in summary.json; here it would only crowd out the others.
pub(crate) fn part(cell: &Cell, name: &str, style: Style) -> String {
    match cell.metrics.get(name) {
        Some(Metric { value: None, .. }) if style.is_ascii => "inf".to_owned(),
        Some(Metric { value: None, .. }) => INFINITE.to_owned(),
        Some(metric) => {
            let ends = ends(metric).filter(|_| !name.ends_with(".max"));
            metric.value.map_or(ABSENT.into(), |v| time_between(v, ends, style.is_ascii))
        }
        None => ABSENT.to_owned(),
    }
}

fn send_lag(cell: &Cell, style: Style) -> String {
    value(cell, "send_lag_ns.p99").map_or(ABSENT.into(), |lag| time(lag, style.is_ascii))
}

fn rate(cell: &Cell, name: &str) -> String {
    let metric = cell.metrics.get(name);
    let figure = metric.and_then(|metric| Some(between(metric.value?, ends(metric))));
    figure.unwrap_or_else(|| ABSENT.to_owned())
}

fn busiest(cell: &Cell) -> String {
    value(cell, GENERATOR_PERCENT).map_or(ABSENT.to_owned(), three_digits)
}

/// Retransmissions of a repetition on average.
fn again(cell: &Cell) -> String {
    value(cell, AGAIN_PACKETS).map_or(ABSENT.to_owned(), three_digits)
}

fn memory(cell: &Cell) -> String {
    value(cell, "target_memory_bytes.max").map_or(ABSENT.to_owned(), bytes)
}

pub(crate) fn value(cell: &Cell, name: &str) -> Option<f64> {
    cell.metrics.get(name)?.value
}

fn known(number: Option<u64>) -> String {
    number.map_or("unknown".to_owned(), count)
}

fn lost_of(cell: &Cell, style: Style) -> String {
    let number = cell.ledger.lost;
    number.map_or("unknown".into(), |number| lost(number, cell.ledger.sent, style.is_ascii))
}

/// The column of what came after the timeout: only where there is any.
const LATE: &str = "late";

/// Where everything stands that the terminal has no room for.
pub(crate) const ELSEWHERE: &str = "report.html, cells.csv and summary.json have them";

const MESSAGE_J: &str = "energy_j_per_message";

const ABOVE_IDLE_J: &str = "energy_above_idle_j_per_message";

const SESSION_J: &str = "energy_j_per_session";

const SESSION_MAH: &str = "energy_mah_per_session";

const WIRE_BYTES: &str = "wire.bytes_per_message";

const TRANSPORT_BYTES: &str = "wire.transport.bytes_per_message";

const CONTENT_BYTES: &str = "wire.application.bytes_per_message";

const SESSION_BYTES: &str = "wire.bytes_per_session";

const SET_UP_BYTES: &str = "wire.phases.set_up.bytes_per_session";

const TEAR_DOWN_BYTES: &str = "wire.phases.tear_down.bytes_per_session";

const AGAIN_PACKETS: &str = "wire.retransmitted_packets";

const POLL_WAIT: &str = "poll_wait_time_ns.mean";

const POLL_TRIP: &str = "poll_round_trip_time_ns.mean";

const HANDLING: &str = "handling_time_ns.mean";

const PER_POLL: &str = "messages_per_poll";

const CPU_PERCENT: &str = "target_cpu_percent.mean";

const CPU_US: &str = "target_cpu_us_per_message";

const GENERATOR_PERCENT: &str = "generator_cpu_percent.max";

const DELIVERY_MARK: &str = " d";

const SERVICE_MARK: &str = " s";

const ONE_WAY_MARK: &str = " o";

/// Stands behind a time of which a part is the generator's lateness.
pub(crate) const LAG_MARK: &str = " l";

/// Stands before the name of a cell that must not be used.
pub(crate) const INVALID_MARK: &str = "!";

const ABSENT: &str = "–";

const INFINITE: &str = "∞";
