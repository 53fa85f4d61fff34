//! Numbers with their intervals as people read them. Without one they are those of
//! [`weigh_model::numbers`].

use weigh_model::numbers::{DECIMALS_MAX, fixed, unit_of_time};
pub use weigh_model::numbers::{
    bytes, count, percent, rate, rough, share, span, three_digits, time,
};
use weigh_stats::share::zero_events_share_max;

/// A time with its interval, all in one unit: `1.23 ± 0.04 ms`; ends at unequal distances
/// separately, `1.23 +0.37/-0.12 ms`. Without an interval it is [`time`].
pub fn time_between(nanoseconds: f64, ends: Option<(f64, f64)>, is_ascii: bool) -> String {
    let Some((low, high)) = ends else { return time(nanoseconds, is_ascii) };
    let whole = time(nanoseconds, is_ascii);
    let unit = whole.rsplit(' ').next().unwrap_or_default();
    let divisor = match unit {
        "ns" => 1.0,
        "ms" => 1e6,
        "s" => 1e9,
        _ => 1e3,
    };
    let [value, low, high] = [nanoseconds, low, high].map(|number| number / divisor);
    format!("{} {unit}", between(value, Some((low, high))))
}

/// A time, named `part`, of which up to `lag` is the generator's own lateness: `up to 46.0 µs of
/// p50: the true p50 is between 214 and 260 µs`.
pub fn time_with_lag(part: &str, nanoseconds: f64, lag: f64, is_ascii: bool) -> String {
    let (divisor, unit) = unit_of_time(nanoseconds, 3, is_ascii);
    let [low, high] = [nanoseconds - lag, nanoseconds].map(|ns| three_digits(ns / divisor));
    let lag = time(lag, is_ascii);
    format!("up to {lag} of {part}: the true {part} is between {low} and {high} {unit}")
}

/// A time with its interval in one unit, both formatted by `between`.
pub fn time_in(
    nanoseconds: f64,
    ends: Option<(f64, f64)>,
    is_ascii: bool,
    between: fn(f64, Option<(f64, f64)>) -> String,
) -> String {
    let Some((low, high)) = ends else { return time(nanoseconds, is_ascii) };
    let (divisor, unit) = unit_of_time(nanoseconds, 3, is_ascii);
    let [value, low, high] = [nanoseconds, low, high].map(|number| number / divisor);
    format!("{} {unit}", between(value, Some((low, high))))
}

/// A number with its interval as a table shows it: three significant digits, and the interval to
/// the same place, or one place further right: `28,100 ± 9,900`, `200 ± 0.3`. A narrower interval
/// is shown as one unit of that place, never as 0.
pub fn between_short(value: f64, ends: Option<(f64, f64)>) -> String {
    shortened(value, ends, false)
}

/// As [`between_short`], with the longer side of the interval: never too narrow, and shorter than
/// both sides. Both are given if the sign would include values below 0 that the interval does not.
pub fn between_longer(value: f64, ends: Option<(f64, f64)>) -> String {
    shortened(value, ends, true)
}

fn shortened(value: f64, ends: Option<(f64, f64)>, is_longer_enough: bool) -> String {
    let Some((low, high)) = ends else { return three_digits(value) };
    let place_of = |number: f64, digits: i32| match number == 0.0 {
        true => 0,
        false => digits - number.abs().log10().floor() as i32,
    };
    let place = place_of(value, 2).min(DECIMALS_MAX);
    let side = |number: f64| {
        let own = if number == 0.0 { place } else { place_of(number, 0) };
        let finest = place.max(0) + 1;
        // An interval far below what is shown of the value is never shown as 0.
        let number = if number == 0.0 { 0.0 } else { number.max(0.1_f64.powi(finest)) };
        let decimals = own.clamp(place, finest);
        rounded(number, if number == 0.0 { decimals } else { decimals.min(place_of(number, 2)) })
    };
    let value_text = three_digits(value);
    let longer = match is_longer_enough {
        true => Some((value - low).max(high - value)).filter(|side| low < 0.0 || value >= *side),
        false => longer_side(value, low, high),
    };
    match longer {
        Some(longer) => format!("{value_text} ± {}", side(longer)),
        None => format!("{value_text} +{}/-{}", side(high - value), side(value - low)),
    }
}

