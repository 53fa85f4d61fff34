//! The abstract: six sentences, each made from the results.

use weigh_report::page::document::escape;

use super::compared::{is_near, measured};
use super::front::{day, ways};
use super::numbers::with_interval;
use super::prose::{and, counted, prose};
use crate::answers::{Printed, Replayed, Why};
use crate::outcome::{ClaimOutcome, ComparedShown, Outcome, Replay};

/// The six sentences, with how to read the answers beside them.
pub(super) fn section(outcome: &Outcome) -> String {
    if outcome.claims.is_empty() {
        return super::parts::row(&format!("<p>{}</p>", replayed_what(outcome)), "");
    }
    let sentences = sentences(outcome);
    super::parts::row(
        &format!("<p class=\"abstract\">{}</p>\n", sentences.join(" ")),
        &reading(outcome),
    )
}

/// The sentences as HTML.
fn sentences(outcome: &Outcome) -> [String; 6] {
    [
        replayed_what(outcome),
        printed(&outcome.claims),
        replayed(&outcome.claims),
        why(&outcome.claims),
        figures(outcome),
        agreement(outcome),
    ]
}

/// Meaning of the words of the answers, and how sure they are.
fn reading(outcome: &Outcome) -> String {
    let certainty = outcome.certainty;
    let sure = match certainty.judged {
        0 => String::new(),
        _ => format!("<p>{}</p>\n", escape(&certainty.sentence())),
    };
    format!(
        "<p><b>As printed</b>: arithmetic on the paper's own figures, without a run. \
         <b>Replayed</b>: the authors' experiment, repeated here. <b>Why</b>: whether a run shows \
         the cause that the study names. Answers are computed: a condition holds only if its whole \
         95 % interval does. A claim is called contradicted only if arithmetic forbids it or the \
         software that it names was measured.</p>\n{sure}"
    )
}

fn replayed_what(outcome: &Outcome) -> String {
    let is_run = |runs: &[crate::outcome::RunOutcome]| runs.iter().any(|run| run.folder.is_some());
    let all = outcome.experiments.len();
    let run = outcome.experiments.iter().filter(|one| is_run(&one.runs)).count();
    let mut plans: Vec<&str> = Vec::new();
    for run in outcome.experiments.iter().flat_map(|one| &one.runs) {
        if run.folder.is_some() && !plans.contains(&run.name.as_str()) {
            plans.push(&run.name);
        }
    }
    let experiments = match run {
        run if run == all => format!("all {}", counted(all, "experiment", "experiments")),
        run => format!("{run} of {}", counted(all, "experiment", "experiments")),
    };
    let times = match outcome.occasions.len() {
        0 | 1 => format!("once, on {}", day(&outcome.started)),
        number => format!("{number} times"),
    };
    format!(
        "Weighbridge replayed {experiments} of the paper {}, at {} scale in {}, {times}.",
        escape(&ways(outcome)),
        outcome.scale,
        counted(plans.len(), "plan", "plans"),
    )
}

