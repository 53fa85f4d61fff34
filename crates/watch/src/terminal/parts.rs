//! The parts of the screen as lines of text, each with its mood.

use weigh_model::Ledger;
use weigh_model::binding::GENERATOR_FULL_PERCENT;
use weigh_model::condition::Limit;
use weigh_model::live::{QUANTILES, Second};
use weigh_model::numbers::{bytes, count, exact, percent, rough, span, time};

use super::shown::Shown;
use super::view::View;
use crate::state::{Headline, Outcome, P99, Point, RunState, Trial};

/// Meaning of a line, shown as its colour where there are colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// Nothing special.
    Plain,
    /// The heading of a part.
    Head,
    /// Less important.
    Dim,
    /// As wanted.
    Good,
    /// Not as wanted.
    Bad,
    /// To be looked at.
    Caution,
    /// A row of a chart.
    Chart,
}

/// Lines of a part.
pub type Lines = Vec<(Mood, String)>;

/// A course to be drawn.
pub struct Course {
    /// Its heading, which names the value of the top.
    pub title: Box<dyn Fn(f64) -> String>,
    /// Its values, the newest last.
    pub values: Vec<Option<f64>>,
    /// A value that is drawn as a line: what was offered, or what is allowed.
    pub line: Option<f64>,
}

/// The run, the trial, the generator's verdict, and the figures of now.
pub fn head(shown: &Shown<'_>, view: &View) -> Lines {
    let state = shown.state;
    let place = view.trial.or(state.newest());
    let mut lines = vec![(Mood::Head, title(shown, view))];
    if let Some(problem) = shown.problem.map(str::to_owned).or_else(|| unreadable(state)) {
        lines.push((Mood::Bad, problem.lines().next().unwrap_or_default().to_owned()));
    }
    let Some(place) = place else {
        let text = match shown.is_recorded {
            true => "No trial has started yet: targets and the baseline are prepared.",
            false => "This run has no trial.",
        };
        lines.push((Mood::Plain, text.to_owned()));
        return lines;
    };
    let trial = &state.trials[place];
    let is_live = state.current == Some(place) && shown.is_recorded;
    let second = state.seconds.back().filter(|_| is_live);
    lines.push((Mood::Plain, trial_line(state, place, second, shown)));
    match &trial.outcome {
        Outcome::Done(headline) => lines.extend(of_result(headline)),
        Outcome::Failed(error) => lines.push((Mood::Bad, format!("failed: {error}"))),
        Outcome::Begun if is_live => lines.extend(of_now(shown, place, view)),
        Outcome::Begun => {
            let text = "This trial has no result: its process ended before it did.";
            lines.push((Mood::Bad, text.to_owned()));
        }
    }
    lines
}

fn title(shown: &Shown<'_>, view: &View) -> String {
    let state = shown.state;
    let id = state.run.as_ref().map_or("(no run yet)", |run| &run.id);
    let standing = match (&state.outcome, shown.is_recorded) {
        _ if !shown.is_read => "reading the journal".to_owned(),
        (Some(outcome), false) => format!("ended: {outcome}"),
        (Some(_), true) => "writing its results".to_owned(),
        (None, false) => "ended early: nothing records into it".to_owned(),
        (None, true) => {
            let second = state.seconds.back();
            second.map_or_else(|| "running".to_owned(), standing)
        }
    };
    let held = if view.is_paused { " · HELD, space continues" } else { "" };
    format!("{id} · {standing}{held}")
}

/// `trial 3 of 12, 1 min 5 s left`.
fn standing(second: &Second) -> String {
    let standing = &second.standing;
    let mut text = format!("trial {}", count(standing.number));
    let [least, most] = standing.of;
    if most > 0 {
        text += &match least == most {
            true => format!(" of {}", count(most)),
            false => format!(" of {} to {}", count(least), count(most)),
        };
    }
    let left = standing.left_ns[1].saturating_sub(standing.passed_ns);
    if left > 0 {
        text += &format!(", {} left", rough(left as f64 / 1e9));
    }
    text
}

fn unreadable(state: &RunState) -> Option<String> {
    if let Some(format) = &state.unknown_format {
        return Some(format!(
            "the journal is of another format: {format}; some of it is not shown"
        ));
    }
    (state.bad_lines > 0).then(|| {
        let lines = if state.bad_lines == 1 { "line" } else { "lines" };
        format!("{} damaged {lines} in the journal left out", count(state.bad_lines))
    })
}

