//! Lines that fit the width: long ones continue under their last column. Widths are those that a
//! terminal shows: colours take none, wide characters two columns.

use unicode_width::UnicodeWidthChar;

/// Columns that a text takes on a terminal.
pub fn shown_width(text: &str) -> usize {
    let mut width = 0;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter == ESCAPE {
            // To the letter that ends it (ECMA-48, 5.4); "[" begins it.
            let _ = letters.by_ref().skip(1).find(|c| ('\u{40}'..='\u{7e}').contains(c));
        } else {
            width += letter.width().unwrap_or(0);
        }
    }
    width
}

/// The text with lines of at most `width` columns, as far as words allow. A line that is longer
/// continues under its last column: behind the last two blanks of its first half.
pub fn folded(text: &str, width: usize) -> String {
    text.split_inclusive('\n').map(|line| folded_line(line, width)).collect()
}

fn folded_line(line: &str, width: usize) -> String {
    let (body, end) = line.strip_suffix('\n').map_or((line, ""), |body| (body, "\n"));
    if shown_width(body) <= width {
        return line.to_owned();
    }
    let (head, rest, indent) = last_column(body, width / 2);
    let indent = if indent == 0 { hanging(rest) } else { indent };
    let room = width.saturating_sub(indent).max(ROOM_MIN);
    let first = width.saturating_sub(shown_width(head)).max(ROOM_MIN);
    let gap = format!("\n{:indent$}", "");
    format!("{head}{}{end}", filled(rest, first, room).join(&gap))
}

/// The line before and behind where the last column begins that begins before `most`, and its
/// place.
pub(super) fn last_column(line: &str, most: usize) -> (&str, &str, usize) {
    let begins = |at: usize| line[..at].ends_with("  ") && !line[at..].starts_with(' ');
    let begins = line.char_indices().map(|(at, _)| at).filter(|at| begins(*at));
    let found = begins.take_while(|at| shown_width(&line[..*at]) < most).last().unwrap_or(0);
    (&line[..found], &line[found..], shown_width(&line[..found]))
}

/// Where a line continues that has no columns: under its first word, if that is a title.
fn hanging(line: &str) -> usize {
    let is_titled = line.split(' ').next().is_some_and(|word| word.ends_with(':'));
    if is_titled { 2 } else { 0 }
}

/// Lines of at most this number of columns, as far as words allow.
pub fn wrapped(text: &str, room: usize) -> Vec<String> {
    filled(text, room, room)
}

/// Lines of at most `room` columns behind a line of at most `first`, as far as words allow.
pub(super) fn filled(text: &str, first: usize, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut taken = 0;
    for word in text.split_whitespace() {
        let width = shown_width(word);
        let most = if lines.len() == 1 { first } else { room };
        let last = lines.last_mut().expect("there is always a line");
        if taken == 0 {
            last.push_str(word);
            taken = width;
        } else if taken + 1 + width <= most {
            last.push(' ');
            last.push_str(word);
            taken += 1 + width;
        } else {
            lines.push(word.to_owned());
            taken = width;
        }
    }
    lines
}

/// The beginning of a sentence that takes at most this number of columns, up to the end of a word.
pub fn shortened(text: &str, room: usize) -> String {
    if shown_width(text) <= room {
        return text.to_owned();
    }
    let lines = wrapped(text, room.saturating_sub(MORE.len()));
    format!("{}{MORE}", lines[0])
}

/// What stands for the rest of a sentence.
pub const MORE: &str = " ...";

/// Columns for words where a terminal is very narrow.
const ROOM_MIN: usize = 20;

/// How a colour or a weight begins (ECMA-48, SGR).
const ESCAPE: char = '\u{1b}';

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_continue_under_their_last_column() {
        let text = "mqtt    one two three four five six seven\nshort\n";
        let expected = "mqtt    one two three four\n        five six seven\nshort\n";
        assert_eq!(folded(text, 28), expected);
        assert_eq!(folded("a b c\n", 80), "a b c\n");
        let expected = "mqtt   one two three four\n       five six seven\n";
        assert_eq!(folded("mqtt   one two three four five six seven\n", 28), expected);
        let told = "weigh: one two three four five six\n";
        assert_eq!(folded(told, 24), "weigh: one two three\n  four five six\n");
        assert_eq!(folded("one two three four five\n", 12), "one two three four\nfive\n");
    }

    #[test]
    fn widths_are_those_that_are_shown() {
        assert_eq!(shown_width("\u{1b}[1mµ± \u{1b}[0m"), 3);
        assert_eq!(shown_width("農場"), 4);
        let text = "\u{1b}[31m!  one two three four\u{1b}[0m\n";
        assert_eq!(folded(text, 23), text);
        let expected = "\u{1b}[31m!  one two three four\n   five six seven\u{1b}[0m\n";
        assert_eq!(
            folded("\u{1b}[31m!  one two three four five six seven\u{1b}[0m\n", 23),
            expected
        );
    }

    #[test]
    fn lines_end_at_a_word() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("", 7), [""]);
        assert_eq!(shortened("a claim that fits", 17), "a claim that fits");
        assert_eq!(shortened("a claim that does not fit", 17), "a claim that ...");
    }
}
