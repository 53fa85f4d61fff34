//! Follows one connection packet by packet.

use std::net::SocketAddr;

use weigh_model::content::Phase;

use crate::account::connection::{Connection, Ending, Transport};
use crate::account::content::Content;
use crate::account::layers::Layers;
use crate::account::note::{NoteBook, PacketNote};
use crate::account::placed::{Edges, Placed};
use crate::account::quiet::Quiet;
use crate::account::traffic::{Phases, Traffic};
use crate::dissect::Segment;
use crate::stream::dtls::{self, Split};
use crate::stream::quic;
use crate::stream::reassembly::{Reassembly, Taken};
use crate::stream::sequence::Sequence;
use crate::stream::tls::{Session, Side};

/// A connection for which packets still arrive.
#[derive(Debug)]
pub struct Tracked {
    pub initiator: SocketAddr,
    pub responder: SocketAddr,
    transport: Transport,
    opening_seen: bool,
    /// Whether the initiator has acknowledged the responder's SYN.
    opening_acknowledged: bool,
    reset: bool,
    timestamps: bool,
    first_at_ns: u64,
    last_at_ns: u64,
    quiet: Quiet,
    halves: [Half; 2],
    content: Content,
    /// What is inside datagrams, by the first of them.
    inside: Inside,
    plain_bytes: [u64; 2],
    /// Its packets, if they were requested.
    pub notes: NoteBook,
    edges: Edges,
}

/// What is inside datagrams.
#[derive(Debug)]
enum Inside {
    /// Nothing that is known.
    Plain,
    /// Records of DTLS.
    Dtls(Box<dtls::Session>),
    /// Packets of QUIC.
    Quic,
}

#[derive(Debug, Default)]
struct Half {
    sequence: Sequence,
    reassembly: Reassembly,
    phases: Phases,
    syn: Option<u32>,
    fin: Option<i64>,
    closed: bool,
    /// End of the bytes sent; SYN and FIN count one each.
    sent_end: Option<i64>,
    /// Next number that the peer expects.
    acknowledged: Option<i64>,
    has_data: bool,
    /// Offset of the bytes with which the direction closes.
    tear_down: Option<i64>,
    last_data: Option<(i64, Traffic)>,
}

/// Figures of one packet, before its phase is known.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    pub at_ns: u64,
    /// Packets on the wire that it stands for.
    pub packets: u64,
    /// 1, or 0 if another share of the same packet counts it.
    pub packets_captured: u64,
    pub bytes_captured: u64,
    /// Headers of all these packets.
    pub headers: Layers,
    pub stream_bytes: u64,
    /// Bytes of the stream in each of these packets; 0 if there is one packet.
    pub segment_bytes: u64,
}

impl Tracked {
    pub fn new(
        [initiator, responder]: [SocketAddr; 2],
        transport: Transport,
        opening_seen: bool,
    ) -> Tracked {
        let is_read = opening_seen && transport == Transport::Tcp;
        Tracked {
            initiator,
            responder,
            transport,
            opening_seen,
            opening_acknowledged: !opening_seen,
            reset: false,
            timestamps: false,
            first_at_ns: u64::MAX,
            last_at_ns: 0,
            quiet: Quiet::default(),
            halves: Default::default(),
            content: if is_read { Content::Undecided(Vec::new()) } else { Content::Plain },
            inside: Inside::Plain,
            plain_bytes: [0; 2],
            notes: NoteBook::default(),
            edges: Edges::default(),
        }
    }

    /// True if `segment` opens another connection between the same ports.
    pub fn is_over_for(&self, segment: &Segment<'_>) -> bool {
        let half = &self.halves[self.side(segment.source) as usize];
        let is_first = segment.syn && segment.acknowledgement.is_none();
        is_first && half.syn != Some(segment.sequence)
    }

    /// True once both directions are closed, or one end gave up.
    pub fn is_closed(&self) -> bool {
        self.reset || self.halves.iter().all(|half| half.fin.is_some())
    }

    pub fn side(&self, source: SocketAddr) -> Side {
        if source == self.initiator { Side::Client } else { Side::Server }
    }

