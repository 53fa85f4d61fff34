//! Single numbers of a path, as a plan and the command line write them, each in one word.

use super::parts::RateOrNone;
use super::quantity::{parse_bit_rate, parse_share};
use super::{Change, GilbertElliott, Jitter, Loss, Reorder, Step};
use crate::units::{Bytes, parse_duration, parse_size};

/// Reads `14ms` and `uniform:14ms`, `normal:2ms`, `exponential:3ms`, `pareto:4ms:1.35:250ms`
/// (scale, shape, most).
///
/// # Errors
/// With what to type.
pub fn parse_jitter(text: &str) -> Result<Jitter, String> {
    let parts: Vec<&str> = text.split(':').map(str::trim).collect();
    match parts[..] {
        ["none"] => Ok(Jitter::None),
        [width] | ["uniform", width] => Ok(Jitter::Uniform { width: parse_duration(width)? }),
        ["normal", deviation] => Ok(Jitter::Normal { deviation: parse_duration(deviation)? }),
        ["exponential", mean] => Ok(Jitter::Exponential { mean: parse_duration(mean)? }),
        ["pareto", scale, shape, most] => {
            let shape = shape.parse().map_err(|_| {
                format!("{shape:?} is not a shape of a tail: type a number above 0, such as 1.5")
            })?;
            Ok(Jitter::Pareto { scale: parse_duration(scale)?, shape, most: parse_duration(most)? })
        }
        _ => Err(format!(
            "{text:?} is not a jitter: type 14ms or uniform:14ms, normal:2ms, exponential:3ms or \
             pareto:4ms:1.35:250ms (scale, shape, most)"
        )),
    }
}

/// Reads `1%`, and `gilbert-elliott:1%:25%:60%:0%` (to the bad state, to the good one, loss in the
/// bad, loss in the good).
///
/// # Errors
/// With what to type.
pub fn parse_loss(text: &str) -> Result<Loss, String> {
    let parts: Vec<&str> = text.split(':').map(str::trim).collect();
    match parts[..] {
        [share] => parse_share(share).map(Loss::Independent),
        ["gilbert-elliott", to_bad, to_good, in_bad, in_good] => {
            let shares = [to_bad, to_good, in_bad, in_good].map(parse_share);
            let [to_bad, to_good, in_bad, in_good] = shares;
            let two = GilbertElliott::new(to_bad?, to_good?, in_bad?, in_good?);
            Ok(Loss::GilbertElliott(two))
        }
        _ => Err(format!(
            "{text:?} is not a loss: type 1%, or gilbert-elliott:1%:25%:60%:0% for bursts (to the \
             bad state, to the good one, loss in the bad, loss in the good)"
        )),
    }
}

/// Reads `0.1%:5ms`: the share of packets that are held back, and for how long.
///
/// # Errors
/// With what to type.
pub fn parse_reorder(text: &str) -> Result<Reorder, String> {
    let (share, by) = text.split_once(':').ok_or_else(|| {
        format!("{text:?} is not a reordering: type 0.1%:5ms (how many are held back, how long)")
    })?;
    Ok(Reorder { share: parse_share(share.trim())?, by: parse_duration(by.trim())? })
}

/// Reads `10s loss=100%; 13s up_loss=2% rate=1Mbit/s`: moments since the path began, and the
/// numbers that hold from then on.
///
/// # Errors
/// With what to type.
pub fn parse_steps(text: &str) -> Result<Vec<Step>, String> {
    text.split(';').map(|step| parse_step(step.trim())).collect()
}

fn parse_step(text: &str) -> Result<Step, String> {
    let wrong = || {
        format!(
            "{text:?} is not a step: type when, and what changes then, such as 10s loss=100%; 13s \
             loss=0%"
        )
    };
    let mut words = text.split_whitespace();
    let at = words.next().ok_or_else(wrong)?;
    let (mut up, mut down) = (Change::default(), Change::default());
    for word in words {
        let (name, value) = word.split_once('=').ok_or_else(wrong)?;
        let (own, ways): (&str, &mut [&mut Change]) = match name.split_once('_') {
            Some(("up", own)) => (own, &mut [&mut up]),
            Some(("down", own)) => (own, &mut [&mut down]),
            _ => (name, &mut [&mut up, &mut down]),
        };
        if !NUMBERS.contains(&own) {
            return Err(no_number(name));
        }
        for change in ways {
            put(change, own, value)?;
        }
    }
    Ok(Step { at: parse_duration(at)?, up, down })
}

