//! Serial numbers of 32 bits, which wrap (part 2, section 2.8.8; RFC 1982): delivery IDs, transfer
//! IDs and delivery counts.

/// True if `one` is before `other`.
pub fn is_before(one: u32, other: u32) -> bool {
    (one.wrapping_sub(other) as i32) < 0
}

/// Numbers from `from` to `to`; 0 if `to` is before it.
pub fn distance(from: u32, to: u32) -> u32 {
    if is_before(to, from) { 0 } else { to.wrapping_sub(from) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_wrap() {
        assert!(is_before(1, 2) && !is_before(2, 2) && !is_before(3, 2));
        assert!(is_before(u32::MAX, 0) && !is_before(0, u32::MAX));
        assert_eq!((distance(u32::MAX, 2), distance(2, u32::MAX), distance(7, 7)), (3, 0, 0));
    }
}
