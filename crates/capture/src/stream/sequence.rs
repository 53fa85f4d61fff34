//! Sequence numbers without their wrap-around.

/// Turns the 32-bit sequence numbers of one direction into offsets that never wrap: offset 0 is the
/// first byte after the SYN, and the SYN itself stands at −1.
///
/// RFC 9293, section 3.4: numbers are compared modulo 2^32. Two numbers in flight are never 2^31
/// apart, since a window is at most 2^30 bytes (RFC 7323, section 2.2).
#[derive(Clone, Copy, Debug, Default)]
pub struct Sequence {
    anchor: Option<Anchor>,
}

#[derive(Clone, Copy, Debug)]
struct Anchor {
    number: u32,
    offset: i64,
}

impl Sequence {
    /// True once a number has been given an offset.
    pub fn is_anchored(&self) -> bool {
        self.anchor.is_some()
    }

    /// Sets the offset of the byte with `number`.
    pub fn anchor(&mut self, number: u32, offset: i64) {
        self.anchor = Some(Anchor { number, offset });
    }

    /// The offset of `number`; without an anchor the first number becomes 0.
    pub fn offset(&mut self, number: u32) -> i64 {
        let Some(anchor) = self.anchor else {
            self.anchor(number, 0);
            return 0;
        };
        let distance = number.wrapping_sub(anchor.number) as i32;
        let offset = anchor.offset + i64::from(distance);
        if distance > 0 {
            self.anchor(number, offset);
        }
        offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_wrap_and_offsets_do_not() {
        let mut sequence = Sequence::default();
        sequence.anchor(u32::MAX - 10, 0);
        assert_eq!(sequence.offset(u32::MAX), 10);
        assert_eq!(sequence.offset(9), 20);
        // An old number after the wrap is still behind.
        assert_eq!(sequence.offset(u32::MAX - 11), -1);
        assert_eq!(sequence.offset(9 + (1 << 30)), 20 + (1 << 30));
    }

    #[test]
    fn twenty_gibibytes_in_steps_of_a_window() {
        let mut sequence = Sequence::default();
        let step = 1_u32 << 20;
        let mut number = 4_294_000_000_u32;
        assert_eq!(sequence.offset(number), 0);
        for index in 1..=20_000_i64 {
            number = number.wrapping_add(step);
            assert_eq!(sequence.offset(number), index * i64::from(step));
        }
    }
}
