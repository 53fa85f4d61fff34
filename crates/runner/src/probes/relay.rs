//! The relay between generator and target: its CPU time, and the traffic behind it.

use weigh_capture::Account;
use weigh_engine::outcome::Outcome;
use weigh_model::event::TrialFinished;
use weigh_observe::sampler::{Recording, Sampler, Usage};

use crate::exit::Stop;
use crate::probe::Probe;
use crate::probes::target_usage::sample_every;
use crate::probes::{capture_result, listeners};
use crate::trial::context::TrialContext;

/// Samples the relay's process, and reads its counters.
#[derive(Default)]
pub struct Relay {
    sampler: Option<Sampler>,
    recording: Option<Recording>,
    usage: Option<Usage>,
}

impl Probe for Relay {
    fn begin(&mut self, trial: &mut TrialContext<'_>) -> Result<(), Stop> {
        // Its CPU time is of one core.
        let every = sample_every(trial.load());
        let relay = trial.lease.target.relay.as_ref();
        self.sampler = relay.and_then(|relay| Sampler::start(relay.pid(), 1, every).ok());
        Ok(())
    }

    fn end(&mut self, _trial: &mut TrialContext<'_>, _outcome: Option<&mut Outcome>) {
        self.recording = self.sampler.take().and_then(|sampler| sampler.stop().ok());
    }

    fn settle(&mut self, trial: &mut TrialContext<'_>, _out: &mut Outcome) -> Result<(), Stop> {
        let span = trial.span();
        self.usage = self.recording.as_ref().and_then(|own| own.window(span.from_ns, span.to_ns));
        let cpu_ns = self.usage.as_ref().map_or(0, |usage| usage.cpu_ns + usage.own_cpu_ns);
        trial.found.aside_cpu_ns += cpu_ns;
        Ok(())
    }

    fn record(&mut self, trial: &mut TrialContext<'_>, finished: &mut TrialFinished) {
        let second = trial.found.heard.as_mut().and_then(|heard| heard.second.take());
        if let Some(account) = second {
            record_second_hop(account, trial, finished);
        }
        if let Some(usage) = &self.usage {
            finished.metrics.insert("relay.cpu_percent".to_owned(), usage.percent_mean);
        }
    }

    fn amend(&mut self, trial: &mut TrialContext<'_>, finished: &mut TrialFinished) {
        if let Some(relay) = &mut trial.lease.target.relay {
            relay.tell(finished);
        }
    }
}

/// Records the figures of the second hop under names of their own. Its connections differ from the
/// generator's; their sums do not.
fn record_second_hop(
    mut account: Account,
    trial: &mut TrialContext<'_>,
    finished: &mut TrialFinished,
) {
    let found = &mut trial.found;
    if let Some(contents) = &found.carried.contents {
        found.warnings.extend(capture_result::split_as_one(&mut account, contents));
    }
    let figures = account.metrics(Some(found.carried.messages)).into_iter();
    finished.metrics.extend(figures.map(|(name, value)| (format!("relay.{name}"), value)));
    found.warnings.extend(listeners::missed(&account, "behind the relay: "));
}
