//! The sentence that sums up the three answers to a claim, made of the figures.

use crate::answers::{Printed, Replayed, Why};
use crate::claim_outcome::{Answer, Judged, Replay, Role};
use crate::expression::Bound;
use crate::scale::Scale;
use crate::study::Claim;

/// The answers of a claim, with the conditions behind them.
pub(crate) struct Answers<'a> {
    pub(crate) printed: Printed,
    pub(crate) replays: &'a [Replay],
    pub(crate) why: Why,
    pub(crate) conditions: &'a [Judged],
}

/// Sentence with the three answers and the deciding figures.
pub(crate) fn sentence(claim: &Claim, answers: &Answers<'_>, scale: Scale) -> String {
    let waits = claim.needs_full && scale != Scale::Full;
    let mut parts = vec![printed(answers)];
    for (lane, replay) in answers.replays.iter().enumerate() {
        parts.push(replayed(replay, lane, answers, waits));
    }
    parts.push(why(answers));
    parts.retain(|part| !part.is_empty());
    parts.join(" ")
}

fn printed(answers: &Answers<'_>) -> String {
    let of = |role, answer| figures(answers.conditions, role, 0, answer);
    match answers.printed {
        Printed::NothingToCheck => String::new(),
        Printed::Impossible => {
            format!("Contradicted: arithmetic forbids it: {}.", of(Role::Possible, Answer::No))
        }
        Printed::Inconsistent => {
            let figures = of(Role::Printed, Answer::No);
            format!("The printed figures do not agree with it: {figures}.")
        }
        Printed::Consistent => {
            let mut figures = of(Role::Printed, Answer::Yes);
            if figures.is_empty() {
                figures = of(Role::Possible, Answer::Yes);
            }
            format!("The printed figures agree with it: {figures}.")
        }
    }
}

fn replayed(replay: &Replay, lane: usize, answers: &Answers<'_>, waits: bool) -> String {
    let role = if lane == 0 { Role::Replayed } else { Role::Named };
    let of = |answer| figures(answers.conditions, role, lane, answer);
    let on = if lane == 0 { String::new() } else { format!(" on {}", replay.on) };
    match (replay.answer, replay.is_same) {
        (Replayed::Reproduced, true) => format!("Reproduced{on}: {}.", of(Answer::Yes)),
        (Replayed::Reproduced, false) => {
            format!("Reproduced with a stand-in: {}.", of(Answer::Yes))
        }
        (Replayed::NotReproduced, true) => {
            format!("Contradicted by the software that it names{on}: {}.", of(Answer::No))
        }
        (Replayed::NotReproduced, false) => {
            format!("Not reproduced with a stand-in: {}.", of(Answer::No))
        }
        (Replayed::Undecided, _) => {
            let advice = if waits { " It takes --scale full." } else { "" };
            format!("The replay{on} is undecided: {}.{advice}", replay.reasons.join("; "))
        }
        (Replayed::NotRun, _) => {
            let reason = replay.reasons.join("; ");
            format!("Not replayed{on}: {}.", reason.trim_end_matches('.'))
        }
    }
}

fn why(answers: &Answers<'_>) -> String {
    let of = |answer| figures(answers.conditions, Role::Why, 0, answer);
    match answers.why {
        Why::NotAsked => String::new(),
        Why::CauseShown => format!("Cause shown: {}.", of(Answer::Yes)),
        Why::CauseNotFound => format!("Cause not found: {}.", of(Answer::No)),
        Why::CausePossible => {
            let reasons = open(answers.conditions, Role::Why, 0);
            format!("The cause is possible, not shown: {}.", reasons.join("; "))
        }
    }
}