    /// Counts a datagram. One that carries only the handshake of DTLS or QUIC belongs to the
    /// set-up.
    pub fn datagram(&mut self, source: SocketAddr, bytes: &[u8], share: &Share) {
        let side = self.side(source);
        self.note_time(share.at_ns);
        let is_first = self.halves.iter().all(|half| !half.has_data);
        if is_first && dtls::may_be_client_hello(bytes) {
            self.inside = Inside::Dtls(Box::default());
        } else if is_first && quic::may_be_initial(bytes, share.stream_bytes) {
            self.inside = Inside::Quic;
        }
        let mut traffic = share.traffic();
        traffic.data_packets = if share.stream_bytes > 0 { share.packets } else { 0 };
        let split = match &mut self.inside {
            Inside::Dtls(session) => session.take(side, bytes, share.stream_bytes),
            Inside::Quic => quic::split(bytes, share.stream_bytes),
            Inside::Plain => Split { content: share.stream_bytes, ..Split::default() },
        };
        traffic.layers.tls_record += split.record;
        self.plain_bytes[side as usize] += split.content;
        let half = &mut self.halves[side as usize];
        half.has_data = true;
        half.phases.set_up.layers.tls_handshake += split.handshake;
        let is_set_up = split.handshake > 0 && split.handshake == share.stream_bytes;
        half.phases[if is_set_up { Phase::SetUp } else { Phase::Messages }] += traffic;
    }

    /// Counts a segment.
    pub fn segment(&mut self, segment: &Segment<'_>, share: &Share) {
        let side = self.side(segment.source);
        self.note_time(share.at_ns);
        self.timestamps |= segment.timestamps;
        let offset = self.place(side, segment, share);
        let is_syn_again = segment.syn && self.halves[side as usize].syn == Some(segment.sequence);
        let is_fin_again = segment.fin && self.halves[side as usize].fin.is_some();
        let is_probe = self.is_keep_alive(side, segment, share, offset);
        let handshake_before = self.handshake_bytes(side);
        let taken = self.take(side, offset, segment, share);
        let phase = self.phase_of(side, segment, share, offset);

        let mut traffic = share.traffic();
        traffic.layers.repeated = taken.repeated_bytes;
        let is_pure = share.stream_bytes == 0 && !segment.syn && !segment.fin && !segment.rst;
        traffic.data_packets = if share.stream_bytes > 0 { share.packets } else { 0 };
        traffic.keep_alive_packets = u64::from(is_probe);
        traffic.ack_only_packets =
            u64::from(is_pure && !is_probe && segment.acknowledgement.is_some());
        traffic.out_of_order_packets = if taken.out_of_order { share.packets } else { 0 };
        traffic.syn_packets = u64::from(segment.syn);
        traffic.fin_packets = u64::from(segment.fin);
        traffic.rst_packets = u64::from(segment.rst);
        traffic.retransmitted_packets = match taken.repeated_bytes {
            _ if is_probe => 0,
            0 => u64::from(is_syn_again || (is_fin_again && share.stream_bytes == 0)),
            _ if share.segment_bytes == 0 => 1,
            repeated => repeated.div_ceil(share.segment_bytes),
        };
        let decided_by = match phase {
            Phase::Messages => self.decided_by(side, segment, share, offset),
            _ => None,
        };
        if self.notes.is_open() {
            let handshake = self.handshake_bytes(side).saturating_sub(handshake_before);
            self.notes.note(PacketNote {
                number: 0,
                at_ns: share.at_ns,
                from_initiator: side == Side::Client,
                packets: share.packets,
                bytes: share.headers.header() + share.stream_bytes,
                offset,
                stream_bytes: share.stream_bytes,
                content: segment.bytes.to_vec(),
                repeated_bytes: taken.repeated_bytes,
                tls_handshake_bytes: handshake,
                is_again: traffic.retransmitted_packets > 0,
                out_of_order: taken.out_of_order,
                keep_alive: is_probe,
                syn: segment.syn,
                ack: segment.acknowledgement.is_some(),
                fin: segment.fin,
                rst: segment.rst,
                phase,
                decided_by: decided_by.map(|(stream, at)| (stream == Side::Client, at)),
            });
        }
        if let Some((stream, offset)) = decided_by {
            self.edges.note(Placed { sender: side, stream, offset, traffic });
        }
        self.note(side, segment, share, offset);
        let half = &mut self.halves[side as usize];
        half.phases[phase] += traffic;
        if taken.new_bytes > 0 {
            half.last_data = (phase == Phase::Messages).then_some((offset, traffic));
        }
        self.close_if_over(side);
    }

