//! Figures of other tools, next to the measured ones. For htop the target's cores are sampled from
//! before the load until after it; the other tools only count the generator's record in their way.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::emulate::htop::{self, Reading, Shown};
use crate::emulate::{Client, TrialFacts, figures};
use weigh_engine::outcome::Outcome;
use weigh_model::event::TrialFinished;
use weigh_model::plan::Plan;
use weigh_model::{Emulation, Load, Nanos, Topology};
use weigh_observe::cores::{CoresWatch, Look};

use crate::case::Case;
use crate::exit::Stop;
use crate::interrupts::Interrupts;
use crate::probe::Probe;
use crate::trial::context::TrialContext;

/// Computes the figures of other tools, and samples the target's cores for htop.
#[derive(Default)]
pub struct Emulated {
    asked: Vec<Emulation>,
    /// The sampled cores, in words.
    cores: String,
    watch: Option<CoresWatch>,
    shown: Option<Shown>,
    figures: BTreeMap<String, f64>,
}

impl Probe for Emulated {
    fn check(&self, plan: &Plan, cases: &[Case]) -> Result<(), Stop> {
        let is_unseen = plan.observe.emulate.contains(&Emulation::Htop);
        let is_foreign = cases.iter().all(|case| case.lane.is_foreign());
        match cases.first().filter(|_| is_unseen && is_foreign) {
            None => Ok(()),
            Some(case) => Err(Stop::usage(format!(
                "observe.emulate: htop shows the cores of a target, and those of {} are not \
                 known: leave htop out, or name a server that weigh starts",
                case.lane.against.name()
            ))),
        }
    }

    /// Starts to sample the target's cores, and waits until the load is to begin: a user does not
    /// start a load in step with the screen of htop.
    fn prepare(&mut self, trial: &mut TrialContext<'_>) -> Result<(), Stop> {
        let (target, interrupts) = (&trial.options.pinning.target, trial.options.interrupts);
        self.asked = trial.options.emulate.to_vec();
        if !self.asked.contains(&Emulation::Htop) || trial.lane.is_foreign() {
            return Ok(());
        }
        let every = Duration::from_nanos(htop::EVERY.0);
        self.watch = CoresWatch::begin(target.cores().to_vec(), every).ok();
        if self.watch.is_some() {
            self.cores = target.to_string();
            pause(Duration::from_nanos(htop::phase(trial.trial.seed).0), interrupts);
        }
        Ok(())
    }

    /// Waits for the first sample after the load.
    fn settle(&mut self, trial: &mut TrialContext<'_>, outcome: &mut Outcome) -> Result<(), Stop> {
        let Some(watch) = self.watch.take() else { return Ok(()) };
        let epoch_ns = trial.clock.monotonic_ns;
        let until_ns = epoch_ns + ended(outcome, trial.load()).0;
        let looks: Vec<Reading> = watch.end(until_ns).iter().map(reading).collect();
        self.shown = Shown::of(&looks, (epoch_ns, until_ns));
        Ok(())
    }

    fn leave(&mut self, trial: &mut TrialContext<'_>, outcome: &mut Outcome) {
        self.figures = self.figures(trial.load(), outcome);
    }

    fn record(&mut self, _trial: &mut TrialContext<'_>, finished: &mut TrialFinished) {
        finished.metrics.append(&mut self.figures);
        let Some(shown) = self.shown else { return };
        let words = format!(
            "{} of {} s each on cores {}, from /proc/stat, begun {} ms before the load",
            shown.samples,
            htop::EVERY.as_secs_f64(),
            self.cores,
            htop::phase(finished.seed).0 / 1_000_000,
        );
        finished.scene.insert("htop.figures".to_owned(), words);
    }
}

impl Emulated {
    /// The figures of all emulated tools, by metric name.
    fn figures(&self, load: &Load, outcome: &Outcome) -> BTreeMap<String, f64> {
        let clients = clients(outcome, load);
        let recorder = &outcome.shards.recorder;
        let told = TrialFacts {
            load,
            sent: outcome.ledger.sent / load.copies().max(1),
            set_up: outcome.shards.set_up.map_or(Nanos(0), |(asked, stood)| stood - asked),
            between: recorder.span.first_sent.zip(recorder.span.last_done),
            last_sent: recorder.span.last_sent,
            service: &recorder.service,
            calls: (!recorder.session.is_empty()).then_some(&*recorder.response),
            one_way: &recorder.one_way,
            errors: &recorder.error,
            clients: &clients,
            htop: self.shown,
        };
        let all = self.asked.iter().flat_map(|own| figures(&told, *own));
        all.map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// Time of the last event that a tool would have waited for; losses do not count.
fn ended(outcome: &Outcome, load: &Load) -> Nanos {
    let recorder = &outcome.shards.recorder;
    let whole = load.duration.map(|duration| outcome.shards.measure_from + duration);
    let last = recorder
        .span
        .last_done
        .max(recorder.span.last_sent)
        .max(whole.map(|end| end.min(outcome.shards.ended)));
    last.unwrap_or(outcome.shards.ended)
}

/// Facts of each client, if each has its own subscriber.
fn clients(outcome: &Outcome, load: &Load) -> Vec<Client> {
    let is_paired = load.topology == Topology::Pairs || load.connections == 1;
    if !load.delivers() || !is_paired {
        return Vec::new();
    }
    let accounts = &outcome.shards.accounts;
    let consumers: BTreeMap<u32, _> =
        accounts.consumers.iter().map(|consumer| (consumer.index, consumer)).collect();
    let client = |producer: &weigh_engine::accounts::ProducerAccount| {
        let consumer = consumers.get(&producer.index)?;
        let last_sent = producer.sent_between.map(|(_, last)| last);
        Some(Client {
            published: producer.sent,
            first_sent: producer.sent_between.map(|(first, _)| first),
            published_until: last_sent.max(producer.last_confirmed),
            received: consumer.tally.unique(),
            last_arrived: consumer.last_arrived,
        })
    };
    accounts.producers.iter().filter_map(client).collect()
}

fn reading(look: &Look) -> Reading {
    let Look { at_ns, cores } = look;
    Reading { at_ns: *at_ns, busy_ns: cores.busy_ns(), all_ns: cores.all_ns() }
}

/// Sleeps, unless a signal ends the pause.
fn pause(length: Duration, interrupts: &Interrupts) {
    let end = Instant::now() + length;
    while Instant::now() < end && interrupts.exit().is_none() {
        std::thread::sleep(end.saturating_duration_since(Instant::now()).min(LOOK_EVERY));
    }
}

/// Interval at which a pause checks for signals.
const LOOK_EVERY: Duration = Duration::from_millis(50);
