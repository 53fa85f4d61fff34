//! What the producers of a trial did on the wire, device by device, for a model of their radios.

use std::cell::RefCell;
use std::collections::BTreeMap;

use weigh_engine::contents::Contents;
use weigh_model::modelled::Activity;
use weigh_model::protocol::Role;
use weigh_wire::account::Connection;
use weigh_wire::{Account, Traffic};

use crate::run::heard::{by_local_end, next};

/// What the producers did: each stands for a device of its own. `None` where connections cannot all
/// be told apart.
pub fn of(account: &Account, contents: &Contents, of_trial: (&str, u64)) -> Option<Activity> {
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
    devices.values().for_each(|own| note_device(&mut activity, own));
    Some(activity)
}

/// Adds what one device did over its connections, which come in the order of their first packets.
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

/// First and last packet of a device, and how long each pause was in which nothing went over any of
/// its connections: the old one may still be closing while the next is opened.
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
