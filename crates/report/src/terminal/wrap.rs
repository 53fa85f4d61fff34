//! Wraps lines at the width of the terminal.

use super::fold::filled;
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
    let first = usize::from(style.width).saturating_sub(indent);
    let lines = filled(line, first, first.saturating_sub(CONTINUED));
    let gap = format!("\n{:1$}", "", indent + CONTINUED);
    format!("{:indent$}{}\n", "", lines.join(&gap))
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
    }
}
