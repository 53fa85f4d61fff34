//! Figures of one column in line: numbers at their right end, the signs of intervals below each
//! other, units at their left end.

use super::fold::shown_width;

/// The texts of a column with blanks, so that all are equally wide and their parts in line. Texts
/// without a number, such as a dash, are at the right end of the numbers, or of the whole column if
/// they are longer.
pub(crate) fn aligned(texts: &[String]) -> Vec<String> {
    let parts: Vec<Parts<'_>> = texts.iter().map(|text| Parts::of(text)).collect();
    let widest = |part: for<'p> fn(&Parts<'p>) -> &'p str| -> usize {
        let numbers = parts.iter().filter(|own| own.is_number);
        numbers.map(|own| shown_width(part(own))).max().unwrap_or(0)
    };
    let number = widest(|own| own.number);
    let half = widest(|own| own.half);
    let both = widest(|own| own.both);
    let interval = both.max(if half > 0 { half + shown_width(SIGN) } else { 0 });
    let rest = widest(|own| own.rest);
    let line = |own: &Parts<'_>| {
        if !own.is_number && shown_width(own.number) > number {
            return own.number.to_owned();
        }
        let shown = match (own.half, own.both) {
            ("", both) => both.to_owned(),
            (own, _) => format!("{SIGN}{}{own}", blanks(half - shown_width(own))),
        };
        let before = blanks(number - shown_width(own.number));
        let behind = blanks(interval - shown_width(&shown));
        let end = blanks(rest - shown_width(own.rest));
        format!("{before}{}{shown}{behind}{}{end}", own.number, own.rest)
    };
    let lines: Vec<String> = parts.iter().map(line).collect();
    let width = lines.iter().map(|line| shown_width(line)).max().unwrap_or(0);
    let padded = |line: String| blanks(width - shown_width(&line)) + &line;
    lines.into_iter().map(padded).collect()
}

fn blanks(number: usize) -> String {
    " ".repeat(number)
}

/// A figure as a table shows it.
struct Parts<'t> {
    is_number: bool,
    /// The number, or a text without one.
    number: &'t str,
    /// The number behind "±".
    half: &'t str,
    /// Both sides of an interval, with the blank before them: ` +0.37/-0.13`.
    both: &'t str,
    /// Unit and signs, with the blank before them.
    rest: &'t str,
}

impl<'t> Parts<'t> {
    fn of(text: &'t str) -> Parts<'t> {
        let is_number = text.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        let whole = Parts { is_number, number: text, half: "", both: "", rest: "" };
        if !is_number {
            return whole;
        }
        let (number, behind) = text.split_at(text.find(' ').unwrap_or(text.len()));
        if let Some(interval) = behind.strip_prefix(SIGN) {
            let (half, rest) = interval.split_at(interval.find(' ').unwrap_or(interval.len()));
            return Parts { number, half, rest, ..whole };
        }
        if behind.starts_with(" +") {
            let end = behind[1..].find(' ').map_or(behind.len(), |at| at + 1);
            let (both, rest) = behind.split_at(end);
            return Parts { number, both, rest, ..whole };
        }
        Parts { number, rest: behind, ..whole }
    }
}

/// Between a mean and the longer side of its interval.
const SIGN: &str = " ± ";

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(texts: &[&str]) -> Vec<String> {
        aligned(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn numbers_signs_and_units_are_in_line() {
        let shown = lines(&["84.8 ± 29.2 µs d", "179 ± 160 µs d", "4.33 ms", "–"]);
        let expected =
            ["84.8 ± 29.2 µs d", " 179 ±  160 µs d", "4.33        ms  ", "   –            "];
        assert_eq!(shown, expected);
        let shown = lines(&["2.53 +4.25/-2.53 ms", "138 ± 18 µs l"]);
        assert_eq!(shown, ["2.53 +4.25/-2.53 ms  ", " 138 ± 18        µs l"]);
    }

    #[test]
    fn plain_numbers_are_at_the_right() {
        assert_eq!(lines(&["1,234", "7", "unknown"]), ["  1,234", "      7", "unknown"]);
        assert_eq!(lines(&["0 (≤ 0.05 %)", "12"]), [" 0 (≤ 0.05 %)", "12           "]);
        assert_eq!(lines(&["0 (≤ 0.05 %)", "unknown"]), ["0 (≤ 0.05 %)", "     unknown"]);
        assert_eq!(lines(&[]), [""; 0]);
    }

    /// Whatever the column holds, its lines are equally wide.
    #[test]
    fn all_lines_are_equally_wide() {
        let shown = lines(&["1 ± 2", "3 +4/-5 s", "–", "∞", "6 B", "-7 ± 8 µs d l", ""]);
        let widths: Vec<usize> = shown.iter().map(|line| shown_width(line)).collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "{shown:?}");
    }
}
