//! The claims: what the paper says, the result in one sentence, the three answers as words
//! next to it, and all evidence behind a fold.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use weigh_report::page::document::escape;

use super::conditions;
use super::numbers::unit_after;
use super::prose::{and, counted, prose, series};
use crate::answer_words::told;
use crate::answers::{Printed, Replayed, Why};
use crate::outcome::{
    Agreement, Answer, CellShown, ClaimOutcome, FlagShown, Judged, Outcome, Replay, Role,
};

/// Claims of the authors.
pub(super) fn claims(outcome: &Outcome) -> String {
    let intro = intro(outcome);
    let claims = outcome.claims.iter().filter(|claim| !claim.is_finding);
    let claims: String = claims.map(|one| claim(one, outcome)).collect();
    if claims.is_empty() { claims } else { intro + &claims }
}

/// Findings of the audit that no author claims.
pub(super) fn findings(outcome: &Outcome) -> String {
    let findings = outcome.claims.iter().filter(|claim| claim.is_finding);
    findings.map(|one| claim(one, outcome)).collect()
}

/// Notes on all claims: whose words they are, on which machine, and whether the
/// conditions were there first.
fn intro(outcome: &Outcome) -> String {
    let mut text =
        "Claims are in the words of the study, with their place in the paper.".to_owned();
    if let Some(host) = one_host(outcome) {
        let _ = write!(text, " All replays ran on one machine ({}).", escape(host));
    }
    format!("<p class=\"note\">{text}{}</p>\n", frozen(outcome))
}

/// The machine of all replays; `None` where there are several, or none.
fn one_host(outcome: &Outcome) -> Option<&str> {
    let mut hosts = outcome.claims.iter().flat_map(|claim| &claim.replays).map(|own| &*own.host);
    let mut hosts = hosts.by_ref().filter(|host| !host.is_empty());
    let first = hosts.next()?;
    hosts.all(|host| host == first).then_some(first)
}

/// Whether the runs began with the conditions by which they are judged.
fn frozen(outcome: &Outcome) -> String {
    let known: Vec<Option<bool>> = outcome.occasions.iter().map(|one| one.is_same_study).collect();
    let hash: String = outcome.judged_hash.chars().take(HASH_DIGITS).collect();
    match known.iter().all(|one| *one == Some(true)) {
        _ if known.is_empty() || hash.is_empty() => String::new(),
        true => format!(
            " Their conditions were written before the runs: every run began with the \
             <code>study.toml</code> that they are judged by (SHA-256 {hash}…)."
        ),
        // The banner says so of those that began with another one.
        false if known.contains(&Some(false)) => String::new(),
        false => format!(
            " Nothing proves that their conditions (<code>study.toml</code>, SHA-256 {hash}…) were \
             written before the runs: {} of them recorded none.",
            known.iter().filter(|one| one.is_none()).count()
        ),
    }
}

fn claim(claim: &ClaimOutcome, outcome: &Outcome) -> String {
    let id = escape(&claim.id);
    let mut html = format!(
        "<article class=\"claim\" aria-labelledby=\"claim-{id}\">\n<div><h3 id=\"claim-{id}\"><b>\
         {id}</b> {} <span class=\"where\">{}</span></h3>\n<p>{}</p>\n",
        prose(&claim.says),
        escape(&claim.section),
        prose(&deciding(claim)),
    );
    for one in claim.break_even.iter().filter(|one| one.value.is_some()) {
        let _ = writeln!(html, "<p class=\"note\">Break-even: {}</p>", prose(&one.sentence));
    }
    if let Some(remark) = &claim.remark {
        let _ = writeln!(html, "<p class=\"note\">{}</p>", prose(remark));
    }
    html += "</div>\n";
    html += &answers(claim, one_host(outcome).is_none());
    html += &super::parts::fold("Evidence", &evidence(claim));
    html + "</article>\n"
}

