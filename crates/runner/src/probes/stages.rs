//! What becomes of a trial's messages behind the entry of a pipeline: waited for, traced through
//! its stages, counted where they are kept.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use weigh_engine::outcome::{After, Outcome};
use weigh_engine::record;
use weigh_engine::ways::{Route, Traced, Ways};
use weigh_model::event::TrialFinished;
use weigh_model::hop::HopStage;
use weigh_model::tally::Bits;
use weigh_model::{Doubt, Endpoint, Load, Nanos};
use weigh_observe::cpu::monotonic_ns;
use weigh_observe::sampler::{Recording, Sampler};
use weigh_testbed::hosts::Host;
use weigh_testbed::patience;
use weigh_testbed::pipeline::{PipelineServer, Written};

use crate::exit::Stop;
use crate::interrupts::Interrupts;
use crate::probe::Probe;
use crate::probes::departures::Departures;
use crate::probes::hop_files::{HopFile, join};
use crate::probes::watched;
use crate::targets::running::{READY_WITHIN, Running};
use crate::targets::stage::TARGET;
use crate::trial::context::{Clock, TrialContext, Window};

/// Samples the stages of a pipeline, and follows every message through them.
#[derive(Default)]
pub struct Stages {
    staged: Option<Staged>,
    arrived: Option<Arrived>,
}

impl Probe for Stages {
    fn begin(&mut self, trial: &mut TrialContext<'_>) -> Result<(), Stop> {
        self.staged = Staged::begin(trial);
        let epoch_ns = trial.clock.monotonic_ns;
        trial.client.departures = self.staged.as_ref().map(|staged| staged.departures(epoch_ns));
        Ok(())
    }

    /// Waits until everything that was sent is kept, for Tmax after the last due time at most, and
    /// puts into `outcome` what was. The window ends when the last message was kept, if that is
    /// later.
    fn settle(&mut self, trial: &mut TrialContext<'_>, outcome: &mut Outcome) -> Result<(), Stop> {
        let target = &mut trial.lease.target;
        let (Some(staged), Running::Pipeline(server)) = (self.staged.take(), &mut target.running)
        else {
            return Ok(());
        };
        let end = End {
            clock: trial.clock,
            window: trial.window,
            host: target.scene.as_ref().and_then(|scene| scene.host(TARGET).ok()),
            interrupts: trial.options.interrupts,
        };
        let arrived = staged.end(outcome, server, &trial.trial.load, &end)?;
        let until = Nanos(arrived.window_ns.1.saturating_sub(trial.clock.monotonic_ns));
        trial.window.to = trial.window.to.max(until);
        self.arrived = Some(arrived);
        Ok(())
    }

    fn amend(&mut self, _trial: &mut TrialContext<'_>, finished: &mut TrialFinished) {
        self.arrived.iter().for_each(|arrived| arrived.tell(finished));
    }
}

/// What is known when the generator is done.
struct End<'e> {
    clock: Clock,
    window: Window,
    /// The host of the stages, if that is not this one.
    host: Option<&'e Host>,
    /// Signals that end the waiting.
    interrupts: &'e Interrupts,
}

