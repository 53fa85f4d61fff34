//! Bad clients against the reference servers, on virtual time.

use weigh_engine::io::sim::{Party, World};
use weigh_engine::serving::SimulatedServing;
use weigh_model::Nanos;
use weigh_model::protocol::Role;

use crate::bad_client::{BadClients, BadParty};
use crate::honest::Guest;
use crate::kind::{Act, Kind, Place, SPAN};
use crate::lists;
use crate::memory::most_held;
use crate::speaker::{MANNERS, Manner, Rehearsal, Speaker, simulated_address};
use crate::tamper::{Side, Tamper};

/// Counts the steps of a server.
struct Counted {
    server: SimulatedServing,
    steps: u64,
}

impl Party for Counted {
    fn step(&mut self) -> bool {
        self.steps += 1;
        self.server.step()
    }

    fn serves(&self) -> bool {
        true
    }
}

/// What a play came to.
struct Played {
    /// What is wrong, if anything is.
    faults: Vec<String>,
    rehearsal: Option<Rehearsal>,
    most_held: i64,
}

/// Bad clients come, and the honest one 3 s later, while those that stay are still there.
fn play(speaker: &Speaker, tampers: Vec<(Role, Tamper)>, is_rehearsal: bool) -> Played {
    let address = simulated_address();
    let ((faults, rehearsal), most_held) = most_held(|| {
        let mut world = World::new(5);
        let party = world.party();
        let server = SimulatedServing::start(&speaker.host(), address, party).unwrap();
        let mut server = Counted { server, steps: 0 };
        let dial = speaker.dial(address, 99);
        let clients = BadClients::new(&dial, address, tampers);
        let mut bad = BadParty { clients, io: world.party() };
        let job = speaker.job(address, speaker.load(HONEST_MESSAGES, 2));
        let mut guest = Guest::new(job, world.party(), Nanos::from_secs(3));
        world.run(&mut [&mut server, &mut bad, &mut guest], Nanos::from_secs(600));
        let mut faults = Vec::new();
        if !guest.is_over {
            faults.push(format!("the honest client was not served by {}", world.now()));
        }
        match guest.outcome() {
            Err(failure) => faults.push(format!("the honest client failed: {failure}")),
            Ok(outcome) => {
                let ledger = &outcome.ledger;
                let seen = (ledger.sent, ledger.delivered, ledger.lost, ledger.late);
                if seen != (HONEST_MESSAGES, Some(HONEST_MESSAGES), Some(0), 0) {
                    faults.push(format!("the honest ledger is {seen:?}"));
                }
                faults.extend(ledger.contradiction().map(|text| format!("{text:?}")));
                faults.extend(outcome.shards.first_loss.map(|text| format!("lost: {text}")));
            }
        }
        let steps_max = 200 + 4 * world.events();
        if server.steps > steps_max {
            faults.push(format!("{} steps of the server, not {steps_max}", server.steps));
        }
        (faults, is_rehearsal.then(|| bad.clients.rehearsal()))
    });
    Played { faults, rehearsal, most_held }
}

/// Lets an honest client do what the bad ones tamper with.
pub fn rehearse(speaker: &Speaker) -> (Rehearsal, i64) {
    let played = play(speaker, vec![(Role::Producer, Tamper::none())], true);
    assert!(played.faults.is_empty(), "{}: {:?}", speaker.manner.name, played.faults);
    (played.rehearsal.unwrap(), played.most_held)
}

/// The connections of a kind, in turn of both roles.
pub fn tampers(speaker: &Speaker, kind: &Kind, known: &Rehearsal) -> Vec<(Role, Tamper)> {
    let count = match kind.place {
        Place::Each | Place::EachGreeted => SPAN,
        _ => 2,
    };
    let has_consumers = speaker.load(1, 1).subscribers > 0;
    let made = (0..count).map(|number| {
        let is_consumer = has_consumers && number % 2 == 1;
        let role = if is_consumer { Role::Consumer } else { Role::Producer };
        (role, Tamper::new(kind, number, Side::Client, known))
    });
    made.collect()
}

fn check(manner: Manner) {
    let speaker = Speaker::new(manner);
    let (known, usual) = rehearse(&speaker);
    let kinds = lists::clients(manner.name);
    assert!(kinds.len() >= 60, "{} kinds of bad client", kinds.len());
    let mut all = Vec::new();
    for kind in kinds {
        let played = play(&speaker, tampers(&speaker, &kind, &known), false);
        let may_hold = match kind.act {
            // Two connections, a copy on its way and one in a buffer that has grown.
            Act::Body(_, _, bytes, _) => 2 * 4 * bytes as i64,
            Act::Flood(said, bytes, _) if manner.is_body(said) => 2 * 4 * bytes as i64,
            _ => 0,
        };
        let most = usual + may_hold + HELD_MAX;
        let held = played.most_held;
        let mut faults = played.faults;
        if held > most {
            faults.push(format!("{held} bytes held, not {most}"));
        }
        all.extend(faults.into_iter().map(|fault| format!("{}: {fault}", kind.name)));
    }
    assert!(all.is_empty(), "{}:\n{}", manner.name, all.join("\n"));
}

macro_rules! against_servers {
    ($($(#[$note:meta])? $name:ident $place:literal)*) => {
        $(#[test]
        $(#[$note])?
        fn $name() {
            check(MANNERS[$place]);
        })*
    };
}

against_servers! {
    http1 0 http2 1 grpc 2 mqtt_3 3 mqtt_5 4
    tcp 5
    nats 6 amqp 7 redis 8 coap 9 websocket 10 tls 11 kafka 12
    amqp1 13 kafka_group 14 oscore 15
}

#[cfg(feature = "quic")]
against_servers! {
    quic 16 mqtt_in_quic 17
}

const HONEST_MESSAGES: u64 = 30;

/// Bytes that may be held for bad clients, whatever they say: their own buffers and those of the
/// simulated links, 256 KiB in each direction, included.
const HELD_MAX: i64 = 8 << 20;