fn trial_line(
    state: &RunState,
    place: usize,
    second: Option<&Second>,
    shown: &Shown<'_>,
) -> String {
    let trial = &state.trials[place];
    let name = state.name(place);
    let repetition = trial.repetition + 1;
    let phase = match &trial.outcome {
        Outcome::Done(_) => "result".to_owned(),
        Outcome::Failed(_) => "no result".to_owned(),
        Outcome::Begun if !shown.is_recorded => "cut off".to_owned(),
        Outcome::Begun => phase(state, place, second),
    };
    format!("{name} · repetition {repetition} · {phase}")
}

fn phase(state: &RunState, place: usize, second: Option<&Second>) -> String {
    if let Some([open, all]) = second.and_then(|second| second.opening) {
        return format!("{} of {} connections open", count(open), count(all));
    }
    match state.newest_point(place) {
        None => "starting".to_owned(),
        Some(point) => {
            let phase = match (point.is_warmup, point.is_draining) {
                (true, _) => "warm-up",
                (_, true) => "waiting for the last answers",
                _ => "measuring",
            };
            format!("{phase}, {}", span((point.at_s * 10.0).round() * 1e8))
        }
    }
}

/// Figures of a trial in progress: first whether they may be used.
fn of_now(shown: &Shown<'_>, place: usize, view: &View) -> Lines {
    let state = shown.state;
    let Some(point) = state.newest_point(place) else { return Vec::new() };
    let offered = state.seconds.back().and_then(|second| second.standing.offered_per_s);
    let quantile = |place: usize| time_text(point.response_ns[place].map(|time| time as f64));
    let lag = time_text(point.send_lag_ns_p99.map(|lag| lag as f64));
    let is_full = point.generator_cpu_percent.is_some_and(|own| own >= GENERATOR_FULL_PERCENT);
    let busiest = point.generator_cpu_percent.map_or_else(unknown, percent);
    let verdict = match is_full {
        true => "is the limit: these figures are its own",
        false => "is not the limit",
    };
    let files = match (shown.resources.open_files, shown.resources.open_files_max) {
        (Some(open), Some(most)) => format!(", files {} of {}", count(open), count(most)),
        _ => String::new(),
    };
    let ports = shown.resources.ports_max.map_or_else(String::new, |most| {
        format!(", ports {} of {}", count(point.connections), count(most))
    });
    let process = shown.resources.memory_bytes.map_or_else(String::new, |memory| {
        let cpu = shown.generator_percent.map_or_else(unknown, percent);
        format!("process    {cpu} of a core, {}", bytes(memory as f64))
    });
    let target = state.last_interval(place);
    let target_cpu = target.and_then(|own| own.target_cpu_percent).map_or_else(unknown, percent);
    let memory = target.and_then(|own| own.target_memory_bytes);
    let memory = memory.map_or_else(unknown, |memory| bytes(memory as f64));
    let age = match target {
        Some(target) if point.at_s - target.at_s > AGE_S_MAX => {
            format!(", {} ago", span((point.at_s - target.at_s).round() * 1e9))
        }
        _ => String::new(),
    };
    let mut lines = vec![
        (
            if is_full { Mood::Bad } else { Mood::Plain },
            format!("generator  {verdict}: busiest thread {busiest} of a core, send lag p99 {lag}"),
        ),
        (
            Mood::Plain,
            format!(
                "load       {}sent {}, confirmed {}, delivered {}",
                offered.map_or_else(String::new, |rate| format!("offered {}/s, ", exact(rate))),
                rate_text(point.sent_per_s),
                rate_text(point.acknowledged_per_s),
                rate_text(point.delivered_per_s),
            ),
        ),
    ];
    if point.errors > 0 {
        lines.push((Mood::Bad, format!("errors     {} error answers", count(point.errors))));
    }
    let chosen = match view.quantile {
        0 | P99 => String::new(),
        own => format!(", {} {}", QUANTILES[own].1, quantile(own)),
    };
    lines.push((
        Mood::Plain,
        format!("time       p50 {}, p99 {}{chosen} from the due time", quantile(0), quantile(P99)),
    ));
    lines.push((Mood::Plain, format!("target     CPU {target_cpu} of its cores, {memory}{age}")));
    if !process.is_empty() {
        lines.push((Mood::Dim, format!("{process}{files}{ports}")));
    }
    lines
}

/// Figures of a trial with a result.
fn of_result(headline: &Headline) -> Lines {
    let [p50, p99] = headline.times_ns.map(time_text);
    let lag = time_text(headline.send_lag_ns_p99);
    let throughput = headline.throughput_per_s.map_or_else(unknown, rate_text);
    let cpu = headline.target_cpu_us_per_message;
    let cpu = cpu.map_or_else(unknown, |cpu| time(cpu * 1e3, false));
    let memory = headline.target_memory_bytes_max.map_or_else(unknown, bytes);
    let mut lines = Vec::new();
    for (code, is_invalid, text) in headline.warnings.iter().take(2) {
        let mood = if *is_invalid { Mood::Bad } else { Mood::Caution };
        lines.push((mood, format!("{} {code}: {text}", if *is_invalid { "INVALID" } else { "!" })));
    }
    lines.push((Mood::Plain, format!("throughput {throughput}")));
    lines.push((Mood::Plain, format!("time       p50 {p50}, p99 {p99}, send lag p99 {lag}")));
    lines.push((Mood::Plain, format!("target     CPU {cpu} per message, at most {memory}")));
    lines.push(ledger_line("ledger     ", &headline.ledger));
    lines
}

