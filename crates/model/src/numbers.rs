//! Numbers, shares, sizes and durations as people read them: the one style of everything that a
//! user sees. What is typed in plans and flags has its own, such as `Nanos::typed`.
//!
//! A measured figure has three significant digits, as in [`time`]. What is given, counted or
//! computed from it is exact to four, without zeros at its end, as in [`span`].

/// `value` with three significant digits: `0.0123`, `1.23`, `12.3`, `123`, `12,300`.
pub fn three_digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".to_owned() } else { value.to_string() };
    }
    let rounded = rounded(value, 3);
    let decimals = (2 - exponent(rounded)).clamp(0, DECIMALS_MAX) as usize;
    match rounded.abs() >= 1000.0 {
        true => fixed(rounded, 0),
        false => format!("{rounded:.decimals$}"),
    }
}

/// `value` as it is given, to four significant digits and without zeros at its end; from 1,000 on
/// in full: `0.5`, `24.95`, `1,234`, `51,200`.
pub fn exact(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".to_owned() } else { value.to_string() };
    }
    let rounded = rounded(value, 4);
    if rounded.abs() >= 1000.0 {
        return fixed(value, 0);
    }
    let decimals = (3 - exponent(rounded)).clamp(0, DECIMALS_MAX) as usize;
    without_zeros(format!("{rounded:.decimals$}"))
}

/// `value` with this number of decimals, and with separators before them: `12,346.5`.
pub fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (whole, part) = text.split_at(text.find('.').unwrap_or(text.len()));
    let is_zero = text.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    let sign = if value < 0.0 && !is_zero { "-" } else { "" };
    format!("{sign}{}{part}", separated(whole))
}

/// A whole number in full, with separators: `1,000,000`.
pub fn count(number: u64) -> String {
    separated(&number.to_string())
}

/// A rate: `0.5/s`, `61,434/s`.
pub fn rate(per_second: f64) -> String {
    format!("{}/s", exact(per_second))
}

/// A share in percent, below 10 with one decimal: `4.3 %`, `97 %`.
pub fn percent(percent: f64) -> String {
    match percent.abs() < 9.95 {
        true => format!("{percent:.1} %"),
        false => format!("{} %", fixed(percent, 0)),
    }
}

/// A measured time, given in nanoseconds: `873 ns`, `1.23 µs`, `45.6 ms`, `2.50 s`.
pub fn time(nanoseconds: f64, is_ascii: bool) -> String {
    let (divisor, unit) = unit_of_time(nanoseconds, 3, is_ascii);
    format!("{} {unit}", three_digits(nanoseconds / divisor))
}

/// The unit in which a time with this number of significant `digits` is shown, and its nanoseconds.
pub fn unit_of_time(nanoseconds: f64, digits: i32, is_ascii: bool) -> (f64, &'static str) {
    let micro = if is_ascii { "us" } else { "µs" };
    // The borders are where rounding would give 1,000 of the smaller unit.
    let border = 1000.0 - 0.5 * 10f64.powi(3 - digits);
    match nanoseconds.abs() {
        small if small < border => (1.0, "ns"),
        small if small < border * 1e3 => (1e3, micro),
        small if small < border * 1e6 => (1e6, "ms"),
        _ => (1e9, "s"),
    }
}

