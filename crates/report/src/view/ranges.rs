//! Texts that differ in their figures only, as one text with ranges.

/// One text for `texts`: each number that differs becomes `SMALLEST to LARGEST`. If they differ in
/// more than numbers, the first one, and `elsewhere`, which says where each is.
pub(crate) fn joined(texts: &[&str], elsewhere: &str) -> String {
    let Some(first) = texts.first() else { return String::new() };
    if texts.iter().all(|text| text == first) {
        return (*first).to_owned();
    }
    ranged(texts).unwrap_or_else(|| format!("{first} (other cases differ: {elsewhere})"))
}

/// The words of all texts side by side; `None` if words differ that are not numbers.
fn ranged(texts: &[&str]) -> Option<String> {
    let split: Vec<Vec<&str>> = texts.iter().map(|text| text.split(' ').collect()).collect();
    let first = split.first()?;
    if split.iter().any(|words| words.len() != first.len()) {
        return None;
    }
    let merged = first.iter().enumerate().map(|(at, word)| {
        let all: Vec<&str> = split.iter().map(|words| words[at]).collect();
        if all.iter().all(|other| other == word) {
            return Some((*word).to_owned());
        }
        let numbers: Option<Vec<Number<'_>>> = all.into_iter().map(number).collect();
        let numbers = numbers?;
        let Number { before, after, .. } = numbers[0];
        if numbers.iter().any(|own| (own.before, own.after) != (before, after)) {
            return None;
        }
        let least = numbers.iter().min_by(|left, right| left.value.total_cmp(&right.value))?;
        let most = numbers.iter().max_by(|left, right| left.value.total_cmp(&right.value))?;
        Some(format!("{before}{} to {}{after}", least.text, most.text))
    });
    merged.collect::<Option<Vec<String>>>().map(|words| words.join(" "))
}

/// A word with a number in it.
struct Number<'t> {
    before: &'t str,
    /// The number as it is written.
    text: &'t str,
    value: f64,
    after: &'t str,
}

/// Finds the number of a word such as `(3,688` or `12.5/s;`.
fn number(word: &str) -> Option<Number<'_>> {
    let start = word.find(|letter: char| letter.is_ascii_digit())?;
    let (before, rest) = word.split_at(start);
    let is_part = |letter: char| letter.is_ascii_digit() || letter == ',' || letter == '.';
    let end = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
    // A comma or a full stop at the end belongs to the sentence.
    let text = rest[..end].trim_end_matches([',', '.']);
    let after = &rest[text.len()..];
    let value = text.replace(',', "").parse().ok()?;
    Some(Number { before, text, value, after })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_ranges_and_other_differences_are_named() {
        let joined = |texts: &[&str]| joined(texts, "report.html has each");
        assert_eq!(joined(&["a 3", "a 3"]), "a 3");
        assert_eq!(
            joined(&[
                "it needs 3,688 messages, there were 1,000;",
                "it needs 3,688 messages, there \
                      were 900;"
            ]),
            "it needs 3,688 messages, there were 900 to 1,000;"
        );
        assert_eq!(joined(&["used 5 %", "used 12 %", "used 7 %"]), "used 5 to 12 %");
        assert_eq!(
            joined(&["took 1 ms", "took 1 s"]),
            "took 1 ms (other cases differ: report.html has each)"
        );
        assert_eq!(joined(&["v1 is old", "x1 is old"]).matches("differ").count(), 1);
    }
}
