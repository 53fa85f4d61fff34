//! A reference server as a party of the simulated world: one shard, the same code.

use std::net::SocketAddr;

use weigh_model::Nanos;
use weigh_model::protocol::{Host, Transport};

use super::ServerShard;
use super::report::ServingReport;
use crate::io::sim::{Party, SimIo};
use crate::io::{Io, IoFault};

/// A server in a [`crate::io::sim::World`]. It never ends by itself.
pub struct SimulatedServing {
    shard: ServerShard,
    io: SimIo,
    address: SocketAddr,
}

impl SimulatedServing {
    /// Listens on `on` (port 0: a free one) in the world of `io`.
    ///
    /// # Errors
    /// [`IoFault::AddressInUse`] if another server of the world listens on the address.
    pub fn start(host: &Host, on: SocketAddr, mut io: SimIo) -> Result<SimulatedServing, IoFault> {
        let address = match host.transport {
            Transport::Stream => io.listen(on, super::BACKLOG)?,
            Transport::Datagram | Transport::DatagramRuns | Transport::Streams => {
                io.listen_datagrams(on)?
            }
        };
        let shard = ServerShard::new((host.make)(0), host.transport, vec![io.waker()]);
        Ok(SimulatedServing { shard, io, address })
    }

    /// Returns the address of the server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the counts so far.
    pub fn report(&self) -> ServingReport {
        let mut report = self.shard.report();
        (report.bytes_written, report.bytes_read) = self.io.bytes();
        report.note_dropped(self.io.dropped());
        report
    }
}

impl Party for SimulatedServing {
    fn step(&mut self) -> bool {
        self.shard.step(&mut self.io, Nanos::NEVER);
        true
    }

    fn serves(&self) -> bool {
        true
    }
}
