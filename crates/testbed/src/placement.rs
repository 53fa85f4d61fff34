//! Where a server runs: on which cores, on which host, and with which share of the machine.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use crate::cgroup::ControlGroup;
use crate::hosts::Host;
use crate::pinning::CoreSet;

/// Placement of a server; by default any core, on loopback.
#[derive(Clone, Copy, Debug, Default)]
pub struct Placement<'s> {
    /// The cores it may use.
    pub cores: Option<&'s CoreSet>,
    /// Its own host; `None` for the host of this process.
    pub host: Option<&'s Host>,
    /// Its control group; `None` for no limits.
    pub enclosure: Option<&'s Arc<ControlGroup>>,
}

impl Placement<'_> {
    /// Address to listen on.
    pub fn address(&self) -> Ipv4Addr {
        self.host.map_or(Ipv4Addr::LOCALHOST, Host::address)
    }

    /// Runs `work` on its host.
    ///
    /// # Errors
    /// Those of `work`, and if the host cannot be entered.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        match self.host {
            Some(host) => host.inside(work),
            None => work(),
        }
    }
}
