//! The time that a lost packet costs if it was the last one sent: it is the one of RFC 9002,
//! section 6.2, to the millisecond, so no timer of the layer is late.

use weigh_model::Nanos;

use super::{Made, Pair};

/// From one end to the other.
const DELAY: Nanos = Nanos::from_millis(50);

/// The round trip in milliseconds.
const ROUND_TRIP: f64 = 100.0;

/// Tries of which one loses the answer: all but one in a hundred do.
const TRIES: usize = 20;

/// Samples of the round trip that the handshake gives a client.
const OF_HANDSHAKE: i32 = 3;

/// What the RFC asks of the sender of the last packet after this number of equal samples, in
/// milliseconds: the smoothed round trip, 4 times its variation, and the time for which the peer
/// may hold an acknowledgement back. The first sample sets the variation to its half; each other
/// leaves three quarters of it (section 5.3).
fn probe_timeout(samples: i32) -> f64 {
    let variation = ROUND_TRIP / 2.0 * 0.75_f64.powi(samples - 1);
    ROUND_TRIP + (4.0 * variation).max(1.0) + 25.0
}

/// A pair with this number of exchanges behind it, a second from the other.
fn after(made: &Made, exchanges: u64) -> Pair {
    let mut pair = made.pair();
    pair.delay = DELAY;
    pair.run(pair.now + Nanos::from_secs(1), &mut |_| 1);
    for number in 0..exchanges {
        assert_eq!(exchange(&mut pair, number, 0..0).round(), ROUND_TRIP);
        pair.run(pair.now + Nanos::from_millis(900), &mut |_| 1);
    }
    pair
}

/// Asks and answers; of the datagrams that both send meanwhile, those with these numbers are lost.
/// Returns the milliseconds until the answer is there.
fn exchange(pair: &mut Pair, number: u64, lost: std::ops::Range<u64>) -> f64 {
    let (began, before, stream) = (pair.now, pair.sent, number * 4);
    let mut fate = |datagram: u64| usize::from(!lost.contains(&(datagram - before)));
    let has_ended = |pair: &Pair, side: usize| {
        pair.heard[side].get(&stream).is_some_and(|heard| heard.has_ended)
    };
    pair.send(0, stream, &[0; 120], true);
    let mut is_answered = false;
    while !has_ended(pair, 0) {
        pair.run(pair.now + Nanos::from_millis(1), &mut fate);
        if !is_answered && has_ended(pair, 1) {
            pair.send(1, stream, b"an answer", true);
            is_answered = true;
        }
        assert!(pair.now - began < Nanos::from_secs(10), "no answer");
    }
    (pair.now - began).as_secs_f64() * 1e3
}

/// Probes of the library are PING: their acknowledgement says what was lost, and a further round
/// trip repeats it.
#[test]
fn a_lost_last_packet_costs_the_probe_timeout_and_a_round_trip() {
    let made = Made::new("tail");
    for exchanges in [0, 1, 2, 5, 20] {
        let samples = OF_HANDSHAKE + exchanges as i32;
        let timeout = probe_timeout(samples);
        // Lost: the request, or its answer with the acknowledgement of the request.
        for lost in [0..1, 1..2] {
            // The library leaves out packet numbers at random (RFC 9000, section 21.4). The
            // receiver of a gap acknowledges at once, and then that acknowledgement is lost.
            let mut tries =
                (0..TRIES).map(|_| exchange(&mut after(&made, exchanges), exchanges, lost.clone()));
            let took = tries.find(|took| *took > ROUND_TRIP);
            let took = took.expect("the answer is lost in one of the tries");
            let due = timeout + 2.0 * ROUND_TRIP;
            assert!((due..due + 2.0).contains(&took), "{exchanges} {lost:?}: {took}, due {due}");
        }
        // The request and both probes: the timeout doubles.
        let took = exchange(&mut after(&made, exchanges), exchanges, 0..3);
        let due = 3.0 * timeout + 2.0 * ROUND_TRIP;
        assert!((due..due + 2.0).contains(&took), "{exchanges}: {took}, due {due}");
    }
}
