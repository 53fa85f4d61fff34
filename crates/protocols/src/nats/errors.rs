//! Errors by number: `-ERR` lines get numbers of Weighbridge's own below 100, statuses of header
//! blocks are between 100 and 599, and JetStream's own numbers are above 10,000.

use weigh_model::protocol::ErrorWords;

use super::api::number;

/// Texts of `-ERR`, as nats-server writes them, with what to do about each.
const LINES: [(u16, &str, &str); 15] = [
    (AUTHORIZATION, "Authorization Violation", "check user, password or token"),
    (2, "Authentication Timeout", "check user, password or token"),
    (PUBLISH_PERMISSION, "Permissions Violation for Publish", "this user may not publish there"),
    (4, "Permissions Violation for Subscription", "this user may not subscribe to that"),
    (MAXIMUM_PAYLOAD, "Maximum Payload Violation", "make -s smaller than max_payload"),
    (6, "Maximum Connections Exceeded", "lower -c, or raise max_connections of the server"),
    (7, "Maximum Control Line Exceeded", "make nats.subject shorter"),
    (8, "Slow Consumer", "the consumer does not read fast enough for the server"),
    (9, "Stale Connection", "the connection was silent for too long"),
    (INVALID_SUBJECT, "Invalid Publish Subject", "change nats.subject"),
    (11, "Invalid Subject", "change nats.subject"),
    (12, "Unknown Protocol Operation", "check that both ends speak NATS"),
    (13, "Parser Error", "check that both ends speak NATS"),
    (14, "Secure Connection - TLS Required", "type --tls on"),
    (15, "Maximum Subscriptions Exceeded", "lower --subscribers"),
];

/// The number of a line `-ERR`.
pub(super) fn code_of_line(text: &str) -> u16 {
    let is_it = |words: &str| {
        text.get(..words.len()).is_some_and(|start| start.eq_ignore_ascii_case(words))
    };
    LINES.iter().find(|(_, words, _)| is_it(words)).map_or(OTHER, |(code, ..)| *code)
}

/// True for the errors that take the place of a message's confirmation, on a connection that stays.
pub(super) fn is_about_a_message(code: u16) -> bool {
    matches!(code, PUBLISH_PERMISSION | INVALID_SUBJECT)
}

/// Name and advice for a number.
pub(super) fn words(code: u16) -> ErrorWords {
    if let Some((_, name, advice)) = LINES.iter().find(|(own, ..)| *own == code) {
        return ErrorWords { name: format!("-ERR {name:?}"), advice };
    }
    let (name, advice) = match code {
        OTHER => ("-ERR", ErrorWords::ADVICE),
        503 => ("status 503 no responders", "no stream or responder has the subject"),
        408 => ("status 408", "the pull request ran out of time"),
        409 => ("status 409", "the consumer was deleted, or its limits are exceeded"),
        number::INSUFFICIENT_RESOURCES | number::STORAGE_EXCEEDED => {
            ("JetStream's limit of storage", "raise max_file_store or max_memory_store")
        }
        number::MESSAGE_TOO_LARGE => ("JetStream: message too large", "make -s smaller"),
        number::STREAM_NOT_FOUND => ("JetStream: stream not found", "check nats.stream"),
        number::STREAM_NAME_IN_USE => {
            ("JetStream: stream exists with other settings", "choose another nats.stream")
        }
        number::SUBJECTS_OVERLAP => {
            ("JetStream: another stream has the subjects", "choose another nats.subject")
        }
        _ => ("", ErrorWords::ADVICE),
    };
    let name = match (name, code) {
        ("", 10_000..) => format!("JetStream error {code}"),
        ("", _) => format!("status {code}"),
        (name, 10_000..) => format!("{name} ({code})"),
        (name, _) => name.to_owned(),
    };
    ErrorWords { name, advice }
}

pub(super) const AUTHORIZATION: u16 = 1;
pub(super) const PUBLISH_PERMISSION: u16 = 3;
pub(super) const MAXIMUM_PAYLOAD: u16 = 5;
pub(super) const INVALID_SUBJECT: u16 = 10;
/// A line that is not in the list.
const OTHER: u16 = 99;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_names_and_advice() {
        let violation = "Permissions Violation for Publish to \"a.b\"";
        assert!(is_about_a_message(code_of_line(violation)));
        assert_eq!(code_of_line("authorization violation"), AUTHORIZATION);
        assert_eq!(words(code_of_line("Something New")).name, "-ERR");
        assert_eq!(words(MAXIMUM_PAYLOAD).name, "-ERR \"Maximum Payload Violation\"");
        assert_eq!(words(503).name, "status 503 no responders");
        assert_eq!(words(500).name, "status 500");
        assert_eq!(words(10_077).name, "JetStream error 10077");
        assert!(words(10_058).advice.contains("nats.stream"));
    }
}
