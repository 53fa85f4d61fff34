//! Sealed bodies: made once for every message, opened once for every delivery, corrupt where they
//! do not open, and of sizes that are known before.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weigh_model::ledger::Cause;
use weigh_model::load::Topology;
use weigh_model::seal::{Seal, Sealer};
use weigh_model::{Nanos, Pattern};
use weigh_seal::BodySealer;

use crate::rig::Setup;

const MESSAGES: u64 = 60;
const RECIPIENTS: u32 = 3;

/// What is real, and counted; the consumer of one index cannot open.
#[derive(Debug)]
struct Counted {
    real: BodySealer,
    locked_out: Option<u32>,
    sealed: AtomicU64,
    opened: AtomicU64,
}

impl Counted {
    fn new(locked_out: Option<u32>) -> Arc<Counted> {
        let seal = Seal { recipients: RECIPIENTS, ..Seal::default() };
        let real = BodySealer::new(seal, 1_800_000_000, || 0).unwrap();
        Arc::new(Counted { real, locked_out, sealed: AtomicU64::new(0), opened: AtomicU64::new(0) })
    }
}

impl Sealer for Counted {
    fn seal(&self, content: &[u8], is_measured: bool, out: &mut Vec<u8>) {
        self.sealed.fetch_add(u64::from(is_measured), Ordering::Relaxed);
        self.real.seal(content, is_measured, out);
    }

    fn object_bytes(&self, content_bytes: usize) -> usize {
        self.real.object_bytes(content_bytes)
    }

    fn opens(&self, object: &[u8], consumer: u32, is_measured: bool) -> bool {
        self.opened.fetch_add(u64::from(is_measured), Ordering::Relaxed);
        self.real.opens(object, consumer, is_measured) && self.locked_out != Some(consumer)
    }
}

fn setup(protocol: &str, settings: &[(&str, &str)], sealer: &Arc<Counted>) -> Setup {
    let mut setup = Setup::new(protocol, settings, Pattern::Deliver, MESSAGES);
    setup.load.body = "sealed,recipients=3:filler".parse().unwrap();
    setup.load.subscribers = RECIPIENTS;
    setup.load.topology = Topology::FanOut;
    setup.sealer = Some(Arc::clone(sealer) as Arc<dyn Sealer>);
    setup
}

/// On virtual time and on sockets, and twice the same from one seed although no byte is.
#[test]
fn every_delivery_opens_and_the_seed_still_decides_all_times() {
    for (protocol, settings) in
        [("tcp", &[][..]), ("mqtt", &[("qos", "0")]), ("mqtt", &[("qos", "1")])]
    {
        let sealer = Counted::new(None);
        let mut setup = setup(protocol, settings, &sealer);
        setup.link.delay = Nanos::from_millis(3);
        let seen = setup.on_virtual_time();
        let pairs = MESSAGES * u64::from(RECIPIENTS);
        let ledger = seen.ledger();
        assert_eq!((ledger.delivered, ledger.corrupt), (Some(pairs), 0), "{protocol}");
        assert_eq!(sealer.sealed.load(Ordering::Relaxed), MESSAGES, "{protocol}");
        assert_eq!(sealer.opened.load(Ordering::Relaxed), pairs, "{protocol}");
        // 20 bytes beside the mark, 40 of frame, 84 for each recipient, 84 of signature.
        let bytes = 44 + 20 + 40 + 1 + 84 * u64::from(RECIPIENTS) + 86;
        assert_eq!(seen.outcome.shards.recorder.body_bytes, MESSAGES * bytes, "{protocol}");
        let again = setup.on_virtual_time();
        assert_eq!(again.ledger(), seen.ledger(), "{protocol}");
        assert_eq!(again.outcome.shards.ended, seen.outcome.shards.ended, "{protocol}");
        assert_eq!(again.outcome.shards.bytes, seen.outcome.shards.bytes, "{protocol}");
        let on_sockets = setup.on_sockets();
        assert_eq!(on_sockets.ledger().delivered, Some(pairs), "{protocol}");
    }
}

/// The mark is whole and in the clear, and the message is corrupt all the same for whoever cannot
/// open it: lost, with that as its cause.
#[test]
fn what_does_not_open_is_corrupt() {
    let sealer = Counted::new(Some(1));
    for setup in [setup("tcp", &[], &sealer), setup("mqtt", &[("qos", "1")], &sealer)] {
        let seen = setup.on_virtual_time();
        let ledger = seen.ledger();
        let others = MESSAGES * u64::from(RECIPIENTS - 1);
        assert_eq!((ledger.delivered, ledger.corrupt), (Some(others), MESSAGES));
        assert_eq!(ledger.causes.get(&Cause::Corrupt), Some(&MESSAGES));
    }
}
