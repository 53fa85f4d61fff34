//! Notes below the table: losses, warnings and what to do about them, failed trials, and the
//! meaning of the signs.

use weigh_model::Rule;
use weigh_model::warnings::{Severity, WarningRecord};

use super::legend;
use crate::figures::{count, share};
use crate::summary::cell_name::point_name;
use crate::summary::headlines::HEADLINES;
use crate::summary::{Answer, Cell, Failure, NOT_TRIED, Summary, wire_bytes};
use crate::terminal::{Extent, RED, RESET, Style, wrap};
use crate::view::columns::{ELSEWHERE, lag_shares};
use crate::view::ranges::joined;
use crate::view::thresholds::sentences;
use crate::view::{
    energy, fleet, interference, late, radio, refusals, signs, stalled, too_early, verdicts,
};

/// All notes under a table, each block after an empty line; empty blocks are left out. Signs are
/// explained where `table` has them.
pub(crate) fn below(table: &str, summary: &Summary, style: Style) -> String {
    let (not_compared, warnings) =
        (titled("not compared", capped(refusals::lines(summary), REASONS_MAX)), warnings(summary));
    let rules = rules(not_compared.iter().chain(&warnings));
    let blocks = [
        legend(table, summary, style),
        hosts(summary, style),
        scenes(summary, style),
        energy::notes(summary, table.contains('±')),
        losses(summary, style.is_ascii),
        stalled(summary, style),
        backgrounds(summary, style),
        differences(summary),
        not_compared,
        thresholds(summary, style),
        standing_apart(summary),
        warnings,
        rules,
        failures(summary),
        outcome(summary),
    ];
    let mut text = String::new();
    for block in blocks.iter().filter(|block| !block.is_empty()) {
        text.push('\n');
        for line in block {
            text.push_str(&paint(&wrap(line, style), style));
        }
    }
    text
}

/// Thresholds in colour: those that hold green, those that fail red.
fn paint(text: &str, style: Style) -> String {
    let start = text.trim_start();
    let colour = match () {
        () if !style.has_colour => return text.to_owned(),
        () if start.starts_with(TICK) || start.starts_with("ok ") => GREEN,
        () if start.starts_with(CROSS) || start.starts_with("FAILED ") => RED,
        () => return text.to_owned(),
    };
    format!("{colour}{}{RESET}\n", text.trim_end_matches('\n'))
}

fn legend(table: &str, summary: &Summary, style: Style) -> Vec<String> {
    let cells = &summary.cells;
    let mut lines = legend::of(table, style);
    if legend::has_lag(table) {
        lines.extend(lateness(cells, style));
    }
    if cells.iter().any(|cell| cell.repetitions > 1) {
        lines.push(
            "times and rates: means of the repetitions; numbers of messages: sums".to_owned(),
        );
    }
    lines
}

/// The hosts that generated the load, if a fleet did.
fn hosts(summary: &Summary, style: Style) -> Vec<String> {
    let Some(title) = fleet::title(summary, style.is_ascii) else { return Vec::new() };
    let mut lines = capped(fleet::lines(summary, style.is_ascii), LINES_MAX);
    lines.extend(capped(fleet::bounds(summary, style.is_ascii), LINES_MAX));
    titled(&title, lines)
}

/// Figures with a part that is the generator's own lateness, cell by cell.
fn lateness(cells: &[Cell], style: Style) -> Vec<String> {
    let words = |cell: &Cell| {
        let shares = lag_shares(cell, style.is_ascii);
        (!shares.is_empty()).then(|| format!("{}: {}", cell.name, shares.join("; ")))
    };
    let lines: Vec<String> = cells.iter().filter_map(words).collect();
    titled(signs::LATE, capped(lines, LATE_MAX))
}

/// Paths and the state of captures: figures of a wire depend on them.
fn scenes(summary: &Summary, style: Style) -> Vec<String> {
    let line = |(text, cells): (String, Vec<&str>)| match cells.len() {
        0 => text,
        _ => format!("[{}] {text}", cells.join(", ")),
    };
    let mut lines: Vec<String> = wire_bytes::scenes(summary).into_iter().map(line).collect();
    let has = |cell: &Cell| cell.metrics.contains_key("wire.bytes_per_message");
    if summary.cells.iter().any(has) {
        // The key columns have only the first of these figures.
        let shown = if style.extent == Extent::Key { 1 } else { WIRE_WORDS.len() };
        lines.extend(WIRE_WORDS[..shown].iter().map(|text| (*text).to_owned()));
    }
    lines.extend(radio::lines(summary));
    lines.extend(too_early::lines(summary));
    lines
}

