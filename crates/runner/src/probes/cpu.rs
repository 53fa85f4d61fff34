//! CPU time and memory of the target.

use weigh_engine::outcome::Outcome;
use weigh_engine::record::{HostUse, TargetUse};
use weigh_model::Nanos;
use weigh_model::event::TrialFinished;
use weigh_observe::cpu::HostCpu;
use weigh_observe::sampler::Usage;

use crate::exit::Stop;
use crate::probe::{Edge, Probe};
use crate::probes::target_usage;
use crate::targets::observers::{Observation, ObservedTarget};
use crate::trial::context::TrialContext;
use crate::trial::news::{TrialNews, Watched};

/// Samples the target's processes while the trial runs, and at each border of the window.
#[derive(Default)]
pub struct Cpu {
    outlook: Option<Observation>,
    /// Memory of the target before the first connection and at the end of the window, bytes.
    memory: (Option<u64>, Option<u64>),
    sighted: ObservedTarget,
}

impl Probe for Cpu {
    fn begin(&mut self, trial: &mut TrialContext<'_>) -> Result<(), Stop> {
        let pids = trial.lease.target.running.pids();
        let cores = trial.options.pinning.target.count();
        let every = target_usage::sample_every(trial.load());
        let outlook = trial.options.lookouts.begin(trial.lane, (&pids, cores), every);
        if let Some(since) = outlook.so_far() {
            let (epoch_ns, is_foreign) = (trial.clock.monotonic_ns, trial.lane.is_foreign());
            let watched = Watched { since, epoch_ns, is_foreign };
            // The receiver of progress may be gone.
            let _ = trial.options.progress.send(TrialNews::Target(watched));
        }
        self.memory.0 = outlook.look();
        self.outlook = Some(outlook);
        Ok(())
    }

    fn window(&mut self, edge: Edge, _now: Nanos) {
        // The CPU time of the window is read at its end, not interpolated between two samples.
        let memory = self.outlook.as_ref().and_then(Observation::look);
        if edge == Edge::Ended {
            self.memory.1 = memory;
        }
    }

    fn settle(&mut self, trial: &mut TrialContext<'_>, outcome: &mut Outcome) -> Result<(), Stop> {
        let Some(outlook) = self.outlook.take() else { return Ok(()) };
        let (epoch_ns, window) = (trial.clock.monotonic_ns, trial.window);
        self.sighted = outlook.end(trial.lane.is_foreign(), trial.span().to_ns);
        let recording = self.sighted.recording.take();
        let usage =
            target_usage::usage(recording.as_ref(), outcome, epoch_ns, (window.from, window.to));
        let fleet = trial.options.fleet;
        let is_elsewhere = self.sighted.is_elsewhere
            || fleet.is_some_and(|part| !part.hosts.are_on_this_machine());
        trial.observed.usage = usage.map(|(usage, host)| target_use(&usage, &host, is_elsewhere));
        let (before, end) = self.memory;
        // Memory that an earlier trial freed is reused without a visible increase.
        let is_known = recording.is_some() && !trial.lease.is_used;
        trial.observed.target_bytes = before.zip(end).filter(|_| is_known);
        Ok(())
    }

    fn record(&mut self, _trial: &mut TrialContext<'_>, finished: &mut TrialFinished) {
        std::mem::take(&mut self.sighted).tell(finished);
    }
}

fn target_use(usage: &Usage, within: &HostCpu, is_elsewhere: bool) -> TargetUse {
    TargetUse {
        cpu_ns: usage.cpu_ns,
        wall_ns: usage.wall_ns,
        percent_mean: usage.percent_mean,
        percent_max: usage.percent_max,
        memory_bytes_max: usage.memory_bytes_max,
        host_used_ns: usage.host_used_ns,
        host_within: host_use(within),
        is_elsewhere,
    }
}

fn host_use(host: &HostCpu) -> HostUse {
    HostUse {
        busy_ns: host.busy_ns(),
        softirq_ns: host.softirq_ns,
        steal_ns: host.steal_ns,
        all_ns: host.all_ns(),
    }
}
