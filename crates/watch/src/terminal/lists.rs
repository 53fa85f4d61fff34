//! Lists of the screen: thresholds, trials, warnings.

use weigh_model::numbers::count;

use super::line::{Lines, Mood, rate_text, time_text, unknown};
use super::shown::Shown;
use super::view::View;
use crate::state::{Outcome, RunState, Trial};

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
