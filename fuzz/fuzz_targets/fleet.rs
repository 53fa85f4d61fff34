//! What comes over the bus of a fleet, from whoever is on it: messages of coordinators and agents,
//! questions for the clock, and the outcomes of shards. Nothing is a reason to end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde::Serialize;
use serde::de::DeserializeOwned;
use weigh_engine::job::ShardInterval;
use weigh_engine::outcome::ShardOutcome;
use weigh_fuzz::messages::{Answer, Ask, Counts, Report, State, Whole, read, written};
use weigh_observe::clocks::packet::Packet;

fuzz_target!(|data: &[u8]| {
    let Some((choice, data)) = data.split_first() else { return };
    match choice % 8 {
        0 => again::<Ask>(data),
        1 => again::<Answer>(data),
        2 => again::<State>(data),
        3 => again::<Whole>(data),
        4 => {
            let Some((report, body)) = Report::split(data) else { return };
            assert_eq!(Report::split(&report.with(body)), Some((report, body)));
            let mut sum = Counts::default();
            (0..3).for_each(|_| sum.add(Counts { sent: u64::MAX / 2, ..sum }));
            let _ = ShardInterval::from_bytes(body);
        }
        5 => {
            if let Some(packet) = Packet::decode(data) {
                assert_eq!(packet.encode()[..], *data);
            }
        }
        6 => {
            if let Ok(outcome) = ShardOutcome::from_bytes(&sealed(data)) {
                let bytes = outcome.to_bytes();
                let again = ShardOutcome::from_bytes(&bytes).expect("it was written");
                assert_eq!(again.to_bytes(), bytes);
            }
        }
        _ => {
            if let Ok(interval) = ShardInterval::from_bytes(&sealed(data)) {
                let bytes = interval.to_bytes();
                let again = ShardInterval::from_bytes(&bytes).expect("it was written");
                assert_eq!(again.to_bytes(), bytes);
            }
        }
    }
});

/// What is read is written, and read again as it was.
fn again<T: DeserializeOwned + Serialize>(data: &[u8]) {
    let Some(message) = read::<T>(data) else { return };
    let bytes = written(&message);
    let again = read::<T>(&bytes).expect("it was written");
    assert_eq!(written(&again), bytes);
}

/// An envelope with a right check value around any content, which a damaged one never gets by
/// chance.
fn sealed(content: &[u8]) -> Vec<u8> {
    let mut bytes = weigh_model::portable::enclose(&0_u64, weigh_engine::handover::FORM);
    // Without the value, which has one byte, and its check value.
    bytes.truncate(bytes.len() - 5);
    bytes.extend_from_slice(content);
    let check = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&check.to_le_bytes());
    bytes
}
