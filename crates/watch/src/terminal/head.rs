//! The head of the screen: the run, the trial, the generator's verdict, and the figures of now or
//! of the result.

use weigh_model::binding::GENERATOR_FULL_PERCENT;
use weigh_model::live::{QUANTILES, Second};
use weigh_model::numbers::{bytes, count, exact, percent, rough, span, time};

use super::ledger::ledger_line;
use super::line::{Lines, Mood, rate_text, time_text, unknown};
use super::shown::Shown;
use super::view::View;
use crate::state::{Headline, Outcome, P99, RunState};

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
    let study = shown.study.map_or_else(String::new, |study| format!("{study}, run "));
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
    format!("{study}{id} · {standing}{held}")
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

/// Age of the target's figures from which it is shown, seconds.
const AGE_S_MAX: f64 = 2.0;
