//! One session packet by packet: a lifeline for each party, an arrow for each packet.

use serde_json::{Value, json};
use weigh_model::event::{Event, TrialFinished};
use weigh_model::session::{PacketMark, SessionPacket, SessionPackets};

use super::picture::{Kind, Picture};
use crate::figures::{count, time};
use crate::summary::Matrix;
use crate::summary::trials::by_cell;

/// A picture for every cell with a recorded session: the first of them.
pub(crate) fn pictures(
    matrix: &Matrix,
    trials: &[Vec<&TrialFinished>],
    events: &[Event],
) -> Vec<Picture> {
    let shown = by_cell(trials, events);
    let packets_max = if shown.len() > CELLS_WHOLE { PACKETS_THINNED } else { usize::MAX };
    let picture =
        |(cell, session): &(usize, &SessionPackets)| picture(*cell, session, packets_max, matrix);
    shown.iter().map(picture).collect()
}

fn picture(cell: usize, session: &SessionPackets, packets_max: usize, matrix: &Matrix) -> Picture {
    let shown = Shown::of(session, packets_max);
    let rows: Vec<usize> = (0..shown.rows.len()).collect();
    let height = (shown.rows.len() as u32 + HEADS) * ROW;
    Picture {
        name: format!("session-{:03}", cell + 1),
        kind: Kind::Session,
        subject: cell.to_string(),
        part: String::new(),
        title: format!("One session of {}", matrix.labels[cell]),
        note: note(session),
        height,
        about: json!({ "parties": session.parties, "packets": shown.rows }),
        option: json!({
            "grid": { "top": 0, "left": 0, "right": 0, "height": height },
            "tooltip": { "trigger": "item", "formatter": "@packet" },
            "xAxis": { "type": "value", "min": 0, "max": 1, "show": false },
            "yAxis": {
                "type": "value", "min": 0, "max": shown.rows.len() as u32 + HEADS,
                "inverse": true, "show": false,
            },
            "series": [{
                "type": "custom", "name": "packets", "renderItem": "@drawPacket", "data": rows,
                "clip": false, "encode": { "y": 0 },
            }],
        }),
    }
}

/// The rows of a diagram: packets, and gaps.
struct Shown {
    rows: Vec<Value>,
}

impl Shown {
    fn of(session: &SessionPackets, packets_max: usize) -> Shown {
        let packets = &session.packets;
        let mut left = session.gap.map(|gap| (gap.before as usize, gap.packets, gap.bytes));
        let mut kept: Vec<&SessionPacket> = packets.iter().collect();
        if packets.len() > packets_max {
            let first = packets_max - packets_max / 2;
            let out: Vec<&SessionPacket> =
                kept.drain(first..packets.len() - packets_max / 2).collect();
            let bytes: u64 = out.iter().map(|packet| packet.bytes).sum();
            let (more, more_bytes) = left.map_or((0, 0), |(_, packets, bytes)| (packets, bytes));
            left = Some((first, out.len() as u64 + more, bytes + more_bytes));
        }
        let mut rows: Vec<Value> = kept.into_iter().map(row).collect();
        if let Some((before, packets, bytes)) = left {
            rows.insert(before.min(rows.len()), json!({ "gap": packets, "bytes": bytes }));
        }
        Shown { rows }
    }
}

fn row(packet: &SessionPacket) -> Value {
    let marks: Vec<&str> = packet.marks.iter().map(|mark| mark.words()).collect();
    let has = |mark: PacketMark| packet.marks.contains(&mark);
    let mut row = json!({
        "at": packet.at_ns, "from": packet.from, "to": packet.to, "bytes": packet.bytes,
        "stream": packet.stream_bytes, "phase": packet.phase, "name": name(packet),
    });
    let mut tell = |key: &str, value: Value| {
        row[key] = value;
    };
    if !packet.flags.is_empty() {
        tell("flags", json!(packet.flags));
    }
    if !marks.is_empty() {
        tell("marks", json!(marks.join(", ")));
    }
    if has(PacketMark::SentAgain) {
        tell("again", json!(true));
    }
    if has(PacketMark::Retransmission) {
        tell("repeat", json!(true));
    }
    if let Some(segments) = packet.segments {
        tell("segments", json!(segments));
    }
    row
}

/// Text at the arrow: what begins in the packet, each name once with its number; else its flags, or
/// that something continues.
fn name(packet: &SessionPacket) -> String {
    let mut names: Vec<(&str, usize)> = Vec::new();
    for name in &packet.names {
        match names.last_mut() {
            Some((last, number)) if last == name => *number += 1,
            _ => names.push((name, 1)),
        }
    }
    let opens_or_closes = ["SYN", "FIN", "RST"].iter().any(|flag| packet.flags.contains(flag));
    let mut parts: Vec<String> = names
        .into_iter()
        .map(|(name, number)| match number {
            1 => name.to_owned(),
            number => format!("{number} × {name}"),
        })
        .collect();
    if opens_or_closes || (packet.stream_bytes == 0 && parts.is_empty()) {
        parts.insert(0, packet.flags.clone());
    }
    if parts.is_empty() {
        parts.push("… continues".to_owned());
    }
    parts.join("; ")
}

fn note(session: &SessionPackets) -> String {
    let packets = &session.packets;
    let left = session.gap.map_or((0, 0), |gap| (gap.packets, gap.bytes));
    let bytes: u64 = packets.iter().map(|packet| packet.bytes).sum();
    let end = packets.last().map_or(0, |packet| packet.at_ns);
    let mut text = format!(
        "{} packets and {} bytes within {}, captured at the clients' interfaces. Left: the time \
         after the first packet; at each arrow: the bytes on the wire, and the bytes of the \
         stream in them.",
        count(packets.len() as u64 + left.0),
        count(bytes + left.1),
        time(end as f64, false)
    );
    if let Some(tls) = &session.tls {
        text += &format!(" {tls}: the content of records cannot be read.");
    }
    if packets.iter().any(|packet| packet.marks.contains(&PacketMark::SentAgain)) {
        text += " A cross: sent again later, because it was lost in transit, or its \
                 acknowledgement was; dashed: the second time.";
    }
    if packets.iter().any(|packet| packet.marks.contains(&PacketMark::SentTooEarly)) {
        text += " Dashed, without a cross before it: sent again too early. Nothing was lost: the \
                 sender's timer (1 s for the first packet, RFC 6298) ran out before the \
                 acknowledgement came.";
    }
    text
}

/// With more cells than this only beginning and end of each session are drawn.
const CELLS_WHOLE: usize = 24;

const PACKETS_THINNED: usize = 40;

/// Height of a row in CSS pixels; rows for the names of the parties above and below.
const ROW: u32 = 28;

const HEADS: u32 = 2;
