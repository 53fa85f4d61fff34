//! One sitting of a search for limits: a trial of each lane in turn, as long as a lane's search
//! asks for one. What a search was told stands in the journal, so its answer can be made again, and
//! a search that ended early goes on from there.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use weigh_limit::{Search, Selector, TrialEnd, TrialRequest, TrialResult};
use weigh_model::event::Event;
use weigh_model::{Nanos, Trial};
use weigh_report::RunFolder;
use weigh_report::summary::quantiles;

use crate::case::Case;
use crate::exit::{Exit, Stop};
use crate::interrupts::Interrupts;
use crate::run::chronicle::Chronicle;
use crate::run::experiment::Experiment;
use crate::search::axis_load;
use crate::search::result::Over;
use crate::search::second_generator;
use crate::targets::behind::Await;
use crate::targets::kept::Targets;
use crate::trial::followed::{Followed, Scales};
use crate::trial::identity::Trials;
use crate::watcher::Standing;

/// Begins one search for every case of the experiment, in their order, and carries them out.
/// Returns why the first trial that could not be done was not.
///
/// # Errors
/// If the record cannot be written any more.
pub fn begin(
    experiment: &Experiment<'_>,
    searches: &[Search],
    second_generator: bool,
    folder: &RunFolder,
    interrupts: &Interrupts,
    chronicle: &mut Chronicle,
) -> Result<Option<Stop>, Stop> {
    for (case, search) in experiment.cases.iter().zip(searches) {
        let (lane, search) = (case.point.clone(), written(search)?);
        chronicle.put_down(Event::SearchBegun { lane, search, second_generator })?;
    }
    go_on(experiment, folder, interrupts, chronicle)
}

/// Carries out what is left of the searches that the journal has begun.
///
/// # Errors
/// If the record cannot be written any more, or if what it holds belongs to no search.
pub fn go_on(
    experiment: &Experiment<'_>,
    folder: &RunFolder,
    interrupts: &Interrupts,
    chronicle: &mut Chronicle,
) -> Result<Option<Stop>, Stop> {
    let events = chronicle.events()?;
    let mut lanes = lanes(experiment, &events)?;
    let logs = folder.path().join("targets");
    let life = experiment.plan.repeat.target;
    let display = &*experiment.watcher;
    let mut sitting = Sitting {
        scales: Scales { experiment, folder, interrupts, display },
        chronicle,
        trials: Trials::new(&experiment.plan, &[]),
        targets: Targets::new(
            life,
            experiment.catalogue,
            experiment.shards,
            logs,
            &experiment.program,
        )
        .asking(experiment.plan.observe.sys),
        tags: HashSet::new(),
        began: Instant::now(),
        before: clock(&events),
        count: lanes.iter().map(|lane| lane.told).sum(),
        first_failure: None,
    };
    // In turn, so that a machine that grows slower does so for all lanes.
    loop {
        let mut is_over = true;
        for lane in &mut lanes {
            if interrupts.exit().is_some() {
                return Ok(sitting.first_failure);
            }
            if let Some(request) = lane.selector.next_trial() {
                sitting.trial(lane, &request)?;
                is_over = false;
            }
        }
        if is_over {
            break;
        }
    }
    for lane in lanes.iter().filter(|lane| lane.asks_second_generator) {
        sitting.ask_second_generator(lane)?;
    }
    Ok(sitting.first_failure)
}

/// True if no search of these events asks for anything more.
pub fn is_done(experiment: &Experiment<'_>, events: &[Event]) -> Result<bool, Stop> {
    let mut lanes = lanes(experiment, events)?;
    let is_left =
        |lane: &mut Lane<'_>| lane.asks_second_generator || lane.selector.next_trial().is_some();
    Ok(!lanes.iter_mut().any(is_left))
}

/// A lane and its search.
struct Lane<'l> {
    case: &'l Case,
    search: Search,
    selector: Selector,
    /// How often a load was tried, by its case's own text.
    tried: HashMap<String, u32>,
    /// Trials that the search was told of before this sitting.
    told: u64,
    /// Whether one more generator is to be tried, and was not.
    asks_second_generator: bool,
}

/// The searches that have begun, each where its journal has left it.
fn lanes<'l>(experiment: &'l Experiment<'_>, events: &[Event]) -> Result<Vec<Lane<'l>>, Stop> {
    experiment.cases.iter().map(|case| lane(case, events)).collect()
}

