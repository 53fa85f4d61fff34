//! What one more idle MQTT connection costs in memory, in the generator and in the reference
//! broker, counted by the allocator, on real sockets. Alone in its process, because the allocator
//! counts for all of it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use weigh_engine::generator::{Generator, TrialObserver};
use weigh_engine::job::{Job, Progress};
use weigh_engine::rendezvous::one_process::OneProcess;
use weigh_engine::serving::Serving;
use weigh_model::body::{BodySource, Composer, widest_mark};
use weigh_model::load::{Load, Pattern};
use weigh_model::trial::{Settings, Trial};
use weigh_model::units::Bytes;
use weigh_model::{Endpoint, Nanos};

struct Counting;

/// Bytes that threads of the generator hold, and all others.
static HELD: [AtomicI64; 2] = [AtomicI64::new(0), AtomicI64::new(0)];

thread_local! {
    static IS_GENERATOR: Cell<bool> = const { Cell::new(false) };
}

/// What a block of so many bytes takes of the heap with glibc's malloc: a word before it, in steps
/// of 16 bytes, at least 32.
fn block_bytes(layout: Layout) -> i64 {
    ((layout.size() + 8).next_multiple_of(16)).max(32) as i64
}

fn count(bytes: i64) {
    let side = usize::from(!IS_GENERATOR.try_with(Cell::get).unwrap_or(false));
    HELD[side].fetch_add(bytes, Ordering::Relaxed);
}

// SAFETY: every call is handed on unchanged to the system's allocator, which keeps the contract.
#[expect(unsafe_code, reason = "an allocator cannot be written without")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(block_bytes(layout));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-block_bytes(layout));
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Looks at both sides while everything stands.
#[derive(Default)]
struct Weigher(Mutex<[i64; 2]>);

impl TrialObserver for Weigher {
    fn thread_started(&self, _shard: u32) {
        IS_GENERATOR.set(true);
    }

    fn window_ended(&self, _now: Nanos) {
        *self.0.lock().unwrap() = held();
    }

    fn progress(&self, _shard: u32, _progress: Progress) {}
}

fn held() -> [i64; 2] {
    [HELD[0].load(Ordering::Relaxed), HELD[1].load(Ordering::Relaxed)]
}

/// Bytes that generator and broker hold for so many connections that stand.
fn hold(connections: u32, version: &str) -> [i64; 2] {
    let protocol = weigh_protocols::find("mqtt").unwrap();
    let given = [("version", version)];
    let settings = Settings::new("mqtt", protocol.settings(), given).unwrap();
    let before = held();
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let serving = Serving::start(&protocol.host(&settings).unwrap(), any, 1).unwrap();
    let address = serving.address();
    let trial = Trial {
        id: String::new(),
        point: BTreeMap::new(),
        repetition: 0,
        seed: 1,
        protocol: "mqtt".to_owned(),
        target: "reference".to_owned(),
        endpoint: Some(Endpoint::at("mqtt", address)),
        load: Load {
            duration: Some(Nanos::from_millis(1)),
            ..Load::closed(Pattern::Hold, connections)
        },
        settings,
    };
    let dial = protocol.dial(&trial).unwrap();
    let composer =
        Composer::new(&BodySource::Filler, b"", Some(Bytes(64)), &widest_mark(1, 1), 0).unwrap();
    let job = Arc::new(Job {
        trial,
        dial,
        composer,
        object: None,
        address,
        sources: Vec::new(),
        consumers: None,
        trace: Vec::new(),
        shards: 1,
        every: Nanos::from_secs(1),
        messages: None,
        is_metered: false,
        may_be_cut_off: false,
        rendezvous: Arc::new(OneProcess::new(1)),
    });
    let weigher = Arc::new(Weigher::default());
    let observer: Arc<dyn TrialObserver> = Arc::clone(&weigher) as Arc<dyn TrialObserver>;
    let generator = Generator::start(job, 0..1, Instant::now(), &observer).unwrap();
    let outcome = generator.finish().unwrap();
    assert_eq!((outcome.shards.held, outcome.shards.lost_links), (u64::from(connections), 0));
    serving.stop();
    let [generator, broker] = *weigher.0.lock().unwrap();
    [generator - before[0], broker - before[1]]
}

/// Buffers, histograms and tables that are there anyhow cancel out between the two numbers.
#[test]
fn one_more_idle_connection_is_cheap_on_both_sides() {
    for version in ["3.1.1", "5"] {
        let (few, many) = (hold(100, version), hold(2_100, version));
        let [generator, broker] = [0, 1].map(|side| (many[side] - few[side]) / 2_000);
        println!("MQTT {version}: generator {generator} bytes, broker {broker} bytes");
        assert!((72 + 80..=256).contains(&generator), "{generator} bytes in the generator");
        assert!((256..=1_024).contains(&broker), "{broker} bytes in the broker");
    }
}
