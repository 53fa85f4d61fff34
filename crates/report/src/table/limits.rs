//! The limits of a run as text: for every lane the answer of each goal, the limiting resource, and
//! the search as a small chart of loads that met or missed.

use std::fmt::Write;

use serde_json::Value;
use weigh_limit::goal::in_few_words;
use weigh_limit::scalability::EXTRAPOLATION_MAX;
use weigh_model::numbers::{count, exact, fixed, percent, rate, seconds, time};

use crate::summary::Summary;
use crate::summary::limit::{Limit, LimitTrial};
use crate::summary::limit_curve::PlateauShown;
use crate::terminal::Style;
use crate::view::fleet;

/// All limits of the run; empty without a search.
pub fn render(summary: &Summary, style: &Style) -> String {
    let signs = Signs::of(style);
    let mut text = String::new();
    for limit in &summary.limits {
        lane(&mut text, limit, &signs, usize::from(style.width));
    }
    if let Some(title) = fleet::title(summary, style.is_ascii).filter(|_| !text.is_empty()) {
        let _ = writeln!(text, "{title}:");
        for line in fleet::lines(summary, style.is_ascii) {
            let _ = writeln!(text, "  {line}");
        }
        text.push('\n');
    }
    if style.is_ascii { text.replace('…', "...") } else { text }
}

fn lane(text: &mut String, limit: &Limit, signs: &Signs, width: usize) {
    let _ = writeln!(text, "{}", title(limit));
    for (index, goal) in limit.goals.iter().enumerate() {
        let _ = writeln!(text, "  {}", goal.sentence);
        if let Some(per_s) = goal.conditional_throughput_per_s {
            let _ = writeln!(text, "    at the lower bound {} were delivered", rate(per_s));
        }
        if let Some(why) = goal.missed_by.as_ref().filter(|_| goal.outcome != "never-met") {
            let is_backlog = why.starts_with(weigh_limit::trial::BACKLOG_RATIO);
            let what = if is_backlog { " (messages that waited at its end)" } else { "" };
            let _ = writeln!(text, "    at the upper bound the goal was missed: {why}{what}");
        }
        if let Some(burst) = &goal.burst {
            let _ = writeln!(text, "    {}", burst.sentence);
        }
        if let Some(ended) = &goal.ended_by {
            let _ = writeln!(text, "    what limited it: {}", ended.sentence);
            if ended.is_ours {
                let _ = writeln!(text, "    so the target may carry more");
            }
        }
        let is_open = goal.lower.is_none() && limit.stop == "invalid";
        if let Some(expected) = goal.passed.filter(|_| is_open) {
            let load = typed(expected);
            // Rates and sizes are typed with their unit, numbers without.
            let unit = if matches!(&*limit.unit, "/s" | "B") { &*limit.unit } else { "" };
            let _ = writeln!(text, "    to decide lower loads: --to {load}{unit}");
        }
        if limit.goals.len() > 1 {
            let _ =
                writeln!(text, "    {} trials, {}", goal.trials, seconds(tenths(goal.time_used_s)));
        }
        text.push_str(&chart(limit, index, signs, width));
    }
    let _ = writeln!(
        text,
        "  {} trials, {} with starts and warm-ups; {}",
        limit.trials.len(),
        seconds(tenths(limit.time_used_s)),
        limit.stopped
    );
    if let Some(moved) = &limit.second_generator {
        let _ = writeln!(text, "  {}", moved.sentence);
    }
    described(text, limit);
    text.push('\n');
}