fn lane<'l>(case: &'l Case, events: &[Event]) -> Result<Lane<'l>, Stop> {
    let unknown = |why: String| {
        Stop::usage(format!(
            "{}: its search cannot go on: {why}; start a new one with `weigh limit`",
            case.title()
        ))
    };
    let begun = events.iter().find_map(|event| match event {
        Event::SearchBegun { lane, search, second_generator } if *lane == case.point => {
            Some((search, *second_generator))
        }
        _ => None,
    });
    let (search, second) =
        begun.ok_or_else(|| unknown("the journal does not say what was searched".to_owned()))?;
    let search: Search = read(search.clone()).map_err(|error| unknown(error.to_string()))?;
    let told = events.iter().filter_map(|event| match event {
        Event::SearchTold { lane, result, .. } if *lane == case.point => Some(result.clone()),
        _ => None,
    });
    let results: Result<Vec<TrialResult>, _> = told.map(read).collect();
    let results = results.map_err(|error| unknown(error.to_string()))?;
    let count = results.len() as u64;
    let selector = Selector::replay(search.clone(), results)
        .map_err(|error| unknown(format!("what it was told has gaps ({error})")))?;
    let tried = tried(events);
    let is_asked =
        |event: &Event| matches!(event, Event::SecondGenerator(asked) if asked.lane == case.point);
    let asks_second_generator = second && !events.iter().any(is_asked);
    Ok(Lane { case, search, selector, tried, told: count, asks_second_generator })
}

/// How often each load was tried and told. A trial that was in progress is done again as itself.
fn tried(events: &[Event]) -> HashMap<String, u32> {
    let told = events.iter().filter_map(|event| match event {
        Event::SearchTold { trial, .. } => Some(trial.as_str()),
        _ => None,
    });
    let told: HashSet<&str> = told.collect();
    let mut tried = HashMap::new();
    for event in events {
        if let Event::TrialStarted { trial, point, repetition, .. } = event
            && told.contains(trial.as_str())
        {
            tried.insert(format!("{point:?}"), repetition + 1);
        }
    }
    tried
}

/// What the run's clock showed at the last thing that it timed.
fn clock(events: &[Event]) -> Nanos {
    let at = events.iter().rev().find_map(|event| match event {
        Event::TrialStarted { at_ns, .. } => *at_ns,
        _ => None,
    });
    Nanos(at.unwrap_or(0))
}

struct Sitting<'s> {
    scales: Scales<'s>,
    chronicle: &'s mut Chronicle,
    trials: Trials,
    targets: Targets,
    /// Tags of the marks so far: a target that serves several trials hears them all.
    tags: HashSet<u16>,
    began: Instant,
    /// What the run's clock showed when the sitting began.
    before: Nanos,
    count: u64,
    first_failure: Option<Stop>,
}

