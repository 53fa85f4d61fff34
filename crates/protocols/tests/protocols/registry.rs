//! The registry finds protocols as people write them.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use weigh_model::trial::Settings;
use weigh_protocols::{PROTOCOLS, find, urls};

#[test]
fn every_protocol_is_found_by_its_names_and_scheme() {
    for protocol in PROTOCOLS {
        assert_eq!(find(protocol.name()).ok().map(|found| found.name()), Some(protocol.name()));
        for alias in protocol.aliases() {
            assert_eq!(find(alias).ok().map(|found| found.name()), Some(protocol.name()));
        }
        let by_scheme = urls::find(protocol.scheme()).map(|(found, _)| found.name());
        assert_eq!(by_scheme, Some(protocol.name()));
    }
    assert_eq!(find("HTTP").ok().map(|found| found.name()), Some("http1"));
}

#[test]
fn names_are_told_apart() {
    let mut names: Vec<&str> = PROTOCOLS
        .iter()
        .flat_map(|protocol| [&[protocol.name()], protocol.aliases()].concat())
        .collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn a_typo_is_answered_with_the_nearest_name() {
    let fix = |name| find(name).err().map(|invalid| invalid.to_string()).unwrap_or_default();
    assert!(fix("htpp1").contains("did you mean http1?"), "{}", fix("htpp1"));
    assert!(fix("tpc").contains("did you mean tcp?"), "{}", fix("tpc"));
    assert!(fix("carrier pigeon").contains("type one of"), "{}", fix("carrier pigeon"));
}

#[test]
fn defaults_and_lanes_are_values_their_settings_take() {
    for protocol in PROTOCOLS {
        for lane in std::iter::once(&&[][..]).chain(protocol.lanes()) {
            let defaults = protocol.settings().iter().map(|known| (known.key, known.default));
            let given = defaults.chain(lane.iter().copied());
            let settings = Settings::new(protocol.name(), protocol.settings(), given).unwrap();
            protocol.guarantee(&settings);
            assert!(protocol.host(&settings).is_ok());
        }
        assert!(protocol.settings().iter().all(|known| known.doc.ends_with('.')));
    }
}

proptest! {
    /// Names are made of bytes from a network: whatever they are, it ends, and what is recognised
    /// takes at least a byte.
    #[test]
    fn no_bytes_make_naming_panic(head in vec(any::<u8>(), 0..80), first in any::<Index>()) {
        for protocol in PROTOCOLS {
            for from_client in [true, false] {
                // Every type of packet comes first now and then.
                let types = [0x10, 0x20, 0x30, 0x32, 0x40, 0x82, 0xE0, 0, b'G', b'H', b'P'];
                let head = [&[types[first.index(types.len())]], &head[..]].concat();
                if let Some(found) = protocol.packet_name(from_client, &head) {
                    prop_assert!(!found.name.is_empty() && found.length != Some(0));
                }
            }
        }
    }
}
