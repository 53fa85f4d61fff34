//! Figures in the units of a study, as people read them.

use weigh_report::figures::{count, three_digits, time};

use crate::figures::number;

/// A figure with its unit: `87.0 %`, `1.76 ms`, `492/s`.
pub(crate) fn in_unit(value: f64, unit: &str) -> String {
    match unit {
        "ns" => time(value, false),
        "us" | "µs" => time(value * 1e3, false),
        "ms" => time(value * 1e6, false),
        "s" => time(value * 1e9, false),
        "B" if value >= 1000.0 => format!("{} B", count(value.round() as u64)),
        "" | "1" | "ratio" => three_digits(value),
        // What is counted is shown in full.
        "messages" => format!("{} messages", number(value)),
        "percent" | "%" => format!("{} %", three_digits(value)),
        "1/s" => format!("{}/s", three_digits(value)),
        unit => match unit.split_once('/') {
            Some(("1", each)) => format!("{}/{each}", three_digits(value)),
            Some((whole, each)) => format!("{} a {each}", in_unit(value, whole)),
            None => format!("{} {unit}", three_digits(value)),
        },
    }
}

/// A figure with its interval, the unit once where all have the same: `80.5 µs a message (78.0 to
/// 83.1)`, `1.20 ms (950 µs to 1.41 ms)`.
pub(crate) fn with_interval(value: f64, ends: (Option<f64>, Option<f64>), unit: &str) -> String {
    let whole = in_unit(value, unit);
    let own = tail(&whole);
    let mut others = [ends.0, ends.1].into_iter().flatten().filter(|end| *end != 0.0);
    let is_one = others.all(|end| tail(&in_unit(end, unit)) == own);
    let end = |end: f64| match in_unit(end, unit) {
        _ if end == 0.0 => "0".to_owned(),
        text if is_one => text.strip_suffix(own).unwrap_or(&text).to_owned(),
        text => text,
    };
    match ends {
        (Some(low), Some(high)) => {
            let (low, high) = (end(low), end(high));
            format!("{whole} ({low} to {high})")
        }
        (Some(low), None) => format!("{whole} (at least {})", end(low)),
        (None, Some(high)) => format!("{whole} (at most {})", end(high)),
        (None, None) => whole,
    }
}

/// An interval alone: `78.0 to 83.1 µs`, `at least 3.00`; a dash where there is none.
pub(crate) fn between(ends: (Option<f64>, Option<f64>), unit: &str) -> String {
    match ends {
        (Some(low), Some(high)) => {
            let (low, high) = (in_unit(low, unit), in_unit(high, unit));
            let own = tail(&high);
            format!("{} to {high}", low.strip_suffix(own).unwrap_or(&low))
        }
        (Some(low), None) => format!("at least {}", in_unit(low, unit)),
        (None, Some(high)) => format!("at most {}", in_unit(high, unit)),
        (None, None) => "–".to_owned(),
    }
}

/// A figure as the paper prints it, digit by digit, with its unit: `28.00 %`.
pub(crate) fn unit_after(printed: &str, unit: &str) -> String {
    match unit {
        "" | "1" | "ratio" | "count" => printed.to_owned(),
        "percent" => format!("{printed} %"),
        "us" => format!("{printed} µs"),
        unit => match unit.split_once('/') {
            Some(("1", each)) => format!("{printed}/{each}"),
            Some((whole, each)) => format!("{printed} {whole} a {each}"),
            None => format!("{printed} {unit}"),
        },
    }
}

/// What stands behind the number.
fn tail(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_ascii_digit() || "-.,".contains(c))
}

/// A printed figure, with the digits that the paper has, up to seven.
pub(crate) fn printed(value: f64, unit: &str) -> String {
    let number = number_as_written(value);
    match unit {
        "" | "1" | "ratio" => number,
        "percent" | "%" => format!("{number} %"),
        unit => match unit.split_once('/') {
            Some(("1", each)) => format!("{number}/{each}"),
            Some((whole, each)) => format!("{number} {whole} a {each}"),
            None => format!("{number} {unit}"),
        },
    }
}

