//! Numbers as findings say them.

/// A time in seconds: `47.8 us`, `1.371 s`.
pub fn time(seconds: f64) -> String {
    let (scale, unit) = match seconds.abs() {
        small if small < 1e-6 => (1e9, "ns"),
        small if small < 1e-3 => (1e6, "us"),
        small if small < 1.0 => (1e3, "ms"),
        _ => (1.0, "s"),
    };
    format!("{} {unit}", number(seconds * scale))
}

/// A rate: `20,914/s`.
pub fn rate(per_second: f64) -> String {
    format!("{}/s", number(per_second))
}

/// A share of 1 as a percentage: `34.5 %`.
pub fn percent(share: f64) -> String {
    format!("{} %", number(share * 100.0))
}

/// A factor: `10x`, `0.5x`.
pub fn factor(factor: f64) -> String {
    format!("{}x", number(factor))
}

/// Whole numbers in full with separators, others with four significant digits.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return value.to_string();
    }
    let size = value.abs();
    if size >= 1000.0 || (size.fract() == 0.0 && size < 1e15) {
        return grouped(value);
    }
    let digits = if size > 0.0 { 3 - size.log10().floor() as i32 } else { 0 };
    let text = format!("{value:.*}", digits.clamp(0, 9) as usize);
    let Some((whole, part)) = text.split_once('.') else { return text };
    let part = part.trim_end_matches('0');
    if part.is_empty() { whole.to_owned() } else { format!("{whole}.{part}") }
}

fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 { format!("-{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_people_write_them() {
        assert_eq!(time(47.8e-6), "47.8 us");
        assert_eq!(time(1.371), "1.371 s");
        assert_eq!(rate(20_914.0), "20,914/s");
        assert_eq!(percent(0.0667), "6.67 %");
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(factor(10.0), "10x");
        assert_eq!(number(-13.4), "-13.4");
        assert_eq!(number(0.0), "0");
    }
}
