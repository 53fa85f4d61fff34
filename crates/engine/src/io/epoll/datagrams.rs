//! Datagram sockets of an [`EpollIo`]: those with one peer, and those of servers.

use std::net::{IpAddr, SocketAddr};

use rustix::io::Errno;
use weigh_model::Nanos;
use weigh_model::connection::Frames;

use super::peers::Peers;
use super::slot::{AGAIN, BLOCKED, CONNECTING, CUT, DATAGRAM, FAILED, HELD, PEER, SERVES, Slot};
use super::{CLOSED, EpollIo, FILLS_PER_TURN, clock};
use crate::io::datagrams::{self, BATCH, Sent};
use crate::io::{IoEvent, IoFault, Token, socket};

impl EpollIo {
    /// Lets the kernel cut runs of datagrams that leave together, and join those that come in, at
    /// all sockets for datagrams that are made from here on. Events and calls stay as without.
    pub fn let_kernel_cut(&mut self) {
        self.peers.get_or_insert_with(Peers::new).let_kernel_cut();
    }

    /// Number of sockets at which the kernel refused to cut, so far: their datagrams leave one by
    /// one.
    pub fn uncut(&self) -> u64 {
        self.peers.as_ref().map_or(0, |peers| peers.uncut)
    }

    /// Receives datagrams of any peer on a port that other `Io`s of this user may share.
    ///
    /// # Errors
    /// If the address cannot be had.
    pub fn listen_datagrams_shared(&mut self, on: SocketAddr) -> Result<SocketAddr, IoFault> {
        self.open_datagrams(on, true)
    }

    pub(super) fn open_datagrams(
        &mut self,
        on: SocketAddr,
        shared: bool,
    ) -> Result<SocketAddr, IoFault> {
        let (socket, address) = datagrams::open(on, shared)?;
        let state = self.peers.get_or_insert_with(Peers::new).prepare(&socket);
        self.insert(socket, DATAGRAM | SERVES | state)?;
        Ok(address)
    }

    pub(super) fn dial_datagrams(
        &mut self,
        to: SocketAddr,
        from: Option<IpAddr>,
    ) -> Result<Token, IoFault> {
        let socket = datagrams::dial(to, from)?;
        let state = self.peers.get_or_insert_with(Peers::new).prepare(&socket);
        // Its first event reports that it takes bytes, and so that it is connected.
        self.insert(socket, CONNECTING | DATAGRAM | state)
    }

    pub(super) fn send_frames(
        &mut self,
        to: Token,
        frames: Frames<'_>,
        taken: usize,
    ) -> Result<usize, IoFault> {
        let now = clock(self.epoch);
        let peers = self.peers.as_mut().ok_or(CLOSED)?;
        let (through, address) = peers.way_to(to, now);
        let slot = self.slots.get(through.0 as usize).ok_or(CLOSED)?;
        let socket = slot.socket.as_ref().ok_or(CLOSED)?;
        let cuts = slot.state & CUT != 0;
        let Sent { taken: sent, is_refused } =
            datagrams::send(socket, frames, taken, address, cuts).map_err(socket::fault)?;
        if is_refused {
            peers.uncut += 1;
            self.slots[through.0 as usize].state &= !CUT;
        }
        self.bytes_written += (sent - taken) as u64;
        if sent < frames.bytes.len() {
            self.slots[to.0 as usize].state |= BLOCKED;
            self.slots[through.0 as usize].state |= BLOCKED;
        }
        Ok(sent)
    }

    pub(super) fn dropped_datagrams(&self) -> u64 {
        let Some(peers) = &self.peers else { return 0 };
        let open = self.slots.iter().filter(|slot| slot.state & DATAGRAM != 0);
        let open = open.filter_map(|slot| slot.socket.as_ref());
        peers.dropped + open.map(|socket| u64::from(datagrams::dropped(socket))).sum::<u64>()
    }

    /// Reports to the peers of a server socket that it takes datagrams again, as far as they wait.
    pub(super) fn unblock_peers(
        &mut self,
        server: Token,
        on_event: &mut dyn FnMut(Nanos, IoEvent<'_>),
    ) {
        let now = clock(self.epoch);
        let peers = self.peers.iter().flat_map(|peers| peers.of(server));
        for peer in peers {
            let state = &mut self.slots[peer.0 as usize].state;
            if *state & BLOCKED != 0 {
                *state &= !BLOCKED;
                on_event(now, IoEvent::Writable(peer));
            }
        }
    }

    /// Reads until the socket is drained or has had its share of this turn.
    pub(super) fn read_datagrams(
        &mut self,
        token: Token,
        on_event: &mut dyn FnMut(Nanos, IoEvent<'_>),
    ) {
        for _ in 0..FILLS_PER_TURN {
            let EpollIo { slots, free, peers, bytes_read, epoch, .. } = self;
            let (slot, Some(peers)) = (&mut slots[token.0 as usize], peers) else { return };
            let Some(socket) = &slot.socket else { return };
            if slot.state & (FAILED | CONNECTING | HELD) != 0 {
                return;
            }
            let (received, now) = (peers.receive(socket), clock(*epoch));
            let serves = slot.state & SERVES != 0;
            let received = match received {
                Ok(received) => received,
                Err(Errno::AGAIN) => return,
                // A peer of a server is gone; the others are not.
                Err(errno) if errno == Errno::INTR || serves => continue,
                Err(errno) => {
                    slot.state |= FAILED;
                    return on_event(now, IoEvent::Failed(token, socket::fault(errno)));
                }
            };
            let mut new_token = || {
                let index = free.pop().unwrap_or_else(|| {
                    slots.push(Slot::FREE);
                    slots.len() as u32 - 1
                });
                slots[index as usize].state = PEER;
                Token(index)
            };
            for index in 0..received {
                let bytes = match serves {
                    true => peers.report_served(index, token, now, &mut new_token, on_event),
                    false => peers.report(index, token, now, on_event),
                };
                *bytes_read += bytes as u64;
            }
            if received < BATCH {
                return;
            }
        }
        // More may wait, of which no new edge will tell.
        let slot = &mut self.slots[token.0 as usize];
        if slot.state & AGAIN == 0 {
            slot.state |= AGAIN;
            self.again.push_back(token);
        }
    }
}
