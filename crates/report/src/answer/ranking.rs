//! Who is lowest in a figure: server CPU, bytes and time, one line each.

use weigh_model::Guarantee;

use super::contests::{Contest, Standing, contests};
use super::words::{fitting, less, listed, short, told_apart};
use crate::figures::{three_digits, time};
use crate::summary::{AnswerKind, Cell, Summary};
use crate::view::meeting::{Lanes, everywhere};

/// The line about one figure; `None` if no two cases were compared in it.
pub(super) fn line(summary: &Summary, lanes: &Lanes, kind: AnswerKind) -> Option<String> {
    match kind {
        AnswerKind::Cpu => {
            said("Least server CPU per message", &of(summary, lanes, CPU), summary, lanes)
        }
        AnswerKind::Bytes => {
            said("Fewest bytes on the wire per message", &of(summary, lanes, BYTES), summary, lanes)
        }
        _ => ["p99", "p50"].into_iter().find_map(|part| fastest(summary, lanes, part)),
    }
}

/// The figures that the lines are about.
pub(super) fn metrics() -> impl Iterator<Item = String> {
    let times =
        TIMES.into_iter().flat_map(|family| ["p99", "p50"].map(|p| format!("{family}.{p}")));
    [CPU, BYTES].into_iter().map(str::to_owned).chain(times)
}

/// Within each guarantee the first time of [`TIMES`] in which cases were compared.
fn fastest(summary: &Summary, lanes: &Lanes, part: &str) -> Option<String> {
    let mut groups: Vec<Group> = Vec::new();
    for family in TIMES {
        let found = of(summary, lanes, &format!("{family}.{part}"));
        let is_new = |group: &Group| !groups.iter().any(|own| own.guarantee == group.guarantee);
        let found: Vec<Group> = found.into_iter().filter(is_new).collect();
        groups.extend(found);
    }
    groups.sort_by_key(|group| group.guarantee);
    let word = |group: &Group| time_word(group.metric.split('.').next().unwrap_or_default());
    let first = word(groups.first()?);
    let at = if part == "p50" { "at the median" } else { "at p99" };
    if groups.iter().all(|group| word(group) == first) {
        return said(&format!("Fastest {at} ({first})"), &groups, summary, lanes);
    }
    for group in &mut groups {
        group.time = Some(word(group));
    }
    said(&format!("Fastest {at}"), &groups, summary, lanes)
}

/// Lanes of one guarantee that were compared, at all their places.
struct Group<'s> {
    guarantee: Guarantee,
    metric: String,
    contests: Vec<Contest<'s>>,
    lanes: Vec<String>,
    /// The time that is meant, where it is not the same in all groups of a line.
    time: Option<&'static str>,
}

fn of<'s>(summary: &'s Summary, lanes: &Lanes, metric: &str) -> Vec<Group<'s>> {
    let mut groups: Vec<Group> = Vec::new();
    for contest in contests(summary, metric) {
        let names: Vec<String> =
            contest.cells.iter().map(|cell| lanes.name(cell).to_owned()).collect();
        let first = summary.cells.iter().find(|cell| contest.cells.contains(&cell.name.as_str()));
        let Some(guarantee) = first.map(|cell| cell.guarantee) else { continue };
        let is_same = |group: &&mut Group| {
            group.guarantee == guarantee && group.lanes.iter().any(|lane| names.contains(lane))
        };
        match groups.iter_mut().find(is_same) {
            Some(group) => {
                group.lanes.extend(names);
                group.contests.push(contest);
            }
            None => groups.push(Group {
                guarantee,
                metric: metric.to_owned(),
                contests: vec![contest],
                lanes: names,
                time: None,
            }),
        }
    }
    for group in &mut groups {
        group.lanes.sort();
        group.lanes.dedup();
    }
    groups.sort_by_key(|group| group.guarantee);
    groups
}

