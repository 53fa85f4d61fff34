//! What a connection carries, write by write, as a dry trial shows it: both codecs, on virtual
//! time, without a socket.

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
    /// The session with bodies of another size: the write that carries the body is longer or
    /// shorter by as much, and TLS cuts it into more records or fewer. Fields that hold a length
    /// may be a byte or two longer there, which a dry trial would show.
    pub fn resized(&self, size: u64) -> Session {
        let mut session = self.clone();
        let is_body = |flight: &&mut Flight| flight.is_up && flight.plain >= self.body;
        if let Some(flight) = session.message.iter_mut().find(is_body) {
            let records = |plain: u64| plain.div_ceil(RECORD).max(1);
            let before = flight.plain;
            flight.plain = before - self.body + size;
            let more = records(flight.plain) * RECORD_BYTES;
            let fewer = records(before) * RECORD_BYTES;
            let sealed = if flight.carried == before { 0 } else { 1 };
            let grown = flight.carried + size + sealed * more;
            flight.carried = grown.saturating_sub(self.body + sealed * fewer);
        }
        session.body = size;
        session
    }

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

/// What TLS 1.3 adds to a record: header 5, content type 1, tag 16 (RFC 8446, section 5.2).
const RECORD_BYTES: u64 = 22;

/// The largest record of TLS (RFC 8446, section 5.1).
const RECORD: u64 = 16_384;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_size_makes_the_write_of_the_body_longer() {
        let flight = |is_up, plain, carried| Flight { is_up, plain, carried };
        let session = Session {
            message: vec![flight(true, 140, 162), flight(false, 4, 26)],
            body: 125,
            ..Session::default()
        };
        let large = session.resized(20_000);
        assert_eq!(large.message[0], flight(true, 20_015, 20_015 + 2 * 22));
        assert_eq!((large.message[1], large.body), (session.message[1], 20_000));
        assert_eq!(large.resized(125), session);
    }

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