/// The curves of all loads that were raised in steps; empty if there are none.
pub fn ladders(summary: &Summary, style: Style) -> String {
    let mut text = String::new();
    for ladder in &summary.ladders {
        let _ = writeln!(text, "\n{}, step by step (not to be averaged):", ladder.cell);
        let _ = writeln!(
            text,
            "  {:>10} {:>10} {:>10} {:>10} {:>8} {:>8}",
            "offered/s", "in/s", "out/s", "mean p99", "errors", "CPU"
        );
        for hold in &ladder.holds {
            let per_s = |rate: Option<f64>| rate.map_or("-".to_owned(), exact);
            let share = |share: Option<f64>| share.map_or("-".to_owned(), percent);
            let p99 = hold.time_ns_p99.map_or("-".to_owned(), |ns| time(ns, style.is_ascii));
            let _ = writeln!(
                text,
                "  {:>10} {:>10} {:>10} {:>10} {:>8} {:>8}",
                exact(hold.offered),
                per_s(hold.input_per_s),
                per_s(hold.output_per_s),
                p99,
                share(hold.errors_ratio.map(|share| 100.0 * share)),
                share(hold.target_cpu_percent),
            );
        }
        match (&ladder.plateau, &ladder.no_plateau) {
            (Some(found), _) => text.push_str(&plateau_line(found)),
            (None, Some(why)) => {
                let _ = writeln!(text, "  no plateau: {why}");
            }
            (None, None) => {}
        }
    }
    text
}

fn plateau_line(plateau: &PlateauShown) -> String {
    let between = plateau
        .level_between
        .map_or(String::new(), |(low, high)| format!(" ({} to {})", exact(low), exact(high)));
    format!(
        "  described: a plateau of {}{between} begins between {} and {} (not a capacity: loss \
         and time are not considered)\n",
        rate(plateau.level_per_s),
        exact(plateau.begins.0),
        exact(plateau.begins.1),
    )
}

fn title(limit: &Limit) -> String {
    let word = |key: &str| limit.point.get(key).and_then(Value::as_str).unwrap_or_default();
    let what = match limit.axis.as_str() {
        "rate" => "Highest rate",
        "burst" => "Largest burst",
        "message-size" => "Largest messages",
        "connections" => "Most connections",
        "subscribers" => "Most subscribers",
        _ => "Limit",
    };
    let protocol = word("protocol");
    let qos = limit.point.get(&format!("{protocol}.qos"));
    let mut title = format!("{what} of {protocol}");
    if let Some(qos) = qos {
        let _ = write!(title, " QoS {qos}");
    }
    // A server's own name has its version.
    let _ = match (word("target"), limit.target.as_str()) {
        ("reference", _) => write!(title, " to the built-in server"),
        (url, own) if url.contains("://") && !own.is_empty() && own != url => {
            write!(title, " to {url} ({own})")
        }
        (target, "") => write!(title, " to {target}"),
        (_, own) => write!(title, " to {own}"),
    };
    for (key, value) in &limit.point {
        let is_named = key == "protocol" || key == "target" || key.ends_with(".qos");
        if !is_named && !key.starts_with("load.") {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let _ = write!(title, ", {key} {value}");
        }
    }
    let unit = match limit.axis.as_str() {
        "rate" => ", in messages/s",
        "message-size" => ", in bytes",
        "burst" => ", in messages",
        _ => "",
    };
    title + unit
}

fn described(text: &mut String, limit: &Limit) {
    let found = &limit.described;
    if let Some(plateau) = &found.plateau {
        text.push_str(&plateau_line(plateau));
    }
    if let Some(knee) = &found.knee {
        let (low, high) = knee.between;
        let _ = writeln!(
            text,
            "  described: the knee of throughput is at {} ({} to {}); not a capacity",
            exact(knee.at),
            exact(low),
            exact(high)
        );
    }
    if let Some(law) = &found.scalability {
        let _ = writeln!(
            text,
            "  described: scalability law, contention {:.3} to {:.3}, coherency {:.2e} to \
             {:.2e}, up to {} connections; not a capacity",
            law.sigma.0,
            law.sigma.1,
            law.kappa.0,
            law.kappa.1,
            exact(EXTRAPOLATION_MAX * law.largest)
        );
    }
}

