//! Follows a trial's messages through a pipeline: waits for them, traces them through its stages,
//! and counts the stored ones.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use weigh_engine::outcome::{After, Outcome};
use weigh_engine::record;
use weigh_engine::trace::{Route, Traced, Tracer};
use weigh_model::event::TrialFinished;
use weigh_model::hop::HopStage;
use weigh_model::tally::Bits;
use weigh_model::{Endpoint, Load, Nanos, Warning};
use weigh_observe::cpu::monotonic_ns;
use weigh_observe::sampler::{Recording, Sampler};
use weigh_testbed::hosts::Host;
use weigh_testbed::patience;
use weigh_testbed::pipeline::{PipelineServer, Written};

use crate::exit::Stop;
use crate::interrupts::Interrupts;
use crate::probe::Probe;
use crate::probes::hop_files::{HopFile, join};
use crate::probes::send_times::SendTimes;
use crate::probes::target_usage;
use crate::targets::hosts::TARGET;
use crate::targets::running::{READY_WITHIN, Running};
use crate::trial::context::{Clock, TrialContext, Window};

/// Samples the stages of a pipeline, and traces every message through them.
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

    /// Waits until everything that was sent is stored, for at most Tmax after the last due time,
    /// and adds the stored messages to `outcome`. The window ends when the last message was stored,
    /// if that is later.
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

/// State at the end of the generator.
struct End<'e> {
    clock: Clock,
    window: Window,
    /// The host of the stages, if it is not this one.
    host: Option<&'e Host>,
    /// Signals that end the wait.
    interrupts: &'e Interrupts,
}

/// A pipeline during a trial.
struct Staged {
    samplers: Vec<(&'static str, Sampler)>,
    /// The file of each stage, and its length at the start of the trial.
    hops: Vec<(HopStage, PathBuf, u64)>,
    /// The generator's file of send times.
    departures: PathBuf,
    has_broker: bool,
    /// Drops of the reference broker before the trial.
    dropped: Option<u64>,
    /// True if a background, which does not end on its own, uses the same stages.
    has_background: bool,
    is_loaded_on: bool,
    tag: u16,
    timeout: Nanos,
}

/// Results of a pipeline's trial besides its ledger and its times.
struct Arrived {
    traced: Traced,
    recordings: Vec<(&'static str, Recording)>,
    /// The window, extended until all messages had arrived, on the monotonic clock.
    window_ns: (u64, u64),
    /// Messages that the entry confirmed as stored, and that are not.
    broken_promises: u64,
    damaged: u64,
    /// Rows of the store, and rows that the last stage reports.
    rows: Option<(u64, u64)>,
    words: String,
}

impl Staged {
    /// Starts to sample the stages of a pipeline; `None` for other targets. Drops of a broker are
    /// counted only if no background publishes there.
    fn begin(trial: &mut TrialContext<'_>) -> Option<Staged> {
        let background = trial.options.mixed();
        let (cores, every) =
            (trial.options.pinning.target.count(), target_usage::sample_every(trial.load()));
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
            dropped: background.is_none().then(|| dropped(server)),
            has_background: background.is_some(),
            is_loaded_on: background.is_some_and(|own| own.load.messages.is_none()),
            tag: trial.trial.tag(),
            timeout: trial.trial.load.timeout,
        })
    }

    /// Creates the generator's file; the trial's time 0 is at `epoch_ns`.
    fn departures(&self, epoch_ns: u64) -> SendTimes {
        SendTimes::create(&self.departures, Nanos(epoch_ns))
    }

    /// Waits for messages in transit, and traces them.
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
            // A short gap in the background is not a sign of rest, since rows are counted after it;
            // and a background never rests.
            Some(_) if self.is_loaded_on => false,
            Some(Written { is_at_rest: true }) if !self.has_background => true,
            _ => !interrupts.are_urgent() && self.await_files(),
        };
        let known = self.dropped.filter(|_| self.has_broker);
        let dropped = known.map_or(0, |before| dropped(server).saturating_sub(before));
        let end = outcome.shards.recorder.window.window().map(|window| window.end);
        let until = end.map_or(Nanos::NEVER, |end| Nanos(end.0.saturating_add(epoch_ns)));
        let (tracer, damaged) = self.tracer(until)?;
        // Without the gateway, messages end at the broker.
        let was_cut_off = server.ended().is_some_and(|part| part.name == HopStage::Gateway.name());
        let mut traced = tracer.finish(&outcome.shards.accounts, load, was_cut_off);
        record::attribute_server_drops(&mut traced.ledger, dropped);
        // A killed stage loses its unwritten records, including those of messages that it stored.
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

    /// Merges all files; also returns the number of damaged records. The measured window ends at
    /// `until`.
    fn tracer(&self, until: Nanos) -> std::io::Result<(Tracer, u64)> {
        let stages = self.hops.iter().map(|(stage, ..)| *stage).collect();
        let route = Route { stages, has_broker: self.has_broker };
        let mut tracer = Tracer::new(route, self.tag, self.timeout).counting_until(until);
        let open = |(_, path, from): &(HopStage, PathBuf, u64)| HopFile::open(path, *from);
        let mut files = self.hops.iter().map(open).collect::<std::io::Result<Vec<_>>>()?;
        let damaged = join(&self.departures, &mut files, &mut tracer)?;
        let _ = std::fs::remove_file(&self.departures);
        Ok((tracer, damaged))
    }

    /// Makes the stages write their records if nothing of the trial is in transit: every message
    /// that left was answered, which a stage does after it has recorded it. `None` if something may
    /// be in transit, or if a stage does not answer.
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

    /// Follows the last stage's file until it holds all of `sent`, the time limit is reached, or a
    /// stage has ended and nothing more arrives.
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

    /// Waits until no file has grown for longer than stages buffer their records; false if they
    /// keep growing.
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
    /// Adds the observations of the stages to the record of the trial.
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
        finished.warnings.extend(self.warnings().iter().map(Warning::record));
    }

    fn warnings(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let Traced { whole, broken, .. } = self.traced;
        if broken > 0 || self.damaged > 0 {
            warnings.push(Warning::WaysBroken(broken, whole + broken, self.damaged));
        }
        if self.broken_promises > 0 {
            warnings.push(Warning::ConfirmedNotStored(self.broken_promises));
        }
        match self.rows {
            None => warnings.push(Warning::StoredUncounted),
            Some((rows, told)) if rows != told => {
                warnings.push(Warning::StoredCountDiffers(rows, told));
            }
            Some(_) => {}
        }
        warnings
    }
}

/// Messages that the last stage stored count as delivered.
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

/// Rows stored now, and rows that the last stage has recorded since its start.
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

/// A stage that does not answer for this long is treated as one that cannot be asked.
const WRITTEN_WITHIN: Duration = Duration::from_secs(1);

/// Time for the other stages to pass on their messages after a stage has ended.
const QUIET: Duration = Duration::from_secs(1);

const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Time limit to wait for files that keep growing because another load uses the stages.
const FILES_WITHIN: Duration = Duration::from_secs(2);

/// Stages write their records ten times a second, or later on a busy machine.
const FLUSHED_AFTER: Duration = Duration::from_millis(500);

/// The rows of a database, or the count of a store without one; `None` if it has none.
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
    // Without the services there is no pipeline: planning rejects it.
    None
}
