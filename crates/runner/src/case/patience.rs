//! Requirements of a message of a lane on its path: round trips of handshakes, greeting and
//! exchange, and bytes on the link.

use weigh_model::path::Path;
use weigh_model::{Load, Pattern, quic, tls, websocket};
use weigh_plan::patience::{Patience, Trip, in_flight};

use crate::case::lanes::Lane;

/// Returns the requirements of messages of this lane and load on `path`; `body_bytes` is the
/// largest size.
pub fn of(lane: &Lane, load: &Load, path: &Path, body_bytes: u64) -> Patience {
    Patience::of(path, &trip(lane, load, body_bytes))
}

fn trip(lane: &Lane, load: &Load, body_bytes: u64) -> Trip {
    let settings = &lane.settings;
    // If clients connect during the load, their first messages wait for the connection.
    let is_fresh = load.pattern == Pattern::Session
        || load.join.is_some()
        || settings.text("keep_alive") == "false";
    let is_secure = tls::is_on(settings);
    let handshake = match settings.text("tls") {
        _ if !is_secure => 0,
        // That of QUIC carries it.
        _ if quic::is_on(lane.protocol, settings) => 0,
        "1.3" => 1,
        // An offer of TLS 1.3 and 1.2 may become 1.2, with two (RFC 5246, section 7.3).
        _ => 2,
    };
    let upgrade = u32::from(websocket::is_on(settings));
    let greeting = lane.protocol.properties().greeting_round_trips;
    let opening = if is_fresh { 1 + handshake + upgrade + greeting } else { 0 };
    // PUBREC and PUBCOMP: two, also until a subscriber may have it (MQTT 5.0, section 4.3.3).
    let exchange = if settings.text("qos") == "2" { 2 } else { 1 };
    let bodies = (body_bytes + HEAD_BYTES) * u64::from(load.batch_size()) * in_flight(load);
    let hands_down = load.delivers();
    let of_tls = |bytes: u64| if is_fresh && is_secure { bytes * in_flight(load) } else { 0 };
    Trip {
        round_trips: opening + exchange,
        up_bytes: bodies + of_tls(TLS_UP_BYTES),
        down_bytes: if hands_down { bodies * load.copies() } else { HEAD_BYTES * in_flight(load) }
            + of_tls(TLS_DOWN_BYTES),
    }
}

/// Headers of a packet and of a message, bytes (chosen: an HTTP request with its packet's).
const HEAD_BYTES: u64 = 300;

/// A handshake with certificates: a ClientHello and its end one way, a chain of two the other
/// (chosen; `tls_handshake_*_bytes` of a run has the real ones).
const TLS_UP_BYTES: u64 = 1_000;
const TLS_DOWN_BYTES: u64 = 3_500;
