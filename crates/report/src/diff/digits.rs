//! Figures and ratios of a comparison of two runs, with the digits that their intervals leave.

use super::document::Figure;
use crate::figures::{bytes, longer_side, percent, three_digits, time};

/// A figure in its unit, with the longer side of its interval in percent of it, or both sides if
/// one is far longer: `20.0 µs ± 5.0 %`, `20.0 µs +12/-5.0 %`.
pub(crate) fn figure_text(figure: Option<&Figure>, unit: &str) -> String {
    let Some(figure) = figure else { return "–".to_owned() };
    let Some(value) = figure.value else { return "∞".to_owned() };
    let text = match unit {
        "ns" => time(value, false),
        "s" => time(value * 1e9, false),
        "us/message" => time(value * 1e3, false),
        "B/message" => bytes(value),
        "B" => bytes(value),
        "1" => three_digits(value),
        "1/s" => format!("{}/s", three_digits(value)),
        "B/s" => format!("{}/s", bytes(value)),
        "%" => format!("{} %", three_digits(value)),
        unit => format!("{} {unit}", three_digits(value)),
    };
    match figure.low.zip(figure.high) {
        Some((low, high)) if value != 0.0 && high > low => {
            let sides = [value - low, high - value].map(|side| 100.0 * side / value.abs());
            let [below, above] = sides.map(|side| percent(side).replace(" %", ""));
            match longer_side(value, low, high) {
                Some(longer) => format!("{text} ± {}", percent(100.0 * longer / value.abs())),
                None => format!("{text} +{above}/-{below} %"),
            }
        }
        _ => text,
    }
}

/// `1.32 ± 0.04 times (1.28 to 1.36)`.
pub(crate) fn times(ratio: f64, bounds: Option<(f64, f64)>) -> String {
    let between = bounds.map_or(String::new(), |(low, high)| {
        let decimals = decimals((high - ratio).max(ratio - low));
        format!(" ({low:.decimals$} to {high:.decimals$})")
    });
    format!("{} times{between}", plus_minus(ratio, bounds))
}

/// The ratio with the longer side of its interval, with two digits of the latter, as the GUM
/// recommends (JCGM 100, 7.2.6), or with both sides if one is far longer.
pub(crate) fn plus_minus(ratio: f64, bounds: Option<(f64, f64)>) -> String {
    let Some((low, high)) = bounds else { return three_digits(ratio) };
    let (below, above) = (ratio - low, high - ratio);
    let decimals = decimals(below.max(above));
    match longer_side(ratio, low, high) {
        Some(longer) => format!("{ratio:.decimals$} ± {longer:.decimals$}"),
        None => format!("{ratio:.decimals$} +{above:.decimals$}/-{below:.decimals$}"),
    }
}

/// Decimals with which `side` has two digits; three if it is 0.
pub(crate) fn decimals(side: f64) -> usize {
    if side > 0.0 && side.is_finite() {
        (1 - side.log10().floor() as i32).clamp(0, 6) as usize
    } else {
        3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_have_the_digits_that_their_intervals_leave() {
        assert_eq!(times(1.3184, Some((1.2752, 1.3616))), "1.318 ± 0.043 times (1.275 to 1.362)");
        assert_eq!(times(1.5, Some((1.5, 1.5))), "1.500 ± 0.000 times (1.500 to 1.500)");
        assert_eq!(times(0.5, None), "0.500 times");
        assert_eq!(times(1.3, Some((1.27, 1.34))), "1.300 ± 0.040 times (1.270 to 1.340)");
        assert_eq!(times(1.3, Some((1.2, 1.9))), "1.30 +0.60/-0.10 times (1.20 to 1.90)");
        let lopsided = Figure { value: Some(2e4), low: Some(1.9e4), high: Some(2.6e4), n: 5 };
        assert_eq!(figure_text(Some(&lopsided), "ns"), "20.0 µs +30/-5.0 %");
        let figure = Figure { value: Some(2e4), low: Some(1.9e4), high: Some(2.1e4), n: 5 };
        assert_eq!(figure_text(Some(&figure), "ns"), "20.0 µs ± 5.0 %");
        let lost = Figure { value: None, low: None, high: None, n: 5 };
        assert_eq!(
            (figure_text(Some(&lost), "ns"), figure_text(None, "ns")),
            ("∞".into(), "–".into())
        );
    }
}