    /// Ends the connection and returns its figures.
    pub fn finish(mut self) -> Connection {
        let Tracked { halves, content, plain_bytes, .. } = &mut self;
        for side in [Side::Client, Side::Server] {
            let reassembly = &mut halves[side as usize].reassembly;
            reassembly.flush(&mut |piece| content.take(side, piece, plain_bytes));
        }
        content.finish(plain_bytes);
        self.close_if_over(Side::Client);
        self.close_if_over(Side::Server);
        for side in [Side::Client, Side::Server] {
            self.add_stream(side);
        }
        let ending = match () {
            () if self.reset => Ending::Reset,
            () if self.is_closed() => Ending::Finished,
            () => Ending::Open,
        };
        let quiet = std::mem::take(&mut self.quiet);
        let [sent, received] = &self.halves;
        Connection {
            initiator: self.initiator,
            responder: self.responder,
            transport: self.transport,
            opening_seen: self.opening_seen,
            ending,
            first_at_ns: self.first_at_ns,
            last_at_ns: self.last_at_ns,
            quiet,
            timestamps: self.timestamps,
            tls: match &self.content {
                Content::Tls(session) => Some(session.facts()),
                _ => match &self.inside {
                    Inside::Dtls(session) => Some(session.facts()),
                    Inside::Quic => Some(quic::FACTS),
                    Inside::Plain => None,
                },
            },
            unseen_bytes: sent.reassembly.unseen_bytes + received.reassembly.unseen_bytes,
            sent: sent.phases,
            received: received.phases,
            notes: std::mem::take(&mut self.notes).finish(),
            placed: self.edges.take(),
        }
    }

    fn handshake_bytes(&self, side: Side) -> u64 {
        match &self.content {
            Content::Tls(session) => session.bytes(side).handshake,
            _ => 0,
        }
    }

    fn note_time(&mut self, at_ns: u64) {
        if self.first_at_ns <= self.last_at_ns {
            self.quiet.note(self.last_at_ns, at_ns);
        }
        self.first_at_ns = self.first_at_ns.min(at_ns);
        self.last_at_ns = self.last_at_ns.max(at_ns);
    }

    /// The offset of the segment's first byte in its stream.
    fn place(&mut self, side: Side, segment: &Segment<'_>, share: &Share) -> i64 {
        let half = &mut self.halves[side as usize];
        if segment.syn {
            if !half.sequence.is_anchored() || half.syn.is_none() {
                half.sequence.anchor(segment.sequence.wrapping_add(1), 0);
            }
            return 0;
        }
        // If the beginning of a stream was not seen, it begins with the first captured byte: what
        // came before may have been a probe from behind that.
        if half.syn.is_none() && !half.has_data && share.stream_bytes > 0 {
            half.sequence.anchor(segment.sequence, 0);
        }
        half.sequence.offset(segment.sequence)
    }

    fn is_keep_alive(&self, side: Side, segment: &Segment<'_>, share: &Share, at: i64) -> bool {
        let half = &self.halves[side as usize];
        let Some(end) = half.sent_end.filter(|_| !segment.syn && !segment.fin && !segment.rst)
        else {
            return false;
        };
        let is_acknowledged = half.acknowledged.is_some_and(|until| until >= end);
        at == end - 1 && (share.stream_bytes == 0 || (share.stream_bytes == 1 && is_acknowledged))
    }

    fn take(&mut self, side: Side, offset: i64, segment: &Segment<'_>, share: &Share) -> Taken {
        if share.stream_bytes == 0 {
            return Taken::default();
        }
        let Tracked { halves, content, plain_bytes, .. } = self;
        let half = &mut halves[side as usize];
        half.has_data = true;
        let keep = content.is_read();
        half.reassembly.take(offset, share.stream_bytes, segment.bytes, keep, &mut |piece| {
            content.take(side, piece, plain_bytes);
        })
    }

    fn note(&mut self, side: Side, segment: &Segment<'_>, share: &Share, offset: i64) {
        let half = &mut self.halves[side as usize];
        let end = offset + share.stream_bytes as i64;
        if segment.syn {
            half.syn = Some(segment.sequence);
        }
        if segment.fin {
            half.fin.get_or_insert(end);
        }
        self.reset |= segment.rst;
        if !segment.rst {
            let end = end + i64::from(segment.fin);
            half.sent_end = Some(half.sent_end.map_or(end, |before| before.max(end)));
        }
        let Some(number) = segment.acknowledgement.filter(|_| !segment.rst) else { return };
        self.opening_acknowledged |= side == Side::Client;
        let peer = &mut self.halves[1 - side as usize];
        if !peer.sequence.is_anchored() {
            peer.sequence.anchor(number, 0);
        }
        let until = peer.sequence.offset(number);
        peer.acknowledged = Some(peer.acknowledged.map_or(until, |before| before.max(until)));
    }