/// The figures that decide the answers, in one or two sentences; all of them are in the evidence.
fn deciding(claim: &ClaimOutcome) -> String {
    let first = |roles: &[Role], answer| {
        let mut own = claim.conditions.iter().filter(|one| roles.contains(&one.role));
        own.find(|one| one.answer == answer && one.lane == 0).map(told)
    };
    let by_paper = [Role::Possible, Role::Printed];
    let printed = |answer| first(&by_paper, answer).map(|text| format!("As printed, {text}."));
    let own = claim.replays.first().map(|replay| (replay.answer, &replay.reasons));
    let here = |answer| first(&[Role::Replayed], answer).map(|text| format!("Here, {text}."));
    let replayed = match own {
        Some((Replayed::Reproduced, _)) => here(Answer::Yes),
        Some((Replayed::NotReproduced, _)) => here(Answer::No),
        Some((Replayed::Undecided, _)) => Some(undecided(claim)),
        Some((Replayed::NotRun, reasons)) => Some(format!("Not run: {}.", few(reasons.iter()))),
        None => None,
    };
    let printed = match claim.printed {
        Printed::Impossible | Printed::Inconsistent => printed(Answer::No),
        // Where a replay has a figure, that says more.
        Printed::Consistent if !replayed.as_ref().is_some_and(|text| text.starts_with("Here")) => {
            printed(Answer::Yes)
        }
        _ => None,
    };
    let sentences: Vec<String> = [printed, replayed].into_iter().flatten().collect();
    match sentences.is_empty() {
        true => claim.sentence.clone(),
        false => sentences.join(" "),
    }
}

/// The first figure that a replay leaves open, and why.
fn undecided(claim: &ClaimOutcome) -> String {
    let is_open = |one: &&Judged| {
        one.role == Role::Replayed && one.lane == 0 && one.answer == Answer::Undecided
    };
    let open = || claim.conditions.iter().filter(is_open);
    let reasons = few(open().flat_map(|one| &one.reasons));
    match open().find(|one| !one.shown.is_empty()) {
        Some(one) => {
            let what = if one.words.is_empty() { &one.text } else { &one.words };
            format!("Here, {what}: {}. Undecided: {reasons}.", one.shown)
        }
        None => format!("Undecided: {reasons}."),
    }
}

/// The shortest of the reasons, and how many others there are.
fn few<'r>(reasons: impl Iterator<Item = &'r String>) -> String {
    let distinct: BTreeSet<&str> = reasons.map(|text| text.trim_end_matches('.')).collect();
    let Some(first) = distinct.iter().min_by_key(|reason| reason.len()) else {
        return "its conditions give no figure".to_owned();
    };
    match distinct.len() - 1 {
        0 => (*first).to_owned(),
        more => format!("{first}; and {}", counted(more, "more reason", "more reasons")),
    }
}

/// The three answers as words, each replay with what it ran on, and how many runs agree.
fn answers(claim: &ClaimOutcome, has_hosts: bool) -> String {
    let mut html = format!(
        "<div class=\"side\"><dl class=\"answers\">\n<dt>as printed</dt><dd>{}</dd>\n",
        printed(claim.printed)
    );
    for replay in &claim.replays {
        let host = match &*replay.host {
            host if has_hosts && !host.is_empty() => format!(" ({})", escape(host)),
            _ => String::new(),
        };
        let on = match &*replay.on {
            "" => String::new(),
            on if replay.is_same => format!(" on the same software: {}{host}", prose(on)),
            on => format!(": {}{host}", prose(on)),
        };
        let _ = writeln!(html, "<dt>replayed</dt><dd>{}{on}</dd>", replayed(replay));
    }
    let _ = writeln!(html, "<dt>why</dt><dd>{}</dd></dl>", why(claim.why));
    if let Some(Agreement { same, of, .. }) = claim.agreement {
        let _ = writeln!(html, "<p>The same answer in {same} of {of} runs.</p>");
    }
    html + "</div>\n"
}

/// The answer of a claim in a table: its replay's, or what arithmetic says where nothing was run.
pub(super) fn short_answer(claim: &ClaimOutcome) -> String {
    if claim.is_contradicted {
        return "<span class=\"word no\">contradicted</span>".to_owned();
    }
    let own = claim.replays.first().filter(|own| own.answer != Replayed::NotRun);
    match own {
        Some(own) => replayed(own),
        None if claim.printed == Printed::NothingToCheck => word("open", "not run"),
        None => format!("as printed: {}", printed(claim.printed)),
    }
}

