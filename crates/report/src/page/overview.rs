//! The table of all cases, and the verdict of every pair.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::document::escape;
use crate::figures::{capital, three_digits};
use crate::summary::pairs::{BACKGROUND, LANE};
use crate::summary::{Cell, Comparison, Matrix, Multiplicity, Ratio, Summary, Verdict};
use crate::terminal::Style;
use crate::view::columns::{
    CellGroup, Column, DELIVERY_MARK, INVALID_MARK, ONE_WAY_MARK, Part, SERVICE_MARK, columns,
    groups,
};
use crate::view::verdicts::by_chance;
use crate::view::{refusals, signs};

/// The figures of the terminal's table, sortable: in several tables, so that none is wider than a
/// screen.
pub(crate) fn table(summary: &Summary) -> String {
    if summary.cells.is_empty() {
        return "<p>Nothing was measured.</p>\n".to_owned();
    }
    let (mut html, mut shown) = (String::new(), String::new());
    for (title, parts) in TABLES {
        let is_own = |column: &&Column| parts.contains(&column.part);
        let own: Vec<&Column> = columns(summary).filter(is_own).collect();
        if !own.is_empty() {
            let names = columns(summary).filter(|column| column.part == Part::All);
            let columns: Vec<&Column> = names.chain(own).collect();
            html += &part(summary, title, &columns, &mut shown);
        }
    }
    html + "<p class=\"note\">A click on a heading sorts the rows within each delivery guarantee."
        + &legend(&shown)
        + "</p>\n"
}

/// What the signs of the tables stand for, as far as `shown` has them: headings and figures, one a
/// line.
fn legend(shown: &str) -> String {
    let has = |sign: &str| shown.contains(sign);
    let is_heading = |heading: &str| shown.lines().any(|line| line == heading);
    let signs = [
        (shown.lines().any(|line| line.starts_with(INVALID_MARK)), "!", "invalid, not to be used"),
        (
            signs::has_mark(shown, DELIVERY_MARK),
            "d",
            "delivery time (from the due time to the arrival), if nothing is confirmed",
        ),
        (
            signs::has_mark(shown, SERVICE_MARK),
            "s",
            "service time (from sending, not from the due time): the generator sent too late",
        ),
        (
            signs::has_mark(shown, ONE_WAY_MARK),
            "o",
            "one-way time (from sending to the arrival): the generator sent too late",
        ),
        (
            has("∞"),
            "∞",
            "too many messages were lost or never sent: this percentile has no finite time",
        ),
        (
            has("(≤"),
            "0 (≤ x)",
            "none of n lost: with 95 % confidence the true loss rate is below x",
        ),
        (
            has("is generator lag"),
            "generator lag",
            "the generator sent late, so the true time may be shorter by up to this much. Shown if \
             the lag is more than 5 % of the time and more than its \u{b1} value",
        ),
        (is_heading("in/s"), "in/s", "messages sent per second"),
        (is_heading("out/s"), "out/s", "messages delivered per second"),
        (is_heading("–"), "–", "not measured, or too few messages"),
    ];
    let known = signs.into_iter().filter(|(is_shown, ..)| *is_shown);
    known.map(|(_, sign, meaning)| format!(" <b>{sign}</b> {meaning}.")).collect()
}

/// One table with these columns. Its headings and figures are added to `shown`, one a line.
fn part(summary: &Summary, title: &str, columns: &[&Column], shown: &mut String) -> String {
    let mut html = format!(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"All cases: {title}\">\
         <table class=\"sortable\">\n<thead><tr>"
    );
    for column in columns {
        let heading = column.heading().replace('\n', " ");
        let _ = write!(html, "<th scope=\"col\">{}</th>", escape(&heading));
        let _ = writeln!(shown, "{heading}");
    }
    html.push_str("</tr></thead>\n");
    let span = columns.len();
    for CellGroup { title, cells } in groups(summary) {
        let title = escape(&title);
        let _ = write!(
            html,
            "<tbody><tr class=\"group\"><th colspan=\"{span}\" scope=\"rowgroup\">{title}</th></tr>"
        );
        for cell in cells {
            let figures: Vec<String> =
                columns.iter().map(|column| column.show(cell, Style::markdown())).collect();
            html.push_str(&figures_row(cell, &figures));
            figures.iter().for_each(|figure| shown.push_str(&format!("{}\n", figure.trim())));
        }
        html.push_str("</tbody>\n");
    }
    html + "</table></div>\n"
}

