//! The meaning of the signs in a table: a line for each sign that the table has, and no other.

use crate::terminal::Style;
use crate::view::columns::{DELIVERY_MARK, INVALID_MARK, LAG_MARK, ONE_WAY_MARK, SERVICE_MARK};
use crate::view::signs::{self, has_mark};

/// The lines for the signs of `table`.
pub(crate) fn of(table: &str, style: Style) -> Vec<String> {
    let mut lines = Vec::new();
    // Kinds of servers are titles of groups; a single kind needs no explanation.
    if table.contains(", reference") && table.contains(", real") {
        lines.push(REFERENCE.to_owned());
    }
    if table.contains("µs/msg") {
        lines.push(signs::TARGET_CPU.to_owned());
    }
    if table.contains(" in/s") && table.contains(" out/s") {
        lines.push(signs::RATES.to_owned());
    }
    if table.contains(INVALID_MARK) {
        lines.push(signs::INVALID.to_owned());
    }
    for (mark, meaning) in MARKS {
        if has_mark(table, mark) {
            lines.push(meaning.to_owned());
        }
    }
    if table.contains(if style.is_ascii { " inf" } else { "∞" }) {
        lines.push(signs::INFINITE.to_owned());
    }
    if table.contains("(≤") || table.contains("(<=") {
        lines.push(signs::NO_LOSS.to_owned());
    }
    lines.extend(interval(table));
    lines
}

/// True if figures of the table have the sign for a share of generator lag.
pub(crate) fn has_lag(table: &str) -> bool {
    has_mark(table, LAG_MARK)
}

/// The line for intervals: one side, two sides, or both.
fn interval(table: &str) -> Option<String> {
    let has_one = table.contains('±');
    let has_two = table.contains("/-");
    let sign = match (has_one, has_two) {
        (false, false) => return None,
        (true, false) => "±  from the mean to the farther end of its 95 % interval",
        (false, true) => "+a/-b  from the mean to both ends of its 95 % interval",
        (true, true) => {
            "±  from the mean to the farther end of its 95 % interval; +a/-b  to both ends"
        }
    };
    Some(format!("{sign}; the methods are in summary.json and report.html"))
}

const REFERENCE: &str = "reference: a server built into Weighbridge; real: any other server";

const MARKS: [(&str, &str); 3] = [
    (DELIVERY_MARK, signs::DELIVERY),
    (SERVICE_MARK, signs::SERVICE),
    (ONE_WAY_MARK, signs::ONE_WAY),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Every sign has its line if the table has it, and only then.
    #[test]
    fn a_sign_is_explained_where_it_stands_and_nowhere_else() {
        let plain = " mqtt  1.23 ms   873 ns  2.50 s   100\n";
        assert_eq!(of(plain, Style::plain(80)), [""; 0]);
        for (sign, line) in [
            ("at least once, reference\n mqtt  1.23 ms\nat least once, real\n", "reference: "),
            ("!mqtt  1.23 ms\n", "!  invalid"),
            (" mqtt  1.23 ms d   2\n", "d  delivery time"),
            ("target\n µs/msg\n mqtt  1.23\n", "target µs/msg: "),
            (" in/s  out/s\n mqtt  1.23\n", "in/s: "),
            (" mqtt  2.50 s s\n", "s  service time"),
            (" mqtt  1.23 ± 0.04 µs o  2\n", "o  one-way time"),
            (" mqtt  ∞\n", "∞  too many messages were lost"),
            (" mqtt  0 (≤ 0.3 %)\n", "0 (≤ x)  none of n lost"),
            (" mqtt  1.23 ± 0.04 ms\n", "±  from the mean to the farther end"),
            (" mqtt  1.23 +0.37/-0.12 ms\n", "+a/-b  from the mean to both ends"),
        ] {
            let lines = of(sign, Style::plain(80));
            assert!(lines.iter().any(|own| own.starts_with(line)), "{sign}: {lines:?}");
            let others = lines.iter().filter(|own| !own.starts_with(line) && !own.starts_with('±'));
            assert_eq!(others.count(), 0, "{sign}: {lines:?}");
        }
        let only = "at least once, reference\n mqtt  1.23 ms\n";
        assert_eq!(of(only, Style::plain(80)), [""; 0]);
        let both = of("1.0 ± 0.1 ms  1.0 +0.2/-0.1 ms", Style::plain(80));
        assert!(both[0].contains("+a/-b  to both ends"), "{both:?}");
        let ascii = Style { is_ascii: true, ..Style::plain(80) };
        assert!(of(" mqtt   inf  0 (<= 0.3 %)\n", ascii).len() == 2);
    }

    #[test]
    fn the_sign_for_lag_stands_behind_a_time_or_behind_another_sign() {
        assert!(has_lag("1.23 ms l\n") && has_lag("1.23 ms d l  7"));
        assert!(!has_lag("1.23 ms d\n") && !has_lag("1.23 ms lost"));
    }
}
