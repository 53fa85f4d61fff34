//! Runs one session of a search for limits: a trial of each lane in turn, until no search asks for
//! more. The journal has every result given to a search, so its answer can be recomputed, and a
//! search that ended early can be resumed.

use std::collections::{HashMap, HashSet};
use std::time::Instant;
use weigh_model::numbers::{count, exact};

use weigh_limit::{Search, Selector, TrialEnd, TrialRequest, TrialResult};
use weigh_model::event::Event;
use weigh_model::{Nanos, Trial};
use weigh_report::RunFolder;
use weigh_report::summary::quantiles;

use crate::case::Case;
use crate::exit::{Exit, Stop};
use crate::interrupts::Interrupts;
use crate::run::experiment::Experiment;
use crate::run::history::RunHistory;
use crate::search::axis_load;
use crate::search::backlog::Usual;
use crate::search::result::Over;
use crate::search::second_generator;
use crate::targets::external_counters::Await;
use crate::targets::pool::Targets;
use crate::trial::identity::Trials;
use crate::trial::trial_runner::{TrialOutcome, TrialRunner};
use crate::watcher::Standing;

/// Starts one search for every case of the experiment, in order, and runs them. Returns the first
/// failure of a trial.
///
/// # Errors
/// A record that cannot be written.
///
/// # Examples
///
/// Searches the highest rate of a broker that loses nothing:
///
/// ```no_run
/// use weigh_limit::{Axis, AxisKind, Goal, Search};
/// use weigh_runner::runner::Runner;
/// use weigh_runner::search::{request, trials};
///
/// let runner = Runner::new("/usr/local/bin/weigh", "runs")?;
/// let text = "target = \"mosquitto\"\nload = { rate = \"100/s\", duration = \"1s\" }";
/// let (plan, secrets) = runner.read("example", text)?;
/// let axis = Axis::new(AxisKind::Rate, 100.0, 1e6, 1.0)?;
/// let searches = vec![Search::new(axis, vec![Goal::minute()])];
/// let experiment = runner.search(plan, &secrets, |cases| request::largest(cases, &searches))?;
/// let finished = experiment.run_with(|own: &_, folder: &_, interrupts: &_, history: &mut _| {
///     trials::begin(own, &searches, false, folder, interrupts, history)
/// })?;
/// for limit in &finished.summary.limits {
///     println!("{}", limit.title());
/// }
/// # Ok::<(), weigh_runner::exit::Stop>(())
/// ```
pub fn begin(
    experiment: &Experiment<'_>,
    searches: &[Search],
    second_generator: bool,
    folder: &RunFolder,
    interrupts: &Interrupts,
    chronicle: &mut RunHistory,
) -> Result<Option<Stop>, Stop> {
    for (case, search) in experiment.cases.iter().zip(searches) {
        let (lane, search) = (case.point.clone(), written(search)?);
        chronicle.put_down(Event::SearchBegun { lane, search, second_generator })?;
    }
    go_on(experiment, folder, interrupts, chronicle)
}

/// Runs the rest of the searches in the journal.
///
/// # Errors
/// A record that cannot be written; events that belong to no search.
pub fn go_on(
    experiment: &Experiment<'_>,
    folder: &RunFolder,
    interrupts: &Interrupts,
    chronicle: &mut RunHistory,
) -> Result<Option<Stop>, Stop> {
    let events = chronicle.events()?;
    let mut lanes = lanes(experiment, &events)?;
    let display = &*experiment.watcher;
    let mut sitting = SearchSession {
        scales: TrialRunner { experiment, folder, interrupts, display },
        chronicle,
        trials: Trials::new(&experiment.plan, &[]),
        targets: experiment.targets(folder),
        tags: HashSet::new(),
        began: Instant::now(),
        before: clock(&events),
        count: lanes.iter().map(|lane| lane.told).sum(),
        first_failure: None,
    };
    // In turn, so that a machine that slows down affects all lanes.
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

/// True if no search of these events needs another trial.
///
/// # Errors
/// A journal whose searches cannot be read.
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
    /// Number of trials of each load, by the text of its case.
    tried: HashMap<String, u32>,
    /// Results that the search had before this session.
    told: u64,
    /// True if a test with a second generator is due.
    asks_second_generator: bool,
    /// The usual time of a message in its trials so far.
    usual: Usual,
}

