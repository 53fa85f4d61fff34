//! Datagrams between the parties of the simulation: lost, doubled, delayed and dropped at full
//! queues by the link's probabilities and the seed.

use std::collections::VecDeque;
use std::net::SocketAddr;

use weigh_model::Nanos;
use weigh_model::connection::Frames;

use super::ends::Payload;
use super::flows::{Flow, FlowId, FlowNews};
use super::state::{Notice, Report, Socket, State};
use crate::io::{IoEvent, IoFault, Token};

impl State {
    pub(super) fn connect_datagrams(&mut self, number: usize, to: SocketAddr) -> Token {
        let id = self.new_flow(number, to, false);
        self.tell_flow(id, FlowNews::Connected);
        self.flows.flows[id].token
    }

    pub(super) fn listen_datagrams(
        &mut self,
        number: usize,
        mut on: SocketAddr,
    ) -> Result<SocketAddr, IoFault> {
        let taken = |on: SocketAddr| self.flows.servers.iter().any(|(own, _)| *own == on);
        if on.port() == 0 {
            let is_free = |port: &u16| !taken(SocketAddr::new(on.ip(), *port));
            on.set_port((FIRST_PORT..u16::MAX).find(is_free).ok_or(IoFault::AddressInUse)?);
        }
        if taken(on) {
            return Err(IoFault::AddressInUse);
        }
        self.parties[number].new_token(Socket::Datagrams(on));
        self.flows.servers.push((on, number));
        Ok(on)
    }

    /// Every datagram leaves: what the link cannot carry at once waits in it.
    pub(super) fn send(
        &mut self,
        number: usize,
        to: Token,
        frames: Frames<'_>,
        taken: usize,
    ) -> Result<usize, IoFault> {
        let id = self.parties[number].flow(to).ok_or(IoFault::Other(EBADF))?;
        for frame in frames.after(taken) {
            self.parties[number].bytes.0 += frame.len() as u64;
            self.send_off(id, frame);
        }
        Ok(frames.bytes.len())
    }

    pub(super) fn dropped(&self, number: usize) -> u64 {
        self.flows.dropped.get(&number).copied().unwrap_or(0)
    }

    pub(super) fn close_flow(&mut self, id: FlowId) {
        self.flows.flows[id].is_closed = true;
        self.flows.flows[id].queue.clear();
        // Its peer's next datagram begins a new flow.
        if self.flows.flows[id].is_served
            && let Some(peer) = self.flows.flows[id].peer
        {
            self.flows.flows[peer].peer = None;
        }
    }

    pub(super) fn close_datagrams(&mut self, on: SocketAddr) {
        self.flows.servers.retain(|(own, _)| *own != on);
    }

    fn new_flow(&mut self, party: usize, to: SocketAddr, is_served: bool) -> FlowId {
        let id = self.flows.flows.len();
        let token = self.parties[party].new_token(Socket::Flow(id));
        self.flows.flows.push(Flow {
            party,
            token,
            link: self.link_of.get(&to).copied().unwrap_or(0),
            to,
            peer: None,
            is_served,
            is_closed: false,
            has_failed: false,
            is_noted: false,
            is_held: false,
            queue: VecDeque::new(),
            queued_bytes: 0,
        });
        id
    }

    fn tell_flow(&mut self, id: FlowId, news: FlowNews) {
        let party = self.flows.flows[id].party;
        self.parties[party].inbox.push_back(Notice::Flow(id, news));
    }

    fn send_off(&mut self, from: FlowId, bytes: &[u8]) {
        let (link, is_served) = (self.flows.flows[from].link, self.flows.flows[from].is_served);
        let leaves = self.leave(link, usize::from(!is_served), bytes.len());
        let impairments = self.links[link].link.impairments;
        if self.happens(impairments.lost_ppm) {
            return;
        }
        let copies = 1 + u32::from(self.happens(impairments.doubled_ppm));
        for _ in 0..copies {
            let late =
                if self.happens(impairments.late_ppm) { impairments.late_by } else { Nanos(0) };
            let at = leaves + self.links[link].link.delay + self.jitter(link) + late;
            self.schedule(at, Payload::Datagram(from, bytes.to_vec()));
        }
    }

    /// Returns true with a probability of `ppm` in a million; no random number is drawn for 0.
    fn happens(&mut self, ppm: u32) -> bool {
        ppm > 0 && self.random.below(1_000_000) < u64::from(ppm)
    }

    /// A datagram that left at `from` is there.
    pub(super) fn datagram_arrives(&mut self, from: FlowId, bytes: Vec<u8>) {
        let own = &self.flows.flows[from];
        let (address, link) = (own.to, own.link);
        let to = match own.peer {
            Some(peer) => peer,
            // A server that its peer has forgotten has no receiver.
            None if own.is_served => return,
            None => {
                let server = self.flows.servers.iter().find(|(on, _)| *on == address);
                let Some((_, party)) = server.copied() else {
                    let back = self.now + self.links[link].link.delay;
                    return self.schedule(back, Payload::Unheard(from));
                };
                let peer = self.new_flow(party, address, true);
                self.flows.flows[peer].peer = Some(from);
                self.flows.flows[from].peer = Some(peer);
                self.tell_flow(peer, FlowNews::Accepted);
                peer
            }
        };
        let room = self.links[link].link.buffer_bytes;
        let flow = &mut self.flows.flows[to];
        if flow.is_closed {
            return;
        }
        if flow.queued_bytes + bytes.len() > room {
            *self.flows.dropped.entry(flow.party).or_default() += 1;
            return;
        }
        flow.queued_bytes += bytes.len();
        flow.queue.push_back(bytes);
        self.note_flow(to);
    }

    /// Reports that no party listens where a datagram went (ICMP port unreachable).
    pub(super) fn unheard(&mut self, id: FlowId) {
        self.flows.flows[id].has_failed = true;
        self.note_flow(id);
    }

    fn note_flow(&mut self, id: FlowId) {
        let flow = &mut self.flows.flows[id];
        if !flow.is_noted && !flow.is_closed {
            flow.is_noted = true;
            self.tell_flow(id, FlowNews::Readable);
        }
    }

    /// Reads nothing from a flow, or reads again.
    pub(super) fn hold_flow(&mut self, id: FlowId, held: bool) {
        self.flows.flows[id].is_held = held;
        if !held {
            self.note_flow(id);
        }
    }

    /// Reports an event of a flow to its party.
    pub(super) fn tell_of_flow(&mut self, id: FlowId, news: FlowNews, reports: &mut Vec<Report>) {
        let flow = &mut self.flows.flows[id];
        if flow.is_closed {
            return;
        }
        let token = flow.token;
        match news {
            FlowNews::Connected => reports.push(Report::Plain(IoEvent::Connected(token))),
            FlowNews::Accepted => {
                reports.push(Report::Plain(IoEvent::Accepted { connection: token }));
            }
            FlowNews::Readable if flow.is_held => flow.is_noted = false,
            FlowNews::Readable => {
                flow.is_noted = false;
                self.parties[flow.party].bytes.1 += std::mem::take(&mut flow.queued_bytes) as u64;
                reports.extend(flow.queue.drain(..).map(|bytes| Report::Received(token, bytes)));
                if std::mem::take(&mut flow.has_failed) {
                    reports.push(Report::Plain(IoEvent::Failed(token, IoFault::Refused)));
                }
            }
        }
    }
}

/// The first port handed out for port 0.
const FIRST_PORT: u16 = 40_000;
const EBADF: i32 = 9;
