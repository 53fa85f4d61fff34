//! Ranges of values: `5..60 step 5`, `64B..1KiB step 64B`, `20..160 times 2`.

use toml::Value;
use weigh_model::units::{Bytes, Nanos, Rate, parse_duration, parse_rate, parse_size};

use crate::kind::{Kind, Wrong};

/// True for a text that is a range and not a value.
pub fn is_range(text: &str) -> bool {
    text.contains("..")
}

/// All values of a range, in the key's canonical form.
///
/// # Errors
/// An invalid range, or one whose steps do not reach its end.
pub fn values(kind: Kind, text: &str) -> Result<Vec<Value>, Wrong> {
    let example = example(kind);
    let wrong = |problem: String| Wrong::new(problem, format!("type for example {example:?}"));
    let (from, rest) =
        text.split_once("..").ok_or_else(|| wrong(format!("{text:?} is not a range")))?;
    let (to, how) = match rest.trim().split_once(char::is_whitespace) {
        Some((to, how)) => (to, how.trim()),
        None => return Err(wrong(format!("the range {text:?} has no step"))),
    };
    let number = |text: &str| number(kind, text.trim());
    let (from, to) = (number(from)?, number(to)?);
    if from.per_client != to.per_client {
        return Err(wrong(format!(
            "{text:?} starts with a rate of all clients and ends with one \
                                  per client"
        )));
    }
    if to.value <= from.value {
        let (low, high) = (show(kind, to), show(kind, from));
        let text = format!("the range {text:?} does not rise");
        return Err(Wrong::new(text, format!("type the smaller end first: {low}..{high} {how}")));
    }
    let advance: Box<dyn Fn(f64) -> f64> = match how.split_once(char::is_whitespace) {
        Some(("step", step)) => {
            let step = number(step)?;
            if step.value <= 0.0 {
                return Err(wrong(format!("the steps of {text:?} are 0")));
            }
            Box::new(move |value| value + step.value)
        }
        Some(("times", factor)) => {
            let factor = factor.trim().parse::<u32>().ok().filter(|factor| *factor >= 2);
            let factor = factor.ok_or_else(|| {
                Wrong::new(
                    format!("{text:?} is not a range: a factor is a whole number above 1"),
                    "type for example \"10..80 times 2\"",
                )
            })?;
            if from.value <= 0.0 {
                return Err(wrong(format!("{text:?} never grows: 0 times anything is 0")));
            }
            Box::new(move |value| value * f64::from(factor))
        }
        _ => return Err(wrong(format!("the range {text:?} has no step"))),
    };
    walk(kind, text, how, from, to, &*advance)
}

fn walk(
    kind: Kind,
    text: &str,
    how: &str,
    from: Number,
    to: Number,
    advance: &dyn Fn(f64) -> f64,
) -> Result<Vec<Value>, Wrong> {
    let at = |value: f64| Number { value, ..from };
    let mut values = vec![value(kind, from)?];
    let mut last = from.value;
    loop {
        let next = advance(last);
        // Rates are decimals, so values that differ only by rounding are equal.
        if (next - to.value).abs() <= to.value * 1e-9 {
            values.push(value(kind, to)?);
            return Ok(values);
        }
        if next > to.value {
            let (low, high) = (show(kind, at(last)), show(kind, at(next)));
            let start = show(kind, from);
            return Err(Wrong::new(
                format!("the steps of {text:?} do not reach its end: {low}, then {high}"),
                format!("type {start}..{low} {how}, or {start}..{high} {how}"),
            ));
        }
        if values.len() >= VALUES_MAX {
            return Err(Wrong::new(
                format!("the range {text:?} has more than {VALUES_MAX} values"),
                "take larger steps",
            ));
        }
        values.push(value(kind, at(next))?);
        last = next;
    }
}

/// A value on its scale; true if it is a rate per client.
#[derive(Clone, Copy)]
struct Number {
    value: f64,
    per_client: bool,
}