fn figures_row(cell: &Cell, figures: &[String]) -> String {
    let start = if cell.valid { "<tr>" } else { "<tr class=\"invalid\">" };
    let mut row = start.to_owned();
    for (index, figure) in figures.iter().enumerate() {
        let figure = figure.trim().replacen(INVALID_MARK, &format!("{INVALID_MARK} "), 1);
        let figure = escape(&figure);
        row += &match index {
            0 => format!("<th scope=\"row\">{figure}</th>"),
            _ => format!("<td>{figure}</td>"),
        };
    }
    row + "</tr>\n"
}

/// Every pair that was compared, metric by metric, lanes before places of an axis; then those that
/// were not, by their reason.
pub(crate) fn verdicts(summary: &Summary, matrix: &Matrix) -> String {
    let index: BTreeMap<&str, usize> =
        summary.cells.iter().enumerate().map(|(i, cell)| (cell.name.as_str(), i)).collect();
    let label = |name: &str| {
        index.get(name).map_or_else(|| name.to_owned(), |cell| matrix.labels[*cell].clone())
    };
    let mut html = String::new();
    let kind = |comparison: &Comparison| match comparison.factor.as_str() {
        LANE => 0,
        BACKGROUND => 1,
        _ => 2,
    };
    let kinds = [
        "Case against case",
        "With a background and without, by pairs of repetitions",
        "Along an axis",
    ];
    for (number, title) in kinds.into_iter().enumerate() {
        let of_kind = |comparison: &&Comparison| {
            comparison.verdict != Verdict::Refused && kind(comparison) == number
        };
        let all: Vec<&Comparison> = summary.comparisons.iter().filter(of_kind).collect();
        html += &verdict_table(title, &all, label);
    }
    if html.is_empty() {
        return refused(summary);
    }
    let is_marked = |own: &Comparison| is_questionable(own) && own.verdict != Verdict::Refused;
    let has_mark = summary.comparisons.iter().any(is_marked);
    together(&summary.multiplicity, has_mark) + &html + &refused(summary)
}

/// True for a difference that is not significant when corrected for all comparisons.
fn is_questionable(comparison: &Comparison) -> bool {
    matches!(comparison.verdict, Verdict::Lower | Verdict::Higher) && !comparison.stands
}

/// Explains the table, the mark of a questionable difference if it has one, and the effect of many
/// verdicts on each of them.
fn together(multiplicity: &Multiplicity, has_mark: bool) -> String {
    let mark = match has_mark {
        true => {
            "A <code>?</code> marks a difference that is not significant when corrected for all \
             comparisons; it counts as too close to call. "
        }
        false => "",
    };
    format!(
        "<p>The left case divided by the right one, with the 95 % interval of that ratio \
         (Fieller). The verdict is a difference if the interval excludes 1, otherwise <i>too \
         close to call</i>. {mark}<i>p</i>: if both cases were \
         equal, a difference at least this large would occur with this probability (Student's t \
         test). <i>p of ranks</i>: the same probability, from the order of the values only \
         (Mann-Whitney test). Only cases that differ in one factor are compared.</p>\n<p>{} \
         {} stay significant when corrected for all comparisons (Benjamini and Hochberg at \
         5 %).</p>\n",
        by_chance(multiplicity),
        multiplicity.standing,
    )
}

fn verdict_table(title: &str, all: &[&Comparison], label: impl Fn(&str) -> String) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut rows = String::new();
    for comparison in all.iter().take(ROWS_MAX) {
        let [left, right] = [&comparison.left, &comparison.right].map(|name| escape(&label(name)));
        let warning = if is_questionable(comparison) { " ?" } else { "" };
        let chance = |p: Option<f64>| p.map_or_else(|| "–".to_owned(), probability);
        let _ = writeln!(
            rows,
            "<tr><th scope=\"row\">{}</th><td>{left}</td><td>{right}</td><td>{}</td>\
             <td>{}{warning}</td><td>{}</td><td>{}</td></tr>",
            escape(&capital(&comparison.metric)),
            comparison.ratio.map_or_else(|| "–".to_owned(), ratio),
            comparison.verdict.name(),
            chance(comparison.p),
            chance(comparison.rank_p),
        );
    }
    let open = if all.len() <= ROWS_OPEN { " open" } else { "" };
    let mut html = format!(
        "<details{open}><summary>{title}: {}</summary><div class=\"wide\" tabindex=\"0\" \
         role=\"region\" aria-label=\"Verdicts\"><table class=\"sortable verdicts\">\n<thead><tr>",
        if all.len() == 1 {
            "1 comparison".to_owned()
        } else {
            format!("{} comparisons", all.len())
        }
    );
    for (heading, is_text) in HEADINGS {
        let class = if is_text { " class=\"text\"" } else { "" };
        let _ = write!(html, "<th scope=\"col\"{class}>{heading}</th>");
    }
    let _ = write!(html, "</tr></thead><tbody>\n{rows}</tbody></table></div>");
    if all.len() > ROWS_MAX {
        let more = all.len() - ROWS_MAX;
        let _ = write!(html, "<p class=\"note\">{more} more are in summary.json.</p>");
    }
    html + "</details>\n"
}

