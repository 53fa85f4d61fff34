//! The table of a run in LaTeX with booktabs: rules, groups with a title, notes in small print.

use super::paper_table::PaperTable;
use crate::summary::Summary;

/// The table with these metrics as columns; none for those of the terminal's table. It is a
/// `tabular`: the document gives it a caption.
pub fn table(summary: &Summary, metrics: &[String]) -> String {
    let PaperTable { headings, groups, notes } = PaperTable::new(summary, metrics);
    let columns = headings.len();
    let run = escaped(&summary.run.id);
    let mut text = format!(
        "% Run {run}, Weighbridge {}. Needs \\usepackage{{booktabs}}.\n\
         \\begin{{tabular}}{{l{}}}\n\\toprule\n",
        escaped(&summary.run.version),
        "r".repeat(columns - 1)
    );
    text += &row(headings.iter().map(|heading| escaped(heading)));
    text += "\\midrule\n";
    for (number, group) in groups.into_iter().enumerate() {
        if number > 0 {
            text += "\\addlinespace\n";
        }
        text += &format!(
            "\\multicolumn{{{columns}}}{{l}}{{\\textit{{{}}}}} \\\\\n",
            escaped(&group.title)
        );
        for cells in group.rows {
            text += &row(cells.iter().enumerate().map(|(index, cell)| {
                format!("{}{}", if index == 0 { "\\quad " } else { "" }, escaped(cell))
            }));
        }
    }
    text += "\\bottomrule\n\\end{tabular}\n\n";
    let notes: Vec<String> = notes.iter().map(|note| escaped(note)).collect();
    if notes.is_empty() {
        return text;
    }
    text += &format!("{{\\footnotesize {}\\par}}\n", notes.join("\\\\\n"));
    text
}

fn row(cells: impl Iterator<Item = String>) -> String {
    let cells: Vec<String> = cells.collect();
    format!("{} \\\\\n", cells.join(" & "))
}

/// `text` as LaTeX shows it: its special characters escaped, and the signs of figures as commands
/// that every engine has.
pub fn escaped(text: &str) -> String {
    let mut shown = String::new();
    let mut before = ' ';
    for character in text.chars() {
        match character {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => {
                shown.push('\\');
                shown.push(character);
            }
            '\\' => shown += "\\textbackslash{}",
            '~' => shown += "\\textasciitilde{}",
            '^' => shown += "\\textasciicircum{}",
            '<' => shown += "$<$",
            '>' => shown += "$>$",
            '±' => shown += "$\\pm$",
            '≤' => shown += "$\\leq$",
            '≥' => shown += "$\\geq$",
            '∞' => shown += "$\\infty$",
            'µ' | 'μ' => shown += "$\\mu$",
            '×' => shown += "$\\times$",
            '–' => shown += "--",
            '—' => shown += "---",
            // The lower side of an interval: a minus, not a hyphen.
            '-' if before == '/' => shown += "$-$",
            '\n' | '\r' => shown.push(' '),
            other => shown.push(other),
        }
        before = character;
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_are_shown_and_not_obeyed() {
        for (text, shown) in [
            ("target_cpu 5 % & more", "target\\_cpu 5 \\% \\& more"),
            ("1.23 ± 0.04 µs", "1.23 $\\pm$ 0.04 $\\mu$s"),
            ("1.23 +0.37/-0.12 ms", "1.23 +0.37/$-$0.12 ms"),
            ("0 (≤ 0.3 %)", "0 ($\\leq$ 0.3 \\%)"),
            (
                "a{b}^c~d\\e#f$",
                "a\\{b\\}\\textasciicircum{}c\\textasciitilde{}d\\textbackslash{}e\\#f\\$",
            ),
            ("– ∞", "-- $\\infty$"),
        ] {
            assert_eq!(escaped(text), shown);
        }
    }
}