fn number(kind: Kind, text: &str) -> Result<Number, Wrong> {
    let said = |error: String| Wrong::split(&error);
    let plain = |value: f64| Number { value, per_client: false };
    match kind {
        Kind::Count(..) => {
            text.parse::<u32>().map(|number| plain(f64::from(number))).map_err(|_| {
                Wrong::new(
                    format!("{text:?} is not a whole number"),
                    "type for example \"5..60 step 5\"",
                )
            })
        }
        Kind::Size => parse_size(text).map(|bytes| plain(bytes as f64)).map_err(said),
        Kind::Duration => parse_duration(text).map(|time| plain(time.0 as f64)).map_err(said),
        Kind::Rate => parse_rate(text)
            .map(|rate| Number { value: rate.per_second, per_client: rate.per_client })
            .map_err(said),
        _ => Err(Wrong::new(
            format!("{text:?} cannot be a range: the values of this key have no order"),
            "type a list of all values",
        )),
    }
}

fn value(kind: Kind, number: Number) -> Result<Value, Wrong> {
    let Kind::Count(low, high) = kind else { return Ok(Value::String(show(kind, number))) };
    let whole = number.value as u64;
    if (low..=high).contains(&whole) {
        Ok(Value::Integer(whole as i64))
    } else {
        let text = format!("{whole} is out of range");
        Err(Wrong::new(text, format!("type whole numbers from {low} to {high}")))
    }
}

fn show(kind: Kind, number: Number) -> String {
    let Number { value, per_client } = number;
    match kind {
        Kind::Size => Bytes(value as u64).typed(),
        Kind::Duration => Nanos(value as u64).recorded(),
        Kind::Rate => Rate { per_second: tidied(value), per_client }.typed(),
        _ => (value as u64).to_string(),
    }
}

/// Removes the error of adding decimals: rates have fewer than nine digits.
fn tidied(value: f64) -> f64 {
    format!("{value:.9e}").parse().unwrap_or(value)
}

fn example(kind: Kind) -> &'static str {
    match kind {
        Kind::Size => "64B..1KiB step 64B",
        Kind::Duration => "1s..5s step 1s",
        Kind::Rate => "100/s..1000/s step 100/s",
        _ => "5..60 step 5",
    }
}

/// Maximum number of values on one axis.
const VALUES_MAX: usize = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: Kind = Kind::Count(1, u32::MAX as u64);

    fn texts(kind: Kind, text: &str) -> Vec<String> {
        let read = values(kind, text).unwrap_or_else(|wrong| panic!("{text}: {wrong:?}"));
        read.iter().map(|value| value.to_string().replace('"', "")).collect()
    }

    #[test]
    fn both_ends_belong_to_it() {
        assert_eq!(texts(COUNT, "5..60 step 5").len(), 12);
        assert_eq!(texts(COUNT, "20..200 step 60"), ["20", "80", "140", "200"]);
        assert_eq!(texts(COUNT, "20..160 times 2"), ["20", "40", "80", "160"]);
        assert_eq!(texts(Kind::Size, "64B..256B step 64B"), ["64B", "128B", "192B", "256B"]);
        assert_eq!(texts(Kind::Size, "1KiB..4KiB times 2"), ["1024B", "2048B", "4096B"]);
        assert_eq!(texts(Kind::Duration, "500ms..1500ms step 500ms"), ["500ms", "1s", "1s 500ms"]);
        assert_eq!(texts(Kind::Rate, "100/s..300/s step 100/s"), ["100/s", "200/s", "300/s"]);
        let decimals = texts(Kind::Rate, "0.1/s/client..0.5/s/client step 0.1/s");
        assert_eq!(decimals[2], "0.3/s/client");
        assert_eq!(decimals.len(), 5);
    }

    #[test]
    fn what_is_no_range_is_told_what_to_type() {
        for (kind, text, part) in [
            (COUNT, "5..60", "has no step"),
            (COUNT, "5..60 step 7", "type 5..54 step 7, or 5..61 step 7"),
            (COUNT, "60..5 step 5", "5..60 step 5"),
            (COUNT, "5..60 step 0", "are 0"),
            (COUNT, "5..60 times 1", "above 1"),
            (COUNT, "5..60 by 5", "has no step"),
            (COUNT, "0..5 step 1", "from 1 to"),
            (COUNT, "a..b step c", "\"a\" is not a whole number"),
            (COUNT, "1..4000000000 step 1", "take larger steps"),
            (Kind::Size, "64..128 step 64", "\"64\" has no unit"),
            (Kind::Rate, "1/s..5/s/client step 1/s", "per client"),
            (Kind::Arrival, "a..b step c", "have no order"),
        ] {
            let wrong = values(kind, text).expect_err(text);
            let said = format!("{}; {}", wrong.text, wrong.fix);
            assert!(said.contains(part), "{text}: {said}");
        }
    }
}
