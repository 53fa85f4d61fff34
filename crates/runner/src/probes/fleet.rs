//! The hosts of a fleet: their record of the trial, and what it means for its figures.

use weigh_model::event::{Event, TrialFinished};

use crate::fleet::verdict;
use crate::probe::Probe;
use crate::trial::context::TrialContext;

/// Adds the record of the hosts, if a fleet generated the load.
#[derive(Default)]
pub struct Fleet;

impl Probe for Fleet {
    fn amend(&mut self, trial: &mut TrialContext<'_>, finished: &mut TrialFinished) {
        let Some(ran) = trial.found.hosts.take() else { return };
        verdict::add(finished, &ran, trial.load());
        trial.found.events.push(Event::FleetRan(Box::new(ran)));
    }
}
