//! Energy of bytes on the air: the time of sending at the radio's rate, times the power of sending;
//! and the remainder of a measured message or connection when its bytes are counted separately.

use crate::keys::Values;
use crate::keys::at;

/// Joules of a byte sent and of one received.
///
/// A message that was measured with a known number of bytes bounds the energy of each: a draw in
/// which its bytes alone took more than [`PART_MAX`] of it contradicts the measurement.
pub fn each_byte(values: &Values) -> [f64; 2] {
    let on_air = |power: usize, rate: usize| match values[rate] {
        rate if rate > 0.0 => values[power] * BITS_PER_BYTE / rate,
        _ => 0.0,
    };
    let up = values[at::UP] + on_air(at::TX_POWER, at::UP_RATE);
    let down = values[at::DOWN] + on_air(at::RX_POWER, at::DOWN_RATE);
    let within = values[at::MESSAGE_UP];
    let most = if within > 0.0 { PART_MAX * values[at::MESSAGE] / within } else { f64::INFINITY };
    [up.min(most), down]
}

/// Joules of bytes sent and received.
pub fn bytes(values: &Values, [up, down]: [f64; 2]) -> f64 {
    let [each_up, each_down] = each_byte(values);
    up * each_up + down * each_down
}

/// Joules of a message without its bytes: as measured, minus the bytes that were part of it.
pub fn message(values: &Values) -> f64 {
    values[at::MESSAGE] - values[at::MESSAGE_UP] * each_byte(values)[0]
}

/// Joules of a connection to the server without its bytes and its time awake.
pub fn connect(values: &Values) -> f64 {
    let moved = bytes(values, [values[at::CONNECT_UP], values[at::CONNECT_DOWN]]);
    let awake = values[at::CONNECT_TIME] * values[at::CONNECTED];
    values[at::CONNECT] - (moved + awake).min(PART_MAX * values[at::CONNECT])
}

/// The largest part of a measurement that may be bytes and waiting: random access, scheduling and
/// release take some too (chosen).
const PART_MAX: f64 = 0.9;

const BITS_PER_BYTE: f64 = 8.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::KEYS;

    fn values(of: &[(usize, f64)]) -> Values {
        let mut values = [0.0; KEYS.len()];
        of.iter().for_each(|(place, value)| values[*place] = *value);
        values
    }

    /// 0.5 W for the 8 bits of a byte at 16 kbit/s: 0.25 mJ. A message of 400 bytes measured at
    /// 0.2 J leaves 0.1 J beside its bytes.
    #[test]
    fn bytes_are_taken_out_of_what_was_measured_with_them() {
        let known = [
            (at::TX_POWER, 0.5),
            (at::UP_RATE, 16_000.0),
            (at::RX_POWER, 0.1),
            (at::DOWN_RATE, 8_000.0),
            (at::MESSAGE, 0.2),
            (at::MESSAGE_UP, 400.0),
        ];
        let radio = values(&known);
        assert_eq!(each_byte(&radio), [0.00025, 0.0001]);
        assert!((message(&radio) - 0.1).abs() < 1e-12);
        assert!((message(&radio) + bytes(&radio, [400.0, 0.0]) - 0.2).abs() < 1e-12);
        assert!((bytes(&radio, [1_000.0, 500.0]) - 0.3).abs() < 1e-12);
    }

    /// Bytes that would take more than the whole message was measured at are held to 0.9 of it.
    #[test]
    fn a_byte_takes_no_more_than_the_measured_message_allows() {
        let radio = values(&[
            (at::TX_POWER, 5.0),
            (at::UP_RATE, 16_000.0),
            (at::MESSAGE, 0.2),
            (at::MESSAGE_UP, 400.0),
        ]);
        assert!((each_byte(&radio)[0] - 0.9 * 0.2 / 400.0).abs() < 1e-15);
        assert!((message(&radio) - 0.02).abs() < 1e-12);
    }

    /// 1 J with 1,000 and 2,000 bytes of 0.1 mJ and 3 s at 0.1 W in it: 0.4 J are left; and a tenth
    /// where the parts come to more than all.
    #[test]
    fn a_connection_is_what_was_measured_less_bytes_and_waiting() {
        let known = [
            (at::UP, 0.0001),
            (at::DOWN, 0.0001),
            (at::CONNECTED, 0.1),
            (at::CONNECT, 1.0),
            (at::CONNECT_UP, 1_000.0),
            (at::CONNECT_DOWN, 2_000.0),
            (at::CONNECT_TIME, 3.0),
        ];
        let mut radio = values(&known);
        assert!((connect(&radio) - 0.4).abs() < 1e-12);
        radio[at::CONNECT_TIME] = 300.0;
        assert!((connect(&radio) - 0.1).abs() < 1e-12);
    }
}
