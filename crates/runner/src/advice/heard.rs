//! Sockets of the simulated world that note every write.

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use weigh_engine::io::sim::SimIo;
use weigh_engine::io::{Close, Io, IoEvent, IoFault, Token, Waker};
use weigh_model::Nanos;
use weigh_model::connection::Frames;

/// A write of one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// The virtual time.
    pub at: Nanos,
    /// True from the client.
    pub is_up: bool,
    /// Bytes that the socket took.
    pub bytes: u64,
}

/// All writes of both ends, in their order.
pub type Log = Rc<RefCell<Vec<Write>>>;

/// The sockets of one end.
pub struct HeardIo {
    io: SimIo,
    is_up: bool,
    log: Log,
}

impl HeardIo {
    /// Notes what is written to these sockets.
    pub fn new(io: SimIo, is_up: bool, log: &Log) -> HeardIo {
        HeardIo { io, is_up, log: Rc::clone(log) }
    }

    fn note(&mut self, bytes: u64) {
        if bytes > 0 {
            let at = self.io.now();
            self.log.borrow_mut().push(Write { at, is_up: self.is_up, bytes });
        }
    }
}

impl Io for HeardIo {
    fn now(&mut self) -> Nanos {
        self.io.now()
    }

    fn connect(&mut self, to: SocketAddr, from: Option<IpAddr>) -> Result<Token, IoFault> {
        self.io.connect(to, from)
    }

    fn listen(&mut self, on: SocketAddr, backlog: u32) -> Result<SocketAddr, IoFault> {
        self.io.listen(on, backlog)
    }

    fn write(&mut self, to: Token, bytes: &[u8]) -> Result<usize, IoFault> {
        let taken = self.io.write(to, bytes)?;
        self.note(taken as u64);
        Ok(taken)
    }

    fn connect_datagrams(
        &mut self,
        to: SocketAddr,
        from: Option<IpAddr>,
    ) -> Result<Token, IoFault> {
        self.io.connect_datagrams(to, from)
    }

    fn listen_datagrams(&mut self, on: SocketAddr) -> Result<SocketAddr, IoFault> {
        self.io.listen_datagrams(on)
    }

    fn send(&mut self, to: Token, frames: Frames<'_>, taken: usize) -> Result<usize, IoFault> {
        let after = self.io.send(to, frames, taken)?;
        self.note(after.saturating_sub(taken) as u64);
        Ok(after)
    }

    fn dropped(&self) -> u64 {
        self.io.dropped()
    }

    fn hold(&mut self, which: Token) {
        self.io.hold(which);
    }

    fn release(&mut self, which: Token) {
        self.io.release(which);
    }

    fn local(&self, which: Token) -> Option<SocketAddr> {
        self.io.local(which)
    }

    fn shutdown(&mut self, which: Token) {
        self.io.shutdown(which);
    }

    fn close(&mut self, which: Token, how: Close) {
        self.io.close(which, how);
    }

    fn turn(&mut self, until: Nanos, on_event: &mut dyn FnMut(Nanos, IoEvent<'_>)) {
        self.io.turn(until, on_event);
    }

    fn waker(&self) -> Waker {
        self.io.waker()
    }

    fn bytes(&self) -> (u64, u64) {
        self.io.bytes()
    }
}
