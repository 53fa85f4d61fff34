//! A process between MQTT clients and their server that loses, doubles and damages messages by
//! their number in their connection, on the way there and on the way back, and counts what it did.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use weigh_model::mark::{Mark, Reading};

use super::agents::Process;
use super::target::{PUBLISH, Wire, remaining};

/// The running process. Dropping it kills it.
pub struct FaultProxy {
    /// Where clients connect.
    pub address: SocketAddr,
    control: SocketAddr,
    _process: Process,
}

/// How many messages of the measured load met each fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    pub there: Fates,
    pub back: Fates,
}

/// Those of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fates {
    pub lost: u64,
    pub doubled: u64,
    pub damaged: u64,
}

impl FaultProxy {
    /// Starts the process in front of this server.
    pub fn start(server: SocketAddr, folder: &Path) -> FaultProxy {
        let command = Command::new(std::env::current_exe().unwrap());
        let variable = (PROXY, server.to_string());
        let log = folder.join(format!("fault-proxy-{}", server.port()));
        let process = Process::of(command, "fault_proxy::fault_proxy_process", variable, log);
        process.await_said(" end", 1);
        let said = process.said();
        let line = said.lines().find_map(|line| line.strip_prefix("proxy ")).unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        let (address, control) = (words[0].parse().unwrap(), words[1].parse().unwrap());
        FaultProxy { address, control, _process: process }
    }

    /// What it did since the last call. Waits until no connection is open.
    pub fn faults(&self) -> Faults {
        let mut text = String::new();
        TcpStream::connect(self.control).unwrap().read_to_string(&mut text).unwrap();
        let numbers: Vec<u64> = text.split(' ').map(|number| number.parse().unwrap()).collect();
        let fates = |own: &[u64]| Fates { lost: own[0], doubled: own[1], damaged: own[2] };
        Faults { there: fates(&numbers[..3]), back: fates(&numbers[3..]) }
    }
}

impl Faults {
    /// What becomes of `producers` connections with `each` messages, each of which goes to one
    /// subscriber.
    pub fn of(producers: u64, each: u64) -> Faults {
        let fates = |way: Way| {
            let count = |fate| (0..each).filter(|number| way.fate(*number) == fate).count() as u64;
            Fates {
                lost: producers * count(Fate::Lost),
                doubled: producers * count(Fate::Doubled),
                damaged: producers * count(Fate::Damaged),
            }
        };
        Faults { there: fates(Way::There), back: fates(Way::Back) }
    }
}

/// What is done to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Passed,
    Lost,
    Doubled,
    Damaged,
}

/// A direction: from a client to the server, or back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    There,
    Back,
}

impl Way {
    /// The fate of a message by its number in the connection, from 0, warm-up left out. Of 499
    /// messages, the seventh is lost and the eleventh is doubled on the way there, so all that
    /// follow have the same number on the way back. Those that meet a fate there are not those that
    /// meet one on the way back.
    fn fate(self, number: u64) -> Fate {
        match (self, number % 499) {
            (Way::There, 7) | (Way::Back, 17) => Fate::Lost,
            (Way::There, 11) | (Way::Back, 19) => Fate::Doubled,
            (Way::There, 13) | (Way::Back, 23) => Fate::Damaged,
            _ => Fate::Passed,
        }
    }
}

/// Not a test of its own: what [`FaultProxy`] starts.
#[test]
fn fault_proxy_process() {
    let Ok(server) = std::env::var(PROXY) else { return };
    let server: SocketAddr = server.parse().unwrap();
    let [clients, control] = [0, 1].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    let [address, asked] = [&clients, &control].map(|own| own.local_addr().unwrap());
    let counts = Arc::new(Counts::default());
    let shared = Arc::clone(&counts);
    thread::spawn(move || control.incoming().for_each(|asker| shared.answer(asker.unwrap())));
    // The line before it is the test harness's.
    println!("\nproxy {address} {asked} end");
    for client in clients.incoming() {
        counts.open.fetch_add(2, Ordering::SeqCst);
        let client = client.unwrap();
        let server = TcpStream::connect(server).unwrap();
        let answers = Arc::new(Answers::default());
        carry(&client, &server, Way::There, &counts, &answers);
        carry(&server, &client, Way::Back, &counts, &answers);
    }
}

#[derive(Default)]
struct Counts {
    /// Directions of connections that have not ended.
    open: AtomicU64,
    /// Lost, doubled, damaged there, and the same on the way back.
    faults: [AtomicU64; 6],
}

