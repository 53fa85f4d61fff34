//! Asks an agent for its clock five times a second, which also shows that it is there, and shows
//! it that its coordinator is.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use weigh_observe::clocks::pair::Exchange;

use crate::bus::{Bus, lock, request};
use crate::clock::{ClockBook, Estimate};
use crate::{monotonic, subjects};

/// The clock of an agent, for as long as this value is there.
pub struct ClockWatch {
    known: Arc<Known>,
    task: tokio::task::JoinHandle<()>,
}

struct Known {
    book: Mutex<ClockBook>,
    /// When the last answer came.
    heard_ns: AtomicI64,
    /// True if the agent says that it obeys another coordinator, or none.
    is_disowned: AtomicBool,
}

impl ClockWatch {
    /// Asks the agent from now on.
    pub fn start(bus: &Bus, agent: &str, session: &str) -> ClockWatch {
        let known = Arc::new(Known {
            book: Mutex::default(),
            heard_ns: AtomicI64::new(monotonic::now_ns()),
            is_disowned: AtomicBool::new(false),
        });
        let (subject, session) = (subjects::clock(bus.fleet(), agent), session.to_owned());
        let (client, noted) = (bus.client().clone(), Arc::clone(&known));
        let task = bus.spawn(async move {
            for number in 0_u64.. {
                tokio::spawn(ask(client.clone(), subject.clone(), session.clone(), noted.clone()));
                tokio::time::sleep(if number < AT_FIRST { APART_AT_FIRST } else { APART }).await;
            }
        });
        ClockWatch { known, task }
    }

    /// What is known of the agent's clock at this moment of `CLOCK_MONOTONIC`.
    pub fn at(&self, own_ns: i64) -> Option<Estimate> {
        lock(&self.known.book).at(own_ns)
    }

    /// True once there are enough exchanges to place a trial.
    pub fn is_ready(&self) -> bool {
        lock(&self.known.book).len() >= AT_FIRST as usize / 2
    }

    /// When the agent answered last, on `CLOCK_MONOTONIC`.
    pub fn heard_ns(&self) -> i64 {
        self.known.heard_ns.load(Ordering::SeqCst)
    }

    /// True if the agent no longer obeys.
    pub fn is_disowned(&self) -> bool {
        self.known.is_disowned.load(Ordering::SeqCst)
    }
}

impl Drop for ClockWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn ask(client: async_nats::Client, subject: String, session: String, known: Arc<Known>) {
    let sent = monotonic::now_ns();
    let answer = request(&client, subject, Bytes::from(session), PATIENCE).await;
    let received = monotonic::now_ns();
    let Ok(answer) = answer else { return };
    let Some((stamps, rest)) = answer.split_at_checked(16) else { return };
    let (stamps, _) = stamps.as_chunks::<8>();
    let [reached, answered] = stamps else { return };
    let (reached, answered) = (i64::from_le_bytes(*reached), i64::from_le_bytes(*answered));
    known.heard_ns.fetch_max(received, Ordering::SeqCst);
    known.is_disowned.store(rest == [0], Ordering::SeqCst);
    lock(&known.book).note(Exchange { sent, reached, answered, received });
}

/// The first exchanges follow each other faster: the trial waits for them.
const AT_FIRST: u64 = 16;
const APART_AT_FIRST: Duration = Duration::from_millis(25);
const APART: Duration = Duration::from_millis(200);
/// An answer that takes longer says nothing about the clock.
const PATIENCE: Duration = Duration::from_secs(5);