/// A duration that is given or computed, in nanoseconds: `229.5 µs`, `30 s`, `2 min 30 s`,
/// `1 h 5 min`.
pub fn span(nanoseconds: f64) -> String {
    let seconds = nanoseconds / 1e9;
    if seconds == 0.0 {
        return "0 s".to_owned();
    }
    if seconds < 0.0 {
        return format!("-{}", span(-nanoseconds));
    }
    if seconds < 60.0 {
        let (divisor, unit) = unit_of_time(nanoseconds, 4, false);
        return format!("{} {unit}", exact(nanoseconds / divisor));
    }
    let tenths = (seconds * 10.0).round() as u64;
    let (hours, minutes) = (tenths / 36_000, tenths / 600 % 60);
    let parts = [
        (hours > 0).then(|| format!("{} h", count(hours))),
        (minutes > 0).then(|| format!("{minutes} min")),
        (!tenths.is_multiple_of(600)).then(|| format!("{} s", (tenths % 600) as f64 / 10.0)),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The same as [`span`] of a duration in seconds.
pub fn seconds(seconds: f64) -> String {
    span(seconds * 1e9)
}

/// A duration in seconds that is only estimated: whole seconds, from an hour on whole minutes;
/// `12 s`, `3 min 20 s`, `2 h 5 min`.
pub fn rough(seconds: f64) -> String {
    let unit = if seconds <= 3_600.0 { 1.0 } else { 60.0 };
    match (seconds / unit).ceil() * unit {
        seconds if seconds > CENTURY_S => "more than 100 years".to_owned(),
        seconds => span(seconds * 1e9),
    }
}

/// A measured size in bytes: `512 B`, `1.50 KiB`, `3.21 MiB`.
pub fn bytes(size: f64) -> String {
    let (scaled, unit) = unit_of_size(size);
    if unit == "B" { format!("{scaled:.0} B") } else { format!("{} {unit}", three_digits(scaled)) }
}

/// A size that is given, exactly, in the largest unit in which two decimals are enough: `44 B`,
/// `1.5 KiB`, `1 MiB`; thousands stay what they are: `125,000 B`.
pub fn size(bytes: u64) -> String {
    if bytes < 1_000_000 && bytes.is_multiple_of(1000) {
        return format!("{} B", count(bytes));
    }
    let units = SIZES.iter().enumerate().rev();
    let mut units = units.map(|(power, unit)| (1 << (10 * power), unit));
    let is_exact = |one: u64| bytes >= one && (bytes % one * 100).is_multiple_of(one);
    let (one, unit) = units.find(|(one, _)| is_exact(*one)).unwrap_or((1, &SIZES[0]));
    let part = without_zeros(format!(".{:02}", bytes % one * 100 / one));
    format!("{}{part} {unit}", count(bytes / one))
}

fn unit_of_size(size: f64) -> (f64, &'static str) {
    let mut scaled = size;
    let mut index = 0;
    while scaled.abs() >= 1023.5 && index + 1 < SIZES.len() {
        scaled /= 1024.0;
        index += 1;
    }
    (scaled, SIZES[index])
}

/// The share of `part` in `whole` in percent, rounded down and with enough decimals to distinguish
/// it from 100 %: `99.987 %`. Only a whole is `100 %`.
pub fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "0 %".to_owned();
    }
    if part >= whole {
        return "100 %".to_owned();
    }
    let missing = (whole - part) as f64 / whole as f64 * 100.0;
    let decimals = ((-missing.log10()).ceil() as i32 + 1).clamp(1, DECIMALS_MAX) as usize;
    // In whole numbers, so that nothing rounds up: 10^12 times 2^64 fits into 128 bits.
    let scaled = u128::from(part) * 100 * 10u128.pow(decimals as u32) / u128::from(whole);
    let power = 10u128.pow(decimals as u32);
    format!("{}.{:0decimals$} %", scaled / power, scaled % power)
}

fn separated(digits: &str) -> String {
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `value` rounded to this number of significant digits. Rounding may carry into the next power of
/// ten (9.996 is 10.0), so the number of decimals is that of the result.
fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits - 1 - exponent(value));
    (value * scale).round() / scale
}

fn exponent(value: f64) -> i32 {
    value.abs().log10().floor() as i32
}

fn without_zeros(text: String) -> String {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Units of sizes, each 1,024 times the one before.
const SIZES: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];

/// The most decimals of a number.
pub const DECIMALS_MAX: i32 = 12;