/// Puts a number with one of [`NUMBERS`] as its name into a change.
pub(super) fn put(change: &mut Change, name: &str, text: &str) -> Result<(), String> {
    let bytes = |text| parse_size(text).map(Bytes);
    match name {
        "delay" => change.delay = Some(parse_duration(text)?),
        "jitter" => change.jitter = Some(parse_jitter(text)?),
        "loss" => change.loss = Some(parse_loss(text)?),
        "duplicate" => change.duplicate = Some(parse_share(text)?),
        "reorder" => change.reorder = Some(parse_reorder(text)?),
        "rate" if text == "unlimited" => change.rate = Some(RateOrNone(None)),
        "rate" => change.rate = Some(RateOrNone(Some(parse_bit_rate(text)?))),
        "queue" => change.queue = Some(bytes(text)?),
        "overhead" => change.overhead = Some(bytes(text)?),
        _ => return Err(no_number(name)),
    }
    Ok(())
}

/// Numbers that a plan may give, for both directions (`path.delay`) or for one (`path.up_delay`).
pub const NUMBERS: [&str; 8] =
    ["delay", "jitter", "loss", "duplicate", "reorder", "rate", "queue", "overhead"];

/// Keys that a plan may set for the whole path: the size of packets, and the changes over time.
pub const WHOLE: [&str; 2] = ["mtu", "steps"];

/// The error for an unknown number.
pub(super) fn no_number(name: &str) -> String {
    format!(
        "unknown number {name:?} of a path: type {} (each way, or up_delay and down_delay), {}",
        NUMBERS.join(", "),
        WHOLE.join(" or ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Path;

    #[test]
    fn words_say_what_files_say() {
        let file = r#"
            name = "all"
            title = "All"
            about = "Everything."
            mtu = 1500
            [up]
            jitter = { distribution = "pareto", scale = "4ms", shape = 1.35, most = "250ms" }
            reorder = { share = "0.1%", by = "5ms" }
            [up.loss]
            model = "gilbert-elliott"
            to_bad = "1%"
            to_good = "25%"
            in_bad = "60%"
            in_good = "0%"
            [[step]]
            at = "10s"
            up = { loss = "100%" }
            down = { loss = "100%", jitter = { distribution = "normal", deviation = "2ms" } }
        "#;
        let written = Path::parse("all.toml", file).unwrap();
        let words = [
            ("path.up_jitter", "pareto:4ms:1.35:250ms"),
            ("path.up_loss", "gilbert-elliott:1%:25%:60%:0%"),
            ("path.up_reorder", "0.1%:5ms"),
            ("path.steps", "10s loss=100% down_jitter=normal:2ms"),
        ];
        let given = Path::of_words(None, words).unwrap().unwrap();
        assert_eq!((given.up, given.down), (written.up, written.down));
        assert_eq!(given.steps, written.steps);
    }

    #[test]
    fn what_is_no_number_says_what_to_type() {
        for (text, told) in [("pareto:4ms", "pareto:4ms:1.35:250ms"), ("pareto:4ms:x:1s", "1.5")] {
            assert!(parse_jitter(text).unwrap_err().contains(told), "{text}");
        }
        assert!(parse_loss("bursts:1%").unwrap_err().contains("gilbert-elliott:1%:25%"));
        assert!(parse_reorder("1%").unwrap_err().contains("0.1%:5ms"));
        for (text, told) in
            [("10s los=1%", "unknown number"), ("10s loss", "not a step"), ("", "not a step")]
        {
            assert!(parse_steps(text).unwrap_err().contains(told), "{text}");
        }
    }
}
