//! The checks of a run as JUnit XML: a test case for each condition in each case. A condition that
//! failed is a `failure`; one that could not be decided is an `error`, which continuous integration
//! shows as red, because readers of the format show `skipped` as passed.

use std::io;

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

use super::check::Check;
use crate::summary::Answer;

/// How an undecided condition is reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Undecided {
    /// As a separate result.
    #[default]
    Told,
    /// As one that holds.
    Passes,
    /// As one that failed.
    Fails,
}

/// Outcome of a check in the file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failure,
    Error,
    Skipped,
}

impl Outcome {
    fn of(check: &Check, undecided: Undecided) -> Outcome {
        match (check.answer, undecided) {
            (Answer::Holds, _) => Outcome::Passed,
            (Answer::Failed, _) | (Answer::Undecided, Undecided::Fails) => Outcome::Failure,
            (Answer::Undecided, Undecided::Told) => Outcome::Error,
            (Answer::Undecided, Undecided::Passes) => Outcome::Skipped,
        }
    }
}

/// The document: one suite, called `name`, that began at `started` (RFC 3339).
pub fn document(name: &str, started: &str, checks: &[Check], undecided: Undecided) -> String {
    let written = write(name, started, checks, undecided).expect("memory takes everything");
    String::from_utf8(written).expect("it is made of text") + "\n"
}

fn write(name: &str, started: &str, checks: &[Check], undecided: Undecided) -> io::Result<Vec<u8>> {
    let count = |wanted: Outcome| {
        checks.iter().filter(|check| Outcome::of(check, undecided) == wanted).count().to_string()
    };
    let tests = checks.len().to_string();
    let counts = [
        ("tests", tests),
        ("failures", count(Outcome::Failure)),
        ("errors", count(Outcome::Error)),
        ("skipped", count(Outcome::Skipped)),
        ("time", "0".to_owned()),
    ];
    let counts = || counts.iter().map(|(key, value)| (*key, value.as_str()));
    // Whole seconds without a zone, as the schema of the format has it.
    let timestamp: String = started.chars().take(SECONDS).collect();
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let name = printable(name);
    writer
        .create_element("testsuites")
        .with_attributes(counts())
        .with_attribute(("name", name.as_str()))
        .write_inner_content(|writer| {
            writer
                .create_element("testsuite")
                .with_attribute(("name", name.as_str()))
                .with_attribute(("timestamp", timestamp.as_str()))
                .with_attribute(("hostname", "localhost"))
                .with_attributes(counts())
                .write_inner_content(|writer| {
                    checks.iter().try_for_each(|check| case(writer, check, undecided))
                })
                .map(drop)
        })?;
    Ok(writer.into_inner())
}

fn case(writer: &mut Writer<Vec<u8>>, check: &Check, undecided: Undecided) -> io::Result<()> {
    let (condition, case) = (printable(&check.condition), printable(&check.case));
    let element = writer
        .create_element("testcase")
        .with_attribute(("classname", case.as_str()))
        .with_attribute(("name", condition.as_str()))
        .with_attribute(("time", "0"));
    let (kind, label) = match Outcome::of(check, undecided) {
        Outcome::Passed => return element.write_empty().map(drop),
        Outcome::Failure => ("failure", "threshold"),
        Outcome::Error => ("error", "undecided"),
        Outcome::Skipped => ("skipped", ""),
    };
    let text = printable(&check.text);
    let inner = |writer: &mut Writer<Vec<u8>>| {
        let own = writer.create_element(kind).with_attribute(("message", text.as_str()));
        let own = if label.is_empty() { own } else { own.with_attribute(("type", label)) };
        own.write_text_content(BytesText::new(&printable(&check.line()))).map(drop)
    };
    element.write_inner_content(inner).map(drop)
}

/// Removes characters that XML 1.0 cannot contain (section 2.2).
fn printable(text: &str) -> String {
    let is_held = |c: char| !c.is_control() || matches!(c, '\t' | '\n' | '\r');
    let held = |c: char| if is_held(c) && !matches!(c, '\u{fffe}' | '\u{ffff}') { c } else { '?' };
    text.chars().map(held).collect()
}

/// Characters of `2026-11-22T10:00:00`.
const SECONDS: usize = 19;

#[cfg(test)]
mod tests {
    use super::*;

    fn check(answer: Answer) -> Check {
        Check {
            condition: "p99 < 50ms".to_owned(),
            case: "http1 & \"more\" on reference".to_owned(),
            answer,
            text: "61 ms <\u{1b}[31m>".to_owned(),
        }
    }

    #[test]
    fn every_answer_has_its_element() {
        let checks = [Answer::Holds, Answer::Failed, Answer::Undecided].map(check);
        let text = document("ci", "2026-11-22T10:00:00.5Z", &checks, Undecided::Told);
        for part in [
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>",
            "tests=\"3\" failures=\"1\" errors=\"1\" skipped=\"0\"",
            "timestamp=\"2026-11-22T10:00:00\"",
            "classname=\"http1 &amp; &quot;more&quot; on reference\" name=\"p99 &lt; 50ms\"",
            "<failure message=\"61 ms &lt;?[31m&gt;\" type=\"threshold\">",
            "<error message=",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let passing = document("ci", "", &checks, Undecided::Passes);
        assert!(passing.contains("<skipped message=") && !passing.contains("<error"));
        let failing = document("ci", "", &checks, Undecided::Fails);
        assert!(failing.contains("failures=\"2\" errors=\"0\""), "{failing}");
    }
}
