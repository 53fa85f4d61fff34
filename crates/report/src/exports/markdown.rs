//! The answer and the table of a run in Markdown (GitHub Flavored Markdown, tables extension): one
//! table, the titles of groups as rows of their own, the cases of a group indented.

use super::paper_table::PaperTable;
use crate::answer;
use crate::summary::Summary;

/// The answer of the run, and the table with these metrics as columns; none for those of the
/// terminal's table.
pub fn table(summary: &Summary, metrics: &[String]) -> String {
    let PaperTable { headings, groups, notes } = PaperTable::new(summary, metrics);
    let mut text = format!("**{}**\n\n", escaped(&answer::question(summary)));
    for line in answer::lines(summary) {
        text += &format!("- {}\n", escaped(&line.text));
    }
    text.push('\n');
    text += &row(headings.iter().map(|heading| escaped(heading)));
    let alignment = |(index, _)| if index == 0 { ":---" } else { "---:" }.to_owned();
    text += &row(headings.iter().enumerate().map(alignment));
    for group in groups {
        let title = format!("**{}**", escaped(&group.title));
        let rest = std::iter::repeat_n(String::new(), headings.len() - 1);
        text += &row(std::iter::once(title).chain(rest));
        for cells in group.rows {
            let shown = cells.iter().enumerate().map(|(index, cell)| {
                format!("{}{}", if index == 0 { INDENT } else { "" }, escaped(cell))
            });
            text += &row(shown);
        }
    }
    text.push('\n');
    for note in notes {
        text += &format!("- {}\n", escaped(&note));
    }
    text
}

fn row(cells: impl Iterator<Item = String>) -> String {
    let cells: Vec<String> = cells.collect();
    format!("| {} |\n", cells.join(" | "))
}

/// `text` with a backslash before every character that Markdown would obey; line ends are blanks.
pub fn escaped(text: &str) -> String {
    let mut shown = String::new();
    for character in text.chars() {
        match character {
            '\\' | '|' | '*' | '_' | '`' | '<' | '>' | '[' | ']' | '#' | '~' => {
                shown.push('\\');
                shown.push(character);
            }
            '\n' | '\r' => shown.push(' '),
            other => shown.push(other),
        }
    }
    shown
}

/// Blanks at the beginning of a cell are dropped, so this is a character of its own.
const INDENT: &str = "&emsp;";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_markdown_would_obey_is_escaped() {
        assert_eq!(escaped("a|b_c*d [e] ± 5 %"), "a\\|b\\_c\\*d \\[e\\] ± 5 %");
        assert_eq!(escaped("two\nlines"), "two lines");
    }
}