/// One line for every cell that lost or did not send messages.
fn losses(summary: &Summary, is_ascii: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for cell in &summary.cells {
        let ledger = &cell.ledger;
        if let (Some(delivered), Some(lost @ 1..)) = (ledger.delivered, ledger.lost) {
            lines.push(format!(
                "{}: {} lost of {} sent ({} delivered in time): {}",
                cell.name,
                count(lost),
                count(ledger.sent),
                share(delivered, ledger.sent),
                by_cause(ledger.causes.iter().map(|(own, number)| (own.words(), *number)))
            ));
            if !ledger.last_seen.is_empty() {
                let seen = by_cause(
                    ledger.last_seen.iter().map(|(own, number)| (own.replace('_', " "), *number)),
                );
                lines.push(format!("{}: the missing ones were seen last at: {seen}", cell.name));
            }
        }
        if ledger.not_sent > 0 {
            lines.push(format!(
                "{}: {} of {} scheduled were never sent: {}",
                cell.name,
                count(ledger.not_sent),
                count(ledger.scheduled),
                by_cause(ledger.not_sent_causes.iter().map(|(own, number)| (own.words(), *number)))
            ));
        }
        let late = late::sentence(cell, is_ascii);
        lines.extend(late.map(|text| format!("{}: {text}", cell.name)));
        for (number, what) in [
            (ledger.reordered, "reordered"),
            (ledger.corrupt, "corrupt"),
            (ledger.foreign, "foreign (without a Weighbridge mark)"),
            (ledger.acked_not_delivered, "confirmed by the server and never delivered"),
            (ledger.no_subscriber, "reported by the server as having no subscriber"),
        ] {
            if number > 0 {
                lines.push(format!("{}: {} {what}", cell.name, count(number)));
            }
        }
    }
    titled("messages", capped(lines, LINES_MAX))
}

/// What brokers did with messages that they had confirmed.
fn stalled(summary: &Summary, style: Style) -> Vec<String> {
    titled(stalled::TITLE, capped(stalled::lines(summary, style.is_ascii), LINES_MAX))
}

/// Numbers above 0 with what they count, the largest first.
fn by_cause(numbers: impl Iterator<Item = (String, u64)>) -> String {
    let mut parts: Vec<(String, u64)> = numbers.filter(|(_, number)| *number > 0).collect();
    parts.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
    let texts = parts.iter().map(|(name, number)| format!("{} {name}", count(*number)));
    texts.collect::<Vec<_>>().join(", ")
}

/// Effects of backgrounds on cases.
fn backgrounds(summary: &Summary, style: Style) -> Vec<String> {
    let mut lines = Vec::new();
    for (heading, sentences) in interference::blocks(summary, style.is_ascii) {
        lines.push(heading);
        lines.extend(sentences.into_iter().map(|sentence| format!("  {sentence}")));
    }
    let interval =
        if lines.iter().any(|own| own.contains('±')) { ", ± the interval at 95 %" } else { "" };
    let title = "with a background, minus the baseline without it (pairs of repetitions in turn";
    titled(&format!("{title}{interval})"), lines)
}

/// The verdicts in words.
fn differences(summary: &Summary) -> Vec<String> {
    let lines = verdicts::lines(summary);
    if lines.is_empty() {
        return lines;
    }
    let interval = match lines.iter().any(|own| own.contains('±')) {
        true => ", ± its 95 % interval over repetitions",
        false => "",
    };
    let mut block =
        vec![format!("compared by the ratio of the first mean to the second{interval}:")];
    block.extend(lines);
    block
}

/// The thresholds of the plan: a tick, a cross or a question mark, the condition, and the figures.
fn thresholds(summary: &Summary, style: Style) -> Vec<String> {
    let line = |(answer, text): (Answer, String)| {
        let mark = match (answer, style.is_ascii) {
            (Answer::Holds, false) => TICK,
            (Answer::Failed, false) => CROSS,
            (Answer::Undecided, false) => "?",
            (Answer::Holds, true) => "ok",
            (Answer::Failed, true) => "FAILED",
            (Answer::Undecided, true) => "UNDECIDED",
        };
        format!("{mark} {text}")
    };
    let lines = sentences(summary, style.is_ascii).into_iter().map(line).collect();
    titled("thresholds", lines)
}

/// Repetitions that are outliers in a headline metric. They are part of every figure.
fn standing_apart(summary: &Summary) -> Vec<String> {
    let mut lines = Vec::new();
    for cell in &summary.cells {
        for (name, metric) in HEADLINES.iter().filter_map(|n| Some((n, cell.metrics.get(*n)?))) {
            if !metric.outliers.is_empty() {
                let numbers: Vec<String> =
                    metric.outliers.iter().map(|number| (number + 1).to_string()).collect();
                lines.push(format!("{name} of {}: repetition {}", cell.name, numbers.join(", ")));
            }
        }
    }
    let title = "outliers among repetitions (included in every figure; find the cause)";
    // Of ten normal values one is an outlier in one set of ten: long lists are not informative.
    titled(title, capped(lines, APART_MAX))
}

/// At most this number of lines, the others counted.
fn capped(mut lines: Vec<String>, most: usize) -> Vec<String> {
    let rest = lines.len().saturating_sub(most);
    if rest > 0 {
        lines.truncate(most);
        lines.push(format!("{rest} more: {ELSEWHERE}"));
    }
    lines
}

