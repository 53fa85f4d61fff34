//! Every protocol of the registry over a fleet: two agents, the built-in server, an exact ledger.

use serde_json::Value;
use weigh_model::Pattern;
use weigh_protocols::PROTOCOLS;

use crate::fleet::fleet;
use crate::rig::{Place, cells};

/// All lanes that `compare` lists, with what only a sender confirms and with what arrives.
#[test]
fn every_protocol_is_exact_over_a_fleet_or_refused_with_a_reason() {
    let place = Place::new("fleet-protocols");
    let Some((bus, _agents)) = fleet(&place, 2) else { return };
    let (mut refused, mut measured) = (Vec::new(), Vec::new());
    for protocol in PROTOCOLS {
        for pattern in protocol.patterns().iter().filter(|own| PATTERNS.contains(own)) {
            let (name, pattern) = (protocol.name(), pattern.name());
            let place = Place::new(&format!("fleet-{name}-{pattern}"));
            let words = [name, "--pattern", pattern, "--fleet", &bus.url, "--agents", "2"];
            let ended = place.compare(&[&words[..], &["-R", "400/s", "-n", "200"]].concat());
            if ended.code == Some(2) {
                ended.saying(&["--fleet: ", "\nhelp: "]);
                refused.push((name, pattern));
                continue;
            }
            let ended = ended.with(0);
            assert!(ended.stdout.contains("load from 2 hosts"), "{}", ended.stdout);
            let summary = place.summary();
            assert!(!cells(&summary).is_empty(), "{name}, {pattern}: {summary}");
            let may_replace = REPLACED.contains(&(name, pattern));
            cells(&summary).iter().for_each(|cell| is_exact(cell, may_replace));
            measured.push(name);
        }
    }
    assert_eq!(refused, REFUSED);
    measured.dedup();
    let names: Vec<&str> = PROTOCOLS.iter().map(|protocol| protocol.name()).collect();
    assert_eq!(measured, names);
    assert_eq!(bus.objects(), 0, "nothing is left in the object store");
}

/// Fails unless every message has arrived, or was confirmed if arrivals are not observed; or was
/// replaced by a newer one where the protocol permits it.
fn is_exact(cell: &Value, may_replace: bool) {
    let (point, ledger) = (&cell["point"], &cell["ledger"]);
    let replaced = ledger["causes"]["server_dropped"].as_u64().filter(|_| may_replace);
    let replaced = replaced.unwrap_or(0);
    let came = if ledger["delivered"].is_null() { "acknowledged" } else { "delivered" };
    for key in ["messages", "scheduled", "sent"] {
        assert_eq!(ledger[key], 200, "{key} of {point}: {ledger}");
    }
    let exact = (&(200 - replaced).into(), &replaced.into());
    assert_eq!((&ledger[came], &ledger["lost"]), exact, "{point}: {ledger}");
    for key in ["not_sent", "late", "duplicates", "foreign", "corrupt"] {
        assert_eq!(ledger[key], 0, "{key} of {point}: {ledger}");
    }
}

const PATTERNS: [Pattern; 2] = [Pattern::Publish, Pattern::Deliver];

/// An observer of CoAP gets the newest state, and not each that was replaced while a notification
/// was under way (RFC 7641, section 4.5.2).
const REPLACED: [(&str, &str); 1] = [("coap", "deliver")];

/// Protocols and patterns that a fleet refuses.
const REFUSED: [(&str, &str); 0] = [];
