//! Status codes of gRPC by name, and what to do about them ("Status codes and their use in gRPC").

use weigh_model::protocol::ErrorWords;

/// A status in words; `None` for a number that is none.
pub(super) fn words(code: u16) -> Option<ErrorWords> {
    let (name, advice) = STATUSES.get(usize::from(code))?;
    Some(ErrorWords { name: format!("gRPC status {name} ({code})"), advice })
}

const STATUSES: [(&str, &str); 17] = [
    ("OK", ErrorWords::ADVICE),
    ("CANCELLED", "the server or a proxy cancelled the call: see its log"),
    ("UNKNOWN", "the method failed with an error that the server does not name: see its log"),
    ("INVALID_ARGUMENT", "the server rejects the message: change --message"),
    (
        "DEADLINE_EXCEEDED",
        "the deadline passed before the answer: lower -R or -c, or raise grpc.deadline",
    ),
    ("NOT_FOUND", "what the message names is not on the server: change --message"),
    (
        "ALREADY_EXISTS",
        "what the message makes is on the server already: put {seq} and {client} into --message",
    ),
    (
        "PERMISSION_DENIED",
        "the server does not allow the call: check the credentials in -H or --secret-header",
    ),
    (
        "RESOURCE_EXHAUSTED",
        "the server refuses load, or a message is larger than it takes: lower -R, -c or -s, or \
         raise its limit",
    ),
    (
        "FAILED_PRECONDITION",
        "the server is not in the state that the method needs: see its documentation",
    ),
    ("ABORTED", "the server ended the call because of a conflict with another one: lower -c"),
    ("OUT_OF_RANGE", "a value of the message is outside its range: change --message"),
    ("UNIMPLEMENTED", "the server does not have this method: check --method"),
    ("INTERNAL", "the server failed: see its log"),
    (
        "UNAVAILABLE",
        "the server or what is behind it is not reachable or refuses load: lower -R or -c, or \
         see its log",
    ),
    ("DATA_LOSS", "the server lost data, or confirmed fewer messages than it was sent"),
    (
        "UNAUTHENTICATED",
        "the server requires other credentials: type -H \"authorization: ...\" or --user",
    ),
];

#[cfg(test)]
mod tests {
    use super::super::codec::code;
    use super::*;

    #[test]
    fn every_status_has_its_name() {
        let name = |code: u16| words(code).unwrap().name;
        assert_eq!(name(code::INVALID_ARGUMENT), "gRPC status INVALID_ARGUMENT (3)");
        assert_eq!(name(code::DEADLINE_EXCEEDED), "gRPC status DEADLINE_EXCEEDED (4)");
        assert_eq!(name(code::MAX), "gRPC status UNAUTHENTICATED (16)");
        assert_eq!(words(code::MAX + 1), None);
    }
}
