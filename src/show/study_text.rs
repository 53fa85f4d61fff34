//! What came of a study, for a terminal: every claim with its verdict and the figure that decided
//! it.

use std::fmt::Write;
use std::path::Path;

use weigh_report::figures::three_digits;
use weigh_report::study_folder::PAGE;
use weigh_study::Verdict;
use weigh_study::outcome::{Answer, ClaimOutcome, Judged, Outcome, Role};
use weigh_study::runs::NOT_ASKED;

use crate::show::terminal::width_or;

/// What came of the study whose run lies in this folder.
pub fn shown(found: &Outcome, folder: &Path) -> String {
    let page = folder.join(PAGE);
    format!("{}report: {}\n", outcome(found, width_or(COLUMNS)), page.display())
}

/// The claims, the counts of their verdicts, and what was not run.
fn outcome(outcome: &Outcome, columns: usize) -> String {
    let mut text = format!("{}: {}\n\n", outcome.study, outcome.question);
    let ids = outcome.claims.iter().map(|claim| claim.id.chars().count());
    let id_width = ids.max().unwrap_or(0);
    let verdict_width = Verdict::NotTestableHere.name().len();
    let indent = id_width + 2 + verdict_width + 2;
    let room = columns.saturating_sub(indent).max(ROOM_MIN);
    for claim in &outcome.claims {
        let (id, verdict) = (&claim.id, claim.verdict.name());
        let says = shortened(&claim.says, room);
        let _ = writeln!(text, "{id:id_width$}  {verdict:verdict_width$}  {says}");
        let lines = wrapped(&decided_by(claim), room);
        for (number, line) in lines.iter().take(LINES_MAX).enumerate() {
            // The page has all of it.
            let is_cut = number + 1 == LINES_MAX && lines.len() > LINES_MAX;
            let more = if is_cut { MORE } else { "" };
            let _ = writeln!(text, "{:indent$}{line}{more}", "");
        }
    }
    let _ = writeln!(text, "\n{}", counts(outcome));
    for carried in &outcome.carry {
        let _ = writeln!(text, "\n{}", weigh_study::carry::table(carried).trim_end());
    }
    for (name, why) in skipped(outcome) {
        let _ = writeln!(text, "not run: {name}: {why}");
    }
    text
}

/// `9 reproduced, 3 explained, 2 contradicted, 1 not testable here`.
pub fn counts(outcome: &Outcome) -> String {
    let number = |verdict: Verdict| {
        let of = outcome.claims.iter().filter(|claim| claim.verdict == verdict);
        format!("{} {verdict}", of.count())
    };
    let all = Verdict::ALL.map(number);
    let claims = outcome.claims.len();
    let plural = if claims == 1 { "" } else { "s" };
    format!("{claims} claim{plural}: {}", all.join(", "))
}

/// The plans that were not run, each once, and why; then the experiments that cannot be.
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
    seen
}

/// The condition that decided a claim with its figure, or why nothing did.
fn decided_by(claim: &ClaimOutcome) -> String {
    let of = |role: Role, answer: Answer| {
        claim.conditions.iter().find(|own| own.role == role && own.answer == answer)
    };
    let decisive = match claim.verdict {
        Verdict::Reproduced => of(Role::Truth, Answer::Yes),
        Verdict::Explained => of(Role::Cause, Answer::Yes),
        Verdict::Contradicted => {
            of(Role::Truth, Answer::No).or_else(|| of(Role::Picture, Answer::No))
        }
        Verdict::NotTestableHere => None,
    };
    decisive.map_or_else(|| claim.sentence.clone(), figure)
}

/// `http / mqtt > 2: 3.94 (3.61 to 4.20, n = 3)`.
fn figure(judged: &Judged) -> String {
    let mut text = judged.text.clone();
    let Some(estimate) = judged.estimate else { return text };
    let _ = write!(text, ": {}", three_digits(estimate));
    let end = |end: Option<f64>| end.map_or("unbounded".to_owned(), three_digits);
    match (judged.low, judged.high, judged.n) {
        (None, None, _) => {}
        // What is exact is no interval.
        (Some(low), Some(high), None) if low == high => {}
        (low, high, None) => {
            let _ = write!(text, " ({} to {})", end(low), end(high));
        }
        (low, high, Some(n)) => {
            let _ = write!(text, " ({} to {}, n = {n})", end(low), end(high));
        }
    }
    text
}

/// The beginning of a sentence that has at most so many characters.
fn shortened(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let cut: String = text.chars().take(room.saturating_sub(MORE.len())).collect();
    let whole = cut.rfind(' ').map_or(&*cut, |at| &cut[..at]);
    format!("{}{MORE}", whole.trim_end())
}

/// Lines of at most so many characters, as far as its words allow.
fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last_mut().expect("there is always a line");
        if last.is_empty() {
            last.push_str(word);
        } else if last.chars().count() + 1 + word.chars().count() <= room {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// Columns where nobody says how many there are.
const COLUMNS: usize = 100;

/// Columns for a sentence where a terminal is very narrow.
const ROOM_MIN: usize = 40;

/// Lines for the reason of a verdict.
const LINES_MAX: usize = 3;

/// What stands for the rest of a sentence.
const MORE: &str = " ...";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_sentences_end_at_a_word() {
        assert_eq!(shortened("a claim that fits", 17), "a claim that fits");
        assert_eq!(shortened("a claim that does not fit", 17), "a claim that ...");
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("", 7), [""]);
    }

    #[test]
    fn the_figure_that_decided_stands_with_its_interval() {
        let judged = Judged {
            role: Role::Truth,
            text: "a / b > 2".to_owned(),
            words: String::new(),
            estimate: Some(3.94),
            low: Some(3.61),
            high: Some(4.2),
            n: Some(3),
            shown: String::new(),
            answer: Answer::Yes,
            reasons: Vec::new(),
            quantities: Vec::new(),
        };
        assert_eq!(figure(&judged), "a / b > 2: 3.94 (3.61 to 4.20, n = 3)");
        let searched = Judged { n: None, ..judged.clone() };
        assert_eq!(figure(&searched), "a / b > 2: 3.94 (3.61 to 4.20)");
        let exact = Judged { low: Some(3.94), high: Some(3.94), n: None, ..judged };
        assert_eq!(figure(&exact), "a / b > 2: 3.94");
    }
}
