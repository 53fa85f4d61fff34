//! Context of a trial for its probes, and their findings.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use weigh_engine::message_log::MessageLog;
use weigh_engine::record::Observations;
use weigh_model::background::Background;
use weigh_model::body::Composer;
use weigh_model::energy::Span;
use weigh_model::event::Event;
use weigh_model::fleet::FleetRan;
use weigh_model::headroom::Observed;
use weigh_model::protocol::Dial;
use weigh_model::{Emulation, Load, Nanos, Trial, Warning};
use weigh_observe::cpu::monotonic_ns;
use weigh_report::RecordError;
use weigh_seal::BodySealer;
use weigh_testbed::pinning::Pinning;

use crate::case::background::BackgroundCase;
use crate::case::lanes::Lane;
use crate::exit::{Exit, Stop};
use crate::fleet::hosts::Hosts;
use crate::interrupts::Interrupts;
use crate::probes::codec_counts::CodecCounts;
use crate::probes::listeners::Heard;
use crate::probes::metering::Metering;
use crate::probes::send_times::SendTimes;
use crate::targets::handshakes::Handshakes;
use crate::targets::hosts::Stage;
use crate::targets::observers::Observers;
use crate::targets::oscore;
use crate::targets::pool::{Counted, Lease, Targets};
use crate::trial::news::TrialNews;

/// Options of a trial.
pub struct TrialOptions<'s> {
    /// The cores of generator and target.
    pub pinning: &'s Pinning,
    /// Shards of the generator.
    pub shards: u32,
    /// Length of the intervals of the time series, if the plan states it.
    pub every: Option<Nanos>,
    /// Signals that may end the trial early.
    pub interrupts: &'s Interrupts,
    /// Receives what shards and probes report while the trial runs.
    pub progress: Sender<TrialNews>,
    /// The file for single messages, if they are kept.
    pub messages: Option<PathBuf>,
    /// The hosts, the path and the relay between generator and target.
    pub stage: Stage,
    /// The energy meter.
    pub metering: &'s Metering,
    /// Observers of external targets.
    pub lookouts: &'s Observers,
    /// Shows the user a line while the trial waits.
    pub say: &'s (dyn Fn(&str) + Sync),
    /// The tools whose figures are computed in addition.
    pub emulate: &'s [Emulation],
    /// The second workload, if there is one.
    pub background: Option<Arc<BackgroundCase>>,
    /// The agents that generate the load, if this process does not.
    pub fleet: Option<FleetPart<'s>>,
}

/// The part of a fleet in a trial.
#[derive(Clone, Copy)]
pub struct FleetPart<'s> {
    /// The agents.
    pub hosts: &'s Hosts,
    /// The run's id.
    pub run: &'s str,
    /// Number of the attempt at the trial, from 1.
    pub attempt: u32,
    /// True if the agents have generated its load already, and [`Hosts`] has taken it over.
    pub is_taken_over: bool,
}

/// A trial as its probes see it.
pub struct TrialContext<'t> {
    /// Protocol, settings and target.
    pub lane: &'t Lane,
    /// The trial; its endpoint is known.
    pub trial: &'t Trial,
    /// Its options.
    pub options: &'t TrialOptions<'t>,
    /// The targets of the run.
    pub targets: &'t mut Targets,
    /// The target of this trial.
    pub lease: &'t mut Lease,
    /// Time at which the clock of the trial was at 0; during
    /// [`Probe::prepare`](crate::probe::Probe::prepare), the time at which the target was up.
    pub clock: Clock,
    /// Inputs of the generator.
    pub client: Client,
    /// Begin and end of the measurement window on the clock of the trial, known once the generator
    /// is done.
    pub window: Window,
    /// Inputs of the engine's record.
    pub observed: Observations,
    /// Findings of the probes so far.
    pub found: Findings,
}

/// Time 0 of a trial's clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// As an instant.
    pub epoch: Instant,
    /// On the monotonic clock, nanoseconds.
    pub monotonic_ns: u64,
    /// Since 1970-01-01, nanoseconds.
    pub unix_ns: u64,
}

