//! A text with `{client}` and `{seq}` in it, which are filled in for every message: the producer's
//! index and the message's number, the same as in a body made from a template.

use weigh_model::load::Pattern;
use weigh_model::mark::{MARK_BYTES, Mark, Reading};
use weigh_model::protocol::Invalid;
use weigh_model::trial::Trial;

/// Such a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamePattern {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Client,
    Sequence,
}

impl NamePattern {
    /// The text taken apart; `None` where it has no place to fill in.
    pub(crate) fn of(text: &str) -> Option<NamePattern> {
        let (mut parts, mut rest) = (Vec::new(), text);
        loop {
            let words = [(CLIENT, Part::Client), (SEQUENCE, Part::Sequence)];
            let found =
                words.into_iter().filter_map(|(word, part)| Some((rest.find(word)?, word, part)));
            let next = found.min_by_key(|(at, ..)| *at);
            let Some((at, word, part)) = next else { break };
            parts.extend([Part::Text(rest[..at].to_owned()), part]);
            rest = &rest[at + word.len()..];
        }
        if parts.is_empty() {
            return None;
        }
        parts.push(Part::Text(rest.to_owned()));
        Some(NamePattern { parts })
    }

    /// Whether messages of this trial can be distinguished, so that placeholders can be filled in:
    /// `place`
    /// is named in errors.
    pub(crate) fn check(place: &str, trial: &Trial) -> Result<(), Invalid> {
        let load = &trial.load;
        if !matches!(load.pattern, Pattern::Transfer | Pattern::Batch | Pattern::Poll) {
            let is_small = load.size.is_some_and(|size| size.0 < MARK_BYTES as u64);
            return match is_small {
                false => Ok(()),
                true => Err(Invalid::new(
                    place,
                    "{client} and {seq} are read from each message, and its body has no room for \
                    them",
                    format!("make bodies at least {MARK_BYTES}B, or remove the placeholders"),
                )),
            };
        }
        Err(Invalid::new(
            place,
            format!(
                "{{client}} and {{seq}} belong to one message, and {} has several",
                load.pattern
            ),
            "remove them",
        ))
    }

    /// Appends the text for the message with this body.
    pub(crate) fn fill(&self, body: &[u8], out: &mut Vec<u8>) {
        let (client, sequence) = number(body);
        for part in &self.parts {
            match part {
                Part::Text(text) => out.extend_from_slice(text.as_bytes()),
                Part::Client => out.extend_from_slice(client.to_string().as_bytes()),
                Part::Sequence => out.extend_from_slice(sequence.to_string().as_bytes()),
            }
        }
    }
}

/// The producer of a message and its number there, by its mark.
pub(crate) fn number(body: &[u8]) -> (u32, u64) {
    match Mark::read_any(body) {
        Reading::Whole(mark) | Reading::Corrupt(Some(mark)) => (mark.producer, mark.sequence),
        _ => (0, 0),
    }
}

/// The words.
const CLIENT: &str = "{client}";
const SEQUENCE: &str = "{seq}";

#[cfg(test)]
mod tests {
    use weigh_model::Nanos;

    use super::*;

    #[test]
    fn places_are_filled_from_the_mark() {
        let mut body = vec![b'x'; 100];
        let at = body.len() - MARK_BYTES;
        let due = Nanos(5);
        let mark = Mark {
            tag: 1,
            warmup: false,
            producer: 7,
            sequence: 42,
            due,
            lag: Nanos::default(),
            own_lag: Nanos(0),
        };
        mark.seal(&mut body, at);
        let mut out = Vec::new();
        NamePattern::of("/a/{client}/b?n={seq}&m={seq}").unwrap().fill(&body, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "/a/7/b?n=42&m=42");
        assert_eq!(NamePattern::of("/plain/{other}"), None);
        assert_eq!(number(b"no mark"), (0, 0));
    }
}
