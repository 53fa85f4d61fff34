//! From questions to abilities: a list of questions, each answered by one short function.

use crate::abilities::{Ability, How, Status, Value};
use crate::reach::Trouble;
use crate::search::Edge;

/// Answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Status of the ability.
    pub status: Status,
    /// Value of the ability.
    pub value: Option<Value>,
    /// Unit of the value.
    pub unit: Option<&'static str>,
    /// Source of the finding.
    pub how: How,
    /// Observation behind the finding.
    pub evidence: String,
}

/// A question about one ability. What is spoken with the server is `S`.
pub struct Question<S> {
    /// Name of the ability.
    pub name: &'static str,
    /// Function that tests for it.
    pub ask: fn(&mut S) -> Result<Found, Trouble>,
}

/// The question about the ability `name`.
pub const fn question<S>(
    name: &'static str,
    ask: fn(&mut S) -> Result<Found, Trouble>,
) -> Question<S> {
    Question { name, ask }
}

/// State of a probe: its connections, and what is known so far.
pub trait Asking {
    /// Returns the abilities found so far, in order.
    fn found(&mut self) -> &mut Vec<Ability>;

    /// Returns true if the time of the whole probe is over.
    fn is_over(&self) -> bool;
}

impl Found {
    /// It is there or not.
    pub fn flag(is_there: bool, evidence: impl Into<String>) -> Found {
        Found {
            status: if is_there { Status::Yes } else { Status::No },
            value: Some(Value::Flag(is_there)),
            unit: None,
            how: How::Tried,
            evidence: evidence.into(),
        }
    }

    /// Makes the answer that the ability is there, with this number.
    pub fn number(number: u64, unit: &'static str, how: How, evidence: impl Into<String>) -> Found {
        Found {
            status: Status::Yes,
            value: Some(Value::Number(number)),
            unit: Some(unit).filter(|unit| !unit.is_empty()),
            how,
            evidence: evidence.into(),
        }
    }

    /// Makes the answer of a search: `more` describes the largest that passed, `why` the result of
    /// the smallest that did not. If that was silence, the server may be slow, and it is not called
    /// a limit.
    pub fn edge(edge: Edge, unit: &'static str, more: &str, why: Option<&Trouble>) -> Found {
        let status = match why {
            Some(Trouble::Silent(_)) => Status::NoAnswer,
            _ => Status::Less,
        };
        let why = why.map_or(String::new(), Trouble::to_string);
        match (edge.passed, edge.failed) {
            (Some(passed), None) => {
                let evidence = format!("{passed}{more} passed, the most that was tried");
                Found::number(passed, unit, How::FoundBySearch, evidence)
            }
            (Some(passed), Some(failed)) => {
                let evidence = format!("{passed}{more} passed, {failed} did not: {why}");
                Found::number(passed, unit, How::FoundBySearch, evidence).with(status)
            }
            (None, failed) => {
                let failed = failed.unwrap_or(0);
                let found = Found::flag(false, format!("not even {failed} passed: {why}"));
                Found { value: None, ..found }.by(How::FoundBySearch)
            }
        }
    }

    /// Makes the answer that describes in words what happens.
    pub fn words(text: impl Into<String>, evidence: impl Into<String>) -> Found {
        Found {
            status: Status::Yes,
            value: Some(Value::Text(text.into())),
            unit: None,
            how: How::Tried,
            evidence: evidence.into(),
        }
    }

    /// Returns the answer with another status.
    pub fn with(self, status: Status) -> Found {
        Found { status, ..self }
    }

    /// Returns the answer with another source.
    pub fn by(self, how: How) -> Found {
        Found { how, ..self }
    }

    /// Makes the answer for something that could not be found out.
    fn in_trouble(trouble: &Trouble) -> Found {
        let status = match trouble {
            Trouble::Refused(_) | Trouble::Closed(_) => Status::Refused,
            Trouble::Silent(_) => Status::NoAnswer,
            Trouble::Foreign(_) => Status::No,
            Trouble::Unreachable(_) | Trouble::OutOfTime | Trouble::Inapplicable(_) => {
                Status::Untried
            }
        };
        let evidence = trouble.to_string();
        Found { status, value: None, unit: None, how: How::Tried, evidence }
    }
}

/// Asks all questions one after the other, and reports every answer. A server that takes no
/// connection any more is asked nothing more: it died of the question before, or was ended.
pub fn ask_all<S: Asking>(
    asking: &mut S,
    questions: &[Question<S>],
    tell: &mut dyn FnMut(&Ability),
) {
    for question in questions {
        let gone = asking.found().iter().rev().find(|own| own.evidence.starts_with(GONE));
        let answer = match gone.map(|own| own.evidence.clone()) {
            Some(evidence) => Err(Trouble::Unreachable(evidence)),
            None => {
                let answer = (question.ask)(asking);
                let is_there = answer.as_ref().is_ok_and(|found| found.status == Status::Yes);
                // A question that was cut short is no evidence that the server lacks the ability.
                if is_there || !asking.is_over() { answer } else { Err(Trouble::OutOfTime) }
            }
        };
        let answer = answer.map_err(|trouble| match trouble {
            Trouble::Unreachable(text) if !text.starts_with(GONE) => {
                let last = asking.found().last().map_or("the first question", |own| &own.name);
                Trouble::Unreachable(format!("{GONE} since {last} was asked"))
            }
            other => other,
        });
        let found = answer.unwrap_or_else(|trouble| Found::in_trouble(&trouble));
        let ability = Ability {
            name: question.name.to_owned(),
            status: found.status,
            value: found.value,
            unit: found.unit.map(str::to_owned),
            how: found.how,
            evidence: found.evidence,
        };
        tell(&ability);
        asking.found().push(ability);
    }
}

/// Begin of the evidence if a server is gone.
pub const GONE: &str = "the server takes no connection any more";

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[derive(Default)]
    struct Asker {
        found: Vec<Ability>,
        is_over: bool,
    }

    impl Asking for Asker {
        fn found(&mut self) -> &mut Vec<Ability> {
            &mut self.found
        }

        fn is_over(&self) -> bool {
            self.is_over
        }
    }

    fn silent(asker: &mut Asker) -> Result<Found, Trouble> {
        asker.is_over |= asker.found.len() >= 3;
        Err(Trouble::Silent(Duration::from_secs(1)))
    }

    fn refused(_: &mut Asker) -> Result<Found, Trouble> {
        Err(Trouble::Refused("no".to_owned()))
    }

    fn less(_: &mut Asker) -> Result<Found, Trouble> {
        Ok(Found::number(7, "bytes", How::FoundBySearch, "").with(Status::Less))
    }

    fn there(_: &mut Asker) -> Result<Found, Trouble> {
        Ok(Found::flag(true, ""))
    }

    /// While there is time an answer is what it is; one that was cut short is none.
    #[test]
    fn the_end_of_the_probe_is_held_against_no_server() {
        let question = |ask| Question { name: "any", ask };
        let asks: [fn(&mut Asker) -> _; 7] = [silent, refused, less, silent, refused, less, there];
        let mut asker = Asker::default();
        ask_all(&mut asker, &asks.map(question), &mut |_| {});
        let status: Vec<_> = asker.found.iter().map(|own| own.status).collect();
        use Status::{Less, NoAnswer, Refused, Untried, Yes};
        assert_eq!(status, [NoAnswer, Refused, Less, Untried, Untried, Untried, Yes]);
        assert_eq!(asker.found[3].evidence, Trouble::OutOfTime.to_string());
        assert_eq!(asker.found[5].value, None);
    }
}
