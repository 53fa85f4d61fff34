//! Sockets and time through epoll. A socket is registered once, edge-triggered, and never again
//! touched through epoll_ctl; a read that does not fill the buffer means that the socket is
//! drained, so an exchange costs one send, one receive and its share of one wait.

mod datagrams;
mod peers;
mod slot;

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, sockopt};
use weigh_model::Nanos;
use weigh_model::connection::Frames;

use super::wake_fd::WakeFd;
use super::{Close, Io, IoEvent, IoFault, Token, Waker, socket, two_step_wait};
use peers::Peers;
use slot::{
    AGAIN, BLOCKED, CONNECTING, DATAGRAM, ENDED, FAILED, GONE, HELD, LEAVING, LISTENER, PAUSED,
    PEER, SERVES, Slot,
};

/// An epoll and its sockets. It belongs to one thread, though it may be made on another. A socket
/// without traffic takes 8 bytes here, in addition to the kernel's memory.
pub struct EpollIo {
    epoll: OwnedFd,
    wake_fd: WakeFd,
    epoch: Instant,
    slots: Vec<Slot>,
    free: Vec<u32>,
    events: Vec<Event>,
    buffer: Box<[u8]>,
    /// Sockets with more to read or accept, of which no new edge will tell.
    again: VecDeque<Token>,
    /// Connections that failed in the very call that started them.
    stillborn: Vec<(Token, IoFault)>,
    /// Time at which listeners that ran out of descriptors try again.
    paused_until: Option<Nanos>,
    accept_pauses: u64,
    bytes_written: u64,
    bytes_read: u64,
    slack_set: bool,
    /// Sockets whose peer may still answer, until when, and their generation: those that ended
    /// since have another.
    answered: VecDeque<(Nanos, Token, u16)>,
    /// State of datagram sockets, if there are any.
    peers: Option<Box<Peers>>,
}

impl EpollIo {
    /// An empty one whose clock counts from `epoch`. Shards of one trial share the epoch.
    ///
    /// # Errors
    /// If no descriptor is left for the epoll or its wake-up.
    pub fn new(epoch: Instant) -> Result<EpollIo, IoFault> {
        EpollIo::with_wake_fd(epoch, WakeFd::new().map_err(socket::fault)?)
    }

    /// Creates it with a wake-up descriptor made before, perhaps in another descriptor table.
    ///
    /// # Errors
    /// If no descriptor is left for the epoll, or the wake-up descriptor is not in the table of
    /// this thread.
    pub fn with_wake_fd(epoch: Instant, wake_fd: WakeFd) -> Result<EpollIo, IoFault> {
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(socket::fault)?;
        let flags = EventFlags::IN | EventFlags::ET;
        epoll::add(&epoll, &wake_fd, EventData::new_u64(WAKE_FD), flags).map_err(socket::fault)?;
        Ok(EpollIo {
            epoll,
            wake_fd,
            epoch,
            slots: Vec::new(),
            free: Vec::new(),
            events: Vec::with_capacity(EVENTS_PER_TURN),
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            again: VecDeque::new(),
            stillborn: Vec::new(),
            paused_until: None,
            accept_pauses: 0,
            bytes_written: 0,
            bytes_read: 0,
            slack_set: false,
            answered: VecDeque::new(),
            peers: None,
        })
    }

    /// Listens on a port that other `Io`s of this user may share by the same call; the kernel
    /// spreads the connections over them. The first may ask for port 0, the others then name
    /// the port it was given.
    ///
    /// # Errors
    /// [`IoFault::AddressInUse`] if another process listens on the port, and other faults if the
    /// kernel does not give the address or a descriptor.
    pub fn listen_shared(&mut self, on: SocketAddr, backlog: u32) -> Result<SocketAddr, IoFault> {
        let (listener, address) = socket::listener(on, backlog, true)?;
        self.adopt_listener(listener)?;
        Ok(address)
    }

