//! Sentences of a study as HTML: what stands between backquotes is code.

use weigh_model::units::parse_duration;
use weigh_report::figures::time;
use weigh_report::page::document::escape;

/// `text` as it may stand in HTML, with `<code>` for what stands between backquotes.
pub(super) fn prose(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    // An odd one out is no pair: it stays as it is.
    if parts.len().is_multiple_of(2) {
        return escape(text);
    }
    let part = |(index, part): (usize, &&str)| match index % 2 {
        0 => escape(part),
        _ => format!("<code>{}</code>", escape(part)),
    };
    parts.iter().enumerate().map(part).collect()
}

/// Words as a sentence lists them: `a`, `a and b`, `a, b and c`.
pub(super) fn and(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// `1 claim`, `12 claims`.
pub(super) fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// A text that begins with a capital letter.
pub(super) fn upper(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

/// The name of a published series as it is read: `HTTP, payloads 10000, average cpu` for
/// `protocol=HTTP;payloads=10000;stat=average_cpu`. Other text stays as it is.
pub(super) fn series(text: &str) -> String {
    let part = |part: &str| match part.split_once('=') {
        Some(("protocol" | "stat" | "claim", value)) => value.replace('_', " "),
        Some((key, value)) if is_key(key) => format!("{} {value}", key.replace('_', " ")),
        _ => part.to_owned(),
    };
    text.split(';').map(part).collect::<Vec<_>>().join(", ")
}

fn is_key(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The name of a cell with its long values cut, since a token of a hundred characters is useless.
pub(super) fn shorter(text: &str) -> String {
    let word = |word: &str| match word.char_indices().nth(WORD_MAX) {
        Some((end, _)) => format!("{}…", &word[..end]),
        None => word.to_owned(),
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// A text with its times of several units as people write them: `4.59 ms` for `4ms 591us`.
pub(super) fn with_times(text: &str) -> String {
    let mut shown: Vec<String> = Vec::new();
    let mut words = text.split(' ').peekable();
    while let Some(word) = words.next() {
        let mut parts = vec![word];
        while parts.last().is_some_and(|last| is_part(last))
            && words.peek().is_some_and(|next| is_part(next.trim_end_matches([',', ';', ':'])))
        {
            parts.extend(words.next());
        }
        let whole = parts.join(" ");
        let bare = whole.trim_end_matches([',', ';', ':']);
        let end = &whole[bare.len()..];
        match parse_duration(bare) {
            Ok(duration) if parts.len() > 1 => {
                shown.push(time(duration.0 as f64, false) + end);
            }
            _ => shown.push(whole),
        }
    }
    shown.join(" ")
}

/// A number with a unit of time: `591us`.
fn is_part(word: &str) -> bool {
    let unit = word.trim_start_matches(|c: char| c.is_ascii_digit());
    unit.len() < word.len() && ["ns", "us", "ms", "s", "m", "h"].contains(&unit)
}

/// Characters of a word in the name of a cell.
const WORD_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use super::{prose, series, shorter, with_times};

    #[test]
    fn backquotes_make_code_and_nothing_else_makes_markup() {
        assert_eq!(prose("the preset `wifi <1>`"), "the preset <code>wifi &lt;1&gt;</code>");
        assert_eq!(prose("a ` alone & <b>"), "a ` alone &amp; &lt;b&gt;");
    }

    #[test]
    fn times_of_several_units_have_three_digits() {
        for (text, shown) in [
            (
                "send lag p99.9 is 4ms 591us 615ns, against a mean of 1s 20ms",
                "send lag p99.9 is 4.59 ms, against a mean of 1.02 s",
            ),
            ("after 5s nothing came", "after 5s nothing came"),
            ("connections failed 1 times", "connections failed 1 times"),
        ] {
            assert_eq!(with_times(text), shown);
        }
    }

    #[test]
    fn names_of_series_and_cells_are_read_by_people() {
        for (name, text) in [
            ("protocol=HTTP;payloads=10000;stat=average_cpu", "HTTP, payloads 10000, average cpu"),
            ("claim=delay_ratio_http_over_mqtt", "delay ratio http over mqtt"),
            ("link=3G;client=curl(HTTPS);stat=lifetime", "link 3G, client curl(HTTPS), lifetime"),
            ("ping;stat=avg", "ping, avg"),
            ("1 if the audit finds L05, else 0", "1 if the audit finds L05, else 0"),
        ] {
            assert_eq!(series(name), text);
        }
        let long = format!("http1 headers=X-Token: {} tls=1.2", "0123456789".repeat(6));
        let cut = "http1 headers=X-Token: 01234567890123456789012345678901… tls=1.2";
        assert_eq!(shorter(&long), cut);
        assert_eq!(shorter("http1 connections=50"), "http1 connections=50");
    }
}
