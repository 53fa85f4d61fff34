//! Wraps lines at the width of the terminal.

use super::fold::{filled, last_column, shown_width};
use super::style::Style;

/// Breaks a line at blanks; continuation lines are indented by four more. Markdown gets lists
/// instead, nested as the lines are.
pub(crate) fn wrap(line: &str, style: Style) -> String {
    let indent = line.len() - line.trim_start().len();
    if style.is_markdown {
        return match indent / 2 {
            0 => format!("{line}  \n"),
            depth => format!("{}- {}\n", "  ".repeat(depth - 1), line.trim_start()),
        };
    }
    let width = usize::from(style.width);
    if shown_width(line) <= width {
        return format!("{line}\n");
    }
    // A sign and the blanks behind it stay as they are.
    let (head, rest, taken) = last_column(line, width / 2);
    let first = width.saturating_sub(taken);
    let lines = filled(rest, first, width.saturating_sub(indent + CONTINUED));
    let gap = format!("\n{:1$}", "", indent + CONTINUED);
    format!("{head}{}\n", lines.join(&gap))
}

/// Columns by which continuation lines are indented more.
const CONTINUED: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_keeps_the_nesting_of_lines() {
        let shown = ["messages:", "  outer", "    inner"].map(|line| wrap(line, Style::markdown()));
        assert_eq!(shown.concat(), "messages:  \n- outer\n  - inner\n");
    }

    #[test]
    fn continuation_lines_are_indented_by_four_more() {
        let narrow = Style::plain(16);
        let expected = "  one two three\n      four five\n      six\n";
        assert_eq!(wrap("  one two three four five six", narrow), expected);
        assert_eq!(wrap("d  one two three", narrow), "d  one two three\n");
        assert_eq!(wrap("d  one two three four", narrow), "d  one two three\n    four\n");
    }
}
