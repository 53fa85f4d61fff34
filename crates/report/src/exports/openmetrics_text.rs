//! Lines of OpenMetrics 1.0 text: heads of families, samples, labels, numbers.

use std::fmt::Write;

/// A label with its value: `run="a"`.
pub fn pair(key: &str, value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("{key}=\"{value}\"")
}

/// The lines before the samples of a family: its type, its unit unless that is empty, and what it
/// is about.
pub fn head(text: &mut String, name: &str, kind: &str, unit: &str, about: &str) {
    let _ = writeln!(text, "# TYPE {name} {kind}");
    if !unit.is_empty() {
        let _ = writeln!(text, "# UNIT {name} {unit}");
    }
    let _ = writeln!(text, "# HELP {name} {about}");
}

/// A sample: its name with labels, and its value.
pub fn put(text: &mut String, sample: &str, value: f64) {
    let _ = writeln!(text, "{sample} {}", number(value));
}

/// A number in the text form of OpenMetrics: with 17 digits at most, infinity signed.
pub fn number(value: f64) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "+Inf".to_owned() } else { "-Inf".to_owned() };
    }
    // A value multiplied by a power of ten is written without the rounding error of its last bit.
    let rounded: f64 = format!("{value:.14e}").parse().unwrap_or(value);
    rounded.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_without_noise() {
        assert_eq!(number(210_431.0 * 1e-9), "0.000210431");
        assert_eq!(number(f64::INFINITY), "+Inf");
        assert_eq!(number(12.0), "12");
        assert_eq!(pair("a", "say \"\\\n"), "a=\"say \\\"\\\\\\n\"");
    }
}
