//! The largest size that passes, found by halving: sizes below a limit pass, sizes above it do not.

use std::collections::BTreeMap;

use crate::reach::Trouble;

/// Result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The largest that passed; `None` if not even the smallest did.
    pub passed: Option<u64>,
    /// The smallest that did not pass; `None` if the largest that was asked for passed.
    pub failed: Option<u64>,
}

/// Searches for the largest size that a server lets pass; also returns why the smallest that did
/// not pass did not. A size that is refused, closed, unanswered or answered by something else does
/// not pass.
///
/// # Errors
/// If the server or the time is gone.
pub fn largest_passing(
    (low, high): (u64, u64),
    mut passes: impl FnMut(u64) -> Result<(), Trouble>,
) -> Result<(Edge, Option<Trouble>), Trouble> {
    let mut reasons = BTreeMap::new();
    let edge = largest(low, high, |size| match passes(size) {
        Ok(()) => Ok(true),
        Err(trouble @ (Trouble::OutOfTime | Trouble::Unreachable(_))) => Err(trouble),
        Err(other) => {
            reasons.insert(size, other);
            Ok(false)
        }
    })?;
    let why = edge.failed.and_then(|size| reasons.remove(&size));
    Ok((edge, why))
}

/// Looks between `low` and `high`, both included, with at most some 2 + log2(high - low) questions.
///
/// # Errors
/// Those of `passes`: what is wrong with the search and not with a size.
fn largest<E>(
    low: u64,
    high: u64,
    mut passes: impl FnMut(u64) -> Result<bool, E>,
) -> Result<Edge, E> {
    if passes(high)? {
        return Ok(Edge { passed: Some(high), failed: None });
    }
    if !passes(low)? {
        return Ok(Edge { passed: None, failed: Some(low) });
    }
    let (mut good, mut bad) = (low, high);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        match passes(middle)? {
            true => good = middle,
            false => bad = middle,
        }
    }
    Ok(Edge { passed: Some(good), failed: Some(bad) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_is_found_exactly_and_in_few_steps() {
        for limit in 0..=130 {
            let mut asked = 0;
            let found = largest::<()>(1, 128, |size| {
                asked += 1;
                Ok(size <= limit)
            })
            .unwrap();
            let expected = match limit {
                0 => Edge { passed: None, failed: Some(1) },
                1..128 => Edge { passed: Some(limit), failed: Some(limit + 1) },
                _ => Edge { passed: Some(128), failed: None },
            };
            assert_eq!(found, expected);
            assert!(asked <= 9, "{asked} questions for {limit}");
        }
        assert_eq!(largest(1, 9, |size| if size < 9 { Ok(true) } else { Err(size) }), Err(9));
    }
}
