//! Costs of TLS, WebSocket and sealed bodies.

use weigh_engine::outcome::Outcome;
use weigh_model::event::TrialFinished;

use crate::exit::{Exit, Stop};
use crate::probe::Probe;
use crate::targets::layers::{self, Counted};
use crate::trial::context::TrialContext;

/// Adds the layers of the lane around the clients, and reads their counters.
#[derive(Default)]
pub struct Tls {
    counted: Counted,
}

impl Probe for Tls {
    fn begin(&mut self, trial: &mut TrialContext<'_>) -> Result<(), Stop> {
        let internal = |text: &str| Stop::new(Exit::Internal, text);
        let dial = trial.client.dial.take().ok_or_else(|| internal("no client"))?;
        let endpoint = trial.trial.endpoint.as_ref().ok_or_else(|| internal("no endpoint"))?;
        let (lane, vault) = (trial.lane, trial.targets.vault());
        let (dial, counted) = layers::dial(lane, dial, (endpoint, trial.trial.seed), vault)?;
        trial.client.dial = Some(dial);
        if trial.options.fleet.is_none() {
            // Agents count on their own hosts; here nothing is counted.
            self.counted = counted.sealed_by(trial.client.sealer.clone());
        }
        Ok(())
    }

    fn leave(&mut self, trial: &mut TrialContext<'_>, _outcome: &mut Outcome) {
        trial.found.handshakes = self.counted.handshakes();
    }

    fn record(&mut self, _trial: &mut TrialContext<'_>, finished: &mut TrialFinished) {
        self.counted.tell(finished);
    }
}