impl Counts {
    fn add(&self, way: Way, fate: Fate) {
        let place = match fate {
            Fate::Passed => return,
            Fate::Lost => 0,
            Fate::Doubled => 1,
            Fate::Damaged => 2,
        };
        let first = if way == Way::There { 0 } else { 3 };
        self.faults[first + place].fetch_add(1, Ordering::SeqCst);
    }

    fn answer(&self, mut asker: TcpStream) {
        while self.open.load(Ordering::SeqCst) > 0 {
            thread::sleep(Duration::from_millis(1));
        }
        let numbers = self.faults.each_ref().map(|count| count.swap(0, Ordering::SeqCst));
        asker.write_all(numbers.map(|own| own.to_string()).join(" ").as_bytes()).unwrap();
    }
}

/// Identifiers of doubled messages that go there, and of those that go back: one of their two
/// acknowledgements is swallowed, since none may reach a message that has the identifier next.
#[derive(Default)]
struct Answers([Mutex<Vec<u16>>; 2]);

impl Answers {
    fn to(&self, way: Way) -> &Mutex<Vec<u16>> {
        &self.0[usize::from(way == Way::Back)]
    }

    /// True if this acknowledgement, which goes this way, is to be swallowed.
    fn swallows(&self, way: Way, id: u16) -> bool {
        let of = if way == Way::There { Way::Back } else { Way::There };
        let mut ids = self.to(of).lock().unwrap();
        let place = ids.iter().position(|own| *own == id);
        place.map(|place| ids.swap_remove(place)).is_some()
    }
}

/// Carries one direction in a thread of its own.
fn carry(from: &TcpStream, to: &TcpStream, way: Way, counts: &Arc<Counts>, answers: &Arc<Answers>) {
    let _ = to.set_nodelay(true);
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    let (counts, answers) = (Arc::clone(counts), Arc::clone(answers));
    thread::spawn(move || {
        let (mut bytes, mut rest, mut passed) = (vec![0; 64 << 10], Vec::new(), Vec::new());
        let mut direction = Direction { way, number: 0, counts: &counts, answers: &answers };
        while let Ok(length @ 1..) = from.read(&mut bytes) {
            rest.extend_from_slice(&bytes[..length]);
            let mut at = 0;
            while let Some(length) = Wire::Mqtt.frame(&rest[at..]) {
                direction.pass(&rest[at..at + length], &mut passed);
                at += length;
            }
            rest.drain(..at);
            if to.write_all(&passed).is_err() {
                break;
            }
            passed.clear();
        }
        let _ = (to.shutdown(Shutdown::Write), from.shutdown(Shutdown::Read));
        counts.open.fetch_sub(1, Ordering::SeqCst);
    });
}

struct Direction<'c> {
    way: Way,
    /// Number of the next message of the measured load.
    number: u64,
    counts: &'c Counts,
    answers: &'c Answers,
}

impl Direction<'_> {
    /// Writes what becomes of a packet.
    fn pass(&mut self, packet: &[u8], passed: &mut Vec<u8>) {
        let (head, _) = remaining(packet).unwrap();
        if packet[0] >> 4 == PUBACK {
            let id = u16::from_be_bytes(*packet[head..].first_chunk().unwrap());
            if self.answers.swallows(self.way, id) {
                return;
            }
        }
        let Some(at) = measured_mark(packet) else { return passed.extend_from_slice(packet) };
        let fate = self.way.fate(self.number);
        self.number += 1;
        self.counts.add(self.way, fate);
        match fate {
            Fate::Lost => {}
            Fate::Passed => passed.extend_from_slice(packet),
            Fate::Doubled => {
                let topic = usize::from(u16::from_be_bytes(*packet[head..].first_chunk().unwrap()));
                let id = *packet[head + 2 + topic..].first_chunk().unwrap();
                self.answers.to(self.way).lock().unwrap().push(u16::from_be_bytes(id));
                passed.extend_from_slice(packet);
                passed.extend_from_slice(packet);
            }
            Fate::Damaged => {
                passed.extend_from_slice(packet);
                // The last byte before the mark: the mark itself stays legible.
                let place = passed.len() - packet.len() + at - 1;
                passed[place] ^= 0x01;
            }
        }
    }
}

/// Where the mark begins in a message of the measured load.
fn measured_mark(packet: &[u8]) -> Option<usize> {
    if packet[0] >> 4 != PUBLISH {
        return None;
    }
    let at = packet.windows(4).rposition(|bytes| bytes == b"WB1.")?;
    match Mark::read_any(packet) {
        Reading::Whole(mark) | Reading::Corrupt(Some(mark)) => (!mark.warmup).then_some(at),
        _ => None,
    }
}

const PROXY: &str = "WEIGH_TEST_FAULT_PROXY";
const PUBACK: u8 = 4;
