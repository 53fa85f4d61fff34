//! The checks of a run as annotations of GitHub Actions: workflow commands, one a line.

use super::check::Check;
use super::junit::Undecided;
use crate::summary::Answer;

/// A line for every check that failed or could not be decided; empty without one.
pub fn annotations(checks: &[Check], undecided: Undecided) -> String {
    let line = |check: &Check| {
        let (command, title) = match (check.answer, undecided) {
            (Answer::Holds, _) => return None,
            (Answer::Failed, _) => ("error", "Threshold failed"),
            (Answer::Undecided, Undecided::Passes) => ("warning", "Threshold undecided"),
            (Answer::Undecided, _) => ("error", "Threshold undecided"),
        };
        let (title, text) = (property(&format!("weigh: {title}")), data(&check.line()));
        Some(format!("::{command} title={title}::{text}\n"))
    };
    checks.iter().filter_map(line).collect()
}

/// Escapes the message of a workflow command, as the toolkit of GitHub Actions does it
/// (`escapeData` in packages/core/src/command.ts).
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a property of a workflow command (`escapeProperty` in the same file).
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_are_escaped_and_never_break_their_line() {
        let check = |answer| Check {
            condition: "loss <= 1%".to_owned(),
            case: "http1: a,b".to_owned(),
            answer,
            text: "two\r\nlines".to_owned(),
        };
        let checks = [Answer::Holds, Answer::Failed, Answer::Undecided].map(check);
        let lines = annotations(&checks, Undecided::Told);
        assert_eq!(
            lines,
            "::error title=weigh%3A Threshold failed::loss <= 1%25: http1: a,b: two%0D%0Alines\n\
             ::error title=weigh%3A Threshold undecided::loss <= 1%25: http1: a,b: \
             two%0D%0Alines\n"
        );
        assert!(annotations(&checks, Undecided::Passes).contains("::warning "));
        assert_eq!(annotations(&checks[..1], Undecided::Told), "");
    }
}
