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
        let is_taken_over = trial.options.fleet.is_some_and(|own| own.is_taken_over);
        verdict::add(finished, &ran, trial.load(), is_taken_over);
        trial.found.events.push(Event::FleetRan(Box::new(ran)));
    }
}
