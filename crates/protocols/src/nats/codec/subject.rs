//! Subjects: tokens with dots between; `*` stands for one token, and `>` at the end for all that
//! follow (<https://docs.nats.io/nats-concepts/subjects>).

/// True for a subject that can be published to.
pub fn is_literal(subject: &[u8]) -> bool {
    is_valid(subject) && !has_wildcard(subject)
}

/// True for a subject that can be subscribed to.
pub fn is_valid(subject: &[u8]) -> bool {
    let mut tokens = subject.split(|byte| *byte == b'.').peekable();
    while let Some(token) = tokens.next() {
        if token.is_empty() || token.iter().any(|byte| byte.is_ascii_whitespace() || *byte == 0) {
            return false;
        }
        if token == FULL && tokens.peek().is_some() {
            return false;
        }
    }
    true
}

/// True if a token is a wildcard.
pub fn has_wildcard(subject: &[u8]) -> bool {
    subject.split(|byte| *byte == b'.').any(|token| token == ONE || token == FULL)
}

/// True if a subject without wildcards is in `filter`.
pub fn matches(filter: &[u8], subject: &[u8]) -> bool {
    let mut tokens = subject.split(|byte| *byte == b'.');
    for wanted in filter.split(|byte| *byte == b'.') {
        match tokens.next() {
            Some(_) if wanted == FULL => return true,
            Some(token) if wanted == ONE || wanted == token => {}
            _ => return false,
        }
    }
    tokens.next().is_none()
}

/// True if some subject is in both filters.
pub fn overlap(one: &[u8], other: &[u8]) -> bool {
    let mut others = other.split(|byte| *byte == b'.');
    for token in one.split(|byte| *byte == b'.') {
        match others.next() {
            Some(other) if token == FULL || other == FULL => return true,
            Some(other) if token == ONE || other == ONE || token == other => {}
            _ => return false,
        }
    }
    others.next().is_none()
}

/// Wildcard for one token.
pub const ONE: &[u8] = b"*";
/// Wildcard for all tokens that follow.
pub const FULL: &[u8] = b">";

#[cfg(test)]
mod tests {
    use super::*;

    /// Examples of the documentation, page "Subject-based messaging".
    #[test]
    fn wildcards_stand_for_tokens() {
        for (filter, subject, is_in) in [
            ("time.us", "time.us", true),
            ("time.*.east", "time.us.east", true),
            ("time.*.east", "time.eu.east", true),
            ("time.*.east", "time.us.west.east", false),
            ("time.us.*", "time.us.east", true),
            ("time.us.*", "time.us.east.atlanta", false),
            ("time.us.>", "time.us.east.atlanta", true),
            ("time.us.>", "time.us", false),
            ("*.*.east.>", "time.us.east.atlanta", true),
            (">", "a", true),
            ("time", "time.us", false),
        ] {
            assert_eq!(matches(filter.as_bytes(), subject.as_bytes()), is_in, "{filter} {subject}");
            assert_eq!(overlap(filter.as_bytes(), subject.as_bytes()), is_in, "{filter} {subject}");
        }
        assert!(overlap(b"a.*", b"*.b") && !overlap(b"a.*", b"b.>") && overlap(b"a.>", b"*.b.c"));
    }

    #[test]
    fn subjects_that_cannot_be_used_are_known() {
        for subject in ["a", "a.b", "weigh.7.1", "_INBOX.x.1", "$JS.API.INFO", "a.*b"] {
            assert!(is_literal(subject.as_bytes()), "{subject}");
        }
        for subject in ["a.*", "a.>", "*", ">"] {
            assert!(is_valid(subject.as_bytes()) && !is_literal(subject.as_bytes()), "{subject}");
        }
        for subject in ["", ".", "a.", ".a", "a..b", "a.>.b", "a b", "a\0"] {
            assert!(!is_valid(subject.as_bytes()), "{subject}");
        }
    }
}