/// A number with this many decimals; below 0 they are tens, hundreds and so on.
fn rounded(number: f64, decimals: i32) -> String {
    if decimals >= 0 {
        return fixed(number, decimals as usize);
    }
    let unit = 10f64.powi(-decimals);
    fixed((number / unit).round() * unit, 0)
}

/// A plain number with its interval: `1,000 ± 12`, `21.3 +4.1/-0.8`.
pub fn between(value: f64, ends: Option<(f64, f64)>) -> String {
    let Some((low, high)) = ends else { return three_digits(value) };
    let (below, above) = (value - low, high - value);
    let decimals = decimals_for(value, below.min(above));
    let text = |number: f64| fixed(number, decimals);
    // A side has no more than three digits, as in a table.
    let side = |number: f64| {
        let most = if number == 0.0 { 0 } else { 2 - number.abs().log10().floor() as i32 };
        fixed(number, decimals.min(most.max(0) as usize))
    };
    if let Some(longer) = longer_side(value, low, high) {
        return format!("{} ± {}", text(value), text(longer));
    }
    format!("{} +{}/-{}", text(value), side(above), side(below))
}

/// The number after "±": the longer side of the interval, or none if both must be given: one is
/// much longer, or the sign would include values below 0 that the interval does not.
pub(crate) fn longer_side(value: f64, low: f64, high: f64) -> Option<f64> {
    let (below, above) = (value - low, high - value);
    let (shorter, longer) = (below.min(above), below.max(above));
    let is_below_zero = low >= 0.0 && value < longer;
    (longer <= LOPSIDED * shorter && !is_below_zero).then_some(longer)
}

/// Number of decimals: three digits of the value, or one digit of the interval, but at most two
/// more.
fn decimals_for(value: f64, distance: f64) -> usize {
    let places = |digits: i32, number: f64| digits - number.abs().log10().floor() as i32;
    let of_value = if value == 0.0 { 0 } else { places(2, value).clamp(0, DECIMALS_MAX) };
    let of_distance = if distance == 0.0 { 0 } else { places(0, distance) };
    of_distance.clamp(of_value, of_value + 2) as usize
}

/// Number of lost messages of `n`. No loss among n does not prove a loss rate of 0: the bound at 95
/// % is added.
pub fn lost(lost: u64, n: u64, is_ascii: bool) -> String {
    if lost > 0 || n == 0 {
        return count(lost);
    }
    format!("0 ({})", loss_share_max(n, is_ascii))
}

/// The largest share that may be lost if none of `n` messages was, at 95 % confidence:
/// `≤ 0.05 %`.
pub(crate) fn loss_share_max(n: u64, is_ascii: bool) -> String {
    let sign = if is_ascii { "<=" } else { "≤" };
    format!("{sign} {} %", two_digits(zero_events_share_max(n) * 100.0))
}

