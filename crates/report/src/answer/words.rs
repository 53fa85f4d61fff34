//! Words of the answer: lists, shares, and the beginning and end of a sentence.

use crate::figures::three_digits;

/// `a, b and c`.
pub(super) fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}

/// The name of a lane without what most of them share: the built-in server.
pub(super) fn short(name: &str) -> &str {
    name.strip_suffix(" on reference").unwrap_or(name)
}

/// Names of lanes, each [`short`], unless one would then begin another as `a` begins `a on b`.
pub(super) fn told_apart(names: &[&str]) -> Vec<String> {
    let is_double = |name: &&str| {
        let begin = format!("{} on ", short(name));
        names.iter().any(|other| other != name && other.starts_with(&begin))
    };
    let length = |name: &&str| if is_double(name) { name.len() } else { short(name).len() };
    names.iter().map(|name| name[..length(name)].to_owned()).collect()
}

/// `text` with a capital letter and a full stop; a name with a digit keeps its letters.
pub(super) fn sentence(text: &str) -> String {
    let is_name = text.split(' ').next().is_some_and(|word| word.chars().any(|c| c.is_numeric()));
    let mut letters = text.chars();
    let first = letters.next().map(|letter| match is_name {
        true => letter.to_string(),
        false => letter.to_uppercase().to_string(),
    });
    let text = first.unwrap_or_default() + letters.as_str();
    if text.ends_with('.') { text } else { text + "." }
}

/// `title, one. Two`: as many of `parts` as [`LINE_CHARS_MAX`] allows, at least one, then how many
/// are left out.
pub(super) fn fitting(title: &str, parts: &[String]) -> String {
    let mut line = title.to_owned();
    for (number, part) in parts.iter().enumerate() {
        let is_last = number + 1 == parts.len();
        let rest = if is_last { 0 } else { ". For 12 more groups see the table.".len() };
        if number > 0 && line.chars().count() + part.chars().count() + rest + 3 > LINE_CHARS_MAX {
            return format!("{line}. {}", elsewhere(parts.len() - number));
        }
        line = match number {
            0 => format!("{line}, {}", lowered(part)),
            _ => format!("{line}. {part}"),
        };
    }
    line
}

/// The text with a small first letter.
fn lowered(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_lowercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

/// `For 3 more groups see the table`.
fn elsewhere(number: usize) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("For {number} more group{plural} see the table")
}

/// `1 case`, `2 cases`.
pub(super) fn counted(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {what}{plural}", crate::figures::count(number as u64))
}

/// By what share the first of two figures is below the second: `47 %`, `3.1 %`, and a range over
/// several ratios, `31 to 47 %`.
pub(super) fn less(ratios: &[f64]) -> String {
    let shares = || ratios.iter().map(|ratio| 100.0 * (1.0 - ratio));
    let low = shares().fold(f64::INFINITY, f64::min);
    let high = shares().fold(0.0, f64::max);
    let text = |share: f64| match share {
        few if few < 9.95 => three_digits((few * 10.0).round() / 10.0),
        many if many < 99.0 => format!("{many:.0}"),
        most => format!("{:.2}", (most * 100.0).floor() / 100.0),
    };
    let [low, high] = [low, high].map(text);
    if low == high { format!("{low} %") } else { format!("{low} to {high} %") }
}

/// Characters of a line: two lines of a terminal of 80 columns.
const LINE_CHARS_MAX: usize = 160;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_below_another_figure_are_rounded_and_never_to_all_of_it() {
        for (ratios, text) in [
            (&[0.53][..], "47 %"),
            (&[0.969], "3.10 %"),
            (&[0.53, 0.69], "31 to 47 %"),
            (&[0.000_01], "99.99 %"),
        ] {
            assert_eq!(less(ratios), text);
        }
    }

    #[test]
    fn a_lane_of_the_built_in_server_keeps_its_place_beside_the_same_lane_elsewhere() {
        let twins = told_apart(&["mqtt on reference", "mqtt on mosquitto", "tcp on reference"]);
        assert_eq!(twins, ["mqtt on reference", "mqtt on mosquitto", "tcp"]);
    }

    #[test]
    fn a_line_holds_what_fits_and_counts_the_rest() {
        let parts = |lengths: &[usize]| -> Vec<String> {
            lengths.iter().map(|length| "x".repeat(*length)).collect()
        };
        assert_eq!(fitting("T", &parts(&[2, 3])), "T, xx. xxx");
        let long = fitting("T", &parts(&[200, 3]));
        assert_eq!(long, format!("T, {}. For 1 more group see the table", "x".repeat(200)));
        let both = fitting("T", &parts(&[100, 54]));
        assert_eq!(both.len() + 1, LINE_CHARS_MAX, "with its full stop");
        let one = fitting("T", &parts(&[100, 60]));
        assert_eq!(one, format!("T, {}. For 1 more group see the table", "x".repeat(100)));
    }

    #[test]
    fn a_sentence_has_a_capital_letter_unless_it_begins_with_a_name() {
        assert_eq!(sentence("all is well"), "All is well.");
        assert_eq!(sentence("http1 lost 2 messages"), "http1 lost 2 messages.");
        assert_eq!(listed(&["a", "b", "c"]), "a, b and c");
        assert_eq!(counted(1, "case") + &counted(2_000, "case"), "1 case2,000 cases");
    }
}
