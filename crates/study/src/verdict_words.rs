//! The sentence that stands beside a verdict: made of the figures, never written by hand.

use crate::judging::together;
use crate::outcome::{Answer, Judged, Role};
use crate::scale::Scale;
use crate::study::Claim;
use crate::verdict::Verdict;

/// Why the verdict is what it is. `by_paper` are the roles that no run of ours says anything to.
pub(crate) fn sentence(
    claim: &Claim,
    verdict: Verdict,
    (conditions, by_paper): (&[Judged], &[Role]),
    scale: Scale,
) -> String {
    let of = |role| told(conditions, role, None);
    let refuting = |role| told(conditions, role, Some(Answer::No));
    let answer = |role| together(conditions, role);
    let by = |role, measured: &'static str, printed: &'static str| {
        if by_paper.contains(&role) { printed } else { measured }
    };
    let truly = by(Role::Truth, "Measured right it", "By the paper's own figures it");
    match verdict {
        Verdict::Reproduced => {
            let beside = match answer(Role::Picture) {
                Some(Answer::No) => not_shown(by_paper, &refuting(Role::Picture)),
                _ => String::new(),
            };
            format!("{truly} holds: {}.{beside}", of(Role::Truth))
        }
        Verdict::Explained => {
            let truth = match answer(Role::Truth) {
                Some(Answer::No) => format!(" {truly} does not hold: {}.", refuting(Role::Truth)),
                Some(_) => format!(" {truly} stays open: {}.", of(Role::Truth)),
                None => String::new(),
            };
            let picture = by(
                Role::Picture,
                "Their way shows their picture",
                "By the paper's own figures their picture is there",
            );
            let cause = by(
                Role::Cause,
                "Its cause is seen",
                "By the paper's own figures its cause is seen",
            );
            format!("{picture}: {}. {cause}: {}.{truth}", of(Role::Picture), of(Role::Cause))
        }
        Verdict::Contradicted if answer(Role::Truth) == Some(Answer::No) => {
            format!("{truly} does not hold: {}.", refuting(Role::Truth))
        }
        Verdict::Contradicted => {
            let picture = by(
                Role::Picture,
                "Their picture does not appear",
                "By the paper's own figures their picture does not appear",
            );
            format!("{picture}: {}.", refuting(Role::Picture))
        }
        Verdict::NotTestableHere => match &claim.not_testable {
            Some(reason) => reason.clone(),
            None => open(claim, conditions, scale),
        },
    }
}

/// What a sentence that holds adds where their picture does not appear.
fn not_shown(by_paper: &[Role], refuting: &str) -> String {
    let is_of_paper = |role| by_paper.contains(&role);
    match (is_of_paper(Role::Picture), is_of_paper(Role::Truth)) {
        (true, _) => format!(" Their own figures do not show it: {refuting}."),
        (false, true) => format!(" Their way does not show it: {refuting}."),
        (false, false) => {
            format!(" Their way does not show it: {refuting}; only the right measurement does.")
        }
    }
}

/// What leaves a claim open.
fn open(claim: &Claim, conditions: &[Judged], scale: Scale) -> String {
    let mut reasons: Vec<String> = Vec::new();
    let undecided = conditions.iter().filter(|one| one.answer == Answer::Undecided);
    for judged in undecided {
        let why = judged.reasons.join("; ");
        let reason = format!("{} is open ({why})", judged.text);
        if !reasons.iter().any(|known| known.ends_with(&format!("({why})"))) {
            reasons.push(reason);
        }
    }
    if reasons.is_empty() {
        // Their picture is there, and what was asked for as its cause is not.
        let refuted = told(conditions, Role::Cause, Some(Answer::No));
        return format!(
            "Their picture appears, and not by the cause that was looked for: {refuted}."
        );
    }
    let wait = claim.needs_full && scale != Scale::Full;
    let advice = if wait { " It takes --scale full." } else { "" };
    format!("Open: {}.{advice}", reasons.join("; "))
}

/// The conditions of a role with their figures; with `answer`, only those that are answered so.
fn told(conditions: &[Judged], role: Role, answer: Option<Answer>) -> String {
    let is_meant = |judged: &&Judged| {
        judged.role == role && answer.is_none_or(|answer| judged.answer == answer)
    };
    let tell = |judged: &Judged| {
        let value = if judged.shown.is_empty() { "unknown" } else { &judged.shown };
        let (expression, bound) = halves(&judged.text);
        let asked = if judged.answer == Answer::Yes { "" } else { "asked " };
        format!("{expression} is {value}, {asked}{bound}")
    };
    conditions.iter().filter(is_meant).map(tell).collect::<Vec<_>>().join("; ")
}

/// A condition's expression and its bound, as written.
fn halves(text: &str) -> (&str, &str) {
    let at = text.rfind(" in ").or_else(|| text.find(['<', '>'])).unwrap_or(text.len());
    (text[..at].trim(), text[at..].trim())
}
