//! The answer as text for a terminal: at most 80 columns.

use std::fmt::Write as _;

use weigh_model::numbers::{bytes, count, percent, three_digits, time};
use weigh_report::terminal::columns;

use crate::answer::{Advice, OptionShown, Standing};
use crate::criterion::Criterion;
use crate::drawn::Shown;
use crate::sizing::Carries;

/// The answer.
pub fn advice(advice: &Advice, width: usize) -> String {
    let mut text = format!("{}\n\n", advice.sentence);
    text += &table(advice, width);
    let with_reason = advice.options.iter().filter_map(|own| Some((own, own.why.as_ref()?)));
    let (unknown, out): (Vec<_>, Vec<_>) =
        with_reason.partition(|(own, _)| own.standing == Standing::Unknown);
    let (behind, out): (Vec<_>, Vec<_>) =
        out.into_iter().partition(|(own, _)| own.standing == Standing::Behind);
    if !unknown.is_empty() {
        text += "\nNot predicted, and what to type for it:\n";
        let mut reasons: Vec<(&String, Vec<&str>, Option<&String>)> = Vec::new();
        for (own, why) in unknown {
            match reasons.iter_mut().find(|(known, ..)| *known == why) {
                Some((_, names, _)) => names.push(&own.name),
                None => reasons.push((why, vec![own.name.as_str()], own.run.as_ref())),
            }
        }
        for (why, names, run) in reasons {
            let _ = writeln!(text, "  {}: {why}", names.join("; "));
            if let Some(run) = run {
                let _ = writeln!(text, "    {run}");
            }
        }
    }
    if !behind.is_empty() {
        text += "\nBehind, although not predicted:\n";
        for (own, why) in behind {
            let _ = writeln!(text, "  {}: {why}", own.name);
        }
    }
    if !out.is_empty() {
        text += "\nOut:\n";
        for (own, why) in out {
            let _ = writeln!(text, "  {}: {why}", own.name);
        }
    }
    if !advice.break_even.is_empty() {
        text += "\nBreak-even:\n";
        for own in &advice.break_even {
            let _ = writeln!(text, "  {}", own.sentence);
        }
    }
    if let Some(deciding) = &advice.deciding {
        let _ = writeln!(text, "\n{} Type weigh advise --check.", deciding.sentence);
    }
    text += "\nAssumed:\n";
    for own in &advice.assumptions {
        let _ = writeln!(text, "  {own}");
    }
    for (family, origin) in &advice.cells {
        let _ = writeln!(text, "  costs of {family}: {origin}");
    }
    text
}