fn printed(claims: &[ClaimOutcome]) -> String {
    let of = |answer| by(claims, |claim| claim.printed == answer);
    let parts = [
        group(&of(Printed::Impossible), "impossible"),
        group(&of(Printed::Inconsistent), "inconsistent"),
        group(&of(Printed::Consistent), "consistent"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let all = counted(claims.len(), "claim", "claims");
    let rest = match of(Printed::NothingToCheck).len() {
        _ if parts.is_empty() => {
            return format!("None of its {all} can be checked by arithmetic on printed figures.");
        }
        0 => String::new(),
        nothing => format!("; it cannot check the other {nothing}"),
    };
    let found = listed(&parts);
    format!("Of its {all}, arithmetic on the printed figures finds {found}{rest}.")
}

fn replayed(claims: &[ClaimOutcome]) -> String {
    let own = |claim: &ClaimOutcome| claim.replays.first().map(|replay| replay.answer);
    let of = |answer| by(claims, |claim| own(claim) == Some(answer));
    let parts = [
        group(&of(Replayed::Reproduced), "reproduced"),
        group(&of(Replayed::NotReproduced), "not reproduced"),
        group(&of(Replayed::Undecided), "undecided"),
        number(of(Replayed::NotRun).len(), "not run"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let is_decided = |answer| matches!(answer, Replayed::Reproduced | Replayed::NotReproduced);
    let decided = claims.iter().filter_map(|claim| claim.replays.first());
    let decided: Vec<bool> =
        decided.filter(|own| is_decided(own.answer)).map(|own| own.is_same).collect();
    let same = decided.iter().filter(|is_same| **is_same).count();
    let on = match decided.len() {
        0 => String::new(),
        all if all == same => "; all of the decided ones ran on the software that the paper \
                               names"
            .to_owned(),
        _ if same == 0 => "; all of the decided ones ran on stand-ins".to_owned(),
        all => {
            format!("; {same} of the {all} decided ones ran on the software that the paper names")
        }
    };
    let contradicted = by(claims, |claim| claim.is_contradicted);
    let contradicted = match contradicted.len() {
        0 => ", and none is contradicted".to_owned(),
        1 => format!(", and {} is contradicted", contradicted[0]),
        _ => format!(", and {} are contradicted", all_of(&contradicted)),
    };
    format!("The replays leave {}{on}{contradicted}{}.", listed(&parts), on_named(claims))
}

/// Results of further replays on the software that the paper names, in addition to stand-ins.
fn on_named(claims: &[ClaimOutcome]) -> String {
    let of = |answer| {
        let is_it = |own: &Replay| own.is_same && own.answer == answer;
        by(claims, |claim| claim.replays.iter().skip(1).any(is_it))
    };
    let parts = [
        group(&of(Replayed::Reproduced), "reproduced"),
        group(&of(Replayed::NotReproduced), "not reproduced"),
        group(&of(Replayed::Undecided), "undecided"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    match parts.len() {
        0 => String::new(),
        _ => {
            format!(
                "; second replays on the software that the paper names leave {}",
                listed(&parts)
            )
        }
    }
}

fn why(claims: &[ClaimOutcome]) -> String {
    let of = |answer| by(claims, |claim| claim.why == answer);
    let asked = claims.len() - of(Why::NotAsked).len();
    let parts = [
        group(&of(Why::CauseShown), "shown"),
        number(of(Why::CausePossible).len(), "possible but not shown"),
        group(&of(Why::CauseNotFound), "not found"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    match asked {
        0 => "The study names no cause to look for.".to_owned(),
        asked => {
            let causes = counted(asked, "supposed cause", "supposed causes");
            format!("Of {causes}, these runs leave {}.", listed(&parts))
        }
    }
}

/// Distance of the measured figures from the printed ones, and the largest.
fn figures(outcome: &Outcome) -> String {
    let all =
        outcome.claims.iter().flat_map(|claim| claim.compared.iter().map(move |one| (claim, one)));
    let all: Vec<(&ClaimOutcome, &ComparedShown, f64)> = all
        .filter_map(|(claim, one)| Some((claim, one, one.ratio.filter(|ratio| *ratio > 0.0)?)))
        .collect();
    let distance = |ratio: f64| ratio.ln().abs();
    let furthest = all.iter().max_by(|left, right| distance(left.2).total_cmp(&distance(right.2)));
    let Some((claim, one, ratio)) = furthest else {
        return "No printed figure is compared with a measured one.".to_owned();
    };
    let near = all.iter().filter(|(_, one, _)| is_near(one)).count();
    let ratio = with_interval(*ratio, (one.ratio_low, one.ratio_high), "1");
    format!(
        "Of {} compared with the paper, {near} lie within a quarter of the printed one; the \
         furthest is in {} ({}): the paper prints {}, and this replay measures {}, {ratio} times \
         that value.",
        counted(all.len(), "measured figure", "measured figures"),
        link(&claim.id),
        prose(&one.what),
        escape(&super::compared::theirs(one)),
        escape(&measured(one)),
    )
}

/// Stability of the answers from run to run.
fn agreement(outcome: &Outcome) -> String {
    let known: Vec<(&ClaimOutcome, usize, usize)> = outcome
        .claims
        .iter()
        .filter_map(|claim| claim.agreement.as_ref().map(|own| (claim, own.same, own.of)))
        .collect();
    let Some(runs) = known.iter().map(|(.., of)| *of).max() else {
        if outcome.occasions.len() > 1 {
            let runs = outcome.occasions.len();
            return format!(
                "It rests on {runs} runs that are judged together: the intervals include the \
                 spread within a run and between runs."
            );
        }
        return "It rests on one run, so its intervals include the spread within that run but \
        not between runs."
            .to_owned();
    };
    let changed: Vec<String> =
        known.iter().filter(|(_, same, of)| same < of).map(|(claim, ..)| link(&claim.id)).collect();
    match changed.len() {
        0 => format!("Each of {runs} runs alone gives the same answer to every claim."),
        _ => format!(
            "Each of {runs} runs alone gives the same answer to {} of {}; those to {} differ from \
             run to run.",
            known.len() - changed.len(),
            counted(known.len(), "claim", "claims"),
            all_of(&changed),
        ),
    }
}

/// Links to the claims of which this is true.
fn by(claims: &[ClaimOutcome], is_meant: impl Fn(&ClaimOutcome) -> bool) -> Vec<String> {
    claims.iter().filter(|claim| is_meant(claim)).map(|claim| link(&claim.id)).collect()
}

fn link(id: &str) -> String {
    format!("<a href=\"#claim-{0}\">{0}</a>", escape(id))
}

/// `2 inconsistent (C01 and C02)`; of many the number alone.
fn group(links: &[String], word: &str) -> Option<String> {
    match links.len() {
        0 => None,
        few if few <= NAMED_MAX => Some(format!("{few} {word} ({})", all_of(links))),
        many => Some(format!("{many} {word}")),
    }
}

fn number(number: usize, word: &str) -> Option<String> {
    (number > 0).then(|| format!("{number} {word}"))
}

/// Parts of a count as a sentence has them.
fn listed(parts: &[String]) -> String {
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    and(&parts)
}

fn all_of(links: &[String]) -> String {
    let links: Vec<&str> = links.iter().map(String::as_str).collect();
    and(&links)
}

/// More claims than this are counted and not named.
const NAMED_MAX: usize = 6;
