//! Energy of a trial: a meter that is read during it, between two idle phases.

use weigh_engine::outcome::Outcome;
use weigh_model::Nanos;
use weigh_model::event::TrialFinished;
use weigh_observe::energy::Track;

use crate::exit::Stop;
use crate::probe::{Edge, Probe};
use crate::probes::metering::MeteredTrial;
use crate::trial::context::TrialContext;

/// Reads the meter of the run.
#[derive(Default)]
pub struct Energy {
    metered: Option<MeteredTrial>,
    /// All readings, or why there are none.
    drawn: Option<Result<Track, String>>,
}

impl Probe for Energy {
    fn prepare(&mut self, trial: &mut TrialContext<'_>) -> Result<(), Stop> {
        let options = trial.options;
        self.metered = options.metering.begin(options.pinning, trial.load());
        if let Some(metered) = &mut self.metered {
            metered.rest_before(options.interrupts);
        }
        Ok(())
    }

    fn window(&mut self, edge: Edge, _now: Nanos) {
        if let Some(metered) = self.metered.as_ref().filter(|_| edge != Edge::LoadEnded) {
            metered.poke();
        }
    }

    fn leave(&mut self, trial: &mut TrialContext<'_>, _outcome: &mut Outcome) {
        if let Some(metered) = &mut self.metered {
            metered.rest_after(trial.options.interrupts);
            self.drawn = metered.end(&mut trial.found.aside_cpu_ns);
        }
    }

    fn amend(&mut self, trial: &mut TrialContext<'_>, finished: &mut TrialFinished) {
        let (span, drawn) = (trial.span(), self.drawn.take());
        let event = self.metered.as_ref().map(|own| own.tell(trial.trial, span, drawn, finished));
        trial.found.events.extend(event);
    }
}