/// The ledger of all finished trials.
pub fn ledger(shown: &Shown<'_>) -> Lines {
    let done = shown.state.done();
    let Some(ledger) = &shown.state.ledger else { return Vec::new() };
    let trials =
        if done == 1 { "1 trial".to_owned() } else { format!("{} trials", count(done as u64)) };
    vec![ledger_line(&format!("{trials}: "), ledger)]
}

fn ledger_line(before: &str, ledger: &Ledger) -> (Mood, String) {
    let known = |number: Option<u64>| number.map_or_else(unknown, count);
    let causes = causes(ledger);
    let text = format!(
        "{before}scheduled {}, sent {}, delivered {}, late {}, lost {}{causes}",
        count(ledger.scheduled),
        count(ledger.sent),
        known(ledger.delivered),
        count(ledger.late),
        known(ledger.lost),
    );
    let is_lossy = ledger.lost > Some(0) || ledger.not_sent > 0;
    (if is_lossy { Mood::Bad } else { Mood::Plain }, text)
}

/// ` (timeout 2; not sent 5: window full 5)`.
fn causes(ledger: &Ledger) -> String {
    let words = |value: serde_json::Value| value.as_str().unwrap_or_default().replace('_', " ");
    let lost = ledger.causes.iter().filter(|(_, number)| **number > 0).map(|(cause, number)| {
        format!("{} {}", words(serde_json::to_value(cause).unwrap_or_default()), count(*number))
    });
    let lost: Vec<String> = lost.collect();
    let mut text = match lost.is_empty() {
        true => String::new(),
        false => format!(" ({})", lost.join(", ")),
    };
    if ledger.not_sent > 0 {
        let causes = ledger.not_sent_causes.keys();
        let causes = causes.map(|cause| words(serde_json::to_value(cause).unwrap_or_default()));
        let causes: Vec<String> = causes.collect();
        text += &format!(", not sent {} ({})", count(ledger.not_sent), causes.join(", "));
    }
    text
}

/// A line for each threshold.
pub fn thresholds(shown: &Shown<'_>) -> Lines {
    let line = |(text, [held, failed, without]): (String, [u64; 3])| {
        let all = held + failed + without;
        let (mood, sign) = match (failed, held) {
            (0, 0) => (Mood::Plain, "?"),
            (0, _) => (Mood::Good, "✓"),
            _ => (Mood::Bad, "✗"),
        };
        let without = if without > 0 { format!(", no figure in {without}") } else { String::new() };
        (mood, format!("{sign} {text}: fails in {failed} of {all} trials{without}"))
    };
    shown.state.thresholds().into_iter().map(line).collect()
}

/// The last trials that began, the newest last; around the one that was chosen.
pub fn trials(shown: &Shown<'_>, view: &View, rows: usize) -> Lines {
    let state = shown.state;
    let Some(newest) = state.newest() else { return Vec::new() };
    let chosen = view.trial.unwrap_or(newest);
    let last = (chosen + rows / 2).max(rows.saturating_sub(1)).min(newest);
    let first = (last + 1).saturating_sub(rows);
    let line = |place: usize| {
        let (mood, text) = trial_row(state, place, shown.is_recorded);
        let mark = if place == chosen { '>' } else { ' ' };
        (mood, format!("{mark}{:>4} {text}", place + 1))
    };
    (first..=last).map(line).collect()
}

fn trial_row(state: &RunState, place: usize, is_recorded: bool) -> (Mood, String) {
    let trial = &state.trials[place];
    let Trial { repetition, outcome, .. } = trial;
    let (mood, result) = match outcome {
        Outcome::Begun if state.current == Some(place) && is_recorded => {
            (Mood::Head, "running".to_owned())
        }
        Outcome::Begun => (Mood::Bad, "no result".to_owned()),
        Outcome::Failed(_) => (Mood::Bad, "failed".to_owned()),
        Outcome::Done(headline) => {
            let [_, p99] = headline.times_ns.map(time_text);
            let rate = headline.throughput_per_s.map_or_else(unknown, rate_text);
            let lost = headline.ledger.lost.map_or_else(unknown, count);
            let is_invalid = headline.warnings.iter().any(|(_, is_invalid, _)| *is_invalid);
            let mood = match () {
                () if is_invalid || headline.ledger.lost > Some(0) => Mood::Bad,
                () if !headline.warnings.is_empty() => Mood::Caution,
                () => Mood::Plain,
            };
            let sign = match (is_invalid, headline.warnings.is_empty()) {
                (true, _) => "INVALID ",
                (false, false) => "! ",
                (false, true) => "",
            };
            (mood, format!("{sign}{rate}, p99 {p99}, lost {lost}"))
        }
    };
    (mood, format!("{} #{}: {result}", state.name(place), repetition + 1))
}

