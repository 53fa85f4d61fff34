//! Lines that fit the width: long ones continue under their last column.

/// Returns the text with lines of at most `width` characters, as far as words allow. A long line
/// continues under its last column, which begins after the last two blanks of its first half.
pub fn folded(text: &str, width: usize) -> String {
    text.split_inclusive('\n').map(|line| folded_line(line, width)).collect()
}

fn folded_line(line: &str, width: usize) -> String {
    let (body, end) = line.strip_suffix('\n').map_or((line, ""), |body| (body, "\n"));
    if body.chars().count() <= width {
        return line.to_owned();
    }
    let indent = last_column(body, width / 2);
    let head: String = body.chars().take(indent).collect();
    let rest: String = body.chars().skip(indent).collect();
    let lines = wrapped(&rest, width.saturating_sub(indent).max(ROOM_MIN));
    let gap = format!("\n{:indent$}", "");
    format!("{head}{}{end}", lines.join(&gap))
}

/// Returns the start of the last column that begins before `most`.
fn last_column(line: &str, most: usize) -> usize {
    let blanks: Vec<bool> = line.chars().map(|c| c == ' ').collect();
    let begins = |at: usize| at >= 2 && blanks[at - 1] && blanks[at - 2] && !blanks[at];
    (0..blanks.len().min(most)).rev().find(|at| begins(*at)).unwrap_or(0)
}

/// Returns lines of at most `room` characters, as far as words allow.
pub fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last_mut().expect("there is always a line");
        if last.is_empty() {
            last.push_str(word);
        } else if last.chars().count() + 1 + word.chars().count() <= room {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// Returns the beginning of a sentence, at most `room` characters long.
pub fn shortened(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let cut: String = text.chars().take(room.saturating_sub(MORE.len())).collect();
    let whole = cut.rfind(' ').map_or(&*cut, |at| &cut[..at]);
    format!("{}{MORE}", whole.trim_end())
}

/// Mark of a sentence that was cut.
pub const MORE: &str = " ...";

/// Columns for words if a terminal is very narrow.
const ROOM_MIN: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_continue_under_their_last_column() {
        let text = "mqtt    one two three four five six seven\nshort\n";
        let expected = "mqtt    one two three four\n        five six seven\nshort\n";
        assert_eq!(folded(text, 28), expected);
        assert_eq!(folded("a b c\n", 80), "a b c\n");
    }

    #[test]
    fn lines_end_at_a_word() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("", 7), [""]);
        assert_eq!(shortened("a claim that fits", 17), "a claim that fits");
        assert_eq!(shortened("a claim that does not fit", 17), "a claim that ...");
    }
}