/// A pipeline while a trial runs on it.
struct Staged {
    samplers: Vec<(&'static str, Sampler)>,
    /// Where each stage writes, and how long the file was when the trial began.
    hops: Vec<(HopStage, PathBuf, u64)>,
    /// Where the generator writes when messages left it.
    departures: PathBuf,
    has_broker: bool,
    /// What the reference broker had dropped before.
    dropped: Option<u64>,
    /// A background goes through the same stages; one that does not end by itself.
    is_beneath: bool,
    is_loaded_on: bool,
    tag: u16,
    timeout: Nanos,
}

/// What a pipeline's trial came to beside its ledger and its times.
struct Arrived {
    traced: Traced,
    recordings: Vec<(&'static str, Recording)>,
    /// The window, with what came after it until all had arrived, on the monotonic clock.
    window_ns: (u64, u64),
    /// Messages that the entry confirmed as kept, and that are not.
    broken_promises: u64,
    damaged: u64,
    /// Rows where readings are kept, and those that the last stage says it made.
    rows: Option<(u64, u64)>,
    words: String,
}

impl Staged {
    /// Samples the stages of a pipeline from now on; `None` where the target is none. What a broker
    /// drops is counted only if no background publishes there.
    fn begin(trial: &mut TrialContext<'_>) -> Option<Staged> {
        let beside = trial.options.mixed();
        let (cores, every) =
            (trial.options.pinning.target.count(), watched::sample_every(trial.load()));
        let Running::Pipeline(server) = &mut trial.lease.target.running else { return None };
        let start = |(name, pid): (&'static str, u32)| {
            Some((name, Sampler::start(pid, cores, every).ok()?))
        };
        let length = |path: &Path| std::fs::metadata(path).map_or(0, |found| found.len());
        let hops = server.hops().into_iter().map(|(stage, path)| {
            let from = length(&path);
            (stage, path, from)
        });
        Some(Staged {
            samplers: server.pids().into_iter().filter_map(start).collect(),
            hops: hops.collect(),
            departures: server.folder().join(format!("{}.departures", trial.trial.id)),
            has_broker: server.assembly().entry == HopStage::Gateway,
            dropped: beside.is_none().then(|| dropped(server)),
            is_beneath: beside.is_some(),
            is_loaded_on: beside.is_some_and(|own| own.load.messages.is_none()),
            tag: trial.trial.tag(),
            timeout: trial.trial.load.timeout,
        })
    }

    /// Begins the generator's file; the trial's clock stands at 0 at `epoch_ns`.
    fn departures(&self, epoch_ns: u64) -> Departures {
        Departures::create(&self.departures, Nanos(epoch_ns))
    }

    /// Waits for what is under way, and traces it.
    fn end(
        self,
        outcome: &mut Outcome,
        server: &mut PipelineServer,
        load: &Load,
        ended: &End<'_>,
    ) -> std::io::Result<Arrived> {
        let (epoch_ns, interrupts) = (ended.clock.monotonic_ns, ended.interrupts);
        let last_due = outcome.shards.recorder.span.due.map_or(Nanos(0), |(_, last)| last);
        let deadline_ns = epoch_ns + (last_due + self.timeout).0;
        let written = self.write_down(outcome, server, interrupts);
        self.await_kept(outcome.ledger.sent, deadline_ns, server, interrupts);
        let is_at_rest = match written {
            // A moment without a reading of the background under way is no rest, since the rows are
            // counted after it; and where they come on and on, none is to be waited for.
            Some(_) if self.is_loaded_on => false,
            Some(Written { is_at_rest: true }) if !self.is_beneath => true,
            _ => !interrupts.are_urgent() && self.await_files(),
        };
        let known = self.dropped.filter(|_| self.has_broker);
        let dropped = known.map_or(0, |before| dropped(server).saturating_sub(before));
        let end = outcome.shards.recorder.window.window().map(|window| window.end);
        let until = end.map_or(Nanos::NEVER, |end| Nanos(end.0.saturating_add(epoch_ns)));
        let (ways, damaged) = self.ways(until)?;
        // Whoever hears of the broker is the gateway: without it messages end there.
        let was_cut_off = server.ended().is_some_and(|part| part.name == HopStage::Gateway.name());
        let mut traced = ways.finish(&outcome.shards.accounts, load, was_cut_off);
        record::attribute_server_drops(&mut traced.ledger, dropped);
        // Who is killed takes along what it had not written down yet, of what it had kept too.
        let keeper = self.hops.last().map(|(stage, ..)| stage.name());
        let was_killed = server.ended().is_some_and(|part| Some(part.name) == keeper);
        let broken_promises = match self.has_broker || was_killed {
            true => 0,
            false => traced.ledger.acked_not_delivered,
        };
        let from_ns = epoch_ns + ended.window.from.0;
        let until_ns = traced.last_kept.map_or(0, |last| last.0).max(epoch_ns + ended.window.to.0);
        apply(outcome, &traced, epoch_ns);
        let rows = is_at_rest.then(|| rows(server, &self.hops, ended.host)).flatten();
        let stopped = self.samplers.into_iter();
        let recordings = stopped.filter_map(|(name, sampler)| Some((name, sampler.stop().ok()?)));
        Ok(Arrived {
            recordings: recordings.collect(),
            window_ns: (from_ns, until_ns),
            broken_promises,
            damaged,
            rows,
            words: server.words(),
            traced,
        })
    }

