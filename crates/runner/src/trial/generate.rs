//! Generates the load of a trial: in this process, or on the hosts of a fleet.

use std::sync::Arc;
use std::time::Instant;

use weigh_engine::generator::{Generator, TrialObserver};
use weigh_engine::job::{Failure, Job};
use weigh_engine::outcome::Outcome;
use weigh_testbed::hosts::Scene;

use crate::fleet::hosts::Hosts;
use crate::fleet::work::{Generated, Work};
use crate::interrupts::Interrupts;
use crate::targets::hosts;

/// Place in which the load of a trial is generated.
pub enum LoadPlace<'p> {
    /// Threads of this process, in the generator's network namespace if it has one.
    Here(Option<&'p Scene>),
    /// The agents of a fleet.
    Fleet(&'p Hosts),
    /// The agents of a fleet, which have done it for a program that was killed.
    TakenOver(&'p Hosts),
}

impl LoadPlace<'_> {
    /// Generates the load, and waits for its end. The trial's clock stands at 0 at `epoch`.
    ///
    /// # Errors
    /// The first failure of a shard, or of an agent.
    pub fn generate(
        &self,
        job: &Arc<Job>,
        work: &Work<'_>,
        epoch: Instant,
        observer: &Arc<dyn TrialObserver>,
    ) -> Result<Generated, Failure> {
        match self {
            LoadPlace::Here(scene) => {
                let outcome = here(job, (*scene, epoch), work.interrupts, observer)?;
                Ok(Generated { outcome, hosts: None })
            }
            LoadPlace::TakenOver(fleet) => fleet.taken_over(work),
            LoadPlace::Fleet(fleet) => fleet.generate(work, observer),
        }
    }
}

fn here(
    job: &Arc<Job>,
    (scene, epoch): (Option<&Scene>, Instant),
    interrupts: &Interrupts,
    observer: &Arc<dyn TrialObserver>,
) -> Result<Outcome, Failure> {
    let start = || Generator::start(Arc::clone(job), 0..job.shards, epoch, observer);
    let generator = match scene {
        None => start()?,
        Some(scene) => {
            let ourselves = |error: &dyn std::fmt::Display| Failure::Ourselves(error.to_string());
            let host = scene.host(hosts::GENERATOR).map_err(|error| ourselves(&error))?;
            host.inside(|| Ok(start())).map_err(|error| ourselves(&error))??
        }
    };
    interrupts.arm(generator.stopper());
    let outcome = generator.finish();
    interrupts.disarm();
    outcome
}
