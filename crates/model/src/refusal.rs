//! Splits the message of an error into what is wrong and what to type.

/// Returns what is wrong, and what to type if `said` has it: the part from the first imperative
/// after a colon or a semicolon, such as "type 10s" in `"10" has no unit: type 10s`. Quoted words
/// of the user are not searched.
pub fn split(said: &str) -> (&str, Option<&str>) {
    let mut is_quoted = false;
    let mut before = ' ';
    for (at, character) in said.char_indices() {
        is_quoted ^= character == '"' && before != '\\';
        before = character;
        let fix = said[at..].strip_prefix(": ").or_else(|| said[at..].strip_prefix("; "));
        if let Some(fix) = fix.filter(|fix| !is_quoted && is_imperative(fix)) {
            return (&said[..at], Some(fix));
        }
    }
    (said, None)
}

/// Returns the message in the form of every error: the fix is a line that begins with `help: `.
/// Messages of several lines stay as they are, and numbers of the system's errors are left out.
pub fn shaped(said: &str) -> String {
    let said = without_number(said);
    match split(&said) {
        (problem, Some(fix)) if !said.contains('\n') => format!("{problem}\nhelp: {fix}"),
        _ => said,
    }
}

/// Returns the message without the number that the standard library adds to the words of the
/// system: "Connection refused", not "Connection refused (os error 111)".
pub fn without_number(said: &str) -> String {
    let mut parts = said.split(" (os error ");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(')').filter(|(number, _)| number.parse::<i32>().is_ok()) {
            Some((_, rest)) => text += rest,
            None => text = format!("{text} (os error {part}"),
        }
    }
    text
}

/// Returns the message with the fix `fix` if it has none.
pub fn with_fix(said: &str, fix: &str) -> String {
    let shaped = shaped(said);
    if shaped.contains("help: ") { shaped } else { format!("{shaped}\nhelp: {fix}") }
}

fn is_imperative(text: &str) -> bool {
    IMPERATIVES.iter().any(|verb| text.strip_prefix(verb).is_some_and(|rest| rest.starts_with(' ')))
}

/// First words of what a user should do.
const IMPERATIVES: [&str; 52] = [
    "add",
    "ask",
    "build",
    "check",
    "choose",
    "compare",
    "continue",
    "copy",
    "correct",
    "cut",
    "declare",
    "delete",
    "describe",
    "did you mean",
    "free",
    "give",
    "install",
    "keep",
    "leave",
    "let",
    "list",
    "load",
    "lower",
    "make",
    "measure",
    "mount",
    "move",
    "name",
    "open",
    "probe",
    "put",
    "raise",
    "read",
    "redirect",
    "remove",
    "repeat",
    "restart",
    "resume",
    "run",
    "say",
    "see",
    "set",
    "shorten",
    "sort",
    "start",
    "stop",
    "type",
    "unplug",
    "unset",
    "use",
    "wait",
    "write",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fix_becomes_a_line_of_its_own() {
        for (said, problem, fix) in [
            ("\"10\" has no unit: type 10s", "\"10\" has no unit", Some("type 10s")),
            (
                "x: cannot be read: gone; name another",
                "x: cannot be read: gone",
                Some("name another"),
            ),
            ("a: type b; leave c out", "a", Some("type b; leave c out")),
            (
                "\"x: type y\" is not a rate: type 5/s",
                "\"x: type y\" is not a rate",
                Some("type 5/s"),
            ),
            ("\"a\\\": type\" is wrong", "\"a\\\": type\" is wrong", None),
            ("cannot connect: refused", "cannot connect: refused", None),
            ("a: types differ", "a: types differ", None),
        ] {
            assert_eq!(split(said), (problem, fix));
        }
        assert_eq!(shaped("a: type b"), "a\nhelp: type b");
        assert_eq!(shaped("x: refused (os error 111); type b"), "x: refused\nhelp: type b");
        for kept in ["(os error x)", "a (os error ", "a (os error 1"] {
            assert_eq!(without_number(kept), kept);
        }
        assert_eq!(shaped("a\nhelp: b: type c"), "a\nhelp: b: type c");
        assert_eq!(shaped("é ü"), "é ü");
        assert_eq!(with_fix("a", "b"), "a\nhelp: b");
        assert_eq!(with_fix("a: type c", "b"), "a\nhelp: type c");
    }
}
