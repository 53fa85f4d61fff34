//! The kinds of bad peer. The tables are text, one line a kind: the place, a bar, the name, a bar,
//! and what is done there.
//!
//! Places and acts are those of [`crate::kind`], in small letters; bytes are in quotation marks
//! with the escapes of Rust. `[both]`, `[clients]` and `[servers]` say whose kinds follow, perhaps
//! with a version.

mod reader;

use std::collections::BTreeSet;

use crate::kind::Kind;
use crate::speaker::MANNERS;

const ANY: &str = include_str!("any.txt");

/// The tables of a manner, and the version whose kinds it has.
fn tables(manner: &str) -> (Vec<&'static str>, &'static str) {
    const HTTP2: &str = include_str!("http2.txt");
    const MQTT: &str = include_str!("mqtt.txt");
    let (tables, version): (&[&str], &str) = match manner {
        "http1" => (&[include_str!("http1.txt")], ""),
        "http2" => (&[HTTP2], ""),
        "grpc" => (&[HTTP2, include_str!("grpc.txt")], ""),
        "mqtt 3.1.1" => (&[MQTT], "3.1.1"),
        "mqtt 5" => (&[MQTT], "5"),
        "tcp" => (&[include_str!("tcp.txt")], ""),
        "nats" => (&[include_str!("nats.txt")], ""),
        "amqp" => (&[include_str!("amqp.txt")], ""),
        "amqp1" => (&[include_str!("amqp1.txt")], ""),
        "redis" => (&[include_str!("redis.txt")], ""),
        "kafka" => (&[include_str!("kafka.txt")], ""),
        "kafka group" => (&[include_str!("kafka_group.txt")], ""),
        "coap" => (&[include_str!("coap.txt")], ""),
        "oscore" => (&[include_str!("oscore.txt")], ""),
        "websocket" => (&[include_str!("websocket.txt")], ""),
        "quic" | "mqtt in quic" => (&[include_str!("quic.txt")], ""),
        _ => (&[include_str!("tls.txt")], ""),
    };
    let all = [ANY].into_iter().chain(tables.iter().copied());
    (all.collect(), version)
}

fn kinds(manner: &str, side: &str) -> Vec<Kind> {
    let (tables, version) = tables(manner);
    let is_own = |section: &str| {
        let (whose, of) = section.split_once(' ').unwrap_or((section, version));
        (whose == "both" || whose == side) && of == version
    };
    tables.into_iter().flat_map(|table| reader::read(table, is_own)).collect()
}

/// Kinds of bad client of this manner.
pub fn clients(manner: &str) -> Vec<Kind> {
    kinds(manner, "clients")
}

/// Kinds of bad server of this manner.
pub fn servers(manner: &str) -> Vec<Kind> {
    kinds(manner, "servers")
}

/// No kind is there twice, by its name or by what it does.
#[test]
fn kinds_are_different() {
    for manner in MANNERS {
        for kinds in [clients(manner.name), servers(manner.name)] {
            let names: BTreeSet<&str> = kinds.iter().map(|kind| kind.name).collect();
            let acts: BTreeSet<String> =
                kinds.iter().map(|kind| format!("{:?} {:?}", kind.place, kind.act)).collect();
            let counts = (names.len(), acts.len());
            assert_eq!(counts, (kinds.len(), kinds.len()), "{}", manner.name);
        }
    }
}
