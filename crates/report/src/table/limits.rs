//! The limits of a run as text: for every lane the answer of each goal, the limiting resource, and
//! the search as a small chart of loads that met or missed.

use std::fmt::Write;

use serde_json::Value;
use weigh_limit::scalability::EXTRAPOLATION_MAX;
use weigh_model::Nanos;

use crate::summary::Summary;
use crate::summary::limit::{Limit, LimitTrial};
use crate::summary::limit_curve::PlateauShown;
use crate::terminal::Style;

/// All limits of the run; empty without a search.
pub fn render(summary: &Summary, style: &Style) -> String {
    let signs = Signs::of(style);
    let mut text = String::new();
    for limit in &summary.limits {
        lane(&mut text, limit, &signs);
    }
    if style.is_ascii { text.replace('…', "...") } else { text }
}

fn lane(text: &mut String, limit: &Limit, signs: &Signs) {
    let _ = writeln!(text, "{}", title(limit));
    for (index, goal) in limit.goals.iter().enumerate() {
        let _ = writeln!(text, "  {}", goal.sentence);
        if let Some(rate) = goal.conditional_throughput_per_s {
            let _ = writeln!(text, "    conditional throughput {} at the lower bound", per_s(rate));
        }
        if let Some(why) = goal.missed_by.as_ref().filter(|_| goal.outcome != "never-met") {
            let _ = writeln!(text, "    missed at the upper bound by: {why}");
        }
        if let Some(burst) = &goal.burst {
            let _ = writeln!(text, "    {}", burst.sentence);
        }
        if let Some(ended) = &goal.ended_by {
            let _ = writeln!(text, "    limited by {}", ended.sentence);
            if ended.is_ours {
                let _ = writeln!(text, "    so this is not a limit of the target");
            }
        }
        let is_open = goal.lower.is_none() && limit.stop == "invalid";
        if let Some(expected) = goal.passed.filter(|_| is_open) {
            let load = short(expected);
            // Rates and sizes are typed with their unit, numbers without.
            let unit = if matches!(&*limit.unit, "/s" | "B") { &*limit.unit } else { "" };
            let _ = writeln!(text, "    to decide lower loads: --to {load}{unit}");
        }
        if limit.goals.len() > 1 {
            let _ = writeln!(text, "    {} trials, {:.1} s", goal.trials, goal.time_used_s);
        }
        text.push_str(&chart(limit, index, signs));
    }
    let _ = writeln!(
        text,
        "  {} trials, {:.1} s in all; {}",
        limit.trials.len(),
        limit.time_used_s,
        limit.stopped
    );
    if let Some(moved) = &limit.second_generator {
        let _ = writeln!(text, "  {}", moved.sentence);
    }
    described(text, limit);
    text.push('\n');
}

/// The curves of all loads that were raised in steps; empty if there are none.
pub fn ladders(summary: &Summary) -> String {
    let mut text = String::new();
    for ladder in &summary.ladders {
        let _ = writeln!(text, "\n{}, step by step (not to be averaged):", ladder.cell);
        let _ = writeln!(
            text,
            "  {:>10} {:>10} {:>10} {:>10} {:>8} {:>8}",
            "offered/s", "in/s", "out/s", "p99", "errors", "CPU"
        );
        for hold in &ladder.holds {
            let rate = |rate: Option<f64>| rate.map_or("-".to_owned(), short);
            let percent =
                |share: Option<f64>| share.map_or("-".to_owned(), |p| format!("{p:.1} %"));
            let time = hold.time_ns_p99.map_or("-".to_owned(), |ns| Nanos(ns as u64).to_string());
            let _ = writeln!(
                text,
                "  {:>10} {:>10} {:>10} {:>10} {:>8} {:>8}",
                short(hold.offered),
                rate(hold.input_per_s),
                rate(hold.output_per_s),
                time,
                percent(hold.errors_ratio.map(|share| 100.0 * share)),
                percent(hold.target_cpu_percent),
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
        .map_or(String::new(), |(low, high)| format!(" ({} to {})", short(low), short(high)));
    format!(
        "  described: a plateau of {}{between} begins between {} and {} (not a capacity: loss \
         and time are not considered)\n",
        per_s(plateau.level_per_s),
        short(plateau.begins.0),
        short(plateau.begins.1),
    )
}

fn title(limit: &Limit) -> String {
    let mut title = limit.title();
    let is_known = limit.point.get("target").and_then(Value::as_str) == Some(&*limit.target);
    if !limit.target.is_empty() && !is_known {
        let _ = write!(title, " ({})", limit.target);
    }
    let _ = write!(title, ": limit by {}, in {}", limit.axis, limit.counted());
    title
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
            short(knee.at),
            short(low),
            short(high)
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
            short(EXTRAPOLATION_MAX * law.largest)
        );
    }
}

/// One line for every load, the largest first: how many trials met the goal and how many missed it,
/// and the bounds. If there are many, those nearest to the bounds.
fn chart(limit: &Limit, goal: usize, signs: &Signs) -> String {
    let mut rows: Vec<Row> = Vec::new();
    for trial in &limit.trials {
        let Some(missed) = trial.missed.get(goal) else { continue };
        match rows.iter_mut().find(|row| row.load == trial.load) {
            Some(row) => row.add(trial, missed.is_some()),
            None => {
                let mut row = Row { load: trial.load, met: 0, missed: 0, seconds: 0.0 };
                row.add(trial, missed.is_some());
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
        let bound = match row.load {
            load if Some(load) == found.upper => "  upper bound",
            load if Some(load) == found.lower => "  lower bound",
            _ => "",
        };
        let (met, missed) = (signs.met.repeat(row.met), signs.missed.repeat(row.missed));
        let load = short(row.load);
        let _ = writeln!(text, "    {load:>10} {:>7.1} s  {met}{missed}{bound}", row.seconds);
    }
    if left_out > 0 {
        let _ = writeln!(text, "    and {left_out} loads farther away");
    }
    if !rows.is_empty() {
        let _ =
            writeln!(text, "    {} a trial met the goal, {} missed it", signs.met, signs.missed);
    }
    text
}

struct Row {
    load: f64,
    met: usize,
    missed: usize,
    seconds: f64,
}

impl Row {
    fn add(&mut self, trial: &LimitTrial, is_missed: bool) {
        self.seconds += trial.duration_s;
        if is_missed {
            self.missed += 1;
        } else {
            self.met += 1;
        }
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

fn per_s(rate: f64) -> String {
    format!("{}/s", short(rate))
}

/// A load or rate without insignificant digits.
fn short(value: f64) -> String {
    if value >= 100.0 || value.fract() == 0.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.1}")
    }
}

/// Loads of a chart.
const ROWS_MAX: usize = 16;
