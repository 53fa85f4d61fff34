//! What a connection carries, write by write, as a dry trial shows it: both codecs, on virtual time,
//! without a socket.

use serde::{Deserialize, Serialize};

/// One write of one end: on a stream one or more segments, as a datagram one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flight {
    /// True from the device to the server.
    pub is_up: bool,
    /// Bytes without the layer of TLS.
    pub plain: u64,
    /// Bytes as TCP or UDP carries them: with TLS, if there is any.
    pub carried: u64,
}

/// A connection in its three parts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// From the first byte to the readiness for the first message, TLS handshake included.
    pub set_up: Vec<Flight>,
    /// One message.
    pub message: Vec<Flight>,
    /// From the last message to the end of the connection.
    pub tear_down: Vec<Flight>,
    /// Bytes of a request that keeps it alive, and of the answer, TLS included; 0 without one.
    pub ping: [u64; 2],
    /// Bytes of the body of a message.
    pub body: u64,
    /// Round trips from a message to its confirmation on an open connection; 0 without one.
    pub trips: f64,
}

impl Session {
    /// Round trips of these flights: every change of direction from the device to the server.
    pub fn round_trips(flights: &[Flight]) -> f64 {
        let mut trips = 0.0;
        let mut was_up = false;
        for flight in flights {
            if flight.is_up {
                was_up = true;
            } else if was_up {
                trips += 1.0;
                was_up = false;
            }
        }
        trips
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_are_changes_of_direction() {
        let flight = |is_up| Flight { is_up, plain: 1, carried: 1 };
        let ways = |ways: &[bool]| ways.iter().map(|up| flight(*up)).collect::<Vec<_>>();
        assert_eq!(Session::round_trips(&ways(&[true])), 0.0);
        assert_eq!(Session::round_trips(&ways(&[true, true, false, false])), 1.0);
        assert_eq!(Session::round_trips(&ways(&[true, false, true, false])), 2.0);
        assert_eq!(Session::round_trips(&ways(&[false, true])), 0.0);
    }
}
