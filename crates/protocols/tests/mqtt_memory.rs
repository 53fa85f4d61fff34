//! What an idle MQTT connection costs in memory, on both sides, counted by the allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use weigh_model::connection::{Connection, Op, Outbox, Ticket};
use weigh_model::protocol::{Protocol, Role, Seat};
use weigh_model::server::{ConnectionId, Outboxes, Record};
use weigh_model::trial::{Settings, Trial};
use weigh_model::{Load, Nanos, Pattern, Topology};
use weigh_protocols::mqtt::Mqtt;

struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);

/// Bytes that malloc itself needs for a block.
const BLOCK_BYTES: usize = 16;

// SAFETY: every call is handed on unchanged to the system's allocator, which keeps the contract.
#[expect(unsafe_code, reason = "an allocator cannot be written without")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size() + BLOCK_BYTES, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size() + BLOCK_BYTES, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// An engine that throws away what is staged.
#[derive(Default)]
struct Void {
    staged: Vec<u8>,
}

impl Outboxes for Void {
    fn stage(&mut self, _to: ConnectionId) -> &mut Vec<u8> {
        &mut self.staged
    }
    fn frame(&mut self, _to: ConnectionId) {}

    fn pending_bytes(&self, _of: ConnectionId) -> usize {
        0
    }
    fn notify_drained(&mut self, _of: ConnectionId) {}
    fn hold(&mut self, _which: ConnectionId) {}

    fn release(&mut self, _which: ConnectionId) {}

    fn close(&mut self, _which: ConnectionId) {}
    fn abort(&mut self, _which: ConnectionId) {}
    fn notify_shard(&mut self, _shard: u16) {}

    fn store(&mut self, _record: Record<'_>) {}

    fn stores(&self) -> bool {
        false
    }
}

fn trial(version: &str) -> Trial {
    let given = [("version", version), ("qos", "1")];
    Trial {
        id: String::new(),
        point: Default::default(),
        repetition: 0,
        seed: 1,
        protocol: "mqtt".to_owned(),
        target: "reference".to_owned(),
        endpoint: None,
        load: Load {
            subscribers: CLIENTS as u32,
            topology: Topology::Pairs,
            messages: Some(1),
            ..Load::closed(Pattern::Deliver, CLIENTS as u32)
        },
        settings: Settings::new("mqtt", Mqtt.settings(), given).unwrap(),
    }
}

const CLIENTS: usize = 2_000;

/// One test alone, because the allocator counts for the whole process.
#[test]
fn idle_connections_are_cheap_on_both_sides() {
    for version in ["3.1.1", "5"] {
        for role in [Role::Producer, Role::Consumer] {
            weigh(version, role);
        }
    }
}

fn weigh(version: &str, role: Role) {
    let trial = trial(version);
    let dial = Mqtt.dial(&trial).map_err(|error| error.to_string()).unwrap();
    let host = Mqtt.host(&trial.settings).map_err(|error| error.to_string()).unwrap();
    let mut server = (host.make)(0);
    let mut net = Void { staged: Vec::with_capacity(4_096) };
    let mut out = Outbox::default();
    out.buffer().reserve(4_096);
    let mut connections: Vec<Box<dyn Connection>> = Vec::with_capacity(CLIENTS);
    let mut calls = Vec::with_capacity(4_096);
    let (mut by_clients, mut by_broker) = (0, 0);
    for index in 0..CLIENTS {
        let id = ConnectionId(index as u32);
        let before = HELD.load(Ordering::Relaxed);
        connections.push((dial.make)(Seat { index: index as u32, role }));
        connections[index].open(Nanos(1), &mut out, &mut |_| {});
        let mut held = HELD.load(Ordering::Relaxed);
        by_clients += held - before;
        server.accepted(id, Nanos(1), &mut net);
        // CONNECT, SUBSCRIBE and a message, and what comes back.
        for step in 0..3 {
            server.receive(id, out.bytes(), Nanos(1), &mut net).unwrap();
            out.clear();
            let after = HELD.load(Ordering::Relaxed);
            by_broker += after as i64 - held as i64;
            calls.clear();
            calls.append(&mut net.staged);
            connections[index].receive(&calls, Nanos(1), &mut out, &mut |_| {}).unwrap();
            if role == Role::Producer && step == 0 {
                connections[index].send(&Op { ticket: Ticket(0), body: b"x" }, Nanos(1), &mut out);
            }
            held = HELD.load(Ordering::Relaxed);
            by_clients += held - after;
        }
    }
    let (client, broker) = (by_clients / CLIENTS, by_broker / CLIENTS as i64);
    println!("{version} {role:?}: client {client} bytes, broker {broker} bytes");
    assert!(client <= 512, "{client} bytes per client, {version} {role:?}");
    assert!(broker <= 1_024, "{broker} bytes per client at the broker, {version} {role:?}");
}
