//! Requests of HTTP/2 and calls of gRPC allocate nothing once a connection is in steady state,
//! counted by the allocator.

#[path = "protocols/rig/mod.rs"]
mod rig;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use rig::{Desk, trial};
use weigh_model::Nanos;
use weigh_model::connection::{Connection, Op, Outbox, Signal, Ticket};
use weigh_model::load::{Pattern, Topology};
use weigh_model::protocol::{Protocol, Role, Seat};
use weigh_model::server::{ConnectionId, Server};
use weigh_model::trial::Settings;
use weigh_protocols::grpc::Grpc;
use weigh_protocols::http2::Http2;

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The thread of the test; that of the test harness allocates when it likes.
    static IS_COUNTED: Cell<bool> = const { Cell::new(false) };
}

// SAFETY: every call is handed on unchanged to the system's allocator, which keeps the contract.
#[expect(unsafe_code, reason = "an allocator cannot be written without")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if IS_COUNTED.get() {
            ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Both ends, and the bytes between them.
struct Pair {
    client: Box<dyn Connection>,
    server: Box<dyn Server>,
    out: Outbox,
    desk: Desk,
}

impl Pair {
    fn new(protocol: &dyn Protocol, url: &str, given: &[(&str, &str)]) -> Pair {
        let trial = trial(protocol, Pattern::Request, Topology::FanIn, url, given).unwrap();
        let dial = protocol.dial(&trial).unwrap();
        let settings = Settings::new(protocol.name(), protocol.settings(), None).unwrap();
        let mut pair = Pair {
            client: (dial.make)(Seat { index: 0, role: Role::Producer }),
            server: (protocol.host(&settings).unwrap().make)(0),
            out: Outbox::default(),
            desk: Desk::default(),
        };
        pair.desk.is_forgetful = true;
        pair.server.accepted(ConnectionId(0), Nanos(0), &mut pair.desk);
        pair.client.open(Nanos(0), &mut pair.out, &mut |_| {});
        pair
    }

    /// Carries everything both ways. Returns the allocations of the client and of the server, and
    /// the confirmed operations.
    fn exchange(&mut self) -> [usize; 3] {
        let mut sums = [0; 3];
        loop {
            let start = ALLOCATIONS.load(Ordering::Relaxed);
            let there = self.out.len();
            let of = ConnectionId(0);
            self.server.receive(of, self.out.bytes(), Nanos(0), &mut self.desk).unwrap();
            self.out.clear();
            let middle = ALLOCATIONS.load(Ordering::Relaxed);
            let back = self.desk.staged.get_mut(&0).expect("a connection");
            let mut done = 0;
            let mut emit =
                |signal: Signal<'_>| done += usize::from(matches!(signal, Signal::Done(_)));
            self.client.receive(back, Nanos(0), &mut self.out, &mut emit).unwrap();
            let end = ALLOCATIONS.load(Ordering::Relaxed);
            let is_over = there == 0 && back.is_empty();
            back.clear();
            sums = [sums[0] + end - middle, sums[1] + middle - start, sums[2] + done];
            if is_over {
                return sums;
            }
        }
    }

    fn round(&mut self) -> [usize; 3] {
        let start = ALLOCATIONS.load(Ordering::Relaxed);
        for ticket in 0..32 {
            let op = Op { ticket: Ticket(ticket), body: &[b'x'; 64] };
            self.client.send(&op, Nanos(0), &mut self.out);
        }
        let sent = ALLOCATIONS.load(Ordering::Relaxed) - start;
        let [client, server, done] = self.exchange();
        [client + sent, server, done]
    }
}

#[test]
fn a_steady_state_allocates_nothing() {
    IS_COUNTED.set(true);
    let grpc = "grpc://127.0.0.1:8080";
    for (protocol, url, given) in [
        (&Http2 as &dyn Protocol, "h2c://127.0.0.1:8080", &[][..]),
        (&Grpc, grpc, &[]),
        (&Grpc, grpc, &[("deadline", "10s")]),
        (&Grpc, grpc, &[("streaming", "bidi")]),
    ] {
        let mut pair = Pair::new(protocol, url, given);
        pair.exchange();
        // Longer than the store of the reference server grows.
        for _ in 0..40 {
            pair.round();
        }
        for _ in 0..1000 {
            let [client, server, done] = pair.round();
            assert_eq!((client, done), (0, 32), "{}", protocol.name());
            // The store keeps a copy of each reading.
            let kept = if protocol.name() == "grpc" { 32 } else { 0 };
            assert!(server <= kept, "{}: {server}", protocol.name());
        }
    }
}
