//! Single packets of a connection, as a sequence diagram shows them.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use weigh_model::content::Phase;

/// One packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketNote {
    /// Its index among the packets of its connection as they were captured, from 0.
    pub number: u64,
    /// When it was captured, in nanoseconds since 1970.
    pub at_ns: u64,
    /// True if it was sent by the end that opened the connection.
    pub from_initiator: bool,
    /// Number of packets on the wire that it stands for: more than one for a super-packet.
    pub packets: u64,
    /// Their bytes, headers included.
    pub bytes: u64,
    /// Offset in its stream of the first byte that it carries, or would carry.
    pub offset: i64,
    /// Bytes of the stream that it carries.
    pub stream_bytes: u64,
    /// The first of these bytes, as far as they were captured.
    pub content: Vec<u8>,
    /// Of these, bytes seen before.
    pub repeated_bytes: u64,
    /// Of these, bytes of the TLS handshake, as far as they came in order.
    pub tls_handshake_bytes: u64,
    /// True if it carries something (a byte, SYN or FIN) that had been captured before.
    pub is_again: bool,
    /// True if something before it is missing, or something after it came first.
    pub out_of_order: bool,
    /// True for a keep-alive probe.
    pub keep_alive: bool,
    /// True if it opens a direction (SYN).
    pub syn: bool,
    /// True if it acknowledges.
    pub ack: bool,
    /// True if it closes a direction (FIN).
    pub fin: bool,
    /// True if it aborts the connection (RST).
    pub rst: bool,
    /// Its phase. A closing alert of TLS 1.3 is known as such only later, and a protocol's greeting
    /// and disconnect are known once its codec has given their lengths.
    pub phase: Phase,
    /// The byte that decides on its phase: whether it is in the stream of the end that opened the
    /// connection, and where. Absent where no codec's count can change the phase.
    pub decided_by: Option<(bool, i64)>,
}

/// The notes of a connection: its first packets and its last, with a bound on both.
#[derive(Debug, Default)]
pub struct NoteBook {
    /// Number of notes that may be kept, half of them the last; 0 for none.
    pub notes_max: usize,
    first: Vec<PacketNote>,
    last: VecDeque<PacketNote>,
    packets: u64,
}

impl NoteBook {
    /// True if packets are noted at all.
    pub fn is_open(&self) -> bool {
        self.notes_max > 0
    }

    /// Notes a packet, whose number it gives; the oldest of the last makes room.
    pub fn note(&mut self, mut note: PacketNote) {
        note.number = self.packets;
        self.packets += 1;
        let last_max = self.notes_max / 2;
        if self.first.len() < self.notes_max - last_max {
            self.first.push(note);
        } else if last_max > 0 {
            if self.last.len() == last_max {
                self.last.pop_front();
            }
            self.last.push_back(note);
        }
    }

    /// All notes in their order.
    pub fn finish(self) -> Vec<PacketNote> {
        let mut notes = self.first;
        notes.extend(self.last);
        notes
    }
}