impl Sitting<'_> {
    /// One trial; what came of it is told to the search. One that a signal cut short is not, and
    /// one that a late generator spoilt is done again first: a pause of the machine ends no search.
    fn trial(&mut self, lane: &mut Lane<'_>, request: &TrialRequest) -> Result<(), Stop> {
        let began = Instant::now();
        for spare in (0..REPEATS).rev() {
            match self.attempt(lane, request, (spare, began))? {
                Attempt::Over => return Ok(()),
                Attempt::Spoilt => self.scales.display.say("the generator was late: once more"),
            }
        }
        Ok(())
    }

    /// The same, once. With attempts to spare a spoilt trial is recorded, but not told; its time is
    /// the search's all the same.
    fn attempt(
        &mut self,
        lane: &mut Lane<'_>,
        request: &TrialRequest,
        (spare, began): (u32, Instant),
    ) -> Result<Attempt, Stop> {
        let kind = lane.search.axis.kind();
        let load = axis_load::at(kind, &lane.case.load, request.load, request.duration);
        let point = axis_load::point(kind, &lane.case.point, &load);
        let case = Case { load, point, ..lane.case.clone() };
        let trial = self.identify(lane, &case);
        let id = trial.id.clone();
        self.announce(&case, kind.unit(), request);
        self.chronicle.put_down(Event::TrialStarted {
            trial: id.clone(),
            point: case.point.clone(),
            repetition: trial.repetition,
            at_ns: Some(self.before.0 + self.began.elapsed().as_nanos() as u64),
        })?;
        self.targets.await_counters(worth_waiting(&lane.search, request));
        let weighed = self.scales.weigh(&case, trial, &mut self.targets, false, self.chronicle);
        self.scales.display.trial_done();
        let elapsed = Nanos(began.elapsed().as_nanos() as u64);
        let goals = &lane.search.goals;
        let mut observed = serde_json::Value::Null;
        let result = match weighed {
            Ok(mut followed) => {
                let asked = goals.iter().flat_map(|goal| &goal.conditions);
                quantiles::add(&mut followed.finished, asked);
                let Followed { intervals, finished, .. } = &followed;
                let over = Over { request, load: &case.load, finished, intervals, elapsed };
                let (result, is_spoilt) = (over.result(goals), over.spoilt(goals).is_some());
                let is_cut_short = finished.is_cut_short();
                observed = written(&followed.observed)?;
                followed.write(|event| self.chronicle.put_down(event))?;
                if is_cut_short {
                    return Ok(Attempt::Over);
                }
                if is_spoilt && spare > 0 {
                    return Ok(Attempt::Spoilt);
                }
                result
            }
            Err(stop) if stop.exit() == Exit::Record => return Err(stop),
            Err(stop) if self.scales.interrupts.exit().is_some() => {
                self.scales.display.say(&stop.to_string());
                return Ok(Attempt::Over);
            }
            Err(stop) => self.failed(&id, &case, request, elapsed, stop)?,
        };
        self.tell(lane, id, request, result, observed)?;
        Ok(Attempt::Over)
    }

    /// The trial of this case, told apart from all others of the run.
    fn identify(&mut self, lane: &mut Lane<'_>, case: &Case) -> Trial {
        let tried = lane.tried.entry(format!("{:?}", case.point)).or_default();
        let mut trial = self.trials.trial(usize::MAX, case, *tried);
        *tried += 1;
        if self.tags.len() > TAGS_MAX {
            self.tags.clear();
        }
        while !self.tags.insert(trial.tag()) {
            trial.seed = trial.seed.wrapping_add(1);
        }
        trial
    }

    fn announce(&mut self, case: &Case, unit: &str, request: &TrialRequest) {
        self.count += 1;
        let name = format!("{}, {}{unit} for {}", case.title(), request.load, request.duration);
        self.scales.display.trial(Standing::in_search(&name, &case.load, self.count));
    }

    /// A trial that could not be done ends its search: it says nothing about the target.
    fn failed(
        &mut self,
        id: &str,
        case: &Case,
        request: &TrialRequest,
        elapsed: Nanos,
        stop: Stop,
    ) -> Result<TrialResult, Stop> {
        self.scales.display.say(&format!("{}: {stop}", case.title()));
        let (trial, point, error) = (id.to_owned(), case.point.clone(), stop.to_string());
        self.chronicle.put_down(Event::TrialFailed { trial, point, error: error.clone() })?;
        self.first_failure.get_or_insert(stop);
        Ok(TrialResult {
            load: request.load,
            duration: request.duration,
            elapsed,
            forwarded: 0,
            lost: 0,
            figures: Default::default(),
            end: TrialEnd::Invalid(error),
        })
    }

    /// Tells the search, as the journal holds it. What the search cannot use ends it.
    fn tell(
        &mut self,
        lane: &mut Lane<'_>,
        trial: String,
        request: &TrialRequest,
        result: TrialResult,
        observed: serde_json::Value,
    ) -> Result<(), Stop> {
        let mut result = reread(&result)?;
        if let TrialEnd::TooFew { metric, had, needed } = &result.end {
            let longer = "the next trial at this load is longer";
            self.scales
                .display
                .note(&format!("{metric} needs {needed} messages, this trial had {had}: {longer}"));
        }
        if let Err(unusable) = lane.selector.note(result.clone()) {
            result.end = TrialEnd::Invalid(unusable.to_string());
            let told = lane.selector.note(result.clone());
            told.map_err(|unusable| Stop::new(Exit::Internal, unusable))?;
        }
        self.chronicle.put_down(Event::SearchTold {
            lane: lane.case.point.clone(),
            trial,
            request: written(request)?,
            result: written(&result)?,
            observed,
        })
    }

    /// Offers more than the target takes, by one generator and by two.
    fn ask_second_generator(&mut self, lane: &Lane<'_>) -> Result<(), Stop> {
        let asked = second_generator::ask(&self.scales, lane.case, &lane.selector.answer());
        match asked? {
            Some(asked) => self.chronicle.put_down(Event::SecondGenerator(Box::new(asked))),
            None => Ok(()),
        }
    }
}

/// After which result of this trial the target's counters are waited for: a search asks what ended
/// it of trials at full length that lost too much.
fn worth_waiting(search: &Search, request: &TrialRequest) -> Await {
    let full = search.goals.iter().filter(|goal| request.duration >= goal.final_trial_duration);
    let share = full.map(|goal| goal.loss_ratio).fold(f64::INFINITY, f64::min);
    Await::LossAbove(share)
}

/// What came of a trial.
enum Attempt {
    /// It was told to the search, or a signal cut it short.
    Over,
    /// It was spoilt, and is to be done again.
    Spoilt,
}

/// What a reader of the journal gets, so that both decide alike.
fn reread(result: &TrialResult) -> Result<TrialResult, Stop> {
    let text = serde_json::to_string(result).map_err(|error| Stop::new(Exit::Internal, error))?;
    serde_json::from_str(&text).map_err(|error| Stop::new(Exit::Internal, error))
}

fn read<T: serde::de::DeserializeOwned>(value: serde_json::Value) -> serde_json::Result<T> {
    serde_json::from_value(value)
}

fn written(value: &impl serde::Serialize) -> Result<serde_json::Value, Stop> {
    serde_json::to_value(value).map_err(|error| Stop::new(Exit::Internal, error))
}

/// How often a load is tried before a generator that is late by chance ends the search.
const REPEATS: u32 = 3;

/// Tags have 16 bits; beyond half of them free ones are rare, and the first trials long over.
const TAGS_MAX: usize = 1 << 15;
