//! Use of limited resources: descriptors, ports, and kernel queues.

use weigh_engine::outcome::Outcome;
use weigh_model::Nanos;
use weigh_model::headroom::{Observed, Use};
use weigh_observe::process::Tree;
use weigh_observe::room;

use crate::exit::Stop;
use crate::probe::{Edge, Probe};
use crate::targets::addresses::sources;
use crate::trial::context::TrialContext;

/// Reads the kernel's tables at the borders of the window.
#[derive(Default)]
pub struct Room {
    /// This process and the target's processes, before the load.
    processes: Vec<u32>,
    began: Option<room::Network>,
    ports: Option<u64>,
    ended: Option<room::Network>,
    descriptors: Option<room::Used>,
}

impl Probe for Room {
    fn begin(&mut self, trial: &mut TrialContext<'_>) -> Result<(), Stop> {
        let tree = Tree::of(&trial.lease.target.running.pids()).ok();
        let members = tree.map(|mut tree| tree.look()).unwrap_or_default();
        let members = members.into_iter().map(|stat| stat.pid);
        self.processes = std::iter::once(std::process::id()).chain(members).collect();
        Ok(())
    }

    fn window(&mut self, edge: Edge, _now: Nanos) {
        match edge {
            Edge::Began => (self.began, self.ports) = (room::network(), room::local_ports()),
            Edge::LoadEnded => {}
            Edge::Ended => {
                self.ended = room::network();
                self.descriptors = room::descriptors(self.processes.iter().copied());
            }
        }
    }

    fn settle(&mut self, trial: &mut TrialContext<'_>, _out: &mut Outcome) -> Result<(), Stop> {
        trial.found.observed = self.observed(trial);
        Ok(())
    }
}

impl Room {
    /// A closed connection keeps its port for a minute, so with a connection per message, waiting
    /// ones count too. The generator counts for its own host: drops of the kernel on another host
    /// are unknown.
    fn observed(&self, trial: &TrialContext<'_>) -> Observed {
        let of = |used: room::Used| Use { used: used.used, available: used.available, failures: 0 };
        let (load, address) = (trial.load(), trial.client.address);
        let standing = u64::from(load.connections) + u64::from(load.subscribers);
        let both = self.began.zip(self.ended);
        let waiting = both.map_or(0, |(from, to)| to.waiting.saturating_sub(from.waiting));
        let addresses = sources(trial.trial, address).len().max(1) as u64;
        // Ports and queues of agents are those of other hosts.
        let is_elsewhere = trial.options.fleet.is_some();
        let ports = self.ports.filter(|_| address.is_ipv4() && !is_elsewhere);
        let has_hosts = trial.lease.target.scene.is_some() || is_elsewhere;
        Observed {
            descriptors: self.descriptors.map(of),
            ports: ports.map(|of_one| Use {
                used: standing + waiting,
                available: of_one * addresses,
                failures: 0,
            }),
            kernel_drops: both
                .filter(|_| !has_hosts)
                .map(|(from, to)| to.drops.saturating_sub(from.drops)),
        }
    }
}