/// Every warning once, with its cells; those that make results invalid first. One code with
/// different figures in several cells is one line, as on the page.
fn warnings(summary: &Summary) -> Vec<String> {
    let mut seen: Vec<Alike> = Vec::new();
    for cell in &summary.cells {
        for warning in &cell.warnings {
            match seen.iter_mut().find(|known| known.is_like(warning)) {
                Some(known) => known.add(warning, &cell.name),
                None => seen.push(Alike { warning, texts: Vec::new(), cells: vec![&cell.name] }),
            }
        }
    }
    seen.sort_by_key(|alike| match alike.warning.severity {
        Severity::Invalid => 0,
        Severity::InvalidTimes => 1,
        Severity::Warning => 2,
    });
    let lines = seen.iter().map(|alike| alike.line(summary.cells.len())).collect();
    titled("warnings", capped(lines, LINES_MAX))
}

/// The place of the rules that these lines name, such as `L13`.
fn rules<'l>(lines: impl Iterator<Item = &'l String>) -> Vec<String> {
    let is_rule =
        |word: &str| word.len() == 3 && word.starts_with('L') && word.parse::<Rule>().is_ok();
    let mut words = lines.flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric()));
    match words.any(is_rule) {
        true => vec![format!("L01 to L21: rules of sound measurement, in {RULES}")],
        false => Vec::new(),
    }
}

/// Warnings with the same advice.
struct Alike<'a> {
    /// The first of them, whose text represents all.
    warning: &'a WarningRecord,
    /// The texts of the others.
    texts: Vec<&'a str>,
    /// Their cells.
    cells: Vec<&'a str>,
}

impl<'a> Alike<'a> {
    fn is_like(&self, warning: &WarningRecord) -> bool {
        let key = |warning: &WarningRecord| {
            (warning.code.clone(), warning.severity, warning.advice.clone())
        };
        key(self.warning) == key(warning)
    }

    fn add(&mut self, warning: &'a WarningRecord, cell: &'a str) {
        self.texts.push(&warning.text);
        if !self.cells.contains(&cell) {
            self.cells.push(cell);
        }
    }

    fn line(&self, cells: usize) -> String {
        let about = match self.cells.len() {
            all if all == cells => "all cases".to_owned(),
            many if many > NAMES_MAX => format!("{many} of {cells} cases"),
            _ => self.cells.join("; "),
        };
        let WarningRecord { code, severity, text, advice, .. } = self.warning;
        let texts: Vec<&str> = std::iter::once(&**text).chain(self.texts.iter().copied()).collect();
        let text = joined(&texts, "report.html has each");
        format!("{}{code} [{about}]: {text}; {advice}", severity.prefix())
    }
}

fn failures(summary: &Summary) -> Vec<String> {
    // A fix has a line of its own on stderr; here a failure is one line, and so is a case with one
    // error in all repetitions.
    let mut seen: Vec<(String, usize)> = Vec::new();
    for Failure { point, error, .. } in &summary.failures {
        let error = error.strip_prefix(NOT_TRIED).unwrap_or(error).replace("\nhelp: ", "; ");
        let line = format!("{}: {error}", point_name(point));
        match seen.iter_mut().find(|(known, _)| *known == line) {
            Some((_, number)) => *number += 1,
            None => seen.push((line, 1)),
        }
    }
    let lines = seen.into_iter().map(|(line, number)| match number {
        1 => line,
        _ => format!("{line} ({number} repetitions)"),
    });
    titled("not done", capped(lines.collect(), LINES_MAX))
}

/// How a search ended; after other runs the answer says it.
fn outcome(summary: &Summary) -> Vec<String> {
    match summary.run.outcome.as_str() {
        _ if summary.limits.is_empty() => Vec::new(),
        "done" => Vec::new(),
        outcome => vec![format!("the run is {outcome}: these are its results so far")],
    }
}

fn titled(title: &str, lines: Vec<String>) -> Vec<String> {
    if lines.is_empty() {
        return lines;
    }
    let mut block = vec![format!("{title}:")];
    block.extend(lines.into_iter().map(|line| format!("  {line}")));
    block
}

/// Headings of figures of the wire.
const WIRE_WORDS: [&str; 4] = [
    "wire: all bytes at the clients' interfaces in both directions, with Ethernet headers and with \
     connecting and closing, divided by the messages",
    "content: bodies and what the protocol adds to them, without TCP, TLS and below",
    "session: one connection",
    "packets again: retransmissions per repetition",
];

const TICK: &str = "✓";

const CROSS: &str = "✗";

const GREEN: &str = "\x1b[32m";

/// Lines of one block, and names in a line.
const LINES_MAX: usize = 24;

const APART_MAX: usize = 6;

const REASONS_MAX: usize = 6;

const LATE_MAX: usize = 8;

/// The page that explains the rules.
const RULES: &str = "docs/methodology.md, section 6";

const NAMES_MAX: usize = 4;