/// The searches in the journal, each in its last state.
fn lanes<'l>(experiment: &'l Experiment<'_>, events: &[Event]) -> Result<Vec<Lane<'l>>, Stop> {
    experiment.cases.iter().map(|case| lane(case, events)).collect()
}

fn lane<'l>(case: &'l Case, events: &[Event]) -> Result<Lane<'l>, Stop> {
    let unknown = |why: String| {
        Stop::usage(format!(
            "{}: its search cannot be resumed: {why}; start a new one with `weigh limit`",
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
        begun.ok_or_else(|| unknown("the journal has no record of the search".to_owned()))?;
    let search: Search = read(search.clone()).map_err(|error| unknown(error.to_string()))?;
    let told = events.iter().filter_map(|event| match event {
        Event::SearchTold { lane, result, .. } if *lane == case.point => Some(result.clone()),
        _ => None,
    });
    let results: Result<Vec<TrialResult>, _> = told.map(read).collect();
    let results = results.map_err(|error| unknown(error.to_string()))?;
    let count = results.len() as u64;
    let selector = Selector::replay(search.clone(), results)
        .map_err(|error| unknown(format!("its results are incomplete ({error})")))?;
    let tried = tried(events);
    let is_asked =
        |event: &Event| matches!(event, Event::SecondGenerator(asked) if asked.lane == case.point);
    let asks_second_generator = second && !events.iter().any(is_asked);
    let kind = search.axis.kind();
    let finished = events.iter().filter_map(|event| match event {
        Event::TrialFinished(own) => Some(&**own),
        _ => None,
    });
    let own = finished.filter(|own| axis_load::is_of_lane(kind, &case.point, &own.point));
    let usual = own.fold(Usual::default(), |usual, own| usual.seen(kind, &case.load, own));
    Ok(Lane { case, search, selector, tried, told: count, asks_second_generator, usual })
}

/// Number of trials of each load with a recorded result. A trial in progress is repeated with the
/// same number.
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

/// The run's clock at the last timed event.
fn clock(events: &[Event]) -> Nanos {
    let at = events.iter().rev().find_map(|event| match event {
        Event::TrialStarted { at_ns, .. } => *at_ns,
        _ => None,
    });
    Nanos(at.unwrap_or(0))
}

struct SearchSession<'s> {
    scales: TrialRunner<'s>,
    chronicle: &'s mut RunHistory,
    trials: Trials,
    targets: Targets,
    /// Tags of the marks so far: a target that serves several trials receives all of them.
    tags: HashSet<u16>,
    began: Instant,
    /// The run's clock at the start of the session.
    before: Nanos,
    count: u64,
    first_failure: Option<Stop>,
}

impl SearchSession<'_> {
    /// Runs one trial and gives its result to the search. A result that a signal cut short is not
    /// used. A trial that a late generator made invalid is repeated first, because a pause of the
    /// machine must not end a search.
    fn trial(&mut self, lane: &mut Lane<'_>, request: &TrialRequest) -> Result<(), Stop> {
        let began = Instant::now();
        for spare in (0..REPEATS).rev() {
            match self.attempt(lane, request, (spare, began))? {
                Attempt::Over => return Ok(()),
                Attempt::Invalid => {
                    self.scales.display.say("the generator was late: repeating the trial");
                }
            }
        }
        Ok(())
    }

    /// Runs one trial once. With repeats left, an invalid trial is recorded but not given to the
    /// search; its time counts all the same.
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
        let at = self.before + Nanos(self.began.elapsed().as_nanos() as u64);
        let has_fleet = self.scales.experiment.fleet.is_some();
        let started = self.chronicle.started(&trial, at, has_fleet);
        self.chronicle.put_down(started)?;
        self.targets.await_counters(worth_waiting(&lane.search, request));
        let weighed =
            self.scales.weigh((&case, at), trial, &mut self.targets, false, self.chronicle);
        self.scales.display.trial_done();
        let elapsed = Nanos(began.elapsed().as_nanos() as u64);
        let goals = &lane.search.goals;
        let mut observed = serde_json::Value::Null;
        let result = match weighed {
            Ok(mut followed) => {
                let asked = goals.iter().flat_map(|goal| &goal.conditions);
                quantiles::add(&mut followed.finished, asked);
                let TrialOutcome { intervals, finished, .. } = &followed;
                lane.usual = lane.usual.seen(kind, &case.load, finished);
                let usual = lane.usual;
                let over = Over { request, load: &case.load, finished, intervals, elapsed, usual };
                let (result, is_invalid) = (over.result(goals), over.lag_warning(goals).is_some());
                let is_cut_short = finished.is_cut_short();
                observed = written(&followed.observed)?;
                followed.write(|event| self.chronicle.put_down(event))?;
                if is_cut_short {
                    return Ok(Attempt::Over);
                }
                if is_invalid && spare > 0 {
                    return Ok(Attempt::Invalid);
                }
                result
            }
            Err(stop) if stop.exit() == Exit::Record => return Err(stop),
            Err(stop) if self.scales.interrupts.exit().is_some() => {
                self.scales.display.say(&stop.to_string());
                return Ok(Attempt::Over);
            }
            Err(stop) => {
                if let Some(gone) = self.scales.lost_bus() {
                    self.scales.display.say(&stop.to_string());
                    return Err(gone);
                }
                self.failed(&id, &case, request, elapsed, stop)?
            }
        };
        self.tell(lane, id, request, result, observed)?;
        Ok(Attempt::Over)
    }

    /// The trial of this case, with an id and a tag of its own.
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
        let load = exact(request.load);
        let name = format!("{}, {load}{unit} for {}", case.title(), request.duration);
        self.scales.display.trial(Standing::in_search(&name, &case.load, self.count));
    }

    /// A failed trial ends its search, because it has no result for the target.
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
        let failed = Event::TrialFailed { trial, point, error: error.clone(), is_repeated: false };
        self.chronicle.put_down(failed)?;
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

    /// Gives the search a result as the journal holds it. A result that the search cannot use ends
    /// it.
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
            let (needed, had) = (count(*needed), count(*had));
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

    /// Runs the test with a second generator.
    fn ask_second_generator(&mut self, lane: &Lane<'_>) -> Result<(), Stop> {
        let asked = second_generator::ask(&self.scales, lane.case, &lane.selector.answer());
        match asked? {
            Some(asked) => self.chronicle.put_down(Event::SecondGenerator(Box::new(asked))),
            None => Ok(()),
        }
    }
}

/// Results after which the target's counters are awaited: a search needs the cause of losses in
/// trials of full length.
fn worth_waiting(search: &Search, request: &TrialRequest) -> Await {
    let full = search.goals.iter().filter(|goal| request.duration >= goal.final_trial_duration);
    let share = full.map(|goal| goal.loss_ratio).fold(f64::INFINITY, f64::min);
    Await::LossAbove(share)
}

/// End of a trial.
enum Attempt {
    /// The search has its result, or a signal cut it short.
    Over,
    /// It is invalid, and is repeated.
    Invalid,
}

/// Converts a result as a reader of the journal would get it, so that both decide alike.
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

/// Trials of a load before a generator that is late by chance ends the search.
const REPEATS: u32 = 3;

/// Tags have 16 bits; beyond half of them free ones are rare, and the first trials are long over.
const TAGS_MAX: usize = 1 << 15;