    /// What all files say, put together, and how many of their records were damaged. The measured
    /// window ends at `until`.
    fn ways(&self, until: Nanos) -> std::io::Result<(Ways, u64)> {
        let stages = self.hops.iter().map(|(stage, ..)| *stage).collect();
        let route = Route { stages, has_broker: self.has_broker };
        let mut ways = Ways::new(route, self.tag, self.timeout).counting_until(until);
        let open = |(_, path, from): &(HopStage, PathBuf, u64)| HopFile::open(path, *from);
        let mut files = self.hops.iter().map(open).collect::<std::io::Result<Vec<_>>>()?;
        let damaged = join(&self.departures, &mut files, &mut ways)?;
        let _ = std::fs::remove_file(&self.departures);
        Ok((ways, damaged))
    }

    /// Has the stages write down what they know, where nothing of the trial is under way any more:
    /// every message that left was answered, which a stage does after it has noted it. `None` where
    /// something may be, or a stage does not say.
    fn write_down(
        &self,
        outcome: &Outcome,
        server: &mut PipelineServer,
        interrupts: &Interrupts,
    ) -> Option<Written> {
        let mut producers = outcome.shards.accounts.producers.iter();
        let are_answered = producers.all(|own| own.confirmed + own.confirmed_late == own.sent);
        let is_over = are_answered && !self.has_broker && !interrupts.are_urgent();
        is_over.then(|| server.write_down(WRITTEN_WITHIN)).flatten()
    }

