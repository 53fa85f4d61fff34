//! Wraps lines at the width of the terminal.

use std::fmt::Write as _;

use super::style::Style;

/// Breaks a line at blanks; continuation lines are indented by four more. Markdown gets lists
/// instead.
pub(crate) fn wrap(line: &str, style: Style) -> String {
    if style.is_markdown {
        let item = line.strip_prefix("  ").map(|item| format!("- {item}"));
        return item.unwrap_or_else(|| format!("{line}  ")) + "\n";
    }
    let indent = line.len() - line.trim_start().len();
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
