//! Text on a terminal for the answers to a study's claims: a table, then each claim with the
//! figures that decided it.

use std::fmt::Write;
use std::path::Path;

use weigh_report::journal::PAGE;
use weigh_report::terminal::columns;
use weigh_study::Replayed;
use weigh_study::outcome::{ClaimOutcome, OccasionShown, Outcome, Replay};
use weigh_study::runs::NOT_ASKED;

use crate::show::terminal::width as terminal_width;
use crate::show::tool_text;
use weigh_report::terminal::fold::{MORE, shortened, wrapped};

/// Returns the answers of a study, and the place of its page.
pub fn shown(found: &Outcome, folder: &Path) -> String {
    let page = folder.join(PAGE);
    format!("{}report: {}\n", outcome(found, terminal_width()), page.display())
}

/// Returns the runs that were judged, the table of answers, the claims, and the skipped plans.
fn outcome(outcome: &Outcome, width: usize) -> String {
    let mut text = format!("{}: {}\n", outcome.study, outcome.question);
    if outcome.occasions.len() > 1 {
        let _ = writeln!(text, "{}", runs(&outcome.occasions));
    }
    for warning in &outcome.warnings {
        for (number, line) in wrapped(warning, width.saturating_sub(9)).iter().enumerate() {
            let begin = if number == 0 { "warning: " } else { "         " };
            let _ = writeln!(text, "{begin}{line}");
        }
    }
    text.push('\n');
    text += &table(&outcome.claims, width);
    for claim in &outcome.claims {
        text.push('\n');
        text += &one(claim, width);
    }
    for carried in &outcome.carry {
        let _ = writeln!(text, "\n{}", weigh_study::carry::table(carried, width).trim_end());
    }
    text += &tool_text::tools(&outcome.tools);
    let skipped = skipped(outcome);
    if !skipped.is_empty() {
        text.push('\n');
    }
    for (name, why) in skipped {
        let _ = writeln!(text, "not run: {name}: {why}");
    }
    text
}

/// Returns a line such as `judged from 3 runs in 3 boots: a (quick), b (quick), c (full)`.
fn runs(occasions: &[OccasionShown]) -> String {
    let name = |own: &OccasionShown| format!("{} ({})", own.run, own.scale);
    let names: Vec<String> = occasions.iter().map(name).collect();
    let boots: Option<std::collections::BTreeSet<&str>> =
        occasions.iter().map(|own| own.boot.as_deref()).collect();
    let boots = match boots.map(|boots| boots.len()) {
        Some(1) => " in one boot".to_owned(),
        Some(more) => format!(" in {more} boots"),
        None => String::new(),
    };
    format!("judged from {} runs{boots}: {}", occasions.len(), names.join(", "))
}

/// Returns a line for each claim: its ID and its three answers.
fn table(claims: &[ClaimOutcome], width: usize) -> String {
    let heading = ["claim", "as printed", "replayed", "why"].map(str::to_owned).to_vec();
    let row = |claim: &ClaimOutcome| {
        let replays: Vec<String> = claim.replays.iter().map(replay).collect();
        let id = claim.id.clone();
        vec![id, claim.printed.to_string(), replays.join(" / "), claim.why.to_string()]
    };
    let rows: Vec<Vec<String>> = std::iter::once(heading).chain(claims.iter().map(row)).collect();
    columns(&rows, &NO_FIGURES, width)
}

/// Returns the answer of a replay and its kind, such as `reproduced (stand-in)`.
fn replay(replay: &Replay) -> String {
    match replay.answer {
        Replayed::NotRun => replay.answer.to_string(),
        answer if replay.is_same => format!("{answer} (named software)"),
        answer => format!("{answer} (stand-in)"),
    }
}

/// Returns a claim: the statement of the paper, the sentence of its answers, and the number of runs
/// that agree.
fn one(claim: &ClaimOutcome, width: usize) -> String {
    let indent = claim.id.chars().count() + 2;
    let room = width.saturating_sub(indent).max(ROOM_MIN);
    let mut text = format!("{}  {}\n", claim.id, shortened(&claim.says, room));
    let lines = wrapped(&claim.sentence, room);
    for (number, line) in lines.iter().take(LINES_MAX).enumerate() {
        // The page has the full text.
        let is_cut = number + 1 == LINES_MAX && lines.len() > LINES_MAX;
        let more = if is_cut { MORE } else { "" };
        let _ = writeln!(text, "{:indent$}{line}{more}", "");
    }
    for line in claim.agreement_sentence().iter().flat_map(|one| wrapped(one, room)) {
        let _ = writeln!(text, "{:indent$}{line}", "");
    }
    text
}

/// Returns the plans that were not run, each once, with the reason; then the experiments that
/// cannot be run.
fn skipped(outcome: &Outcome) -> Vec<(&str, &str)> {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for experiment in &outcome.experiments {
        let runs = experiment.runs.iter();
        let runs = runs.filter_map(|run| Some((&*run.name, run.skipped.as_deref()?)));
        let runs = runs.filter(|(_, why)| *why != NOT_ASKED);
        let own = experiment.not_run.as_deref().map(|why| (&*experiment.id, why));
        for one in runs.chain(own) {
            if !seen.contains(&one) {
                seen.push(one);
            }
        }
    }
    let tools = outcome.tools.iter();
    let tools = tools.filter_map(|tool| Some((&*tool.name, tool.skipped.as_deref()?)));
    seen.extend(tools.filter(|(_, why)| *why != NOT_ASKED));
    seen
}

/// No column of the answers is aligned to the right.
const NO_FIGURES: std::ops::RangeInclusive<usize> = usize::MAX..=usize::MAX;

/// Columns for a sentence if a terminal is very narrow.
const ROOM_MIN: usize = 40;

/// Most lines for the sentence of a claim.
const LINES_MAX: usize = 3;