/// The newest warnings, each once, and the newest note.
pub fn warnings(shown: &Shown<'_>, rows: usize) -> Lines {
    let state = shown.state;
    let mut seen = std::collections::BTreeSet::new();
    let mut lines: Lines = Vec::new();
    for (place, trial) in state.trials.iter().enumerate().rev() {
        let Outcome::Done(headline) = &trial.outcome else { continue };
        for (code, is_invalid, text) in &headline.warnings {
            if lines.len() < rows && seen.insert((code.clone(), state.name(place))) {
                let mood = if *is_invalid { Mood::Bad } else { Mood::Caution };
                lines.push((mood, format!("! {code}, {}: {text}", state.name(place))));
            }
        }
        if lines.len() >= rows {
            break;
        }
    }
    let notes = state.notes.iter().rev().take(rows.saturating_sub(lines.len()));
    lines.extend(notes.map(|note| (Mood::Dim, note.clone())));
    lines
}

/// Rate and times of the trial that is shown.
pub fn courses(shown: &Shown<'_>, view: &View) -> [Course; 2] {
    let state = shown.state;
    let place = view.trial.or(state.newest());
    let mut points = place.map_or_else(Vec::new, |place| state.course(place));
    // A rate over milliseconds, as at the end of a trial, is no rate of the load.
    points.retain(|point| point.length_s >= LENGTH_S_MIN && !point.is_draining);
    let is_current = place.is_some() && place == state.current;
    let second = state.seconds.back().filter(|_| is_current);
    let offered = second.and_then(|second| second.standing.offered_per_s);
    let name = QUANTILES[view.quantile].1;
    let length = points.last().map_or(0.0, |last| last.at_s);
    let line = offered.map_or("", |_| ", line: offered");
    let rate_title = move |top: f64| {
        let over = span(length.round() * 1e9);
        format!("arrived per second over {over} (top {}/s{line})", exact(top.round()))
    };
    let limit = state.run.as_ref().and_then(|run| {
        let wanted = [format!("response_time_ns.{name}"), format!("delivery_time_ns.{name}")];
        let own = run.thresholds.iter().find(|own| wanted.contains(&own.metric))?;
        match own.limit {
            Limit::Value(value) => Some(value),
            Limit::Change(_) => None,
        }
    });
    let line = limit.map_or("", |_| ", line: threshold");
    let has_times = points.iter().any(|point| point.response_ns[view.quantile].is_some());
    let time_title = move |top: f64| match has_times {
        true => format!("{name} from the due time (top {}{line})", time(top, false)),
        false => format!("{name}: too few messages in a second; p shows another percentile"),
    };
    let quantile = |point: &Point| point.response_ns[view.quantile].map(|time| time as f64);
    [
        Course {
            title: Box::new(rate_title),
            values: points.iter().map(|point| Some(point.arrived_per_s())).collect(),
            line: offered,
        },
        Course {
            title: Box::new(time_title),
            values: points.iter().map(quantile).collect(),
            line: limit,
        },
    ]
}

/// The last line: keys, and what the view itself uses.
pub fn keys(shown: &Shown<'_>, view: &View) -> String {
    let name = QUANTILES[view.quantile].1;
    format!(
        "q close · ? keys · p {name} · space hold · ←→ trials · this view {} of a core",
        percent(shown.own_percent)
    )
}

fn time_text(nanoseconds: Option<f64>) -> String {
    nanoseconds.map_or_else(unknown, |own| match own.is_finite() {
        true => time(own, false),
        false => "∞".to_owned(),
    })
}

fn rate_text(per_s: f64) -> String {
    let rounded = if per_s >= 10.0 { per_s.round() } else { (per_s * 10.0).round() / 10.0 };
    format!("{}/s", exact(rounded))
}

fn unknown() -> String {
    "–".to_owned()
}

/// Age of the target's figures from which it is shown, seconds.
const AGE_S_MAX: f64 = 2.0;

/// Length from which an interval is drawn, seconds: half of the shortest one.
const LENGTH_S_MIN: f64 = 0.05;