/// The line that begins with `title`: a sentence for each group that fits in, those of most lanes
/// first, with its guarantee if the run has several. `None` without groups.
fn said(title: &str, groups: &[Group], summary: &Summary, lanes: &Lanes) -> Option<String> {
    let first = groups.first()?;
    let one = |group: &Group| {
        let time = group.time.map_or(String::new(), |time| format!(" ({time})"));
        group.text(summary, lanes) + &time + &group.missing(summary, lanes)
    };
    if summary.cells.iter().all(|cell| cell.guarantee == summary.cells[0].guarantee)
        && groups.len() == 1
    {
        return Some(format!("{title}: {}", one(first)));
    }
    let (mut decided, open): (Vec<&Group>, Vec<&Group>) =
        groups.iter().partition(|group| group.is_decided());
    decided.sort_by_key(|group| std::cmp::Reverse(group.lanes.len()));
    let head = |group: &Group| format!("Guarantee {}", group.guarantee);
    let mut parts: Vec<String> =
        decided.iter().map(|group| format!("{}: {}", head(group), one(group))).collect();
    match &open[..] {
        [] => {}
        [group] => parts.push(format!("{}: {}", head(group), one(group))),
        several => {
            let mut names: Vec<String> =
                several.iter().map(|group| group.guarantee.to_string()).collect();
            names.dedup();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let plural = if names.len() == 1 { "" } else { "s" };
            let within = format!("the guarantee{plural} {}", listed(&names));
            if decided.is_empty() {
                return Some(format!("{title}: too close to call for {within}"));
            }
            parts.push(format!("Too close to call for {within}"));
        }
    }
    Some(fitting(title, &parts))
}

