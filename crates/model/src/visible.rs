//! Text from outside, made safe for a terminal: names, questions, the name of a target and file
//! names may contain control sequences.

use std::borrow::Cow;

/// Returns the text with control characters as `\u001b`, except line breaks and tabs. The escape is
/// that of JSON, so that a document of JSON stays valid and keeps its meaning.
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, |character| is_unseen(character) && !matches!(character, '\n' | '\t'))
}

/// Returns the text in one line: line breaks and tabs are escaped too.
pub fn visible_line(text: &str) -> Cow<'_, str> {
    escaped(text, is_unseen)
}

fn escaped(text: &str, is_refused: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_refused) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match is_refused(character) {
            true => shown.push_str(&format!("\\u{:04x}", u32::from(character))),
            false => shown.push(character),
        }
    }
    Cow::Owned(shown)
}

/// Control characters (C0, DEL, C1), and those that change the direction of the text around them
/// (Unicode Standard Annex 9, section 2).
fn is_unseen(character: char) -> bool {
    character.is_control() || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_shown_instead() {
        assert_eq!(visible("a\u{1b}[2Jb\r\n\tc"), "a\\u001b[2Jb\\u000d\n\tc");
        assert_eq!(visible_line("a\nb"), "a\\u000ab");
        assert_eq!(visible("\u{9b}31m \u{202e}txt"), "\\u009b31m \\u202etxt");
        assert!(matches!(visible("µs ≤ 5\nGrüße"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_document_of_json_stays_the_same_document() {
        let value = serde_json::json!({ "name": "a\u{1b}\u{7f}\u{9b}\u{202e}\n" });
        let text = serde_json::to_string(&value).unwrap();
        let shown = visible(&text);
        assert!(!shown.contains('\u{7f}'));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }
}
