//! What a message of a case takes of its path: round trips of handshakes, greeting and exchange,
//! and bytes on the line. The default timeout follows from it; a shorter one that the user gave is
//! warned of.

use weigh_model::path::Path;
use weigh_model::{Load, Pattern, tls, websocket};
use weigh_plan::load::TIMEOUT;
use weigh_plan::patience::{Patience, Trip, in_flight};

use crate::case::Case;
use crate::case::lanes::Lane;

/// What messages of this lane and load need on `path`; `body_bytes` is the size of the largest.
pub fn of(lane: &Lane, load: &Load, path: &Path, body_bytes: u64) -> Patience {
    Patience::of(path, &trip(lane, load, body_bytes))
}

/// The same of a case that is ready to be weighed.
pub fn of_case(case: &Case) -> Option<Patience> {
    let body = case.load.size.map_or(case.material.object_bytes, |size| size.0);
    Some(of(&case.lane, &case.load, case.path.as_ref()?, body.max(BODY_BYTES)))
}

/// What `--dry` says of the timeouts of these cases, a line each; nothing without paths.
pub fn lines(cases: &[Case]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for case in cases.iter().filter(|case| case.load.pattern != Pattern::Hold) {
        let Some(patience) = of_case(case) else { continue };
        // A path on which the usual default is enough needs no word.
        if patience.timeout <= TIMEOUT || case.load.timeout < patience.timeout {
            continue;
        }
        let line = format!(
            "timeout {}: {} needs {} on its path ({})",
            seconds(case.load.timeout),
            case.lane.protocol.name(),
            seconds(patience.timeout),
            patience.words()
        );
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// What is wrong with timeouts that the user gave, a line each.
pub fn warnings(cases: &[Case]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for case in cases.iter().filter(|case| case.load.pattern != Pattern::Hold) {
        let Some(patience) = of_case(case) else { continue };
        if case.load.timeout >= patience.timeout {
            continue;
        }
        let line = format!(
            "warning: --timeout {} is shorter than {} needs on its path ({}), so that slow \
             messages count as late or lost: type --timeout {}, or leave it out",
            seconds(case.load.timeout),
            case.lane.protocol.name(),
            patience.words(),
            seconds(patience.timeout)
        );
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

fn trip(lane: &Lane, load: &Load, body_bytes: u64) -> Trip {
    let settings = &lane.settings;
    // Where a client comes with its load, connecting is in the time of its first messages.
    let is_fresh = load.pattern == Pattern::Session
        || load.join.is_some()
        || settings.text("keep_alive") == "false";
    let is_secure = tls::is_on(settings);
    let handshake = match settings.text("tls") {
        _ if !is_secure => 0,
        "1.3" => 1,
        // What is offered as 1.3 and 1.2 may become 1.2, with two (RFC 5246, section 7.3).
        _ => 2,
    };
    let upgrade = u32::from(websocket::is_on(settings));
    let greeting = u32::from(lane.protocol.name() == GREETS);
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

fn seconds(time: weigh_model::Nanos) -> String {
    match time.0 % 1_000_000_000 {
        0 => format!("{}s", time.0 / 1_000_000_000),
        _ => format!("{}ms", time.0.div_ceil(1_000_000)),
    }
}

/// The protocol whose sessions begin with a question and its answer: CONNECT and CONNACK.
const GREETS: &str = "mqtt";

/// Headers of a packet and of a message (chosen: a request of HTTP with its packet's).
const HEAD_BYTES: u64 = 300;

/// A reading with its mark.
const BODY_BYTES: u64 = 100;

/// A handshake with certificates: a ClientHello and its end one way, a chain of two the other
/// (chosen; `tls_handshake_*_bytes` of a run has the real ones).
const TLS_UP_BYTES: u64 = 1_000;
const TLS_DOWN_BYTES: u64 = 3_500;