/// At most two significant digits, for a bound of a share in percent.
fn two_digits(value: f64) -> String {
    let decimals = (1 - value.abs().log10().floor() as i32).clamp(0, DECIMALS_MAX) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// If the longer side of an interval is at most this many times the shorter, it represents both:
/// "±" may then be too wide, never too narrow.
const LOPSIDED: f64 = 1.5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_with_lag_has_one_unit() {
        let with_lag = time_with_lag("p50", 260e3, 46e3, false);
        assert_eq!(with_lag, "up to 46.0 µs of p50: the true p50 is between 214 and 260 µs");
        let with_lag = time_with_lag("max", 1.02e6, 97.8e3, true);
        assert_eq!(with_lag, "up to 97.8 us of max: the true max is between 0.922 and 1.02 ms");
    }

    #[test]
    fn intervals_have_the_unit_and_the_decimals_of_the_value() {
        let time = |value, low, high| time_between(value, Some((low, high)), false);
        assert_eq!(time(1.234e6, 1.194e6, 1.274e6), "1.23 ± 0.04 ms");
        assert_eq!(time(200_000.0, 199_700.0, 200_300.0), "200.0 ± 0.3 µs");
        assert_eq!(time(1.234e6, 1.1e6, 1.6e6), "1.23 +0.37/-0.13 ms");
        assert_eq!(time(1.234e6, 1.2e6, 1.28e6), "1.23 ± 0.05 ms");
        assert_eq!(time_between(2.5e9, None, true), "2.50 s");
        assert_eq!(between(1_000.4, Some((988.4, 1_012.4))), "1,000 ± 12");
        assert_eq!(between(999.8, Some((999.8, 999.8))), "1,000 ± 0");
        assert_eq!(between(12_345.0, Some((12_000.0, 12_690.0))), "12,345 ± 345");
        assert_eq!(between(8.5, Some((8.5, 8.5))), "8.50 ± 0.00");
        assert_eq!(between(0.0, Some((0.0, 0.0))), "0 ± 0");
        assert_eq!(between(2.95, Some((0.0, 5.97))), "2.95 +3.02/-2.95");
        assert_eq!(between(1.0, Some((0.999_999, 1.000_001))), "1.0000 ± 0.0000");
    }

    #[test]
    fn a_table_shows_three_digits_and_the_interval_to_the_same_place() {
        let short = |value, low, high| between_short(value, Some((low, high)));
        assert_eq!(short(28_139.0, 18_278.0, 38_000.0), "28,100 ± 9,900");
        assert_eq!(short(12_345.0, 12_333.0, 12_357.0), "12,300 ± 10");
        assert_eq!(short(200.0, 199.7, 200.3), "200 ± 0.3");
        assert_eq!(short(84.84, 55.6, 114.0), "84.8 ± 29.2");
        assert_eq!(short(2_000.0, 2_000.0, 2_000.0), "2,000 ± 0");
        assert_eq!(short(8.5, 8.5, 8.5), "8.50 ± 0.00");
        assert_eq!(short(0.0, 0.0, 0.0), "0 ± 0");
        assert_eq!(short(2.95, 0.0, 5.97), "2.95 +3.02/-2.95");
        assert_eq!(short(1.0, 0.999_999, 1.000_001), "1.00 ± 0.001");
        assert_eq!(between_short(1_234.0, None), "1,230");
        let time = |value, low, high| time_in(value, Some((low, high)), false, between_short);
        assert_eq!(time(1.234e6, 1.194e6, 1.274e6), "1.23 ± 0.04 ms");
        assert_eq!(time(200_000.0, 199_700.0, 200_300.0), "200 ± 0.3 µs");
        assert_eq!(between_longer(2.95, Some((0.0, 5.97))), "2.95 +3.02/-2.95");
        assert_eq!(between_longer(451.0, Some((0.0, 1_573.0))), "451 +1,120/-451");
        assert_eq!(between_longer(9.79, Some((4.0, 18.0))), "9.79 ± 8.21");
        let both = [between_longer, between].map(|own| own(51.6, Some((0.0, 265.5))));
        assert_eq!(both, ["51.6 +214/-51.6"; 2], "table and answer agree");
    }

    #[test]
    fn loss_is_never_rounded_away() {
        assert_eq!(lost(2, 10, false), "2");
        assert_eq!(lost(0, 1_000, false), "0 (≤ 0.3 %)");
        assert_eq!(lost(0, 10_000, true), "0 (<= 0.03 %)");
        assert_eq!(lost(0, 0, true), "0");
    }
}