/// A probability with two digits; very small ones as a bound.
fn probability(p: f64) -> String {
    match p {
        small if small < 0.001 => "&lt;0.001".to_owned(),
        small if small < 0.1 => format!("{small:.3}"),
        _ => format!("{p:.2}"),
    }
}

/// Pairs without a verdict, counted by their reason.
fn refused(summary: &Summary) -> String {
    let lines = refusals::lines(summary);
    if lines.is_empty() {
        return String::new();
    }
    let mut html = "<p>Not compared:</p>\n<ul>".to_owned();
    for line in lines.iter().take(REASONS_MAX) {
        let _ = write!(html, "<li>{}</li>", escape(line));
    }
    if lines.len() > REASONS_MAX {
        let _ = write!(html, "<li>{} more reasons in summary.json</li>", lines.len() - REASONS_MAX);
    }
    html + "</ul>\n"
}

fn ratio(ratio: Ratio) -> String {
    let value = three_digits(ratio.value);
    match (ratio.low, ratio.high) {
        (Some(low), Some(high)) => {
            format!("{value} ({} to {})", three_digits(low), three_digits(high))
        }
        _ => value,
    }
}

/// The tables, and the parts of the terminal's table in each.
const TABLES: [(&str, &[Part]); 5] = [
    ("times and rates", &[Part::Time, Part::Rate]),
    ("messages and cost", &[Part::Ledger, Part::Cost]),
    ("polling", &[Part::Polls]),
    ("on the wire", &[Part::Wire]),
    ("energy", &[Part::Energy]),
];

/// The columns of the verdicts, and whether they are text.
const HEADINGS: [(&str, bool); 7] = [
    ("metric", false),
    ("left", true),
    ("right", true),
    ("left / right", false),
    ("verdict", true),
    ("p", false),
    ("p of ranks", false),
];

/// Longer tables are not readable.
const ROWS_MAX: usize = 400;

const ROWS_OPEN: usize = 30;

const REASONS_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    /// Every sign has its words if a table has it, and only then.
    #[test]
    fn the_legend_has_the_signs_of_the_tables_and_no_others() {
        let plain = "in/s out/s\nmqtt\n1.23 ms\n2.50 s\n100\n0\nmqtt-d\n1–2\n";
        assert_eq!(legend(plain), "");
        for (shown, sign) in [
            ("!mqtt", "!"),
            ("1.23 ms d", "d"),
            ("2.50 s (up to 1.20 s is generator lag) d", "d"),
            ("2.50 s s", "s"),
            ("1.23 ± 0.04 µs o", "o"),
            ("∞", "∞"),
            ("0 (≤ 0.3 %)", "0 (≤ x)"),
            ("2.50 s (up to 1.20 s is generator lag)", "generator lag"),
            ("in/s", "in/s"),
            ("out/s", "out/s"),
            ("–", "–"),
        ] {
            let found = legend(&format!("{plain}{shown}\n"));
            assert!(found.contains(&format!(" <b>{sign}</b> ")), "{shown}: {found}");
            let more = usize::from(sign == "d" && shown.contains("lag"));
            assert_eq!(found.matches("<b>").count(), 1 + more, "{shown}: {found}");
        }
    }

    #[test]
    fn the_mark_of_questionable_differences_is_explained_where_one_has_it() {
        let of = |has_mark| together(&Multiplicity::default(), has_mark).contains("<code>?</code>");
        assert_eq!([of(true), of(false)], [true, false]);
    }
}