    /// Takes over a socket that listens already; it is made non-blocking.
    ///
    /// # Errors
    /// If the descriptor is not a socket that epoll accepts, or the kernel has no memory left to
    /// watch it.
    pub fn adopt_listener(&mut self, listener: OwnedFd) -> Result<Token, IoFault> {
        rustix::io::ioctl_fionbio(&listener, true).map_err(socket::fault)?;
        self.insert(listener, LISTENER)
    }

    /// Returns how often a listener ran out of descriptors and stopped accepting for a while.
    pub fn accept_pauses(&self) -> u64 {
        self.accept_pauses
    }

    /// Returns the number of open sockets, listeners included.
    pub fn open(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Waits until the peers of all sockets that were closed by [`Close::Answered`] have ended.
    pub fn await_answers(&mut self) {
        while let Some((until, token, generation)) = self.answered.front().copied() {
            if self.slots[token.0 as usize].generation == generation {
                self.turn(until, &mut |_, _| {});
            } else {
                self.answered.pop_front();
            }
        }
    }

    /// Reads and discards what the peer still sends to a socket that is already closed.
    fn read_to_the_end(&mut self, token: Token) {
        loop {
            let slot = &self.slots[token.0 as usize];
            let Some(socket) = &slot.socket else { return };
            match rustix::net::recv(socket, &mut self.buffer[..], RecvFlags::empty()) {
                Ok((0, _)) => return self.close(token, Close::Graceful),
                Ok((length, _)) => self.bytes_read += length as u64,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => return self.close(token, Close::Graceful),
            }
        }
    }

    /// Closes those whose time is over.
    fn close_unanswered(&mut self) {
        let now = clock(self.epoch);
        while let Some((until, token, generation)) = self.answered.front().copied() {
            if until > now {
                return;
            }
            self.answered.pop_front();
            if self.slots[token.0 as usize].generation == generation {
                self.close(token, Close::Graceful);
            }
        }
    }

    fn insert(&mut self, socket: OwnedFd, state: u16) -> Result<Token, IoFault> {
        let index = match self.free.last() {
            Some(&index) => index,
            None => {
                self.slots.push(Slot::FREE);
                let index = self.slots.len() as u32 - 1;
                self.free.push(index);
                index
            }
        };
        let slot = &mut self.slots[index as usize];
        let data = EventData::new_u64(u64::from(index) | u64::from(slot.generation) << 32);
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.epoll, &socket, data, flags).map_err(socket::fault)?;
        slot.socket = Some(socket);
        slot.state = state;
        self.free.pop();
        Ok(Token(index))
    }

