//! The sentence that stands beside a verdict: made of the figures, never written by hand.

use crate::conditions::NARROWER;
use crate::expression::Bound;
use crate::judging::together;
use crate::outcome::{Answer, Judged, Role};
use crate::scale::Scale;
use crate::study::Claim;
use crate::verdict::Verdict;

/// The conditions of a claim, judged, and what they rest on.
pub(crate) struct Told<'a> {
    pub(crate) conditions: &'a [Judged],
    /// The roles that no run of ours says anything to.
    pub(crate) by_paper: &'a [Role],
    /// The roles in which a figure is modelled.
    pub(crate) by_model: &'a [Role],
}

/// Why the verdict is what it is.
pub(crate) fn sentence(claim: &Claim, verdict: Verdict, told: &Told<'_>, scale: Scale) -> String {
    match verdict {
        Verdict::Reproduced => {
            let beside = match told.answer(Role::Picture) {
                Some(Answer::No) => told.not_shown(),
                _ => String::new(),
            };
            format!("{} holds: {}.{beside}", told.truly(), told.all(Role::Truth))
        }
        Verdict::Explained => {
            let truth = match told.answer(Role::Truth) {
                Some(Answer::No) => told.refuted(),
                Some(_) => format!("{} stays open: {}.", told.truly(), told.all(Role::Truth)),
                None => String::new(),
            };
            let (picture, cause) = (told.picture(), told.all(Role::Cause));
            let text = format!("{picture}. {}: {cause}. {truth}", told.cause());
            text.trim_end().to_owned()
        }
        Verdict::Contradicted if told.answer(Role::Truth) == Some(Answer::No) => {
            told.refuted() + &told.beside_the_truth(claim.needs_full && scale != Scale::Full)
        }
        Verdict::Contradicted => told.no_picture(),
        Verdict::NotTestableHere => match &claim.not_testable {
            Some(reason) => reason.clone(),
            None => open(claim, told.conditions, scale),
        },
    }
}

impl Told<'_> {
    fn answer(&self, role: Role) -> Option<Answer> {
        together(self.conditions, role)
    }

    /// All conditions of a role with their figures.
    fn all(&self, role: Role) -> String {
        tell(self.conditions, role, None)
    }

    /// Those among them that do not hold.
    fn refuting(&self, role: Role) -> String {
        tell(self.conditions, role, Some(Answer::No))
    }

    /// The words for what rests on our runs, on a model, or on printed figures alone.
    fn by(&self, role: Role, words: [&'static str; 3]) -> &'static str {
        let [measured, modelled, printed] = words;
        match () {
            () if self.by_paper.contains(&role) => printed,
            () if self.by_model.contains(&role) => modelled,
            () => measured,
        }
    }

    fn truly(&self) -> &'static str {
        let words = ["Measured right it", "As modelled it", "By the paper's own figures it"];
        self.by(Role::Truth, words)
    }

    fn refuted(&self) -> String {
        format!("{} does not hold: {}.", self.truly(), self.refuting(Role::Truth))
    }

    fn picture(&self) -> String {
        let begin = self.by(
            Role::Picture,
            [
                "Their way shows their picture",
                "As modelled their way shows their picture",
                "By the paper's own figures their picture is there",
            ],
        );
        format!("{begin}: {}", self.all(Role::Picture))
    }

    fn no_picture(&self) -> String {
        let begin = self.by(
            Role::Picture,
            [
                "Their picture does not appear",
                "As modelled their picture does not appear",
                "By the paper's own figures their picture does not appear",
            ],
        );
        format!("{begin}: {}.", self.refuting(Role::Picture))
    }

    fn cause(&self) -> &'static str {
        self.by(
            Role::Cause,
            [
                "Its cause is seen",
                "Its cause is seen, in part as modelled",
                "By the paper's own figures its cause is seen",
            ],
        )
    }

    /// What a sentence that holds adds where their picture does not appear.
    fn not_shown(&self) -> String {
        let refuting = self.refuting(Role::Picture);
        let is_of_paper = |role| self.by_paper.contains(&role);
        match (is_of_paper(Role::Picture), is_of_paper(Role::Truth)) {
            (true, _) => format!(" Their own figures do not show it: {refuting}."),
            (false, true) => format!(" Their way does not show it: {refuting}."),
            (false, false) => {
                format!(" Their way does not show it: {refuting}; only the right measurement does.")
            }
        }
    }

    /// What a sentence that does not hold adds on their picture: why it is not explained.
    /// `waits` is true where more of the claim is measured at full scale.
    fn beside_the_truth(&self, waits: bool) -> String {
        match self.answer(Role::Picture) {
            None => String::new(),
            Some(Answer::No) => format!(" {}", self.no_picture()),
            Some(Answer::Yes) => {
                let cause = match self.answer(Role::Cause) {
                    Some(Answer::No) => "but not the cause that was looked for",
                    _ => "but its cause stays open",
                };
                format!(" {}, {cause}.", self.picture())
            }
            Some(Answer::Undecided) => {
                let advice = if waits { ": it takes --scale full" } else { "" };
                format!(" Whether their way shows their picture stays open{advice}.")
            }
        }
    }
}

