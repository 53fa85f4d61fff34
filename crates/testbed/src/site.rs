//! Where a server runs: on which cores, on which host, and with which share of the machine.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use crate::enclosure::Enclosure;
use crate::hosts::Host;
use crate::pinning::CoreSet;

/// Where a server runs; by default wherever the kernel likes, on loopback.
#[derive(Clone, Copy, Debug, Default)]
pub struct Site<'s> {
    /// The cores it is kept to.
    pub cores: Option<&'s CoreSet>,
    /// The host of its own; `None` for where we are.
    pub host: Option<&'s Host>,
    /// Its share of the machine; `None` for all of it.
    pub enclosure: Option<&'s Arc<Enclosure>>,
}

impl Site<'_> {
    /// Where it is to listen.
    pub fn address(&self) -> Ipv4Addr {
        self.host.map_or(Ipv4Addr::LOCALHOST, Host::address)
    }

    /// Does something on its host.
    ///
    /// # Errors
    /// Those of the work, and if the host cannot be entered.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        match self.host {
            Some(host) => host.inside(work),
            None => work(),
        }
    }
}