/// One row for each option that was predicted, the advised ones first.
fn table(advice: &Advice, width: usize) -> String {
    let mut shown: Vec<&OptionShown> = advice
        .options
        .iter()
        .filter(|own| matches!(own.standing, Standing::Advised | Standing::Behind))
        .filter(|own| own.why.is_none())
        .collect();
    let place = |own: &OptionShown| {
        let at = advice.advised.iter().position(|name| *name == own.name);
        (at.unwrap_or(usize::MAX), own.ratio.map_or(f64::INFINITY, |own| own.value))
    };
    shown.sort_by(|a, b| {
        let (a, b) = (place(a), place(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    if shown.is_empty() {
        return String::new();
    }
    let mut criteria: Vec<Criterion> = advice.situation.matters.clone();
    // Who names a device and its battery asks about them.
    if shown.iter().any(|own| own.days.is_some()) && !criteria.contains(&Criterion::Energy) {
        criteria.push(Criterion::Energy);
    }
    let is_known = |own: &Criterion| shown.iter().any(|option| option.figures.contains_key(own));
    criteria
        .extend(Criterion::ALL.into_iter().filter(|own| !advice.situation.matters.contains(own)));
    criteria.retain(is_known);
    criteria.truncate(COLUMNS_MAX);
    // A narrow terminal has what was asked for, side by side.
    let matters = &advice.situation.matters;
    loop {
        let rows = rows(&shown, &criteria);
        let ends = 1..=rows[0].len() - 1;
        let text = columns(&rows, &ends, usize::MAX);
        let fits = text.lines().all(|line| line.chars().count() <= width);
        let is_asked = criteria.last().is_none_or(|own| matters.contains(own));
        if fits || is_asked {
            let text = if fits { text } else { columns(&rows, &ends, width) };
            let has = |words: &str| shown.iter().any(|own| own.name.contains(words));
            return text
                + "* cannot be distinguished from the best\n"
                + if has(", kept") || has(", one each") { WAYS } else { "" };
        }
        criteria.pop();
    }
}

/// The headings, and a row for each option.
fn rows(shown: &[&OptionShown], criteria: &[Criterion]) -> Vec<Vec<String>> {
    let all = || criteria.iter().flat_map(|own| own.columns().iter().map(move |of| (*own, *of)));
    let mut rows = vec![vec![String::new()]];
    rows[0].extend(all().map(|(_, (heading, _))| heading.to_owned()));
    for option in shown {
        let mark = if option.standing == Standing::Advised { "* " } else { "  " };
        let mut row = vec![format!("{mark}{}", option.name)];
        row.extend(all().map(|(own, (_, factor))| match option.figures.get(&own) {
            Some(figure) => range(own, &figure.times(factor)),
            None => "?".to_owned(),
        }));
        rows.push(row);
    }
    if shown.iter().any(|own| own.days.is_some()) {
        rows[0].push("one charge".to_owned());
        for (row, option) in rows[1..].iter_mut().zip(shown) {
            row.push(lasting(option.days.as_ref()));
        }
    }
    rows
}

/// `815-920 days`: how long a charge lasts.
fn lasting(days: Option<&Shown>) -> String {
    let Some(days) = days else { return "-".to_owned() };
    let [low, high] = [days.low, days.high].map(|days| count(days as u64));
    if low == high { format!("{low} days") } else { format!("{low}-{high} days") }
}

/// An interval in the unit of the criterion; one number where both ends read the same.
pub fn range(criterion: Criterion, figure: &Shown) -> String {
    let [low, high] = [figure.low, figure.high].map(|value| words(criterion, value));
    if low == high { low } else { joined(&low, &high) }
}

/// `1.2 to 1.5 MB`: the unit once, if both have the same.
fn joined(low: &str, high: &str) -> String {
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other => format!("{number}-{high}"),
        _ => format!("{low}-{high}"),
    }
}

/// A value with its unit.
pub fn words(criterion: Criterion, value: f64) -> String {
    if !value.is_finite() {
        return "no bound".to_owned();
    }
    match criterion {
        Criterion::ServerCpu if value < 0.01 => format!("{} %", three_digits(value * 100.0)),
        Criterion::ServerCpu => percent(value * 100.0),
        Criterion::Bytes | Criterion::Memory => bytes(value),
        Criterion::Energy => format!("{} J", three_digits(value)),
        Criterion::Latency => time(value * 1e9, false),
    }
}

/// An option of `weigh size`, with and without kept connections.
pub struct Sized {
    /// Protocol, settings and TLS.
    pub lane: String,
    /// With kept connections, then with one for each message.
    pub ways: [Option<(OptionShown, Option<Carries>)>; 2],
}

/// The tables of `weigh size`.
pub fn sizes(all: &[Sized], width: usize) -> String {
    let heading = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let mut first: Vec<Vec<String>> = vec![heading(&[
        "",
        "CPU kept",
        "CPU each",
        "memory kept",
        "data/device/day kept",
        "in 30 days kept",
        "data/device/day each",
        "in 30 days each",
    ])];
    let mut second: Vec<Vec<String>> = vec![heading(&[
        "",
        "one server, kept",
        "ends at",
        "one server, each",
        "ends at",
        "servers",
    ])];
    let mut battery: Vec<Vec<String>> = vec![heading(&["", "battery kept", "battery each"])];
    for own in all {
        let figures = |way: usize, criterion: Criterion| {
            let of = move |(_, factor): &(&str, f64)| match &own.ways[way] {
                None => "-".to_owned(),
                Some((option, _)) => match option.figures.get(&criterion) {
                    Some(figure) => range(criterion, &figure.times(*factor)),
                    None => "?".to_owned(),
                },
            };
            criterion.columns().iter().map(of)
        };
        let columns = [
            (0, Criterion::ServerCpu),
            (1, Criterion::ServerCpu),
            (0, Criterion::Memory),
            (0, Criterion::Bytes),
            (1, Criterion::Bytes),
        ];
        let cells = columns.into_iter().flat_map(|(way, criterion)| figures(way, criterion));
        first.push(std::iter::once(own.lane.clone()).chain(cells).collect());
        let mut row = vec![own.lane.clone()];
        for way in &own.ways {
            row.extend(carried(way.as_ref().and_then(|(_, own)| own.as_ref())));
        }
        row.push(servers(&own.ways));
        second.push(row);
        let days = |way: usize| {
            lasting(own.ways[way].as_ref().and_then(|(option, _)| option.days.as_ref()))
        };
        battery.push(vec![own.lane.clone(), days(0), days(1)]);
    }
    let mut text = columns(&first, &(1..=7), width);
    text += "\n";
    text += &columns(&second, &(1..=5), width);
    if battery.iter().skip(1).any(|row| row[1] != "-" || row[2] != "-") {
        text += "\n";
        text += &columns(&battery, &(1..=2), width);
    }
    text
}

/// Devices on one server, and the resource that ends it.
fn carried(own: Option<&Carries>) -> [String; 2] {
    match own {
        None => ["?".to_owned(), "-".to_owned()],
        Some(Carries { devices: None, ends_at, .. }) => ["no bound".to_owned(), ends_at.clone()],
        Some(Carries { devices: Some(devices), ends_at, is_beyond, .. }) => {
            let mark = if *is_beyond { "*" } else { "" };
            let [low, high] = [devices.low, devices.high].map(thousands);
            let range = if low == high { low } else { format!("{low}-{high}") };
            [format!("{range}{mark}"), ends_at.clone()]
        }
    }
}

/// Servers that the fleet needs, with kept connections, else with one for each message.
fn servers(ways: &[Option<(OptionShown, Option<Carries>)>; 2]) -> String {
    let of = |way: &Option<(OptionShown, Option<Carries>)>| {
        let servers = way.as_ref().and_then(|(_, own)| own.as_ref()).and_then(|own| own.servers);
        servers.map_or_else(
            || "?".to_owned(),
            |own| {
                let [low, high] = [own.low, own.high]
                    .map(|own| if own.is_finite() { count(own as u64) } else { "more".to_owned() });
                if low == high { low } else { format!("{low}-{high}") }
            },
        )
    };
    format!("{} / {}", of(&ways[0]), of(&ways[1]))
}

/// `12.3 k`.
fn thousands(value: f64) -> String {
    match value {
        own if !own.is_finite() => "no bound".to_owned(),
        own if own < 1e3 => count(own as u64),
        own if own < 1e6 => format!("{}k", three_digits(own / 1e3)),
        own => format!("{}M", three_digits(own / 1e6)),
    }
}

/// What the two ways of an option are.
const WAYS: &str =
    "kept: the connection stays open; one each: a connection is opened for each message\n";

/// More columns do not fit into 80.
const COLUMNS_MAX: usize = 3;