/// Why conditions of a role are undecided, each reason once.
pub(crate) fn open(conditions: &[Judged], role: Role, lane: usize) -> Vec<String> {
    let own = conditions.iter().filter(|one| one.role == role && one.lane == lane);
    let mut reasons: Vec<String> = Vec::new();
    for reason in own.filter(|one| one.answer == Answer::Undecided).flat_map(because) {
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    reasons
}

/// Reasons that leave a condition open.
fn because(judged: &Judged) -> Vec<String> {
    match judged.reasons.is_empty() || judged.shown.is_empty() {
        true => judged.reasons.clone(),
        false => {
            let figure = format!("{} is {}", subject(judged), judged.shown);
            vec![format!("{figure} ({})", judged.reasons.join("; "))]
        }
    }
}

/// The conditions of a role that are answered so, with their figures; the first of them, and how
/// many more.
fn figures(conditions: &[Judged], role: Role, lane: usize, answer: Answer) -> String {
    let is_meant = |one: &&Judged| one.role == role && one.lane == lane && one.answer == answer;
    let told: Vec<String> = conditions.iter().filter(is_meant).map(told).collect();
    let more = told.len().saturating_sub(FIGURES_MAX);
    let first = told.into_iter().take(FIGURES_MAX).collect::<Vec<_>>().join("; ");
    match more {
        0 => first,
        1 => format!("{first}; and one more condition"),
        more => format!("{first}; and {more} more conditions"),
    }
}

/// A condition with its figure: `http / mqtt is 3.84 (3.60 to 4.09), more than 2`.
pub(crate) fn told(judged: &Judged) -> String {
    let (what, bound) = (subject(judged), bound(judged));
    match judged.answer {
        _ if judged.shown.is_empty() => format!("{what} is unknown"),
        Answer::Yes if judged.shown == bound => format!("{what} is {bound}"),
        Answer::Yes => format!("{what} is {}, {bound}", judged.shown),
        Answer::No => format!("{what} is {}, not {bound}", judged.shown),
        Answer::Undecided => {
            format!("{what} is {}, which leaves open whether it is {bound}", judged.shown)
        }
    }
}

/// What a condition is about: in words where the study has some, else the expression. A second
/// comma closes what a first one opens: `CPU by htop, HTTP over MQTT, is ...`.
fn subject(judged: &Judged) -> String {
    match judged.words.as_str() {
        "" => halves(&judged.text).0.to_owned(),
        words if words.contains(", ") => format!("{words},"),
        words => words.to_owned(),
    }
}

/// The required range of its value, in words.
fn bound(judged: &Judged) -> String {
    let written = halves(&judged.text).1;
    Bound::read(written).map_or_else(|_| written.to_owned(), Bound::in_words)
}

/// A condition's expression and its bound, as written.
fn halves(text: &str) -> (&str, &str) {
    let at = text.rfind(" in ").or_else(|| text.find(['<', '>'])).unwrap_or(text.len());
    (text[..at].trim(), text[at..].trim())
}

/// A sentence has no room for more figures; all conditions stand below it.
const FIGURES_MAX: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(role: Role, answer: Answer, (text, shown): (&str, &str)) -> Judged {
        Judged {
            role,
            lane: 0,
            text: text.to_owned(),
            words: String::new(),
            estimate: None,
            low: None,
            high: None,
            n: None,
            shown: shown.to_owned(),
            answer,
            is_without_runs: false,
            reasons: Vec::new(),
            quantities: Vec::new(),
        }
    }

    #[test]
    fn a_condition_is_told_by_its_answer() {
        let said =
            |answer, text: &str, shown: &str| told(&judged(Role::Replayed, answer, (text, shown)));
        assert_eq!(
            said(Answer::Yes, "a / b > 2", "3 (2.5 to 3.5)"),
            "a / b is 3 (2.5 to 3.5), more than 2"
        );
        assert_eq!(said(Answer::Yes, "lost <= 0", "0"), "lost is 0");
        assert_eq!(said(Answer::No, "lost > 0", "0"), "lost is 0, not more than 0");
        assert_eq!(said(Answer::No, "lost <= 0", "7"), "lost is 7, not 0");
        assert_eq!(said(Answer::No, "a in 1..2", "3"), "a is 3, not between 1 and 2");
        assert_eq!(said(Answer::Undecided, "a < 2", ""), "a is unknown");
    }

    /// Contradicted is said of arithmetic and of the software that the paper names, never of a
    /// stand-in.
    #[test]
    fn a_stand_in_never_contradicts() {
        let said = |is_same, answer, of| {
            let replay = Replay {
                answer,
                on: "a broker".to_owned(),
                is_same,
                host: String::new(),
                reasons: Vec::new(),
            };
            let conditions = [judged(Role::Replayed, of, ("a > 2", "1"))];
            let answers = Answers {
                printed: Printed::NothingToCheck,
                replays: std::slice::from_ref(&replay),
                why: Why::NotAsked,
                conditions: &conditions,
            };
            replayed(&replay, 0, &answers, false)
        };
        let not = said(false, Replayed::NotReproduced, Answer::No);
        assert_eq!(not, "Not reproduced with a stand-in: a is 1, not more than 2.");
        let not = said(true, Replayed::NotReproduced, Answer::No);
        assert!(not.starts_with("Contradicted by the software that it names: "), "{not}");
        assert!(said(true, Replayed::Reproduced, Answer::Yes).starts_with("Reproduced: "));
    }
}
