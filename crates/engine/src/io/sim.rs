//! A simulated world on virtual time: parties in one thread, each with sockets of its own, and
//! links between them with delay, jitter, rate and full buffers. Everything that happens follows
//! from the seed and the parties' own doings, so a run can be had again exactly.
//!
//! Parties take no time to compute: the clock stops while one of them is stepped, and advances only
//! when none has anything to do. It models streams as an application sees them, not TCP: there is
//! no slow start and no loss, only what a socket can show. Datagrams are lost, doubled and
//! overtaken as the link's [`Impairments`] require, and dropped if no party reads them.

mod datagrams;
mod ends;
mod flows;
mod link;
mod network;
mod state;

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use weigh_model::Nanos;
use weigh_model::connection::Frames;

use super::{Close, Io, IoEvent, IoFault, Token, Waker};
pub use flows::Impairments;
pub use link::{Cut, Link, Pause};
use state::State;

/// Party of the simulation: a client's shard, a server, a whole program.
pub trait Party {
    /// Does what there is to do now, with one turn of its [`SimIo`] among it; false once it is
    /// over, which closes its sockets.
    fn step(&mut self) -> bool;

    /// True for those that only answer others: they do not keep the world going.
    fn serves(&self) -> bool {
        false
    }
}

/// The world.
pub struct World {
    state: Rc<RefCell<State>>,
}

impl World {
    /// An empty one at time 0. The seed decides jitter and pieces.
    pub fn new(seed: u64) -> World {
        World { state: Rc::new(RefCell::new(State::new(seed))) }
    }

    /// The sockets of the next party; parties are numbered from 0 in this order.
    pub fn party(&mut self) -> SimIo {
        let is_woken = Arc::new(AtomicBool::new(false));
        let number = self.state.borrow_mut().add_party(is_woken.clone());
        SimIo { state: self.state.clone(), number, is_woken }
    }

    /// Sets the link to a listening address, before any party connects to it.
    pub fn link(&mut self, to: SocketAddr, link: Link) {
        self.state.borrow_mut().lay(to, link);
    }

    /// Refuses connects that arrive at `to` from one moment until before another.
    pub fn refuse(&mut self, to: SocketAddr, from: Nanos, until: Nanos) {
        self.state.borrow_mut().refusals.push((to, from, until));
    }

    /// Resets a connection in the middle of its bytes, once.
    pub fn cut(&mut self, cut: Cut) {
        self.state.borrow_mut().cuts.push(cut);
    }

    /// Stops a party for a time or from time to time. Pauses must not touch each other.
    ///
    /// # Panics
    /// If there is no such party, or a repeated pause never ends.
    pub fn pause(&mut self, party: usize, pause: Pause) {
        assert!(pause.every.is_none_or(|every| every > pause.lasts), "{pause:?} never ends");
        self.state.borrow_mut().parties[party].pauses.push(pause);
    }

    /// The virtual time.
    pub fn now(&self) -> Nanos {
        self.state.borrow().now
    }

    /// A check value over everything that was ever reported to any party, with its time and its
    /// bytes, in order. Equal runs have equal values.
    pub fn log_hash(&self) -> u64 {
        self.state.borrow().log
    }

    /// Returns the number of events reported so far.
    pub fn events(&self) -> u64 {
        self.state.borrow().events
    }

    /// Runs the parties, in the order in which their `SimIo`s were made, until all that do not only
    /// serve are over, nothing is left to do, or the time `until` has come. It may be called again
    /// with the same parties to continue. Returns the virtual time.
    ///
    /// # Panics
    /// If there are not as many parties as `SimIo`s, or if parties continue for ever without
    /// letting time pass.
    pub fn run(&mut self, parties: &mut [&mut dyn Party], until: Nanos) -> Nanos {
        assert_eq!(parties.len(), self.state.borrow().parties.len(), "one party for each SimIo");
        loop {
            let mut steps = 0;
            while self.step_ready(parties) {
                steps += 1;
                assert!(steps < STEPS_PER_MOMENT, "the parties never wait, at {}", self.now());
            }
            let mut state = self.state.borrow_mut();
            let busy = |(party, number): (&&mut dyn Party, usize)| {
                !party.serves() && !state.parties[number].over
            };
            if !parties.iter().zip(0..).any(busy) {
                return state.now;
            }
            match state.next_moment() {
                Some(moment) if moment <= until => state.advance(moment),
                Some(_) => {
                    state.now = state.now.max(until);
                    return state.now;
                }
                None => return state.now,
            }
        }
    }