    /// The byte that decides about the phase of a packet of the messages: whose stream it is in,
    /// and where. Inside TLS the codec's count does not show where a byte is.
    fn decided_by(
        &self,
        side: Side,
        segment: &Segment<'_>,
        share: &Share,
        offset: i64,
    ) -> Option<(Side, i64)> {
        if matches!(self.content, Content::Tls(_)) {
            return None;
        }
        if share.stream_bytes > 0 {
            return Some((side, offset));
        }
        let number = segment.acknowledgement?;
        let other = side.other();
        Some((other, self.last_acknowledged(other, number)))
    }

    /// The offset of the last byte of a stream that `number` acknowledges.
    fn last_acknowledged(&self, stream: Side, number: u32) -> i64 {
        let mut sequence = self.halves[stream as usize].sequence;
        sequence.offset(number) - 1
    }

    /// A packet belongs to the phase of the first byte that it carries; if it carries none, to that
    /// of the last byte that it acknowledges.
    fn phase_of(&self, side: Side, segment: &Segment<'_>, share: &Share, offset: i64) -> Phase {
        if segment.syn {
            return Phase::SetUp;
        }
        if segment.rst {
            return Phase::TearDown;
        }
        if share.stream_bytes > 0 {
            return self.phase_at(side, offset);
        }
        if segment.fin {
            return Phase::TearDown;
        }
        if side == Side::Client && !self.opening_acknowledged {
            return Phase::SetUp;
        }
        let Some(number) = segment.acknowledgement else { return Phase::Messages };
        let other = side.other();
        let peer = &self.halves[other as usize];
        let last = self.last_acknowledged(other, number);
        if peer.fin.is_some_and(|fin| last >= fin) {
            return Phase::TearDown;
        }
        self.phase_at(other, last)
    }

    fn phase_at(&self, side: Side, offset: i64) -> Phase {
        let set_up_end = match &self.content {
            Content::Tls(session) => match session.handshake_end(side) {
                Some(end) => end as i64,
                None if session.facts().lost => 0,
                None => return Phase::SetUp,
            },
            _ => 0,
        };
        // Before the first byte, only the connection itself is set up.
        if offset < set_up_end && offset >= 0 {
            return Phase::SetUp;
        }
        match self.halves[side as usize].tear_down {
            Some(start) if offset >= start => Phase::TearDown,
            _ => Phase::Messages,
        }
    }

    /// Once a direction is closed and its stream complete, its closing alert is known as
    /// such, and with it the packet that carried nothing else.
    fn close_if_over(&mut self, side: Side) {
        let half = &mut self.halves[side as usize];
        let is_complete = half.fin == Some(half.reassembly.next());
        if half.closed || !(is_complete || self.reset) {
            return;
        }
        half.closed = true;
        let Content::Tls(session) = &mut self.content else { return };
        let Some(start) = Session::close(session, side).map(|at| at as i64) else { return };
        half.tear_down = Some(start);
        if let Some((_, traffic)) = half.last_data.filter(|(at, _)| *at == start) {
            half.phases.messages -= traffic;
            half.phases.tear_down += traffic;
        }
    }

    /// Adds the stream's bytes, which belong to phases by what they are.
    fn add_stream(&mut self, side: Side) {
        let at = side as usize;
        let phases = &mut self.halves[at].phases;
        phases.messages.layers.application += self.plain_bytes[at];
        if let Content::Tls(session) = &self.content {
            let bytes = session.bytes(side);
            phases.set_up.layers.tls_handshake += bytes.handshake;
            phases.messages.layers.tls_record += bytes.record;
            phases.messages.layers.application += bytes.application;
            phases.tear_down.layers.tls_record += bytes.closing;
        }
    }
}

impl Share {
    fn traffic(&self) -> Traffic {
        Traffic {
            packets: self.packets,
            packets_captured: self.packets_captured,
            bytes_captured: self.bytes_captured,
            layers: self.headers,
            ..Traffic::default()
        }
    }
}
