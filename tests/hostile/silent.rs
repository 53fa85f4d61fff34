//! A target that accepts and never sends a byte ends the trial after 10 s, or after the time limit
//! of a message, with an error that says what was awaited. One byte on one session prevents that.

use weigh_engine::io::sim::World;
use weigh_engine::job::Failure;
use weigh_engine::serving::SimulatedServing;
use weigh_model::load::Load;
use weigh_model::{Arrival, Nanos, Pattern};

use crate::bad_server::tampered;
use crate::honest::Guest;
use crate::kind::{Act, End, Kind, Place, at};
use crate::speaker::{MANNERS, Rehearsal, Speaker, simulated_address};

const MUTE: Kind = at("mute", Place::At(0), Act::Cut(End::Stay));
const ONE_BYTE: Kind = at("says one byte", Place::At(1), Act::Cut(End::Stay));
const CLOSES: Kind = at("closes", Place::At(0), Act::Cut(End::Reset));

/// What a trial of this manner comes to, and when it ends, seconds.
fn trial(
    name: &str,
    kind: Kind,
    change: impl FnOnce(&mut Load),
) -> (Result<weigh_engine::outcome::Outcome, Failure>, f64) {
    let manner = *MANNERS.iter().find(|own| own.name == name).unwrap();
    let speaker = Speaker::new(manner);
    let address = simulated_address();
    let mut world = World::new(5);
    let known = Rehearsal { client: (0, 1), server: (0, 1) };
    let host = tampered(speaker.host(), kind, 0, known);
    let mut server = SimulatedServing::start(&host, address, world.party()).unwrap();
    let mut load = speaker.load(1, 4);
    (load.messages, load.duration) = (None, Some(Nanos::from_secs(120)));
    change(&mut load);
    let mut guest = Guest::new(speaker.job(address, load), world.party(), Nanos(0));
    world.run(&mut [&mut server, &mut guest], Nanos::from_secs(600));
    assert!(guest.is_over);
    (guest.outcome(), world.now().as_secs_f64())
}

fn reason(outcome: Result<weigh_engine::outcome::Outcome, Failure>) -> String {
    match outcome {
        Err(Failure::Session { reason, .. }) => reason,
        other => panic!("{:?}", other.map(|outcome| outcome.ledger)),
    }
}

#[test]
fn silence_ends_a_trial_after_ten_seconds() {
    for (name, spoken) in [("http1", "http1"), ("tcp", "tcp"), ("coap", "coap")] {
        let (outcome, ended) = trial(name, MUTE, |_| {});
        let expected = format!(
            "accepted {spoken} connections and sent no byte for 10 s; awaited: the first answer"
        );
        assert_eq!(reason(outcome), expected);
        // Looked at each 0.1 s.
        assert!((10.0..10.4).contains(&ended), "{name}: {ended} s");
    }
}

#[test]
fn a_longer_time_limit_is_waited_for() {
    let (outcome, ended) = trial("http1", MUTE, |load| load.timeout = Nanos::from_secs(25));
    assert!(reason(outcome).contains("no byte for 25 s"));
    assert!((25.0..25.4).contains(&ended), "{ended} s");
}

/// Silence counts from the first message, and not from the connections.
#[test]
fn what_is_not_asked_is_not_awaited() {
    let (outcome, ended) = trial("http1", MUTE, |load| {
        load.arrival = Arrival::Constant;
        load.rate = Some(weigh_model::units::parse_rate("0.05/s").unwrap());
    });
    assert!(reason(outcome).contains("no byte"));
    assert!((10.0..31.0).contains(&ended), "{ended} s");
    let (outcome, ended) = trial("http1", MUTE, |load| load.pattern = Pattern::Hold);
    assert!(outcome.is_ok() && ended >= 120.0, "{ended} s");
}

#[test]
fn one_byte_on_one_session_is_not_silence() {
    let (outcome, ended) = trial("http1", ONE_BYTE, |_| {});
    let ledger = outcome.unwrap().ledger;
    assert_eq!((ledger.contradiction(), ledger.delivered), (None, Some(0)));
    assert!(ended > 120.0, "{ended} s");
}

/// A server that ends connections has said something, and the trial has that as its cause.
#[test]
fn a_server_that_resets_is_not_silent() {
    let (outcome, _) = trial("http1", CLOSES, |_| {});
    let outcome = outcome.unwrap();
    assert_eq!(outcome.ledger.delivered, Some(0));
    assert_eq!(outcome.shards.first_loss.as_deref(), Some("connection reset by the peer"));
}
