//! What a broker does when a subscriber does not keep up, end to end: a burst of 60 publishers
//! to one subscriber loses nothing without a limit, and most of it to a broker that disconnects
//! slow subscribers; the ledger says why.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weigh_engine::accounts::attribute_server_drops;
use weigh_model::ledger::Cause;
use weigh_model::units::Bytes;
use weigh_model::{Arrival, Ledger, Nanos, Pattern};
use weigh_testbed::reference::ReferenceServer;

use crate::rig::Setup;

const MESSAGES: u64 = 30_000;

fn burst(overload: &str) -> Setup {
    let mut setup =
        Setup::new("mqtt", &[("overload", overload)], Pattern::Deliver, MESSAGES).connections(60);
    setup.load.arrival = Arrival::Burst;
    setup.load.size = Some(Bytes(200));
    setup.load.timeout = Nanos::from_secs(3);
    setup
}

fn acceptance(ledger: &Ledger) -> f64 {
    ledger.delivered.unwrap() as f64 / ledger.sent as f64
}

fn assert_collapsed(ledger: &Ledger) {
    assert_eq!(ledger.sent + ledger.not_sent, MESSAGES);
    assert!(acceptance(ledger) < 0.5, "acceptance {}", acceptance(ledger));
    let lost = ledger.lost.unwrap();
    assert_eq!(ledger.causes.get(&Cause::SubscriberDisconnected), Some(&lost), "{ledger:?}");
}

fn assert_whole(ledger: &Ledger) {
    assert_eq!((ledger.sent, ledger.delivered), (MESSAGES, Some(MESSAGES)));
    assert_eq!((ledger.lost, ledger.duplicates, ledger.reordered), (Some(0), 0, 0));
}

#[test]
fn a_broker_that_disconnects_loses_the_burst_and_one_without_limit_nothing() {
    let collapsed = burst("disconnect:1000").on_virtual_time();
    assert_collapsed(collapsed.ledger());
    assert_eq!(collapsed.server.disconnects, 1);
    let whole = burst("unlimited").on_virtual_time();
    assert_whole(whole.ledger());
    println!(
        "virtual time: acceptance {:.2} % with disconnect:1000, {:.2} % with unlimited",
        100.0 * acceptance(collapsed.ledger()),
        100.0 * acceptance(whole.ledger())
    );
}

#[test]
fn the_same_with_a_server_process() {
    for (overload, collapses) in [("disconnect:1000", true), ("unlimited", false)] {
        let folder = Folder::new(overload);
        let arguments = ["mqtt", "--control", "--overload", overload].map(OsString::from);
        let program = Path::new(env!("CARGO_BIN_EXE_weigh"));
        let within = Duration::from_secs(20);
        let mut server =
            ReferenceServer::start(program, &arguments, &folder.0, None, within).unwrap();
        let outcome = burst(overload).against(server.endpoint().address.unwrap());
        let ledger = &outcome.ledger;
        assert_eq!(ledger.contradiction(), None);
        let report = server.report(within).unwrap();
        println!(
            "process: acceptance {:.2} % with {overload}, {} disconnects",
            100.0 * acceptance(ledger),
            report.disconnects
        );
        if collapses {
            assert_collapsed(ledger);
            assert_eq!(report.disconnects, 1);
        } else {
            assert_whole(ledger);
        }
        server.stop(Duration::from_secs(5));
    }
}

/// What the broker dropped is what the ledger misses, message by message.
#[test]
fn every_message_dropped_from_a_queue_is_accounted_for() {
    for overload in ["drop-newest:1000", "drop-oldest:1000", "drop-newest:1", "drop-oldest:17"] {
        let seen = burst(overload).on_virtual_time();
        let mut ledger = seen.ledger().clone();
        let dropped: u64 = seen.server.dropped.values().sum();
        let lost = ledger.lost.unwrap();
        assert!(lost > 0, "{overload}: the burst did not fill the queue");
        assert_eq!(lost, dropped, "{overload}: {:?}", seen.server.dropped);
        assert_eq!(seen.server.forwarded + dropped, MESSAGES, "{overload}");
        attribute_server_drops(&mut ledger, dropped);
        assert_eq!(ledger.causes.get(&Cause::ServerDropped), Some(&lost));
        assert_eq!(ledger.contradiction(), None);
        println!("{overload}: {lost} of {MESSAGES} lost, all by server_dropped");
    }
}

/// A folder that is gone when the test is over.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let name = format!("weigh-oracle-{}-{}", name.replace(':', "-"), std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&path);
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
