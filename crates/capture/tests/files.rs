//! Capture files that are written, read, and damaged.

use std::path::PathBuf;

use etherparse::PacketBuilder;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use weigh_capture::files::{Statistics, Writer, account_of, read, with_secrets};
use weigh_capture::{Link, Packet, Settings};

#[test]
fn what_is_written_is_read_again() {
    let file = temporary("again");
    let packets = packets();
    write(&file, &packets, b"CLIENT_RANDOM 00 11\n");
    let mut found = Vec::new();
    read(&file, &mut |packet| {
        found.push((packet.at_ns, packet.bytes.to_vec(), packet.length, packet.link));
    })
    .unwrap();
    let expected: Vec<_> = packets
        .iter()
        .enumerate()
        .map(|(at, bytes)| (TIME_NS + at as u64, bytes.clone(), 2000, Link::Ethernet))
        .collect();
    assert_eq!(found, expected);
    std::fs::remove_file(file).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn a_damaged_file_is_an_error_or_an_account(
        changes in vec((any::<Index>(), any::<u8>()), 1..6),
        keep in any::<Index>(),
        cut in any::<bool>(),
    ) {
        let file = temporary("damaged");
        write(&file, &packets(), b"CLIENT_RANDOM 00 11\n");
        let mut bytes = std::fs::read(&file).unwrap();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if cut {
            bytes.truncate(keep.index(bytes.len()));
        }
        std::fs::write(&file, &bytes).unwrap();
        if let Err(error) = account_of(&file, Settings::default()) {
            prop_assert!(error.to_string().starts_with(&file.display().to_string()));
        }
        std::fs::remove_file(file).unwrap();
    }
}

fn packets() -> Vec<Vec<u8>> {
    (0..5_usize)
        .map(|at| {
            let mut bytes = Vec::new();
            let builder = PacketBuilder::ethernet2([0; 6], [0; 6]).ipv4([1; 4], [2; 4], 9);
            builder.udp(1, 2).write(&mut bytes, &vec![7; at * 3]).unwrap();
            bytes
        })
        .collect()
}

fn write(file: &std::path::Path, packets: &[Vec<u8>], key_log: &[u8]) {
    let mut writer = Writer::create(file, &[("lo", Link::Loopback)]).unwrap();
    for (at, bytes) in packets.iter().enumerate() {
        let at_ns = TIME_NS + at as u64;
        let link = Link::Loopback;
        writer.packet(&Packet { at_ns, bytes, length: 2000, link, segment_bytes: 0 }, 0).unwrap();
    }
    writer.finish(&[Statistics { at_ns: TIME_NS, received: 5, dropped: 0 }]).unwrap();
    let opened = file.with_extension("opened");
    with_secrets(file, &opened, key_log).unwrap();
    std::fs::rename(opened, file).unwrap();
}

fn temporary(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("weigh-capture-{}-{name}.pcapng", std::process::id()))
}

/// In 2026.
const TIME_NS: u64 = 1_790_000_000_123_456_789;