fn printed(answer: Printed) -> String {
    let class = match answer {
        Printed::Consistent => "yes",
        Printed::Inconsistent | Printed::Impossible => "no",
        Printed::NothingToCheck => "open",
    };
    word(class, answer.name())
}

/// A stand-in says nothing sure of the software that it stands in for: the words say so.
fn replayed(replay: &Replay) -> String {
    match (replay.answer, replay.is_same) {
        (Replayed::Reproduced, true) => word("yes", replay.answer.name()),
        (Replayed::Reproduced, false) => word("yes", "reproduced with a stand-in"),
        (Replayed::NotReproduced, true) => word("no", replay.answer.name()),
        (Replayed::NotReproduced, false) => word("mild", "not reproduced with a stand-in"),
        (Replayed::Undecided | Replayed::NotRun, _) => word("open", replay.answer.name()),
    }
}

fn why(answer: Why) -> String {
    let class = match answer {
        Why::CauseShown => "yes",
        Why::CauseNotFound => "no",
        Why::CausePossible | Why::NotAsked => "open",
    };
    word(class, answer.name())
}

/// An answer: a word first, and a colour second.
fn word(class: &str, word: &str) -> String {
    format!("<span class=\"word {class}\">{word}</span>")
}

/// All that the answers rest on.
fn evidence(claim: &ClaimOutcome) -> String {
    let unknown = claim.break_even.iter().filter(|one| one.value.is_none());
    cells(&claim.cells)
        + &because(claim)
        + &super::parts::list(unknown.map(|one| format!("Break-even: {}", prose(&one.sentence))))
        + &conditions::table(claim)
        + &runs(claim)
}

/// The cause: a fact where a run shows it.
fn because(claim: &ClaimOutcome) -> String {
    let Some(because) = &claim.because else { return String::new() };
    let what = match claim.why {
        Why::CauseShown => "Cause",
        Why::CausePossible => "Supposed cause, which these runs do not show",
        Why::CauseNotFound => "Supposed cause, which these runs contradict",
        Why::NotAsked => "Remark",
    };
    format!("<p><b>{what}.</b> {}</p>\n", prose(because))
}

/// Answers of each run alone, if they differ.
fn runs(claim: &ClaimOutcome) -> String {
    let Some(agreement) = claim.agreement.as_ref().filter(|own| own.same < own.of) else {
        return String::new();
    };
    let items = agreement.answers.iter().map(|own| {
        let replays: Vec<&str> = own.replays.iter().map(|answer| answer.name()).collect();
        format!("{}: {}; {}", escape(&own.run), and(&replays), own.why)
    });
    format!("<p>Each run alone:</p>\n{}", super::parts::list(items))
}

/// The published figures, a line for each series, then remarks on them.
fn cells(cells: &[CellShown]) -> String {
    let mut lines: Vec<(String, Vec<String>)> = Vec::new();
    for cell in cells {
        let place = format!("{}: {}", cell.table, series(&cell.series));
        let x = match (cell.x.as_str(), cell.x_unit.as_str()) {
            ("", _) => String::new(),
            (x, unit) => format!(" ({})", format!("{x} {unit}").trim()),
        };
        let value = format!("{}{x}", unit_after(&cell.printed, &cell.unit));
        match lines.iter_mut().find(|(known, _)| *known == place) {
            Some((_, values)) => values.push(value),
            None => lines.push((place, vec![value])),
        }
    }
    let lines = lines
        .iter()
        .map(|(place, values)| format!("{}: <b>{}</b>", escape(place), escape(&values.join(", "))));
    let mut flags: Vec<&FlagShown> = Vec::new();
    for flag in cells.iter().flat_map(|cell| &cell.flags) {
        if !flags.contains(&flag) {
            flags.push(flag);
        }
    }
    let flags = flags.into_iter().map(|flag| {
        let about = match flag.about.as_str() {
            "" => String::new(),
            about => format!("elsewhere in this table, {}: ", escape(&series(about))),
        };
        format!(
            "<span class=\"bad\">{about}printed {}, read as {}: {} ({})</span>",
            escape(&flag.printed),
            escape(&flag.used),
            escape(&flag.reason),
            escape(&flag.confidence),
        )
    });
    super::parts::list(lines.chain(flags))
}

/// Digits of a hash that tell one file from another.
const HASH_DIGITS: usize = 12;