/// What leaves a claim open.
fn open(claim: &Claim, conditions: &[Judged], scale: Scale) -> String {
    let mut reasons: Vec<String> = Vec::new();
    let undecided = conditions.iter().filter(|one| one.answer == Answer::Undecided);
    let mut is_wide = false;
    for judged in undecided {
        let why = judged.reasons.join("; ");
        is_wide |= why.ends_with(NARROWER);
        let why = why.trim_end_matches(NARROWER);
        let (what, bound) = (subject(judged), bound(judged));
        let reason = format!("whether {what} is {bound} ({why})");
        if !reasons.iter().any(|known| known.ends_with(&format!("({why})"))) {
            reasons.push(reason);
        }
    }
    if reasons.is_empty() {
        // Their picture is there, and what was asked for as its cause is not.
        let refuted = tell(conditions, Role::Cause, Some(Answer::No));
        return format!(
            "Their picture appears, and not by the cause that was looked for: {refuted}."
        );
    }
    let wait = claim.needs_full && scale != Scale::Full;
    let advice = match (wait, is_wide) {
        (true, _) => " It takes --scale full.",
        (false, true) => " More repetitions would narrow it.",
        (false, false) => "",
    };
    format!("Open: {}.{advice}", reasons.join("; "))
}

/// The conditions of a role with their figures; with `answer`, only those that are answered so.
fn tell(conditions: &[Judged], role: Role, answer: Option<Answer>) -> String {
    let is_meant = |judged: &&Judged| {
        judged.role == role && answer.is_none_or(|answer| judged.answer == answer)
    };
    let told = conditions.iter().filter(is_meant).map(told);
    told.collect::<Vec<_>>().join("; ")
}

/// A condition with its figure: `http / mqtt is 3.84 (3.60 to 4.09), more than 2`.
fn told(judged: &Judged) -> String {
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

/// Where its value must lie, in words.
fn bound(judged: &Judged) -> String {
    let written = halves(&judged.text).1;
    Bound::read(written).map_or_else(|_| written.to_owned(), Bound::in_words)
}

/// A condition's expression and its bound, as written.
fn halves(text: &str) -> (&str, &str) {
    let at = text.rfind(" in ").or_else(|| text.find(['<', '>'])).unwrap_or(text.len());
    (text[..at].trim(), text[at..].trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(role: Role, answer: Answer, (text, shown): (&str, &str)) -> Judged {
        Judged {
            role,
            text: text.to_owned(),
            words: String::new(),
            estimate: None,
            low: None,
            high: None,
            n: None,
            shown: shown.to_owned(),
            answer,
            reasons: Vec::new(),
            quantities: Vec::new(),
        }
    }

    #[test]
    fn a_condition_is_told_by_its_answer() {
        let said =
            |answer, text: &str, shown: &str| told(&judged(Role::Truth, answer, (text, shown)));
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

    /// A claim that does not hold measured right says what became of its authors' picture.
    #[test]
    fn what_is_contradicted_says_why_it_is_not_explained() {
        let beside = |picture, cause, waits| {
            let conditions = [
                judged(Role::Picture, picture, ("p > 2", "1")),
                judged(Role::Cause, cause, ("c > 2", "3")),
            ];
            Told { conditions: &conditions, by_paper: &[], by_model: &[] }.beside_the_truth(waits)
        };
        use Answer::{No, Undecided, Yes};
        assert_eq!(
            beside(No, Yes, false),
            " Their picture does not appear: p is 1, not more than 2."
        );
        assert!(beside(Yes, No, false).ends_with("but not the cause that was looked for."));
        assert!(beside(Yes, Undecided, false).ends_with("but its cause stays open."));
        let open = " Whether their way shows their picture stays open";
        assert_eq!(beside(Undecided, Yes, false), format!("{open}."));
        assert_eq!(beside(Undecided, Yes, true), format!("{open}: it takes --scale full."));
    }

    /// What is modelled, and what the paper prints, is never called measured.
    #[test]
    fn what_a_sentence_rests_on_is_said() {
        let conditions = [judged(Role::Truth, Answer::No, ("mah > 2", "1"))];
        let refuted = |by_paper: &[Role], by_model: &[Role]| {
            Told { conditions: &conditions, by_paper, by_model }.refuted()
        };
        let truth = [Role::Truth];
        assert!(refuted(&[], &[]).starts_with("Measured right it does not hold"));
        assert!(refuted(&[], &truth).starts_with("As modelled it does not hold"));
        assert!(refuted(&truth, &[]).starts_with("By the paper's own figures it does not hold"));
    }
}