/// One line for every load, the largest first: how many trials met the goal and how many missed it,
/// and the bounds, with the reason of the last trial that missed it. If there are many, those
/// nearest to the bounds.
fn chart(limit: &Limit, goal: usize, signs: &Signs, width: usize) -> String {
    let mut rows: Vec<Row> = Vec::new();
    for trial in &limit.trials {
        let Some(missed) = trial.missed.get(goal) else { continue };
        match rows.iter_mut().find(|row| row.load == trial.load) {
            Some(row) => row.add(trial, missed.as_deref()),
            None => {
                let mut row = Row { load: trial.load, ..Row::default() };
                row.add(trial, missed.as_deref());
                rows.push(row);
            }
        }
    }
    rows.sort_by(|a, b| b.load.total_cmp(&a.load));
    let found = &limit.goals[goal];
    let near = |row: &Row| {
        let known = found.lower.or(found.upper).or(found.passed).or(found.failed);
        let bound = known.unwrap_or(row.load);
        (row.load / bound).ln().abs()
    };
    let mut nearest: Vec<f64> = rows.iter().map(near).collect();
    nearest.sort_by(f64::total_cmp);
    let farthest = nearest.get(ROWS_MAX - 1).copied().unwrap_or(f64::INFINITY);
    let left_out = rows.iter().filter(|row| near(row) > farthest).count();
    rows.retain(|row| near(row) <= farthest);
    let mut text = String::new();
    for row in &rows {
        let mut behind = match row.load {
            load if Some(load) == found.upper => "  upper bound".to_owned(),
            load if Some(load) == found.lower => "  lower bound".to_owned(),
            _ => String::new(),
        };
        behind.extend(row.why.iter().map(|why| format!("  {why}")));
        let line = |most: usize| {
            let (load, time) = (exact(row.load), fixed(row.seconds, 1));
            let met = repeated(signs.met, row.met, most);
            let missed = repeated(signs.missed, row.missed, most);
            format!("    {load:>10} {time:>7} s  {met}{missed}{behind}\n")
        };
        let whole = line(SIGNS_MAX);
        let fits = whole.trim_end().chars().count() <= width;
        text += &if fits { whole } else { line(0) };
    }
    if left_out > 0 {
        let _ = writeln!(
            text,
            "    and {left_out} {}, farther from the bounds",
            if left_out == 1 { "more" } else { "others" }
        );
    }
    text + &legend(&rows, signs)
}

/// What the signs of the chart stand for, as far as it has them.
fn legend(rows: &[Row], signs: &Signs) -> String {
    let (has_met, has_missed) =
        (rows.iter().any(|row| row.met > 0), rows.iter().any(|row| row.missed > 0));
    let Signs { met, missed } = signs;
    let has_reason = rows.iter().any(|row| row.why.is_some());
    let why = if has_reason { "; the words behind it say why the last × did" } else { "" };
    match (has_met, has_missed) {
        (false, false) => String::new(),
        (true, false) => format!("    {met} a trial met the goal\n"),
        (false, true) => format!("    {missed} a trial missed the goal or left a backlog{why}\n"),
        (true, true) => {
            format!("    {met} a trial met the goal, {missed} missed it or left a backlog{why}\n")
        }
    }
}

#[derive(Default)]
struct Row {
    load: f64,
    met: usize,
    missed: usize,
    seconds: f64,
    /// Why the last trial that missed the goal did.
    why: Option<String>,
}

impl Row {
    fn add(&mut self, trial: &LimitTrial, missed: Option<&str>) {
        self.seconds += trial.duration_s;
        let Some(why) = missed else {
            self.met += 1;
            return;
        };
        self.missed += 1;
        self.why = in_few_words(why);
    }
}

/// Sign for a trial.
struct Signs {
    met: &'static str,
    missed: &'static str,
}

impl Signs {
    fn of(style: &Style) -> Signs {
        if style.is_ascii {
            Signs { met: "o", missed: "x" }
        } else {
            Signs { met: "●", missed: "×" }
        }
    }
}

/// The sign as often as there were trials; more than `most` are a number.
fn repeated(sign: &str, trials: usize, most: usize) -> String {
    match trials {
        few if few <= most.max(1) => sign.repeat(few),
        _ => format!(" {} {sign}", count(trials as u64)),
    }
}

/// Tenths of a second: more of a sum of trials means nothing.
fn tenths(seconds: f64) -> f64 {
    (seconds * 10.0).round() / 10.0
}

/// What to type for a load.
fn typed(load: f64) -> String {
    ((load * 10.0).round() / 10.0).to_string()
}

/// Signs side by side.
const SIGNS_MAX: usize = 24;

/// Loads of a chart.
const ROWS_MAX: usize = 16;
