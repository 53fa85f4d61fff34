//! What other tools would have told of a trial, told beside what was measured. For htop somebody
//! looks at the target's cores from before the load until after it; the others only count anew what
//! the generator recorded.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use weigh_emulate::htop::{self, Reading, Shown};
use weigh_emulate::{Client, Told, figures};
use weigh_engine::outcome::Outcome;
use weigh_model::event::TrialFinished;
use weigh_model::{Emulation, Load, Nanos, Topology, Trial};
use weigh_observe::cores::{CoresWatch, Look};

use crate::case::Case;
use crate::exit::Stop;
use crate::interrupts::Interrupts;
use crate::trial::measure::Surroundings;

/// Says no to figures of cores that are not known.
///
/// # Errors
/// If all targets are run by somebody else, and htop is asked for.
pub fn check(asked: &[Emulation], cases: &[Case]) -> Result<(), Stop> {
    let is_unseen = asked.contains(&Emulation::Htop);
    match cases.first().filter(|_| is_unseen && cases.iter().all(|case| case.lane.is_foreign())) {
        None => Ok(()),
        Some(case) => Err(Stop::usage(format!(
            "observe.emulate: htop shows the cores of a target, and those of {} are not known: \
             leave htop out, or name a server that weigh starts",
            case.lane.against.name()
        ))),
    }
}

/// Whoever looks while a trial runs.
pub struct Screen {
    asked: Vec<Emulation>,
    /// The cores that are looked at, in words, and who looks.
    cores: Option<(String, CoresWatch)>,
}

/// What came of it.
#[derive(Default)]
pub struct Emulated {
    asked: Vec<Emulation>,
    cores: String,
    shown: Option<Shown>,
}

impl Screen {
    /// Begins to look at the target's cores where that was asked for, and waits until the load is
    /// to begin: nobody starts one in step with his screen.
    pub fn open(around: &Surroundings<'_>, trial: &Trial, is_foreign: bool) -> Screen {
        let is_seen = around.emulate.contains(&Emulation::Htop) && !is_foreign;
        let target = &around.pinning.target;
        let every = Duration::from_nanos(htop::EVERY.0);
        let begin = || CoresWatch::begin(target.cores().to_vec(), every).ok();
        let watch = is_seen.then(begin).flatten();
        if watch.is_some() {
            let before = htop::phase(trial.seed);
            pause(Duration::from_nanos(before.0), around.interrupts);
        }
        let cores = watch.map(|watch| (target.to_string(), watch));
        Screen { asked: around.emulate.to_vec(), cores }
    }

    /// Waits for the first look after the load, whose clock stood at 0 at `epoch_ns`.
    pub fn end(self, outcome: &Outcome, trial: &Trial, epoch_ns: u64) -> Emulated {
        let Screen { asked, cores } = self;
        let Some((cores, watch)) = cores else { return Emulated { asked, ..Emulated::default() } };
        let until_ns = epoch_ns + ended(outcome, &trial.load).0;
        let looks: Vec<Reading> = watch.end(until_ns).iter().map(reading).collect();
        let shown = Shown::of(&looks, (epoch_ns, until_ns));
        Emulated { asked, cores, shown }
    }
}

impl Emulated {
    /// The figures of all that was asked for, by metric name.
    pub fn figures(&self, trial: &Trial, outcome: &Outcome) -> BTreeMap<String, f64> {
        let clients = clients(outcome, &trial.load);
        let recorder = &outcome.shards.recorder;
        let told = Told {
            load: &trial.load,
            sent: outcome.ledger.sent / trial.load.copies().max(1),
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

    /// Says in the record what htop's figures rest on.
    pub fn tell(&self, finished: &mut TrialFinished) {
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

/// When the last thing happened that a tool would have waited for: not what was lost.
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

/// What each client did, where each has a subscriber of its own.
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

/// A pause that a signal ends.
fn pause(length: Duration, interrupts: &Interrupts) {
    let end = Instant::now() + length;
    while Instant::now() < end && interrupts.exit().is_none() {
        std::thread::sleep(end.saturating_duration_since(Instant::now()).min(LOOK_EVERY));
    }
}

/// How soon a pause notices a signal.
const LOOK_EVERY: Duration = Duration::from_millis(50);
