//! Resources of this host: the generator's memory, and the target's share.

use weigh_engine::outcome::Outcome;
use weigh_model::Nanos;
use weigh_model::event::TrialFinished;

use crate::exit::Stop;
use crate::probe::{Edge, Probe};
use crate::trial::context::TrialContext;

/// Compares the generator's memory before the load with that at the end of the window.
#[derive(Default)]
pub struct Host {
    /// Resident memory of this process before the load and at the end of the window, bytes.
    memory: (Option<u64>, Option<u64>),
}

impl Probe for Host {
    fn begin(&mut self, _trial: &mut TrialContext<'_>) -> Result<(), Stop> {
        self.memory.0 = own_resident_bytes();
        Ok(())
    }

    fn window(&mut self, edge: Edge, _now: Nanos) {
        if edge == Edge::Ended {
            self.memory.1 = own_resident_bytes();
        }
    }

    fn settle(&mut self, trial: &mut TrialContext<'_>, _out: &mut Outcome) -> Result<(), Stop> {
        let (before, end) = self.memory;
        // The memory of agents is not that of this process.
        let own = before.zip(end).filter(|_| trial.options.fleet.is_none());
        trial.observed.generator_bytes = own.map(|(before, end)| end.saturating_sub(before));
        Ok(())
    }

    fn amend(&mut self, trial: &mut TrialContext<'_>, finished: &mut TrialFinished) {
        if let Some(enclosure) = &trial.lease.target.enclosure {
            let options = trial.options;
            options.stage.share.tell(&options.pinning.target, enclosure, finished);
        }
    }
}

fn own_resident_bytes() -> Option<u64> {
    Some(weigh_observe::memory::resident([std::process::id()]).bytes())
}