    /// Follows the last stage's file until it holds all of `sent`, it is too late for more, or a
    /// stage has ended and nothing comes any more.
    fn await_kept(
        &self,
        sent: u64,
        deadline_ns: u64,
        server: &mut PipelineServer,
        interrupts: &Interrupts,
    ) {
        let Some((_, path, from)) = self.hops.last() else { return };
        let Ok(mut file) = HopFile::open(path, *from) else { return };
        let mut kept: Vec<Bits> = Vec::new();
        let (mut unique, mut heard) = (0, Instant::now());
        loop {
            while let Some(hop) = file.next_hop() {
                if hop.tag != self.tag || hop.warmup {
                    continue;
                }
                let producer = hop.producer as usize;
                if kept.len() <= producer {
                    kept.resize_with(producer + 1, Bits::default);
                }
                unique += u64::from(kept[producer].set(hop.sequence));
                heard = Instant::now();
            }
            let is_over = unique >= sent || monotonic_ns() >= deadline_ns;
            let is_given_up = server.ended().is_some() && heard.elapsed() > QUIET;
            if is_over || is_given_up || interrupts.are_urgent() {
                return;
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Waits until no file has grown for longer than stages keep back what they write; false if
    /// they go on and on.
    fn await_files(&self) -> bool {
        let lengths = || -> Vec<u64> {
            let length = |path: &Path| std::fs::metadata(path).map_or(0, |found| found.len());
            self.hops.iter().map(|(_, path, _)| length(path)).collect()
        };
        let (begun, mut since, mut known) = (Instant::now(), Instant::now(), lengths());
        let is_waited = || begun.elapsed() < FILES_WITHIN && !patience::is_over();
        while since.elapsed() < FLUSHED_AFTER && is_waited() {
            std::thread::sleep(LOOK_EVERY);
            let now = lengths();
            if now != known {
                (known, since) = (now, Instant::now());
            }
        }
        since.elapsed() >= FLUSHED_AFTER
    }
}

impl Arrived {
    /// Puts what was seen of the stages into the record of the trial.
    fn tell(&self, finished: &mut TrialFinished) {
        finished.scene.insert("pipeline".to_owned(), self.words.clone());
        for piece in &self.traced.times {
            record::add_hop_times(finished, piece);
        }
        let delivered = finished.ledger.delivered.unwrap_or(0) + finished.ledger.late;
        let mut put = |name: String, value: f64| finished.metrics.insert(name, value);
        for (name, recording) in &self.recordings {
            let Some(usage) = recording.window(self.window_ns.0, self.window_ns.1) else {
                continue;
            };
            put(format!("stage.{name}.cpu_percent.mean"), usage.percent_mean);
            put(format!("stage.{name}.cpu_percent.max"), usage.percent_max);
            put(format!("stage.{name}.memory_bytes.max"), usage.memory_bytes_max as f64);
            if delivered > 0 {
                let each = usage.cpu_ns as f64 / 1e3 / delivered as f64;
                put(format!("stage.{name}.cpu_us_per_message"), each);
            }
        }
        if let Some((rows, _)) = self.rows {
            put("stored_rows".to_owned(), rows as f64);
        }
        finished.doubts.extend(self.doubts().iter().map(Doubt::record));
    }

    fn doubts(&self) -> Vec<Doubt> {
        let mut doubts = Vec::new();
        let Traced { whole, broken, .. } = self.traced;
        if broken > 0 || self.damaged > 0 {
            doubts.push(Doubt::WaysBroken(broken, whole + broken, self.damaged));
        }
        if self.broken_promises > 0 {
            doubts.push(Doubt::ConfirmedNotStored(self.broken_promises));
        }
        match self.rows {
            None => doubts.push(Doubt::StoredUncounted),
            Some((rows, told)) if rows != told => {
                doubts.push(Doubt::StoredCountDiffers(rows, told));
            }
            Some(_) => {}
        }
        doubts
    }
}

/// What the last stage keeps is what was delivered.
fn apply(outcome: &mut Outcome, traced: &Traced, epoch_ns: u64) {
    outcome.ledger = traced.ledger.clone();
    outcome.shards.recorder.delivery = traced.delivery.clone();
    outcome.shards.recorder.one_way = traced.one_way.clone();
    outcome.shards.recorder.delivery_lag = traced.delivery_lag.clone();
    let last = traced.last_kept.map(|last| Nanos(last.0.saturating_sub(epoch_ns)));
    outcome.shards.recorder.span.last_done = outcome.shards.recorder.span.last_done.max(last);
    let end = outcome.shards.recorder.window.window().map(|window| window.end);
    outcome.delivered_within = Some(traced.within);
    outcome.after =
        end.map(|end| After { messages: traced.after, last: last.filter(|last| *last >= end) });
    outcome.delivered_since = traced.ledger.delivered.map(|own| own + traced.ledger.late);
}

/// Rows where readings are kept now, and those that the last stage wrote down to have made since it
/// was started.
fn rows(
    server: &PipelineServer,
    hops: &[(HopStage, PathBuf, u64)],
    host: Option<&Host>,
) -> Option<(u64, u64)> {
    let (_, path, _) = hops.last()?;
    let rows = count(server.keeper()?, server.database(), host)?;
    let mut file = HopFile::open(path, 0).ok()?;
    let told = std::iter::from_fn(|| file.next_hop()).filter(|hop| !hop.repeated).count();
    Some((rows, told as u64))
}

fn dropped(server: &mut PipelineServer) -> u64 {
    let report = server.broker_report(READY_WITHIN);
    report.map_or(0, |report| report.dropped.values().sum())
}

/// A stage that says nothing for so long is read like one that cannot be asked.
const WRITTEN_WITHIN: Duration = Duration::from_secs(1);

/// After a stage has ended: the others pass on for so long what they had.
const QUIET: Duration = Duration::from_secs(1);

const LOOK_EVERY: Duration = Duration::from_millis(20);

/// For how long files that go on growing are watched: somebody else loads the stages.
const FILES_WITHIN: Duration = Duration::from_secs(2);

/// Stages write out what they have ten times a second, or later where the machine is busy.
const FLUSHED_AFTER: Duration = Duration::from_millis(500);

/// The rows of a database, or what a store with none says; `None` where it does not.
#[cfg(feature = "pipeline")]
fn count(keeper: &Endpoint, database: Option<&Path>, host: Option<&Host>) -> Option<u64> {
    use weigh_pipeline::counting;
    if let Some(file) = database {
        return counting::rows_in(file).ok();
    }
    let ask = || Ok(counting::asked_of(keeper).ok());
    match host {
        Some(host) => host.inside(ask).ok().flatten(),
        None => counting::asked_of(keeper).ok(),
    }
}

#[cfg(not(feature = "pipeline"))]
fn count(_: &Endpoint, _: Option<&Path>, _: Option<&Host>) -> Option<u64> {
    // Without the services there is no pipeline: planning refuses it.
    None
}
