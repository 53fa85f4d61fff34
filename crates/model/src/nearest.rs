//! Finds the name that a mistyped one probably means.

/// Returns the one of `names` that `wanted` may be a misspelling or the beginning of.
pub fn nearest<'n>(wanted: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let wanted = wanted.to_ascii_lowercase();
    let names: Vec<&str> = names.collect();
    let (distance, name) = names
        .iter()
        .map(|name| (strsim::damerau_levenshtein(&wanted, name), *name))
        .min_by_key(|(distance, _)| *distance)?;
    let length = wanted.chars().count();
    if distance <= (length / 3).clamp(1, 3) && distance < length {
        return Some(name);
    }
    let mut longer = names.into_iter().filter(|name| name.starts_with(&wanted));
    longer.next().filter(|_| length >= BEGINNING_MIN && longer.next().is_none())
}

/// Fewest characters of a beginning that stands for a name.
const BEGINNING_MIN: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_understood_and_another_word_is_not() {
        let names = || ["tail_power", "tail_time", "ramp"].into_iter();
        assert_eq!(nearest("tail_powre", names()), Some("tail_power"));
        assert_eq!(nearest("RAMP", names()), Some("ramp"));
        assert_eq!(nearest("battery", names()), None);
        assert_eq!(nearest("tail_p", names()), Some("tail_power"));
        assert_eq!(nearest("tail", names()), None, "two names begin with it");
        assert_eq!(nearest("ra", names()), None, "too short");
        assert_eq!(nearest("x", ["y"].into_iter()), None);
        assert_eq!(nearest("x", std::iter::empty()), None);
    }
}
