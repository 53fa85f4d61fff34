//! Names on a server: subjects, streams, inboxes, and where the producer's index is in them.

use weigh_model::protocol::{Invalid, Role, Seat};

use super::api::INBOX;
use super::codec::subject;

/// A text with a place for the producer and one for the trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template(String);

impl Template {
    /// Reads a template; `trial` is filled in.
    pub(super) fn new(text: &str, tag: u16) -> Template {
        let tag = tag.to_string();
        Template(text.replace("{trial}", &tag).replace("%t", &tag).replace("%i", CLIENT))
    }

    /// The text for one producer.
    pub(super) fn of(&self, client: u32) -> String {
        self.0.replace(CLIENT, &client.to_string())
    }

    /// The text for all producers: a wildcard where each has its own.
    pub(super) fn of_all(&self) -> String {
        self.0.replace(CLIENT, "*")
    }

    /// True if each producer has a text of its own.
    pub(super) fn has_client(&self) -> bool {
        self.0.contains(CLIENT)
    }

    /// The token of a subject that is the producer's index; `None` if no token is.
    pub(super) fn client_token(&self) -> Option<usize> {
        self.0.split('.').position(|token| token == CLIENT)
    }

    /// Checks that it makes subjects that can be published to, with the index as a whole token.
    pub(super) fn check(&self, place: &str) -> Result<(), Invalid> {
        let one = self.of(u32::MAX);
        let fix = "type tokens with dots between, such as weigh.{trial}.{client}";
        if !subject::is_literal(one.as_bytes()) || one.len() > SUBJECT_BYTES_MAX {
            return Err(Invalid::new(place, format!("{one:?} cannot be published to"), fix));
        }
        if one.starts_with('$') || one.starts_with(INBOX) {
            let problem = format!("{one:?} is reserved for the server and for answers");
            return Err(Invalid::new(place, problem, fix));
        }
        if self.has_client() && self.client_token().is_none() {
            let problem = "{client} has to be a token by itself, for consumers to subscribe to all";
            return Err(Invalid::new(place, problem, fix));
        }
        Ok(())
    }
}

/// Checks the name of a stream.
pub(super) fn check_stream(place: &str, name: &str) -> Result<(), Invalid> {
    let is_good = |byte: u8| byte.is_ascii_graphic() && !b".*>/\\".contains(&byte);
    if name.is_empty() || name.len() > 255 || !name.bytes().all(is_good) {
        let problem = format!("{name:?} cannot name a stream");
        return Err(Invalid::new(place, problem, "type letters, digits, - and _, without dots"));
    }
    Ok(())
}

/// Prefix of the subjects at which one connection waits for answers.
pub(super) fn inbox(tag: u16, seat: Seat, connection: u32) -> String {
    let role = match seat.role {
        Role::Producer => 'p',
        Role::Consumer => 'c',
    };
    format!("{INBOX}weigh.{tag}.{role}{}.{connection}.", seat.index)
}

/// Subject to which a push consumer delivers.
pub(super) fn deliver_subject(tag: u16, consumer: &str) -> String {
    format!("{INBOX}weigh.{tag}.deliver.{consumer}")
}

/// The place of the index.
const CLIENT: &str = "{client}";

const SUBJECT_BYTES_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled_in() {
        let template = Template::new("weigh.{trial}.{client}.t", 7);
        assert_eq!(template, Template::new("weigh.%t.%i.t", 7));
        assert_eq!(
            (template.of(3), template.of_all()),
            ("weigh.7.3.t".into(), "weigh.7.*.t".into())
        );
        assert_eq!(template.client_token(), Some(2));
        template.check("nats.subject").unwrap();
        for (text, problem) in [
            ("a b", "cannot be published"),
            ("a.>", "cannot be published"),
            ("", "cannot be published"),
            ("a.x{client}", "a token by itself"),
            ("$JS.x", "reserved"),
            ("_INBOX.x", "reserved"),
        ] {
            let error = Template::new(text, 7).check("nats.subject").unwrap_err();
            assert!(error.problem.contains(problem), "{text}: {error}");
        }
    }

    #[test]
    fn streams_have_names_without_dots() {
        check_stream("nats.stream", "weigh-7").unwrap();
        for name in ["", "a.b", "a b", "a*", "a/b"] {
            assert!(check_stream("nats.stream", name).is_err(), "{name:?}");
        }
    }
}
