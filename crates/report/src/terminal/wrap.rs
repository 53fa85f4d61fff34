//! Wraps lines at the width of the terminal.

use std::fmt::Write as _;

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
    let mut text = String::new();
    let mut current = " ".repeat(indent);
    let mut is_empty = true;
    for word in line.trim_start().split(' ') {
        if !is_empty && current.chars().count() + 1 + word.chars().count() > width {
            let _ = writeln!(text, "{current}");
            current = " ".repeat(indent + 4);
            is_empty = true;
        }
        if !is_empty {
            current.push(' ');
        }
        current.push_str(word);
        is_empty = false;
    }
    text + &current + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_keeps_the_nesting_of_lines() {
        let shown = ["messages:", "  outer", "    inner"].map(|line| wrap(line, Style::markdown()));
        assert_eq!(shown.concat(), "messages:  \n- outer\n  - inner\n");
    }
}