impl Group<'_> {
    /// True if a case is named as lowest, several as equal, or others as higher than those that
    /// are too close to call, at a place.
    fn is_decided(&self) -> bool {
        let is_decided = |contest: &Contest<'_>| match &contest.result {
            Standing::Lowest { .. } | Standing::Equal(_) => true,
            Standing::TooClose { above, .. } => !above.is_empty(),
            Standing::Incomplete(_) => false,
        };
        self.contests.iter().any(is_decided)
    }

    fn text(&self, summary: &Summary, lanes: &Lanes) -> String {
        if let [contest] = &self.contests[..] {
            return self.at_one_place(&contest.result, summary, lanes);
        }
        let all = self.contests.len();
        let mut winners: Vec<(&str, Vec<(&str, f64)>)> = Vec::new();
        let mut open: Vec<&str> = Vec::new();
        for contest in &self.contests {
            match &contest.result {
                Standing::Lowest { cell, next, ratio } => {
                    let (lane, next) = (short(lanes.name(cell)), (short(lanes.name(next)), *ratio));
                    match winners.iter_mut().find(|(known, _)| *known == lane) {
                        Some((_, places)) => places.push(next),
                        None => winners.push((lane, vec![next])),
                    }
                }
                Standing::Equal(cells)
                | Standing::TooClose { cells, .. }
                | Standing::Incomplete(cells) => {
                    open.extend(cells.iter().map(|cell| lanes.name(cell)));
                }
            }
        }
        let undecided = all - winners.iter().map(|(_, places)| places.len()).sum::<usize>();
        winners.sort_by_key(|(_, places)| std::cmp::Reverse(places.len()));
        match &winners[..] {
            [] => {
                open.sort_unstable();
                open.dedup();
                format!("too close to call {}{}", between(&told_apart(&open)), everywhere(all))
            }
            [(lane, places)] if places.len() == all => {
                let ratios: Vec<f64> = places.iter().map(|(_, ratio)| *ratio).collect();
                let next = match places.iter().all(|(next, _)| *next == places[0].0) {
                    true => places[0].0,
                    false => "the next",
                };
                format!("{lane}{} ({} less than {next})", everywhere(all), less(&ratios))
            }
            several => {
                let mut parts: Vec<String> = Vec::new();
                for (number, (lane, places)) in several.iter().enumerate() {
                    let of = if number == 0 { format!(" of {all} places") } else { String::new() };
                    parts.push(format!("{lane} at {}{of}", places.len()));
                }
                if undecided > 0 {
                    parts.push(format!("too close to call at {undecided}"));
                }
                parts.join(", ")
            }
        }
    }

    fn at_one_place(&self, result: &Standing, summary: &Summary, lanes: &Lanes) -> String {
        let names = |cells: &[&str]| -> Vec<String> {
            told_apart(&cells.iter().map(|cell| lanes.name(cell)).collect::<Vec<_>>())
        };
        match result {
            Standing::Lowest { cell, next, ratio } => {
                let own = summary.cells.iter().find(|own| own.name == *cell);
                let value = own.and_then(|own| own.metrics.get(&self.metric)?.value);
                let value = value.map_or(String::new(), |value| figure(&self.metric, value) + ", ");
                let told = names(&[cell, next]);
                let (lane, next) = (&told[0], &told[1]);
                format!("{lane} ({value}{} less than {next})", less(&[*ratio]))
            }
            Standing::Equal(cells) => format!("{} are practically equal", few(&names(cells))),
            Standing::TooClose { cells, above } => {
                format!("too close to call {}{}", between(&names(cells)), higher(&names(above)))
            }
            Standing::Incomplete(cells) => {
                format!("too close to call, or not compared, {}", between(&names(cells)))
            }
        }
    }

    /// Lanes of the guarantee that have the figure and were not compared with these, although they
    /// did the same work.
    fn missing(&self, summary: &Summary, lanes: &Lanes) -> String {
        let pattern = |cell: &Cell| cell.point.get("load.pattern").cloned();
        let is_own = |cell: &&Cell| self.lanes.iter().any(|own| own == lanes.name(&cell.name));
        let patterns: Vec<_> = summary.cells.iter().filter(is_own).map(pattern).collect();
        let mut others: Vec<&str> = summary
            .cells
            .iter()
            .filter(|cell| cell.guarantee == self.guarantee && cell.shown(&self.metric).is_some())
            .filter(|cell| patterns.contains(&pattern(cell)))
            .map(|cell| lanes.name(&cell.name))
            .filter(|lane| !self.lanes.iter().any(|own| own == lane))
            .collect();
        others.sort_unstable();
        others.dedup();
        match others[..] {
            [] => String::new(),
            [one] => format!("; {} was not compared", short(one)),
            _ => format!("; {} other cases were not compared", others.len()),
        }
    }
}

/// `; a is higher`, `; 3 others are higher`; nothing without names.
fn higher(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => format!("; {one} is higher"),
        several => format!("; {} others are higher", several.len()),
    }
}

/// `between a and b`, `among 7 cases`.
fn between(names: &[impl AsRef<str>]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match &names[..] {
        [one, other] => format!("between {one} and {other}"),
        names if names.len() <= NAMES_MAX => format!("among {}", listed(names)),
        names => format!("among {} cases", names.len()),
    }
}

fn few(names: &[String]) -> String {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    if names.len() <= NAMES_MAX { listed(&names) } else { format!("{} cases", names.len()) }
}

/// A figure of a line in its unit.
pub(super) fn figure(metric: &str, value: f64) -> String {
    match metric {
        CPU => format!("{} µs", three_digits(value)),
        BYTES => format!("{} B", three_digits(value)),
        _ => time(value, false),
    }
}

/// `response_time_ns` in words.
pub(super) fn time_word(family: &str) -> &'static str {
    match family {
        "delivery_time_ns" => "delivery time",
        "service_time_ns" => "service time",
        _ => "response time",
    }
}

/// Times in which cases are compared, the preferred one first.
pub(super) const TIMES: [&str; 3] = ["response_time_ns", "service_time_ns", "delivery_time_ns"];

const CPU: &str = "target_cpu_us_per_message";

const BYTES: &str = "wire.bytes_per_message";

/// Names in a line.
const NAMES_MAX: usize = 4;
