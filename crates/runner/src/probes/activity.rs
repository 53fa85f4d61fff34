//! Network activity of the producers of a trial, by device, for the model of their radios.

use std::cell::RefCell;
use std::collections::BTreeMap;

use weigh_capture::account::Connection;
use weigh_capture::{Account, Traffic};
use weigh_engine::contents::Contents;
use weigh_model::modelled::Activity;
use weigh_model::protocol::Role;
use weigh_model::units::parse_duration;
use weigh_model::{Nanos, quic, tls, websocket};

use crate::case::lanes::Lane;
use crate::probes::capture_result::{by_local_end, next};

/// Activity of the producers; each stands for one device. `None` if connections cannot all be
/// distinguished.
pub fn of(
    account: &Account,
    contents: &Contents,
    of_trial: (&str, u64),
    lane: &Lane,
) -> Option<Activity> {
    if account.connections_folded > 0 || contents.connections_untold > 0 {
        return None;
    }
    let counted = RefCell::new(by_local_end(contents));
    let mut devices: BTreeMap<u32, Vec<&Connection>> = BTreeMap::new();
    let (trial, messages) = (of_trial.0.to_owned(), of_trial.1);
    let mut activity = Activity { trial, messages, ..Activity::default() };
    for connection in &account.connections {
        match next(&counted, connection) {
            Some(content) if content.role == Role::Producer => {
                devices.entry(content.index).or_default().push(connection);
            }
            _ => activity.other_packets += connection.total().packets,
        }
    }
    activity.devices = devices.len() as u64;
    note_keep_alive(&mut activity, lane);
    devices.values().for_each(|own| note_device(&mut activity, own));
    Some(activity)
}

/// Keep-alive of a connection of this lane: the protocol's own request and response, each with the
/// overhead of TLS and WebSocket, and an acknowledgement; otherwise the TCP keep-alive, which is
/// answered by an empty segment (RFC 9293, section 3.8.4).
fn note_keep_alive(activity: &mut Activity, lane: &Lane) {
    let settings = &lane.settings;
    if quic::is_on(lane.protocol, settings) {
        // It comes before that of any protocol inside.
        activity.keep_alive_ns = QUIC_PING_AFTER.0;
        (activity.keep_alive_up_bytes, activity.keep_alive_down_bytes) = (QUIC_PING, QUIC_ACK);
        return;
    }
    let Some(ping) = lane.protocol.properties().ping_bytes else {
        (activity.keep_alive_up_bytes, activity.keep_alive_down_bytes) = (SEGMENT, SEGMENT);
        return;
    };
    let tls = match settings.text("tls") {
        _ if !tls::is_on(settings) => 0,
        "1.2" => TLS_1_2,
        _ => TLS_1_3,
    };
    let frames = if websocket::is_on(settings) { [6, 2] } else { [0, 0] };
    let [up, down] = frames.map(|frame| SEGMENT + ping + frame + tls);
    let after = parse_duration(settings.text("keep_alive")).unwrap_or_default();
    activity.keep_alive_ns = after.0;
    (activity.keep_alive_up_bytes, activity.keep_alive_down_bytes) = (up + SEGMENT, down);
}

/// Time without packets after which a client of QUIC sends PING (decision 73).
const QUIC_PING_AFTER: Nanos = Nanos::from_secs(10);

/// Headers of IPv4 and UDP, a short header with a connection ID of 8 bytes and a packet number of
/// 2, a tag, and PING with padding or ACK (RFC 9000, sections 17.3.1, 19.2 and 19.3; RFC 9001).
const QUIC_PING: u64 = 28 + 11 + 16 + 2;
const QUIC_ACK: u64 = 28 + 11 + 16 + 6;

/// Headers of IPv4 and TCP with timestamps (RFC 7323).
const SEGMENT: u64 = 52;

/// A record's header, tag and inner type, or explicit nonce (RFC 8446, section 5.2; RFC 5288).
const TLS_1_3: u64 = 5 + 16 + 1;
const TLS_1_2: u64 = 5 + 16 + 8;

/// Adds the activity of one device over its connections, in the order of their first packets.
fn note_device(activity: &mut Activity, connections: &[&Connection]) {
    let on_air = |traffic: Traffic| traffic.bytes() - traffic.layers.link;
    for connection in connections {
        let (sent, received) = (connection.sent.total(), connection.received.total());
        activity.connections += 1;
        activity.up_bytes += on_air(sent);
        activity.down_bytes += on_air(received);
        activity.message_up_bytes += on_air(connection.sent.messages);
        activity.message_down_bytes += on_air(connection.received.messages);
        activity.up_packets += sent.packets;
        activity.down_packets += received.packets;
        activity.connected_ns += connection.last_at_ns - connection.first_at_ns;
        activity.pauses.absorb(&connection.quiet.rest);
    }
    let (from_ns, to_ns, pauses) = quiet(connections);
    activity.span_ns += to_ns - from_ns;
    pauses.into_iter().for_each(|length_ns| activity.pauses.note(length_ns));
}

/// First and last packet of a device, and each pause on all of its connections: the old one may
/// still be closing while the next one is opened.
fn quiet(connections: &[&Connection]) -> (u64, u64, Vec<u64>) {
    let mut busy: Vec<(u64, u64)> = Vec::new();
    for connection in connections {
        let mut from_ns = connection.first_at_ns;
        for (begin_ns, end_ns) in &connection.quiet.placed {
            busy.push((from_ns, *begin_ns));
            from_ns = *end_ns;
        }
        busy.push((from_ns, connection.last_at_ns));
    }
    busy.sort_unstable();
    let first_ns = busy.first().map_or(0, |(from_ns, _)| *from_ns);
    let (mut until_ns, mut pauses) = (first_ns, Vec::new());
    for (from_ns, to_ns) in busy {
        pauses.extend(from_ns.checked_sub(until_ns));
        until_ns = until_ns.max(to_ns);
    }
    (first_ns, until_ns, pauses)
}
