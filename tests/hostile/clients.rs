//! Bad servers against the clients, on virtual time.

use weigh_engine::io::sim::World;
use weigh_engine::serving::SimulatedServing;
use weigh_model::Nanos;

use crate::bad_server::tampered;
use crate::honest::Guest;
use crate::kind::{Act, Kind, Place, SPAN};
use crate::lists;
use crate::memory::most_held;
use crate::servers::rehearse;
use crate::speaker::{MANNERS, Manner, Rehearsal, Speaker, simulated_address};

/// A trial against a server of this kind; returns what is wrong with its end.
fn play(speaker: &Speaker, kind: Kind, from: u64, known: Rehearsal) -> Vec<String> {
    let address = simulated_address();
    let mut world = World::new(5);
    let host = tampered(speaker.host(), kind, from, known);
    let mut server = SimulatedServing::start(&host, address, world.party()).unwrap();
    let job = speaker.job(address, speaker.load(MESSAGES, CONNECTIONS));
    let mut guest = Guest::new(job, world.party(), Nanos(0));
    world.run(&mut [&mut server, &mut guest], Nanos::from_secs(600));
    let mut faults = Vec::new();
    let steps_max = 5_000 + 4 * world.events();
    if guest.steps > steps_max {
        faults.push(format!("{} steps of the client, not {steps_max}", guest.steps));
    }
    if !guest.is_over {
        faults.push(format!("the trial had not ended by {}", world.now()));
        return faults;
    }
    match guest.outcome() {
        Err(failure) => {
            let text = failure.to_string();
            // An address, a colon and the cause.
            let cause = text.split_once(": ").map_or("", |(_, cause)| cause);
            if cause.len() < 8 {
                faults.push(format!("an error without a cause: {text}"));
            }
        }
        Ok(outcome) => {
            let ledger = &outcome.ledger;
            faults.extend(ledger.contradiction().map(|text| format!("{text:?}")));
            if ledger.scheduled != MESSAGES {
                faults.push(format!("{} messages of {MESSAGES}", ledger.scheduled));
            }
            let lost: u64 = ledger.causes.values().sum();
            if ledger.lost.is_some_and(|all| all != lost) {
                faults.push(format!("{:?} lost, and causes of {lost}", ledger.lost));
            }
            let not_sent: u64 = ledger.not_sent_causes.values().sum();
            if ledger.not_sent != not_sent {
                faults.push(format!("{} not sent, causes of {not_sent}", ledger.not_sent));
            }
            if outcome.shards.lost_links > 0 && outcome.shards.first_loss.is_none() {
                faults.push("connections were lost without a reason".to_owned());
            }
        }
    }
    faults
}

fn check(manner: Manner) {
    let speaker = Speaker::new(manner);
    let (known, usual) = rehearse(&speaker);
    let kinds = lists::servers(manner.name);
    assert!(kinds.len() >= 60, "{} kinds of bad server", kinds.len());
    let mut all = Vec::new();
    for kind in kinds {
        let rounds = match kind.place {
            Place::Each | Place::EachGreeted => SPAN / u64::from(CONNECTIONS),
            _ => 1,
        };
        for round in 0..rounds {
            let from = round * u64::from(CONNECTIONS);
            let (faults, held) = most_held(|| play(&speaker, kind, from, known));
            let may_hold = match kind.act {
                Act::Body(_, _, bytes, _) => i64::from(CONNECTIONS + 1) * 4 * bytes as i64,
                Act::Flood(said, bytes, _) if manner.is_body(said) => {
                    i64::from(CONNECTIONS + 1) * 4 * bytes as i64
                }
                _ => 0,
            };
            let most = usual + may_hold + HELD_MAX;
            let large = (held > most).then(|| format!("{held} bytes held, not {most}"));
            let named = faults.into_iter().chain(large);
            all.extend(named.map(|fault| format!("{} ({from}): {fault}", kind.name)));
        }
    }
    assert!(all.is_empty(), "{}:\n{}", manner.name, all.join("\n"));
}

macro_rules! against_clients {
    ($($(#[$note:meta])? $name:ident $place:literal)*) => {
        $(#[test]
        $(#[$note])?
        fn $name() {
            check(MANNERS[$place]);
        })*
    };
}

against_clients! {
    http1 0
    http2 1
    grpc 2
    mqtt_3 3 mqtt_5 4
    tcp 5
    nats 6 amqp 7 redis 8 coap 9 websocket 10 tls 11 kafka 12
    amqp1 13 kafka_group 14 oscore 15
}

#[cfg(feature = "quic")]
against_clients! {
    quic 16 mqtt_in_quic 17
}

const MESSAGES: u64 = 24;

const CONNECTIONS: u32 = 4;

/// Bytes that may be held for a bad server, whatever it says: buffers of the server itself and of
/// the simulated links, 256 KiB a connection and direction, included.
const HELD_MAX: i64 = 8 << 20;
