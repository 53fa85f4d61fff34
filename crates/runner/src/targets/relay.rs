//! The relay between generator and target, if a case has one: a process of its own, in a network
//! namespace of its own if there are any.

use std::net::SocketAddr;
use std::path::Path;

use weigh_engine::relay::RelayCounts;
use weigh_model::Warning;
use weigh_model::event::TrialFinished;
use weigh_testbed::placement::Placement;
use weigh_testbed::reference::ReferenceServer;

use crate::exit::{Exit, Stop};
use crate::targets::running::{READY_WITHIN, STOP_WITHIN};

/// A running relay.
pub struct RunningRelay {
    server: ReferenceServer,
    address: SocketAddr,
    /// Its counts before the trial.
    before: RelayCounts,
}

impl RunningRelay {
    /// Starts a relay to `to`, with its log in `folder`.
    ///
    /// # Errors
    /// A relay that does not start.
    pub fn start(
        program: &Path,
        to: SocketAddr,
        site: &Placement<'_>,
        folder: &Path,
    ) -> Result<RunningRelay, Stop> {
        let arguments = ["relay".into(), "--control".into(), "--to".into(), to.to_string().into()];
        let folder = folder.join("relay");
        let server = ReferenceServer::start_in(program, &arguments, &folder, site, READY_WITHIN)
            .map_err(|error| Stop::new(Exit::Target, error))?;
        let address = server.endpoint().address;
        let address = address.ok_or_else(|| Stop::new(Exit::Internal, "no address"))?;
        Ok(RunningRelay { server, address, before: RelayCounts::default() })
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its process, for observers.
    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// Returns how it ended, if it has.
    pub fn ended(&mut self) -> Option<String> {
        self.server.ended().map(|ended| ended.to_string())
    }

    /// Adds its counts over the trial to the record.
    pub fn tell(&mut self, finished: &mut TrialFinished) {
        finished.scene.insert("relay".to_owned(), "between generator and target".to_owned());
        let counts = match self.server.counts::<RelayCounts>(READY_WITHIN) {
            Ok(counts) => counts,
            Err(error) => {
                let how = self.ended().unwrap_or_else(|| error.to_string());
                finished.warnings.push(Warning::RelayDied(how).record());
                return;
            }
        };
        let carried = counts.since(&self.before);
        self.before = counts;
        for (name, value) in [
            ("relay.connections", carried.connections),
            ("relay.broken_connections", carried.broken),
            ("relay.up_bytes", carried.up_bytes),
            ("relay.down_bytes", carried.down_bytes),
            ("relay.waiting_bytes.max", carried.waiting_bytes_max),
        ] {
            finished.metrics.insert(name.to_owned(), value as f64);
        }
    }

    /// Stops it.
    pub fn stop(self) {
        self.server.stop(STOP_WITHIN);
    }
}