/// The shortest text that means the number to seven digits; large whole numbers in full.
fn number_as_written(value: f64) -> String {
    let shortest: f64 = match value.fract() == 0.0 {
        true => value,
        false => format!("{value:.6e}").parse().unwrap_or(value),
    };
    let text = shortest.to_string();
    let (whole, rest) = text.split_once('.').map_or((&*text, ""), |(whole, rest)| (whole, rest));
    let whole = match whole.parse::<u64>() {
        Ok(number) => count(number),
        Err(_) => whole.to_owned(),
    };
    if rest.is_empty() { whole } else { format!("{whole}.{rest}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_their_units() {
        assert_eq!(in_unit(22.63, "percent"), "22.6 %");
        assert_eq!(in_unit(0.0015, "s"), "1.50 ms");
        assert_eq!(in_unit(9985.0, "1/s"), "9,990/s");
        assert_eq!(in_unit(3.84, "1"), "3.84");
        assert_eq!(in_unit(755.0, "mAh"), "755 mAh");
        assert_eq!(in_unit(80.5, "us/message"), "80.5 µs a message");
        assert_eq!(in_unit(599_111.0, "1/min"), "599,000/min");
        assert_eq!(
            (in_unit(28_912.0, "B"), in_unit(272.0, "B")),
            ("28,912 B".into(), "272 B".into())
        );
        assert_eq!(in_unit(10_080.0, "messages"), "10,080 messages");
    }

    #[test]
    fn an_interval_has_the_unit_once() {
        for (value, low, high, unit, text) in [
            (80.5, Some(78.0), Some(83.1), "us/message", "80.5 µs a message (78.0 to 83.1)"),
            (84.2, Some(0.0), Some(188.4), "%", "84.2 % (0 to 188)"),
            (1.2, Some(0.95), Some(1.41), "ms", "1.20 ms (950 µs to 1.41 ms)"),
            (3.0, Some(1.0), None, "1/s", "3.00/s (at least 1.00)"),
            (2373.0, Some(2345.0), Some(2401.0), "B/session", "2,373 B a session (2,345 to 2,401)"),
            (3.84, None, None, "1", "3.84"),
        ] {
            assert_eq!(with_interval(value, (low, high), unit), text);
        }
    }

    #[test]
    fn an_interval_alone_has_its_unit_once_and_says_which_end_is_open() {
        assert_eq!(between((Some(78.0), Some(83.1)), "us"), "78.0 to 83.1 µs");
        assert_eq!(between((Some(0.95), Some(1.41)), "1"), "0.950 to 1.41");
        assert_eq!(between((Some(950.0), Some(1410.0)), "us"), "950 µs to 1.41 ms");
        assert_eq!(between((Some(3.0), None), "1/s"), "at least 3.00/s");
        assert_eq!(between((None, None), "1"), "–");
        assert_eq!(unit_after("28.00", "percent"), "28.00 %");
        assert_eq!(unit_after("1.98", "ratio"), "1.98");
        assert_eq!(unit_after("1986", "1/s"), "1986/s");
    }

    #[test]
    fn what_the_paper_prints_keeps_its_digits() {
        for (value, unit, text) in [
            (22.63, "%", "22.63 %"),
            (177.344, "s", "177.344 s"),
            (0.0851 * 100.0, "percent", "8.51 %"),
            (9985.19, "1/s", "9,985.19/s"),
            (100.0, "%", "100 %"),
            (25.0, "ratio", "25"),
            (2_135.557_725_803_691, "1/s", "2,135.558/s"),
            (3_531_270.0, "samples", "3,531,270 samples"),
            (-0.5, "", "-0.5"),
        ] {
            assert_eq!(printed(value, unit), text);
        }
    }
}
