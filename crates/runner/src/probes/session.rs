//! The event that describes one session packet by packet.

use weigh_capture::account::{Notes, PacketNote, Session, Step, Unit};
use weigh_capture::stream::tls;
use weigh_capture::{Account, Connection};
use weigh_model::Protocol;
use weigh_model::session::{PacketGap, PacketMark, SESSION_PACKETS_MAX};
use weigh_model::session::{SessionPacket, SessionPackets};

/// Returns what the capture must record to show a session: subscribers connect first, then a few
/// producers.
pub fn notes(subscribers: u32) -> Notes {
    let connections = (subscribers as usize + PRODUCERS).min(CONNECTIONS_MAX);
    Notes { connections, packets: SESSION_PACKETS_MAX }
}

/// The first complete session of a trial with this target, on a path that dropped `dropped` packets
/// (`None`: unknown); `None` if no session was opened and closed during the capture.
pub fn told(
    trial: &str,
    account: &Account,
    protocol: &dyn Protocol,
    (target, dropped): (&str, Option<u64>),
) -> Option<SessionPackets> {
    let name = |from_initiator: bool, head: &[u8]| {
        let found = protocol.packet_name(from_initiator, head)?;
        Some(Unit { name: found.name, length: found.length, subscribes: found.subscribes })
    };
    let session = Session::of(account, SESSION_PACKETS_MAX, &name)?;
    let parties: &[&str] = match session.connections.len() {
        1 => &["generator", target],
        _ => &["producer", target, "subscriber"],
    };
    let began_ns = session.steps.first()?.note.at_ns;
    Some(SessionPackets {
        trial: trial.to_owned(),
        parties: parties.iter().map(|party| (*party).to_owned()).collect(),
        tls: session.connections.first().and_then(tls_words),
        packets: session.steps.iter().map(|step| packet(step, began_ns, dropped)).collect(),
        gap: session.gap.map(|gap| PacketGap {
            before: gap.before as u64,
            packets: gap.packets,
            bytes: gap.bytes,
        }),
    })
}

/// The target is in the middle, between the two that connect to it.
fn packet(step: &Step, began_ns: u64, dropped: Option<u64>) -> SessionPacket {
    let note = &step.note;
    let initiator = if step.connection == 0 { 0 } else { TARGET + 1 };
    let (from, to) = match note.from_initiator {
        true => (initiator, TARGET),
        false => (TARGET, initiator),
    };
    SessionPacket {
        at_ns: note.at_ns.saturating_sub(began_ns),
        from,
        to,
        bytes: note.bytes,
        stream_bytes: note.stream_bytes,
        flags: flags(note),
        phase: note.phase.name().to_owned(),
        names: step.units.iter().map(|unit| unit.name.clone()).collect(),
        marks: marks(step, dropped),
        segments: (note.packets > 1).then_some(note.packets),
    }
}

fn flags(note: &PacketNote) -> String {
    let all = [(note.syn, "SYN"), (note.fin, "FIN"), (note.rst, "RST"), (note.ack, "ACK")];
    let set = all.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| *flag);
    set.collect::<Vec<_>>().join(", ")
}

/// `dropped` is the number of packets that the path dropped in the whole trial, if known.
fn marks(step: &Step, dropped: Option<u64>) -> Vec<PacketMark> {
    let note = &step.note;
    let has_arrived = dropped == Some(0);
    let all = [
        (note.is_again && !note.keep_alive, PacketMark::Retransmission),
        (step.is_repeated_later && !has_arrived, PacketMark::SentAgain),
        (step.is_repeated_later && has_arrived, PacketMark::SentTooEarly),
        (note.out_of_order, PacketMark::OutOfOrder),
        (note.keep_alive, PacketMark::KeepAlive),
    ];
    all.into_iter().filter(|(is_so, _)| *is_so).map(|(_, mark)| mark).collect()
}

fn tls_words(connection: &Connection) -> Option<String> {
    let facts = connection.tls?;
    let version = match facts.version? {
        tls::TLS_1_3 => "TLS 1.3".to_owned(),
        0x0303 => "TLS 1.2".to_owned(),
        other => format!("TLS {other:#06x}"),
    };
    Some(if facts.resumed { version + ", resumed" } else { version })
}

/// Position of the target among the parties.
const TARGET: u8 = 1;

/// Producers whose packets are recorded: the first one's connection may fail.
const PRODUCERS: usize = 4;

/// Each takes up to 200 KB until the end of the trial.
const CONNECTIONS_MAX: usize = 64;
