//! Errors by number: outcomes of a message below 10, error conditions of the specification from 10
//! on. AMQP 1.0 has names and no numbers.

use weigh_model::connection::Fault;
use weigh_model::protocol::ErrorWords;

use super::codec::{Problem, State, condition};

/// Conditions with what to do about each.
const CONDITIONS: [(u16, &str, &str); 16] = [
    (10, condition::UNAUTHORIZED, "check user and password, and what this user may do"),
    (11, condition::NOT_FOUND, "check amqp1.queue and amqp1.topic: the server has its own names"),
    (12, condition::RESOURCE_LIMIT, "a limit of the server is reached: its queue or its memory"),
    (13, condition::NOT_ALLOWED, "the server does not allow this; its text says what"),
    (14, condition::NOT_IMPLEMENTED, "the server does not have this; its text says what"),
    (15, condition::MESSAGE_SIZE, "make -s smaller than max-message-size of the server"),
    (16, condition::TRANSFER_LIMIT, "the server counts link credit in another way"),
    (17, condition::DECODE_ERROR, "the server cannot read a frame"),
    (18, condition::INVALID_FIELD, "check amqp1.queue, amqp1.topic and amqp1.hostname"),
    (19, condition::CONNECTION_FORCED, "the server ends connections: see its log"),
    (20, "amqp:internal-error", "see the log of the server"),
    (21, "amqp:precondition-failed", "the server has this node with other properties"),
    (22, "amqp:resource-locked", "another client has this node for itself"),
    (23, "amqp:resource-deleted", "the node was deleted while it was in use"),
    (24, "amqp:link:redirect", REDIRECTED),
    (25, "amqp:connection:redirect", REDIRECTED),
];

/// A load stays with the server it was given.
const REDIRECTED: &str = "redirects are not followed: type the URL of the server that it names";

/// Code for an outcome other than `accepted`.
pub(super) fn code_of(state: &State<'_>) -> u16 {
    match state {
        State::Rejected(Some(problem)) => match number(problem.condition) {
            OTHER => REJECTED,
            code => code,
        },
        State::Released => RELEASED,
        State::Modified { .. } => MODIFIED,
        _ => REJECTED,
    }
}

/// Name and advice for a number.
pub(super) fn words(code: u16) -> ErrorWords {
    if let Some((_, name, advice)) = CONDITIONS.iter().find(|(own, ..)| *own == code) {
        return ErrorWords { name: format!("rejected: {name}"), advice };
    }
    let (name, advice) = match code {
        REJECTED => ("rejected", "the server did not take the message: see its log"),
        RELEASED => ("released", "the server did not take the message: no queue is bound"),
        MODIFIED => ("modified", "the server did not take the message: see its log"),
        _ => ("error", ErrorWords::ADVICE),
    };
    ErrorWords { name: name.to_owned(), advice }
}

/// The fault of a link, session or connection that the server ended, before (`is_set_up`) or after
/// messages may flow.
pub(super) fn ended(what: &str, problem: Option<Problem<'_>>, is_set_up: bool) -> Fault {
    let Some(problem) = problem else {
        let reason = format!("it sent {what} without a reason");
        return Fault::Ended(reason);
    };
    let Problem { condition, description, .. } = problem;
    let mut text = description.map_or(String::new(), |text| format!(": {text}"));
    if words(number(condition)).advice == REDIRECTED {
        let place = problem.place().map_or(String::new(), |place| format!(" to {place}"));
        text.push_str(&format!("{place}; {REDIRECTED}"));
    }
    let reason = format!("{condition}{text} ({what})");
    match is_set_up && condition != condition::CONNECTION_FORCED {
        true => Fault::Refused { code: number(condition), reason },
        false => Fault::Ended(reason),
    }
}

fn number(condition: &str) -> u16 {
    CONDITIONS.iter().find(|(_, own, _)| *own == condition).map_or(OTHER, |(code, ..)| *code)
}

/// Outcome `rejected` without a condition that is known.
pub(super) const REJECTED: u16 = 1;
/// Outcome `released`.
pub(super) const RELEASED: u16 = 2;
/// Outcome `modified`.
pub(super) const MODIFIED: u16 = 3;
/// Another condition.
const OTHER: u16 = 9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_have_numbers_and_words() {
        let condition = "amqp:not-found";
        let problem = Problem { condition, description: Some("no queue q"), info: None };
        let refused = ended("detach", Some(problem), true);
        assert_eq!(
            refused.to_string(),
            "the server refused: amqp:not-found: no queue q (detach) (11)"
        );
        assert!(matches!(ended("close", Some(problem), false), Fault::Ended(_)));
        let moved = Problem { condition: "amqp:link:redirect", description: None, info: None };
        let text = ended("detach", Some(moved), false).to_string();
        assert!(text.contains("amqp:link:redirect; redirects are not followed"), "{text}");
        assert_eq!(words(11).name, "rejected: amqp:not-found");
        assert_eq!(code_of(&State::Rejected(Some(problem))), 11);
        assert_eq!(words(code_of(&State::Released)).name, "released");
        assert_eq!(words(code_of(&State::Rejected(None))).name, "rejected");
    }
}