    /// Waits for events; false if there are none.
    fn wait(&mut self, until: Nanos) -> bool {
        if !self.slack_set {
            // 1 ns instead of 50 us: PR_SET_TIMERSLACK holds for the calling thread only.
            let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
            self.slack_set = true;
        }
        let until = self.paused_until.map_or(until, |retry| until.min(retry));
        let until = self.answered.front().map_or(until, |(end, _, _)| until.min(*end));
        let timeout = if !self.again.is_empty() || !self.stillborn.is_empty() {
            Some(Timespec { tv_sec: 0, tv_nsec: 0 })
        } else if until == Nanos::NEVER {
            None
        } else {
            let rest = until.since(self.now()).0;
            Some(Timespec { tv_sec: (rest / NS_PER_S) as i64, tv_nsec: (rest % NS_PER_S) as i64 })
        };
        self.events.clear();
        let timeout = timeout.as_ref();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), timeout) {
            Err(Errno::NOSYS) => {
                two_step_wait::wait(&self.epoll, &mut self.events, timeout).is_ok()
            }
            // A signal ends the wait early, which a turn may do; nothing else can fail here.
            waited => waited.is_ok(),
        }
    }

    fn handle(&mut self, event: Event, on_event: &mut dyn FnMut(Nanos, IoEvent<'_>)) {
        let (data, flags) = (event.data.u64(), event.flags);
        if data == WAKE_FD {
            self.wake_fd.clear();
            return on_event(self.now(), IoEvent::Woken);
        }
        let token = Token(data as u32);
        let Some(slot) = self.slots.get_mut(token.0 as usize) else { return };
        if slot.socket.is_none() || u64::from(slot.generation) != data >> 32 {
            return; // Closed since; another table may have held it open a little longer.
        }
        if slot.state & LISTENER != 0 {
            return self.accept(token, on_event);
        }
        if slot.state & LEAVING != 0 {
            return self.read_to_the_end(token);
        }
        let gone = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
        if flags.intersects(gone) {
            slot.state |= GONE;
        }
        if slot.state & CONNECTING != 0 {
            if !flags.intersects(EventFlags::OUT | gone) || !self.established(token, on_event) {
                return;
            }
        } else if slot.state & BLOCKED != 0 && flags.contains(EventFlags::OUT) {
            slot.state &= !BLOCKED;
            match slot.state & SERVES {
                0 => on_event(self.now(), IoEvent::Writable(token)),
                _ => self.unblock_peers(token, on_event),
            }
        }
        if flags.intersects(EventFlags::IN | gone) {
            self.read(token, on_event);
        }
    }

    fn established(&mut self, token: Token, on_event: &mut dyn FnMut(Nanos, IoEvent<'_>)) -> bool {
        let now = self.now();
        let slot = &mut self.slots[token.0 as usize];
        let Some(socket) = &slot.socket else { return false };
        slot.state &= !CONNECTING;
        match sockopt::socket_error(socket) {
            Ok(Ok(())) => {
                on_event(now, IoEvent::Connected(token));
                true
            }
            Ok(Err(errno)) | Err(errno) => {
                slot.state |= FAILED;
                on_event(now, IoEvent::Failed(token, socket::fault(errno)));
                false
            }
        }
    }

    /// Reads until the socket is drained, has ended, or has had its share of this turn.
    fn read(&mut self, token: Token, on_event: &mut dyn FnMut(Nanos, IoEvent<'_>)) {
        if self.slots[token.0 as usize].state & DATAGRAM != 0 {
            return self.read_datagrams(token, on_event);
        }
        let mut fills = 0;
        loop {
            let slot = &mut self.slots[token.0 as usize];
            let Some(socket) = &slot.socket else { return };
            if slot.state & (FAILED | CONNECTING | HELD) != 0 {
                return;
            }
            let answer = rustix::net::recv(socket, &mut self.buffer[..], RecvFlags::empty());
            let now = clock(self.epoch);
            match answer {
                Ok((0, _)) if slot.state & ENDED != 0 => return,
                Ok((0, _)) => {
                    slot.state |= ENDED;
                    return on_event(now, IoEvent::Ended(token));
                }
                Ok((length, _)) => {
                    self.bytes_read += length as u64;
                    fills += 1;
                    let more = length == self.buffer.len() || slot.state & GONE != 0;
                    let queued = slot.state & AGAIN != 0;
                    if more && fills == FILLS_PER_TURN && !queued {
                        slot.state |= AGAIN;
                        self.again.push_back(token);
                    }
                    on_event(now, IoEvent::Received(token, &self.buffer[..length]));
                    if !more || fills == FILLS_PER_TURN {
                        return;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(errno) => {
                    slot.state |= FAILED;
                    return on_event(now, IoEvent::Failed(token, socket::fault(errno)));
                }
            }
        }
    }

    /// Accepts what waits, up to this listener's share of a turn.
    fn accept(&mut self, token: Token, on_event: &mut dyn FnMut(Nanos, IoEvent<'_>)) {
        for _ in 0..ACCEPTS_PER_TURN {
            let slot = &self.slots[token.0 as usize];
            let Some(listener) = &slot.socket else { return };
            if slot.state & PAUSED != 0 {
                return;
            }
            let taken = match socket::accept(listener) {
                Ok(socket) => self.insert(socket, 0),
                Err(Errno::AGAIN) => return,
                Err(errno @ (Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)) => {
                    Err(socket::fault(errno))
                }
                // The errors of a connection that died in the queue are reported here, accept(2).
                Err(_) => continue,
            };
            match taken {
                Ok(connection) => on_event(self.now(), IoEvent::Accepted { connection }),
                Err(_) => {
                    self.slots[token.0 as usize].state |= PAUSED;
                    self.accept_pauses += 1;
                    self.paused_until = Some(self.now() + ACCEPT_RETRY);
                    return;
                }
            }
        }
        let slot = &mut self.slots[token.0 as usize];
        if slot.state & AGAIN == 0 {
            slot.state |= AGAIN;
            self.again.push_back(token);
        }
    }

    /// Lets paused listeners try again.
    fn resume_listeners(&mut self) {
        self.paused_until = None;
        for (index, slot) in self.slots.iter_mut().enumerate() {
            if slot.state & PAUSED != 0 && slot.socket.is_some() {
                slot.state &= !PAUSED;
                slot.state |= AGAIN;
                self.again.push_back(Token(index as u32));
            }
        }
    }
}

impl Io for EpollIo {
    fn now(&mut self) -> Nanos {
        clock(self.epoch)
    }

    fn epoch(&self) -> Option<Instant> {
        Some(self.epoch)
    }

    fn connect(&mut self, to: SocketAddr, from: Option<IpAddr>) -> Result<Token, IoFault> {
        let (socket, start) = socket::dial(to, from)?;
        match start {
            Ok(()) => self.insert(socket, CONNECTING),
            Err(fault) => {
                let token = self.insert(socket, FAILED)?;
                self.stillborn.push((token, fault));
                Ok(token)
            }
        }
    }

    fn listen(&mut self, on: SocketAddr, backlog: u32) -> Result<SocketAddr, IoFault> {
        let (listener, address) = socket::listener(on, backlog, false)?;
        self.insert(listener, LISTENER)?;
        Ok(address)
    }

    fn write(&mut self, to: Token, bytes: &[u8]) -> Result<usize, IoFault> {
        let Some(slot) = self.slots.get_mut(to.0 as usize) else { return Err(CLOSED) };
        let Some(socket) = &slot.socket else { return Err(CLOSED) };
        loop {
            match rustix::net::send(socket, bytes, SendFlags::NOSIGNAL) {
                Ok(length) => {
                    self.bytes_written += length as u64;
                    if length < bytes.len() {
                        slot.state |= BLOCKED;
                    }
                    return Ok(length);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    slot.state |= BLOCKED;
                    return Ok(0);
                }
                Err(errno) => return Err(socket::fault(errno)),
            }
        }
    }

    fn connect_datagrams(
        &mut self,
        to: SocketAddr,
        from: Option<IpAddr>,
    ) -> Result<Token, IoFault> {
        self.dial_datagrams(to, from)
    }

    fn listen_datagrams(&mut self, on: SocketAddr) -> Result<SocketAddr, IoFault> {
        self.open_datagrams(on, false)
    }

    fn send(&mut self, to: Token, frames: Frames<'_>, taken: usize) -> Result<usize, IoFault> {
        self.send_frames(to, frames, taken)
    }

    fn dropped(&self) -> u64 {
        self.dropped_datagrams()
    }

    fn hold(&mut self, which: Token) {
        if let Some(slot) = self.slots.get_mut(which.0 as usize) {
            slot.state |= HELD;
        }
    }

    fn release(&mut self, which: Token) {
        let Some(slot) = self.slots.get_mut(which.0 as usize) else { return };
        // No new edge reports what has arrived in the meantime.
        if slot.state & HELD != 0 && slot.state & AGAIN == 0 {
            slot.state |= AGAIN;
            self.again.push_back(which);
        }
        slot.state &= !HELD;
    }

    fn local(&self, which: Token) -> Option<SocketAddr> {
        let socket = self.slots.get(which.0 as usize)?.socket.as_ref()?;
        SocketAddr::try_from(rustix::net::getsockname(socket).ok()?).ok()
    }

    fn shutdown(&mut self, which: Token) {
        let Some(slot) = self.slots.get(which.0 as usize) else { return };
        if let Some(socket) = &slot.socket {
            // A connection that is gone already makes this fail; reading will tell.
            let _ = rustix::net::shutdown(socket, Shutdown::Write);
        }
    }

    fn close(&mut self, which: Token, how: Close) {
        let Some(slot) = self.slots.get_mut(which.0 as usize) else { return };
        if how == Close::Answered && slot.state & (ENDED | FAILED | CONNECTING | DATAGRAM) == 0 {
            slot.state |= LEAVING;
            let until = clock(self.epoch) + ANSWER_WITHIN;
            self.answered.push_back((until, which, slot.generation));
            self.shutdown(which);
            return self.read_to_the_end(which);
        }
        if slot.state & PEER != 0 {
            self.peers.iter_mut().for_each(|peers| peers.forget(which));
            slot.free();
            return self.free.push(which.0);
        }
        let Some(socket) = slot.socket.take() else { return };
        if slot.state & DATAGRAM != 0 {
            let dropped = u64::from(super::datagrams::dropped(&socket));
            self.peers.iter_mut().for_each(|peers| peers.dropped += dropped);
        } else if how == Close::Abort {
            socket::reset_on_close(&socket);
        }
        drop(socket);
        if slot.state & AGAIN != 0 {
            self.again.retain(|token| *token != which);
        }
        if !self.stillborn.is_empty() {
            self.stillborn.retain(|(token, _)| *token != which);
        }
        slot.free();
        self.free.push(which.0);
        if self.paused_until.is_some() {
            self.resume_listeners();
        }
    }

    fn turn(&mut self, until: Nanos, on_event: &mut dyn FnMut(Nanos, IoEvent<'_>)) {
        let any = self.wait(until);
        if !self.answered.is_empty() {
            self.close_unanswered();
        }
        for (token, fault) in std::mem::take(&mut self.stillborn) {
            on_event(self.now(), IoEvent::Failed(token, fault));
        }
        if self.paused_until.is_some_and(|retry| retry <= clock(self.epoch)) {
            self.resume_listeners();
        }
        let waiting = self.again.len();
        if any {
            let mut events = std::mem::take(&mut self.events);
            for event in events.drain(..) {
                self.handle(event, on_event);
            }
            self.events = events;
        }
        if let Some(peers) = &mut self.peers {
            let now = clock(self.epoch);
            for peer in peers.silent(now) {
                on_event(now, IoEvent::Ended(peer));
            }
        }
        for _ in 0..waiting {
            let Some(token) = self.again.pop_front() else { break };
            let slot = &mut self.slots[token.0 as usize];
            slot.state &= !AGAIN;
            match slot.state & LISTENER {
                0 if slot.state & LEAVING != 0 => self.read_to_the_end(token),
                0 => self.read(token, on_event),
                _ => self.accept(token, on_event),
            }
        }
    }

    fn waker(&self) -> Waker {
        self.wake_fd.waker()
    }

    fn bytes(&self) -> (u64, u64) {
        (self.bytes_written, self.bytes_read)
    }
}

/// The wake-up descriptor's event data; no slot and generation give it.
const WAKE_FD: u64 = u64::MAX;
const EVENTS_PER_TURN: usize = 1024;
const BUFFER_BYTES: usize = 64 * 1024;
/// Buffers read from one socket before the others have their turn.
const FILLS_PER_TURN: u32 = 4;
const ACCEPTS_PER_TURN: u32 = 256;
/// Time that a listener without descriptors waits for another socket to be closed.
const ACCEPT_RETRY: Nanos = Nanos::from_millis(100);
/// Time that a peer may take to end its side: several round trips of a satellite.
const ANSWER_WITHIN: Nanos = Nanos::from_secs(2);
const NS_PER_S: u64 = 1_000_000_000;
/// EBADF: the token is not open.
const CLOSED: IoFault = IoFault::Other(Errno::BADF.raw_os_error());

fn clock(epoch: Instant) -> Nanos {
    Nanos(epoch.elapsed().as_nanos() as u64)
}

#[cfg(test)]
mod tests;