/// Inputs of the generator.
pub struct Client {
    /// Makes connections. Absent only once the generator has taken it.
    pub dial: Option<Dial>,
    /// Makes bodies.
    pub composer: Option<Composer>,
    /// Seals them, if they are sealed.
    pub sealer: Option<Arc<BodySealer>>,
    /// Address of the target, or of the relay in front of it.
    pub address: SocketAddr,
    /// Takes what happens to every single message, if a probe reads it.
    pub log: Option<Arc<MessageLog>>,
    /// Receives the send times of messages, if a probe needs them.
    pub departures: Option<SendTimes>,
}

/// The measurement window on the clock of the trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// It begins.
    pub from: Nanos,
    /// It ends.
    pub to: Nanos,
}

/// Findings of probes for each other, and for the code that runs the trial.
#[derive(Default)]
pub struct Findings {
    /// Events for the journal, in their order.
    pub events: Vec<Event>,
    /// Warnings that follow those that probes add to the record themselves.
    pub warnings: Vec<Warning>,
    /// Processor time of threads and processes of Weighbridge that make no load, nanoseconds.
    pub aside_cpu_ns: u64,
    /// Bytes and messages that kernel and clients carried, for the capture.
    pub carried: CodecCounts,
    /// Handshakes as TLS counted them.
    pub handshakes: Option<Handshakes>,
    /// Reason for which the path is gone, if it is.
    pub hindrance: Option<String>,
    /// Packets that the path dropped, if it counts them.
    pub dropped: Option<u64>,
    /// Observations of captures and kernels.
    pub heard: Option<Heard>,
    /// Use of resources that can run out.
    pub observed: Observed,
    /// Reason for which single messages could not be recorded.
    pub unwritten: Option<RecordError>,
    /// Counts of the target since its start; absent if unknown.
    pub counted: Option<Counted>,
    /// Record of the hosts that generated the load, if it was a fleet.
    pub hosts: Option<FleetRan>,
}

impl TrialOptions<'_> {
    /// The background at the measured target, if there is one.
    pub fn mixed(&self) -> Option<&Background> {
        let asked = self.background.as_ref().map(|own| &own.asked)?;
        asked.is_at_same().then_some(asked)
    }
}

impl TrialContext<'_> {
    /// The load of the trial.
    pub fn load(&self) -> &Load {
        &self.trial.load
    }

    /// True if the server confirms messages.
    pub fn confirms(&self) -> bool {
        self.client.dial.as_ref().map_or(self.observed.confirms, |dial| dial.confirms)
    }

    /// A moment of the trial on the monotonic clock, nanoseconds.
    pub fn monotonic_ns(&self, at: Nanos) -> u64 {
        self.clock.monotonic_ns + at.0
    }

    /// The measurement window on the monotonic clock.
    pub fn span(&self) -> Span {
        Span::of(self.monotonic_ns(self.window.from), self.monotonic_ns(self.window.to))
    }
}

impl Clock {
    /// Starts a clock at 0.
    pub fn start() -> Clock {
        let (epoch, monotonic_ns) = (Instant::now(), monotonic_ns());
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock { epoch, monotonic_ns, unix_ns: unix.as_nanos() as u64 }
    }
}

impl Client {
    /// A client of the target of this trial, before the probes have begun.
    ///
    /// # Errors
    /// If the protocol cannot do the trial.
    pub fn of(lane: &Lane, trial: &Trial) -> Result<Client, Stop> {
        let address = trial.endpoint.as_ref().and_then(|endpoint| endpoint.address);
        Ok(Client {
            dial: Some(lane.protocol.dial(&oscore::with_own_ids(trial))?),
            composer: None,
            sealer: None,
            address: address.ok_or_else(|| Stop::new(Exit::Internal, "no address"))?,
            log: None,
            departures: None,
        })
    }
}
