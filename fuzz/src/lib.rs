//! What all targets do: run a peer's bytes through a connection or a server twice, whole and cut at
//! places that the fuzzer chooses, between operations that it chooses too. Nothing may panic,
//! and the two runs must give the same signals, the same bytes and the same counts.

use weigh_model::Nanos;
use weigh_model::load::{Pattern, Topology};
use weigh_model::protocol::{Protocol, Role, Seat};
use weigh_model::server::ConnectionId;

mod accounts;
#[path = "../../crates/protocols/tests/protocols/rig/mod.rs"]
pub mod rig;
mod streams;
mod world;

// The words of a fleet, without the library of its bus, which a fuzzer would have to compile.
#[path = "../../crates/fleet/src/facts.rs"]
mod facts;
#[path = "../../crates/fleet/src/hash.rs"]
mod hash;
#[path = "../../crates/fleet/src/messages.rs"]
pub mod messages;
#[path = "../../crates/fleet/src/order.rs"]
mod order;
#[path = "../../crates/fleet/src/stored_part.rs"]
mod stored_part;

pub use accounts::accounted;
pub use world::AnyWorld;

use rig::{Client, Heard, Shard, kind, trial};

/// One step of a script.
enum Step<'a> {
    /// The peer sends these bytes.
    Peer(&'a [u8]),
    /// The engine starts an operation with this body, if there is room.
    Send(&'a [u8]),
    /// Time passes, in milliseconds.
    Wait(u64),
}

/// A fuzzer's input, taken apart: settings, cuts, and steps.
pub struct Script<'a> {
    /// Chooses among settings.
    pub choice: u8,
    cuts: &'a [u8],
    steps: Vec<Step<'a>>,
}

impl<'a> Script<'a> {
    /// One byte of choice, one of the number of cuts, the cuts, and then steps: a byte of kind,
    /// two of length or time, and the bytes. What is left over after the last step is the peer's.
    pub fn read(data: &'a [u8]) -> Option<Script<'a>> {
        let (&[choice, cut_count], mut rest) = data.split_first_chunk()?;
        let cuts = rest.split_off(..usize::from(cut_count % 16).min(rest.len()))?;
        let mut steps = Vec::new();
        while let Some((&[kind, high, low], after)) = rest.split_first_chunk() {
            let number = usize::from(u16::from_be_bytes([high, low]));
            if kind % 4 == 3 {
                steps.push(Step::Wait(number as u64));
                rest = after;
                continue;
            }
            let (bytes, after) = after.split_at(number.min(after.len()));
            steps.push(if kind % 4 == 0 { Step::Send(bytes) } else { Step::Peer(bytes) });
            rest = after;
        }
        steps.push(Step::Peer(rest));
        Some(Script { choice, cuts, steps })
    }

    /// The same script without cuts: datagrams arrive whole.
    pub fn whole(self) -> Script<'a> {
        Script { cuts: &[], ..self }
    }

    fn cuts(&self) -> Vec<usize> {
        self.cuts
            .iter()
            .scan(0, |at, gap| {
                *at += usize::from(*gap);
                Some(*at)
            })
            .collect()
    }

    /// Runs a connection of `protocol`; `pattern` and `role` choose which.
    pub fn run_client(
        &self,
        protocol: &dyn Protocol,
        url: &str,
        pattern: Pattern,
        role: Role,
        given: &[(&str, &str)],
    ) {
        let trial = trial(protocol, pattern, Topology::FanIn, url, given).unwrap();
        if protocol.dial(&trial).is_err() {
            return;
        }
        let run = |cuts: &[usize]| {
            let dial = protocol.dial(&trial).expect("it was made before");
            let mut client = Client::new((dial.make)(Seat { index: 0, role }));
            let mut ticket = 0;
            let mut now = Nanos(0);
            let mut result = Ok(());
            for step in &self.steps {
                match step {
                    Step::Peer(bytes) => result = client.feed_cut(bytes, cuts),
                    Step::Send(body) if client.connection.room() > 0 => {
                        client.send(ticket, body);
                        ticket += 1;
                    }
                    Step::Send(_) => {}
                    Step::Wait(milliseconds) => {
                        now = now + Nanos::from_millis(*milliseconds);
                        result = client.wake(now);
                    }
                }
                if result.is_err() {
                    break;
                }
            }
            if result.is_ok() {
                result = client.end();
                client.connection.close(&mut client.out);
            }
            account(&client.heard, ticket);
            (kind(&result), client.heard.clone(), client.sent())
        };
        assert_eq!(run(&[]), run(&self.cuts()));
    }

    /// Runs a server with four connections; the steps go to each in turn.
    pub fn run_server(&self, protocol: &dyn Protocol, given: &[(&str, &str)]) {
        let run = |cuts: &[usize]| {
            let mut shard = Shard::of(protocol, given);
            (0..4).for_each(|connection| shard.accept(connection));
            let mut results = [const { None }; 4];
            let mut now = Nanos(0);
            for (number, step) in self.steps.iter().enumerate() {
                let connection = (number % 4) as u32;
                let bytes = match step {
                    Step::Peer(bytes) | Step::Send(bytes) => bytes,
                    Step::Wait(milliseconds) => {
                        now = now + Nanos::from_millis(*milliseconds);
                        shard.server.wake(now, &mut shard.desk);
                        continue;
                    }
                };
                if results[number % 4].is_some() {
                    continue;
                }
                let result = shard.feed_cut(connection, bytes, cuts);
                if result.is_err() {
                    results[number % 4] = Some(kind(&result));
                    let id = ConnectionId(connection);
                    shard.server.closed(id, now, &mut shard.desk);
                }
            }
            let staged: Vec<Vec<u8>> = (0..4).map(|connection| shard.staged(connection)).collect();
            (results, staged, shard.server.report())
        };
        assert_eq!(run(&[]), run(&self.cuts()));
    }
}

/// No operation ends twice, and none that was never started.
fn account(heard: &[Heard], started: u32) {
    let mut ended = vec![false; started as usize];
    for signal in heard {
        if let Heard::Done(ticket) | Heard::Refused(ticket, _) | Heard::NoSubscriber(ticket) =
            signal
        {
            assert!(!std::mem::replace(&mut ended[*ticket as usize], true));
        }
    }
}