/// Seconds of 100 years.
const CENTURY_S: f64 = 100.0 * 31_557_600.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_figures_have_three_digits() {
        for (value, text) in [
            (0.0, "0"),
            (0.012_34, "0.0123"),
            (1.0, "1.00"),
            (9.996, "10.0"),
            (99.96, "100"),
            (123.4, "123"),
            (999.6, "1,000"),
            (12_345.0, "12,300"),
            (-2_500_000.0, "-2,500,000"),
        ] {
            assert_eq!(three_digits(value), text);
        }
        assert_eq!(time(873.0, false), "873 ns");
        assert_eq!(time(999.7, false), "1.00 µs");
        assert_eq!(time(1_234.0, true), "1.23 us");
        assert_eq!(time(45_600_000.0, true), "45.6 ms");
        assert_eq!(time(2.5e9, true), "2.50 s");
        assert_eq!(bytes(512.0), "512 B");
        assert_eq!(bytes(1536.0), "1.50 KiB");
        assert_eq!(bytes(3.4e6), "3.24 MiB");
    }

    #[test]
    fn given_figures_are_exact_and_have_no_zeros_at_the_end() {
        for (value, text) in [
            (0.0, "0"),
            (0.5, "0.5"),
            (30.0, "30"),
            (24.95, "24.95"),
            (999.97, "1,000"),
            (1_234.6, "1,235"),
            (61_434.2, "61,434"),
            (-13.4, "-13.4"),
            (200.0, "200"),
        ] {
            assert_eq!(exact(value), text);
        }
        assert_eq!((rate(61_434.3), rate(0.4)), ("61,434/s".into(), "0.4/s".into()));
        assert_eq!((percent(4.34), percent(97.2)), ("4.3 %".into(), "97 %".into()));
        assert_eq!((percent(9.96), percent(1_250.0)), ("10 %".into(), "1,250 %".into()));
        for (bytes, text) in [
            (44, "44 B"),
            (1_000, "1,000 B"),
            (1_024, "1 KiB"),
            (1_048_576, "1 MiB"),
            (125_000, "125,000 B"),
            (64_000, "64,000 B"),
            (1_536, "1.5 KiB"),
            (3_840 << 20, "3.75 GiB"),
            (1_206 << 10, "1,206 KiB"),
            (0, "0 B"),
        ] {
            assert_eq!(size(bytes), text);
        }
        assert_eq!((fixed(12_346.54, 1), fixed(-0.04, 1)), ("12,346.5".into(), "0.0".into()));
        assert_eq!((count(0), count(1_000)), ("0".into(), "1,000".into()));
        assert_eq!(count(12_345_678), "12,345,678");
    }

    #[test]
    fn durations_have_the_units_that_people_use() {
        for (nanoseconds, text) in [
            (0.0, "0 s"),
            (800.0, "800 ns"),
            (229_503.0, "229.5 µs"),
            (999_970.0, "1 ms"),
            (4_063_244.0, "4.063 ms"),
            (30e9, "30 s"),
            (1.5e9, "1.5 s"),
            (60e9, "1 min"),
            (150e9, "2 min 30 s"),
            (60.5e9, "1 min 0.5 s"),
            (59.999e9, "60 s"),
            (3_900e9, "1 h 5 min"),
            (9_543e9, "2 h 39 min 3 s"),
        ] {
            assert_eq!(span(nanoseconds), text);
        }
    }

    #[test]
    fn estimates_are_rounded_up() {
        for (seconds, text) in [
            (0.0, "0 s"),
            (0.2, "1 s"),
            (59.0, "59 s"),
            (200.0, "3 min 20 s"),
            (7_500.0, "2 h 5 min"),
            (7_501.0, "2 h 6 min"),
            (1e11, "more than 100 years"),
        ] {
            assert_eq!(rough(seconds), text);
        }
    }

    #[test]
    fn no_share_below_the_whole_is_rounded_up_to_it() {
        assert_eq!(share(10, 10), "100 %");
        assert_eq!(share(99_987, 100_000), "99.987 %");
        assert_eq!(share(9_999_999, 10_000_000), "99.999990 %");
        assert_eq!(share(1, 3), "33.3 %");
        assert_eq!(share(0, 3), "0.0 %");
        assert_eq!(share(u64::MAX - 1, u64::MAX), "99.999999999999 %");
    }
}
