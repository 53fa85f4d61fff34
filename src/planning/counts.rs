//! Whole numbers of the command line in common notations: `10000`, `10k`, `1e4`.

use std::fmt::Display;
use std::ops::RangeInclusive;

use weigh_model::units::parse_whole;

/// Reads a whole number within `range`.
pub fn counts<T>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: TryFrom<u64> + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    move |text| {
        let number = parse_whole(text)?;
        T::try_from(number).ok().filter(|number| range.contains(number)).ok_or_else(|| {
            let (low, high) = (range.start(), range.end());
            // From here on the limit is only that of the type.
            let is_open = high.to_string().parse::<u64>().is_ok_and(|high| high >= 1 << 31);
            match is_open {
                true => format!("{number} is out of range: type a whole number, at least {low}"),
                false => {
                    format!("{number} is out of range: type a whole number from {low} to {high}")
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::counts;

    #[test]
    fn numbers_are_read_as_written_and_held_to_their_range() {
        let read = counts(1..=10_000_u32);
        assert_eq!(read("250"), Ok(250));
        assert_eq!(read("10k"), Ok(10_000));
        assert_eq!(read("1e3"), Ok(1_000));
        let open = counts(1..=u32::MAX)("0").unwrap_err();
        assert!(open.ends_with("type a whole number, at least 1"), "{open}");
        for (text, part) in [("0", "from 1 to 10000"), ("5m", "from 1 to"), ("-1", "below 0")] {
            let error = read(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