    /// Steps each party that has something to do now, once; false if none had.
    fn step_ready(&mut self, parties: &mut [&mut dyn Party]) -> bool {
        let mut any = false;
        for (number, party) in parties.iter_mut().enumerate() {
            let ready = {
                let mut state = self.state.borrow_mut();
                let now = state.now;
                state.advance(now);
                state.is_ready(number)
            };
            if ready {
                any = true;
                if !party.step() {
                    self.state.borrow_mut().end_party(number);
                }
            }
        }
        any
    }
}

/// The sockets of one party. Its turns never block: they report what is ready now, or note
/// until when the party has nothing to do.
pub struct SimIo {
    state: Rc<RefCell<State>>,
    number: usize,
    is_woken: Arc<AtomicBool>,
}

impl Io for SimIo {
    fn now(&mut self) -> Nanos {
        self.state.borrow().now
    }

    fn connect(&mut self, to: SocketAddr, _from: Option<IpAddr>) -> Result<Token, IoFault> {
        Ok(self.state.borrow_mut().connect(self.number, to))
    }

    fn listen(&mut self, on: SocketAddr, backlog: u32) -> Result<SocketAddr, IoFault> {
        self.state.borrow_mut().listen(self.number, on, backlog)
    }

    fn write(&mut self, to: Token, bytes: &[u8]) -> Result<usize, IoFault> {
        self.state.borrow_mut().write(self.number, to, bytes)
    }

    fn connect_datagrams(
        &mut self,
        to: SocketAddr,
        _from: Option<IpAddr>,
    ) -> Result<Token, IoFault> {
        Ok(self.state.borrow_mut().connect_datagrams(self.number, to))
    }

    fn listen_datagrams(&mut self, on: SocketAddr) -> Result<SocketAddr, IoFault> {
        self.state.borrow_mut().listen_datagrams(self.number, on)
    }

    fn send(&mut self, to: Token, frames: Frames<'_>, taken: usize) -> Result<usize, IoFault> {
        self.state.borrow_mut().send(self.number, to, frames, taken)
    }

    fn dropped(&self) -> u64 {
        self.state.borrow().dropped(self.number)
    }

    fn hold(&mut self, which: Token) {
        self.state.borrow_mut().hold(self.number, which, true);
    }

    fn release(&mut self, which: Token) {
        self.state.borrow_mut().hold(self.number, which, false);
    }

    fn local(&self, _which: Token) -> Option<SocketAddr> {
        None
    }

    fn shutdown(&mut self, which: Token) {
        self.state.borrow_mut().shutdown(self.number, which);
    }

    fn close(&mut self, which: Token, how: Close) {
        self.state.borrow_mut().close(self.number, which, how);
    }

    fn turn(&mut self, until: Nanos, on_event: &mut dyn FnMut(Nanos, IoEvent<'_>)) {
        let is_woken = self.is_woken.swap(false, Ordering::AcqRel);
        // Gathered first, so that the world is not locked while the party thinks.
        let (now, reports) = self.state.borrow_mut().turn(self.number, until, is_woken);
        for report in &reports {
            on_event(now, report.event());
        }
    }

    fn waker(&self) -> Waker {
        let is_woken = self.is_woken.clone();
        Waker(Arc::new(move || is_woken.store(true, Ordering::Release)))
    }

    fn bytes(&self) -> (u64, u64) {
        self.state.borrow().parties[self.number].bytes
    }
}

/// Number of rounds of steps without time passing that counts as a mistake of a party.
const STEPS_PER_MOMENT: u32 = 1_000_000;

#[cfg(test)]
mod tests;
